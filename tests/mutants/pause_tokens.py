"""Wrong implementations of pause tokens: of the capability, its ledger, its keys, its source and its captures."""

from tests.mutants.mutant import Edit, Mutant, mutant

_CONTRACT = "tests/contract/pause_tokens"
_RUNS = "tests/integration/paused_runs"
_STATES = "tests/unit/test_pause_states.py::test_rows_prove"

PAUSE_TOKENS: tuple[Mutant, ...] = (
    mutant(
        "the claim comes before the checks",
        f"{_CONTRACT}/test_resume.py::test_a_bad_answer_then_a_good_one[library]",
        "reconciler/pauses/resume.py",
        "        payload = await self._load(validated, registration)\n",
        "        await self._service.consume(validated)\n        payload = await self._load(validated, registration)\n",
        Edit(
            "reconciler/pauses/resume.py",
            "        await self._service.consume(validated)\n        claims = validated.claims\n",
            "        claims = validated.claims\n",
        ),
    ),
    mutant(
        "the expiry is exclusive",
        f"{_CONTRACT}/test_claims.py::test_expiry_is_exact_on_both_sides[library]",
        "reconciler/pauses/claims.py",
        "        return not now <= self.exp\n",
        "        return not now < self.exp\n",
    ),
    mutant(
        "the run's axis is skipped",
        f"{_CONTRACT}/test_binding.py::test_one_wrong_axis_alone_is_refused_and_burns_nothing",
        "reconciler/pauses/binding.py",
        "        if run_id is not None and run_id != claims.run_id:\n",
        "        if run_id == '' and run_id != claims.run_id:\n",
    ),
    mutant(
        "open scopes open the other axes too",
        f"{_CONTRACT}/test_binding.py::test_an_open_scope_does_not_open_session_run_or_call",
        "reconciler/pauses/binding.py",
        "        if session_id is not None and session_id != claims.session_id:\n",
        "        if crossed:\n            return True\n"
        "        if session_id is not None and session_id != claims.session_id:\n",
    ),
    mutant(
        "only the parsed request is hashed",
        f"{_CONTRACT}/test_binding.py::test_mint_and_record_use_one_text_for_a_model[library]",
        "reconciler/pauses/checkpoints.py",
        "        if not self._binder.payload_body_matches(claims, text):\n            self._binder.check_payload(",
        "        if text:\n            self._binder.check_payload(",
    ),
    mutant(
        "the audit of another scope comes after the answer",
        f"{_CONTRACT}/test_resume.py::test_an_attempt_from_another_scope_is_audited_before_its_answer_is_looked_at",
        "reconciler/pauses/resume.py",
        "        validated = await self._bind(validated, command, registration, now)\n",
        "        payload = await self._load(validated, registration)\n"
        "        await self._check_response(registration, command.response, payload)\n"
        "        validated = await self._bind(validated, command, registration, now)\n",
    ),
    mutant(
        "a lifetime is clamped",
        f"{_CONTRACT}/test_values.py::test_a_lifetime_outside_its_bound_is_refused_and_never_clamped",
        "reconciler/pauses/ttl.py",
        "        if not 0 < wanted <= self.maximum_seconds:\n",
        "        wanted = min(wanted, self.maximum_seconds)\n        if not 0 < wanted <= self.maximum_seconds:\n",
    ),
    mutant(
        "durable pauses stand beside redemptions in memory",
        f"{_CONTRACT}/test_capability.py::test_durable_pauses_beside_volatile_redemptions_are_refused_at_start",
        "reconciler/pauses/capability.py",
        "        if require_durable:\n",
        "        if not require_durable:\n",
    ),
    mutant(
        "the schema is left to the signer",
        f"{_CONTRACT}/test_tokens.py::test_a_schema_is_compared_by_the_reader_itself[library]",
        "reconciler/pauses/tokens.py",
        '        if getattr(envelope, "schema_id", "") != self.SCHEMA_ID:\n',
        '        if getattr(envelope, "schema_id", "") is None:\n',
    ),
    mutant(
        "a colon may shift between the parts of a scope",
        f"{_CONTRACT}/test_traps.py::test_a_tenant_cannot_redeem_anothers_token_by_shifting_a_colon[library]",
        "reconciler/pauses/scopes.py",
        '    return part is not None and (":" in part or part == ABSENT)\n',
        "    return part == ABSENT\n",
    ),
    mutant(
        "a boolean is a number",
        f"{_CONTRACT}/test_claims.py::test_a_signed_claim_of_the_wrong_type_is_unauthorized_and_no_crash",
        "reconciler/pauses/claims.py",
        "    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_EPOCH_SECONDS\n",
        "    return isinstance(value, int) and 0 < value <= MAX_EPOCH_SECONDS\n",
    ),
    mutant(
        "a token leaves although its issuance was not recorded",
        f"{_CONTRACT}/test_tokens.py::test_a_token_whose_issuance_is_not_recorded_never_leaves",
        "reconciler/pauses/tokens.py",
        "            await self._ledger.record_issuance(claims, pin=binding.pin)\n",
        "            try:\n                await self._ledger.record_issuance(claims, pin=binding.pin)\n"
        "            except Exception:\n                pass\n",
    ),
    mutant(
        "the ledger redeems what has expired",
        f"{_CONTRACT}/test_store_ledger.py::test_expiry_is_exact_on_both_sides_in_the_statement_itself[sqlite]",
        "reconciler/pause_store/claiming.py",
        "        ISSUANCE.c.expires_at >= claim.now,\n",
        "",
    ),
    mutant(
        "two tokens of one request may both be redeemed",
        f"{_CONTRACT}/test_store_answers.py::test_another_answer_is_refused_and_the_first_stays",
        "reconciler/pause_store/answers.py",
        "            if not await _write_answer(connection, answer):\n                return False\n",
        "            await _write_answer(connection, answer)\n",
        Edit(
            "reconciler/pause_store/answers.py",
            "        if not stored.is_of(answer):\n",
            "        if not stored.is_of(answer) and is_committed is False:\n",
        ),
    ),
    mutant(
        "a locked database is a replay",
        f"{_CONTRACT}/test_store_failures.py::test_a_locked_database_is_no_replay",
        "reconciler/pause_store/ledger.py",
        "            decided = await self._claim_once(claim)\n            if decided is None:\n",
        "            try:\n                decided = await self._claim_once(claim)\n"
        "            except Exception:\n                return False\n            if decided is None:\n",
    ),
    mutant(
        "a lost commit counts as lost",
        f"{_CONTRACT}/test_store_failures.py::test_a_claim_whose_every_commit_was_lost_is_still_known_by_its_mark",
        "reconciler/pause_store/ledger.py",
        "                if await claimed_by(connection, jti) == claim.claim_id:\n",
        "                if await claimed_by(connection, jti) is claim.claim_id:\n",
    ),
    mutant(
        "a failed commit leaves its lock in the pool",
        "tests/integration/database/test_failed_commits.py::test_failed_commit_leaves_no_write_lock_in_the_pool",
        "config/database.py",
        "    if state.transaction_was_reset and state.asyncio_safe:\n",
        "    if not state.transaction_was_reset and state.asyncio_safe:\n",
    ),
    mutant(
        "a header may be spelled otherwise",
        f"{_CONTRACT}/test_signer.py::test_the_same_header_in_another_spelling_is_refused_even_when_it_is_signed",
        "worker/answers/signer.py",
        "        if header != _header_text(envelope.kid, schema_id):\n",
        "        if not header:\n",
    ),
    mutant(
        "a dropped key still vouches",
        f"{_CONTRACT}/test_signer.py::test_a_former_key_verifies_through_the_longest_lifetime_and_no_longer",
        "worker/answers/signer.py",
        "        if key is None or not key.verifies_at(self._clock.now()):\n",
        "        if key is None:\n",
    ),
    mutant(
        "a pause is over at its expiry",
        f"{_STATES}",
        "reconciler/sources/pause_states.py",
        "    if now > row.expires_at + grace.total_seconds():\n",
        "    if now > row.expires_at:\n",
    ),
    mutant(
        "a row that vanished is a closure",
        f"{_STATES}",
        "reconciler/sources/pause_states.py",
        "        return AttentionState.UNAVAILABLE, Evidence.NO_TERMINAL_EVIDENCE\n",
        "        return AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE\n",
    ),
    mutant(
        "the clock is read after the ledger",
        f"{_RUNS}/test_ledger_source.py::test_what_a_slow_reading_did_not_show_is_not_taken_for_absent",
        "reconciler/sources/pauses.py",
        "        return self._observation(reference, row, asked_at)\n",
        "        return self._observation(reference, row, self._clock.now())\n",
    ),
    mutant(
        "a settled request's token is kept",
        f"{_RUNS}/test_capture.py::test_token_is_deleted_by_the_transaction_that_settles_the_request[sqlite]",
        "reconciler/pause_store/captures.py",
        "    if attention_ids:\n",
        "    if not attention_ids:\n",
    ),
    mutant(
        "a pause is shown before it is captured",
        f"{_RUNS}/test_capture_hook.py::test_pause_is_committed_before_it_is_shown",
        "sinks/emit/capture.py",
        "            if pause is not None:\n                await self._capture_or_say(pause)\n"
        "            yield event\n",
        "            yield event\n"
        "            if pause is not None:\n                await self._capture_or_say(pause)\n",
    ),
    mutant(
        "a pause becomes resumable afterwards",
        f"{_RUNS}/test_capture.py::test_pause_that_is_not_resumable_is_never_raised_and_never_answerable[sqlite]",
        "reconciler/pause_store/captures.py",
        "        return self.is_resumable and self.envelope is not None\n",
        "        return self.envelope is not None\n",
    ),
)

"""Wrong readings of Cayu's human-attention contract."""

from tests.mutants.mutant import Edit, Mutant, mutant

_SWEEP = "tests/integration/reconciling/test_sweep.py"
_REFRESH = "tests/integration/reconciling/test_refresh.py"
_NOTIFICATIONS = "tests/integration/reconciling/test_notifications.py"
_ENROLLING = "tests/contract/cayu/test_enrolling.py"

CAYU: tuple[Mutant, ...] = (
    mutant(
        "absence settles",
        f"{_SWEEP}::test_absence_closes_nothing_and_the_exact_question_does[sqlite]",
        "reconciler/verify.py",
        "            return await source.observe(reference)\n",
        "            resolved = AttentionState.RESOLVED, Evidence.DURABLE_CLOSURE\n"
        "            return Observation(reference, *resolved, self._clock.now())\n",
    ),
    mutant(
        "entries are acknowledged before the commit",
        "tests/integration/test_consumer.py::test_unusable_database_acknowledges_nothing_and_loses_nothing",
        "sinks/consumer.py",
        "        batch = read_batch(entries)\n",
        "        batch = read_batch(entries)\n        await self._stream.acknowledge(batch.stream_ids, frozenset())\n",
    ),
    mutant(
        "the state is read and then written",
        f"{_NOTIFICATIONS}::test_racing_observers_of_different_ends_leave_one_winner[postgres]",
        "reconciler/changes.py",
        "                NOTIFICATIONS.c.id.in_(sorted(members)),\n"
        "                NOTIFICATIONS.c.state == old.value,\n"
        "                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),\n",
        "                NOTIFICATIONS.c.id.in_(sorted(members)),\n",
    ),
    mutant(
        "the cursor of an unfinished pass is dropped",
        f"{_SWEEP}::test_failing_store_resumes_where_it_stopped_and_verifies_all_the_same[sqlite]",
        "reconciler/sweep.py",
        '"scan_cursor": current.cursor if is_unfinished else None',
        '"scan_cursor": None',
    ),
    mutant(
        "our clock expires an approval",
        "tests/contract/cayu/test_clock.py::test_ten_years_by_our_clock_end_nothing[sqlite]",
        "reconciler/sources/cayu_projection.py",
        "        observation = Observation(reference, AttentionState.ACTIVE,",
        "        is_old = action.kind.value == 'tool_approval' and (seen_at - action.session.updated_at).days > 1\n"
        "        state = AttentionState.EXPIRED if is_old else AttentionState.ACTIVE\n"
        "        observation = Observation(reference, state,",
    ),
    mutant(
        "the incarnation is forgotten in the identity",
        "tests/integration/cayu/test_identities.py::test_identity_and_reference_of_every_kind_are_the_runtimes[sqlite]",
        "reconciler/references.py",
        "        reference.session_instance_id,\n        reference.kind.value,\n",
        "        reference.kind.value,\n",
    ),
    mutant(
        "unavailable counts as resolved",
        f"{_REFRESH}::test_unavailable_answer_to_a_hint_leaves_the_request_open[sqlite]",
        "reconciler/verify.py",
        "        applied = await self._notifications.apply(namespace, observations, door=door)\n",
        "        observations = [\n"
        "            Observation(seen.reference, AttentionState.RESOLVED, seen.reason, seen.observed_at)\n"
        "            if seen.state is AttentionState.UNAVAILABLE\n"
        "            else seen\n"
        "            for seen in observations\n"
        "        ]\n"
        "        applied = await self._notifications.apply(namespace, observations, door=door)\n",
    ),
    mutant(
        "follow-up types never enter the stream",
        "tests/unit/test_wakeup.py::test_wake_up_set_is_exactly_that_of_cayu_s_own_handoff",
        "sinks/emit/wakeup.py",
        "WAKE_UP_EVENTS = LIFECYCLE_EVENTS | FOLLOW_UP_EVENTS",
        "WAKE_UP_EVENTS = LIFECYCLE_EVENTS",
    ),
    mutant(
        "follow-up types refresh nothing",
        f"{_REFRESH}::test_follow_up_types_refresh_only_sessions_that_hold_an_open_request[sqlite]",
        "reconciler/refresh.py",
        "        held_open = await reader.has_open(follow_up) if follow_up else frozenset()\n",
        "        held_open: frozenset[str] = frozenset()\n",
    ),
    mutant(
        "follow-up types refresh every session",
        f"{_REFRESH}::test_follow_up_types_refresh_only_sessions_that_hold_an_open_request[sqlite]",
        "reconciler/refresh.py",
        "        held_open = await reader.has_open(follow_up) if follow_up else frozenset()\n",
        "        held_open = frozenset(follow_up)\n",
    ),
    mutant(
        "withheld sessions are enrolled",
        f"{_ENROLLING}::test_withheld_sessions_are_enrolled_by_no_door_and_counted[sqlite]",
        "reconciler/sources/cayu_admission.py",
        "                if is_withheld(session.metadata):\n",
        "                if not session.metadata and is_withheld(session.metadata):\n",
    ),
    mutant(
        "a hint is processed after an incomplete view",
        f"{_REFRESH}::test_hints_stay_unprocessed_after_an_incomplete_view_and_are_tried_again[sqlite]",
        "reconciler/refresh.py",
        "                self._sessions.put_off((namespace, item.session_id), self._clock.now())\n",
        "                await self._done(item)\n",
    ),
    mutant(
        "a conflict overwrites the terminal state",
        f"{_NOTIFICATIONS}::test_another_terminal_state_is_a_conflict_recorded_once[sqlite]",
        "reconciler/notifications.py",
        "            conflicts.append(item)\n",
        "            moved.append(item)\n",
        Edit(
            "reconciler/changes.py",
            "                NOTIFICATIONS.c.state == old.value,\n"
            "                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),\n",
            "                NOTIFICATIONS.c.state == old.value,\n",
        ),
    ),
    mutant(
        "a late opening reopens a settled request",
        f"{_NOTIFICATIONS}::test_late_opening_after_settlement_changes_nothing[sqlite]",
        "reconciler/notifications.py",
        "        elif not row.state.is_terminal:\n",
        "        elif not row.state.is_terminal or not item.state.is_terminal:\n",
        Edit(
            "reconciler/changes.py",
            "                NOTIFICATIONS.c.state == old.value,\n"
            "                NOTIFICATIONS.c.state.in_(_OPEN_WORDS),\n",
            "                NOTIFICATIONS.c.state == old.value,\n",
        ),
    ),
    mutant(
        "a second store is accepted silently",
        f"{_SWEEP}::test_another_store_under_the_name_is_refused_until_accepted[sqlite]",
        "reconciler/namespaces.py",
        "        if identity is not None and remembered.store_identity != identity:\n",
        "        if identity is None and remembered.store_identity != identity:\n",
    ),
    mutant(
        "a repeated cursor is followed",
        f"{_SWEEP}::test_repeated_cursor_ends_the_pass_as_incomplete[sqlite]",
        "reconciler/sweep.py",
        "            if not current.has_ended and page.next_cursor in cursors:\n",
        "            if current.has_ended and page.next_cursor in cursors:\n",
    ),
    mutant(
        "a head pass counts as complete",
        f"{_SWEEP}::test_head_pass_reads_only_what_changed_and_is_never_complete[sqlite]",
        "reconciler/sweep.py",
        "        return self.mode is Mode.FULL and self.has_ended and not self.problems\n",
        "        return self.has_ended and not self.problems\n",
    ),
    mutant(
        "a head pass reads everything",
        f"{_SWEEP}::test_head_pass_reads_only_what_changed_and_is_never_complete[sqlite]",
        "reconciler/sweep.py",
        "                current.mode is Mode.HEAD and _is_older(page.oldest_updated_at, until)\n",
        "                current.mode is Mode.FULL and _is_older(page.oldest_updated_at, until)\n",
    ),
    mutant(
        "the problem of an earlier part is forgotten",
        f"{_SWEEP}::test_issue_of_an_earlier_part_keeps_the_resumed_pass_incomplete[sqlite]",
        "reconciler/sweep.py",
        "    return frozenset(current.problems & {",
        "    return frozenset(set() & {",
    ),
    mutant(
        "references are verified only after a clean scan",
        "tests/contract/cayu/test_passes.py::test_references_are_verified_apart_from_a_scan_that_fails[sqlite]",
        "reconciler/sweep.py",
        "        if mode is Mode.FULL and problem is not Incomplete.WRONG_STORE:\n",
        "        if mode is Mode.FULL and not current.problems:\n",
    ),
    mutant(
        "every row that a page shows is asked about again",
        f"{_SWEEP}::test_row_that_the_pages_show_is_not_asked_about[sqlite]",
        "reconciler/verify.py",
        "            todo = [item for item in batch if item.reference.attention_id not in shown]\n",
        "            todo = list(batch)\n",
    ),
    mutant(
        "what is unavailable is asked about at a fixed interval",
        f"{_SWEEP}::test_reference_that_stays_unavailable_is_asked_less_and_less_often[sqlite]",
        "reconciler/verify.py",
        "                pause = min(FIRST_RETRY * 2 ** min(item.verify_failures, 16), RETRY_CEILING)\n",
        "                pause = FIRST_RETRY\n",
    ),
    mutant(
        "an unknown session is forgotten",
        f"{_REFRESH}::test_unknown_session_makes_a_head_pass_due_once_per_burst[sqlite]",
        "reconciler/refresh.py",
        "                is_head_wanted = True\n",
        "                is_head_wanted = False\n",
    ),
    mutant(
        "a request that is settled already is enrolled",
        f"{_NOTIFICATIONS}::test_unknown_request_that_is_already_settled_is_not_enrolled[sqlite]",
        "reconciler/notifications.py",
        "            if item.request is not None and not item.state.is_terminal:\n",
        "            if item.request is not None:\n",
    ),
    mutant(
        "an issue of the store is passed over",
        "tests/contract/cayu/test_passes.py"
        "::test_action_without_an_incarnation_is_counted_and_makes_the_pass_incomplete[sqlite]",
        "reconciler/sources/cayu_queries.py",
        "        problems.add(Incomplete.UNPROJECTABLE_ACTION)\n",
        "        problems.clear()\n",
    ),
    mutant(
        "a delegating parent counts as unprojectable",
        "tests/contract/cayu/test_passes.py::test_cursor_is_followed_with_unchanged_filters_to_the_end[sqlite]",
        "reconciler/sources/cayu_projection.py",
        "            delegations.append(DelegationRow(delegation, action.session.parent_session_id,"
        " action.session.agent_name))\n            continue\n",
        "            delegations.append(DelegationRow(delegation, action.session.parent_session_id,"
        " action.session.agent_name))\n            unprojectable_count += 1\n            continue\n",
    ),
    mutant(
        "the enrollment boundary is not kept",
        f"{_ENROLLING}::test_boundary_is_kept_shown_and_leaves_older_requests_out[sqlite]",
        "reconciler/sources/cayu_admission.py",
        "        if boundary is not None and paused_at is not None and paused_at < boundary:\n",
        "        if boundary is not None and paused_at is None:\n",
    ),
)

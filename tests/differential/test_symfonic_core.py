"""The capability beside symfonic-core 9.12.0, on generated input, where that release is an oracle.

Run by `make differential`, in an environment of its own.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from symfonic.agent.middleware.pause_token import PauseToken
from symfonic.agent.types import FrameworkTenantScope
from symfonic.core.contracts.elicitation import AskUserOption, AskUserQuestion, AskUserRequest, PauseTokenClaims
from symfonic.core.contracts.types import AskUserQuestionEvent

from reconciler.pauses import (
    PauseClaims,
    PauseTokenUnauthorizedError,
    ScopeBindingError,
    hash_payload,
    hash_scope,
    hash_scope_exactly,
)
from reconciler.pauses.claims import LEGACY_CLAIM_KEYS
from sinks.emit.capture import pause_of

pytestmark = pytest.mark.filterwarnings("ignore:Bare TenantScope:DeprecationWarning")

TEXT = st.text(max_size=40)
IDS = st.text(st.characters(exclude_characters=":", codec="utf-8"), min_size=1, max_size=20).filter(
    lambda text: text != "_" and text.strip()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
SECRET = "a-secret-of-the-tests-of-at-least-thirty-two-bytes"


class Payload(BaseModel):
    """A request as a deployment may register one."""

    text: str
    numbers: list[int] = []
    more: dict[str, str | None] = {}


def relative_scope(tenant: str, sub: str | None, namespace: str | None) -> Any:
    """Make the relative's scope, which wants sub-tenant and namespace to agree where both are given."""
    assume(sub is None or namespace is None or sub == namespace)
    return FrameworkTenantScope(tenant_id=tenant, sub_tenant_id=sub, namespace=namespace)


@given(IDS, st.none() | IDS, st.none() | IDS)
def test_scopes_hash_as_the_relatives(tenant: str, sub: str | None, namespace: str | None) -> None:
    scope = relative_scope(tenant, sub, namespace)

    assert hash_scope(scope) == PauseToken.hash_scope(scope)


@given(IDS, IDS, IDS)
def test_scopes_that_the_relative_confuses_are_refused_here_and_told_apart_exactly(a: str, b: str, c: str) -> None:
    one, other = relative_scope(f"{a}:{b}", c, None), relative_scope(a, f"{b}:{c}", None)

    assert PauseToken.hash_scope(one) == PauseToken.hash_scope(other)
    for scope in (one, other):
        with pytest.raises(ScopeBindingError):
            hash_scope(scope)
    assert hash_scope_exactly(one) != hash_scope_exactly(other)


@given(JSON)
def test_values_hash_as_the_relatives(value: Any) -> None:
    assert hash_payload(value) == PauseToken.hash_payload(value)


@given(st.builds(Payload))
def test_models_hash_as_the_relatives(payload: Payload) -> None:
    assert hash_payload(payload) == PauseToken.hash_payload(payload)


CLAIM = st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=40)
CLAIMS = st.fixed_dictionaries(
    dict.fromkeys(sorted(LEGACY_CLAIM_KEYS - {"exp"}), CLAIM) | {"exp": st.integers(1, 253_402_300_799)}
)


@given(CLAIMS)
def test_the_relatives_claims_are_read_here_and_written_back_alike(values: dict[str, Any]) -> None:
    theirs = PauseTokenClaims(**values)
    ours = PauseClaims.decode(theirs.model_dump_json().encode())

    assert ours.as_legacy_dict() == theirs.model_dump()
    assert set(theirs.model_dump()) == LEGACY_CLAIM_KEYS
    assert (ours.root_run_id, ours.issued_at, ours.legacy_pinned) == ("", 0.0, False)


@given(CLAIMS, st.sampled_from(sorted(PauseTokenClaims.model_fields)))
def test_a_claim_is_required_here_where_it_is_there(values: dict[str, Any], missing: str) -> None:
    body = {name: value for name, value in values.items() if name != missing}
    is_required = PauseTokenClaims.model_fields[missing].is_required()

    try:
        PauseClaims.decode(json.dumps(body).encode())
    except PauseTokenUnauthorizedError:
        assert is_required
    else:
        assert not is_required


def test_a_claim_that_the_relative_drops_silently_is_refused_here() -> None:
    values = {**CLAIMS_EXAMPLE, "admin": True}

    assert "admin" not in PauseTokenClaims(**values).model_dump()
    with pytest.raises(PauseTokenUnauthorizedError, match="admin"):
        PauseClaims.decode(json.dumps(values).encode())


CLAIMS_EXAMPLE = dict.fromkeys(sorted(LEGACY_CLAIM_KEYS - {"exp"}), "x") | {"exp": 2_000_000_000}


@settings(max_examples=25)
@given(CLAIMS.map(lambda values: {**values, "exp": 4_000_000_000}).filter(lambda values: values["jti"]))
def test_the_capture_hook_reads_the_relatives_own_event_and_token(values: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JWT_SECRET", SECRET)
        token = PauseToken.encode(PauseTokenClaims(**values), None)
    event = AskUserQuestionEvent(
        run_id=values["run_id"],
        session_id=values["session_id"],
        pause_token=token,
        request=a_request(),
        tool_call_id=values["tool_call_id"],
        expires_at=datetime(2096, 1, 1, tzinfo=UTC),
    )

    found = pause_of(event)

    assert found is not None
    assert (found.jti, found.envelope, found.resumable) == (values["jti"], token, False)
    assert found.call_id == (values["tool_call_id"] or values["interrupt_id"])
    for name in ("session_id", "run_id", "thread_id", "checkpoint_id"):
        assert getattr(found, name) == values[name]


def a_request() -> AskUserRequest:
    options = [AskUserOption(label=label, description=label) for label in ("Yes", "No")]
    return AskUserRequest(questions=[AskUserQuestion(question="Deploy?", header="Deploy", options=options)])

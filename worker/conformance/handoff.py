"""Tries out a receiver of the handoff: plays what senders do, right and wrong, and says what it makes of it.

It invents requests in a session of its own whose name begins with `handoff-check:`, and settles every one of them in
the end. People may be told of them: give it a namespace of its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from aiohttp import ClientSession

from reconciler.states import Kind
from worker.conformance.sender import PROTOCOL, Sender, Wrong, active, body, verified

_MAX_VERIFY = 200
_OVERSIZE_BYTES = 70 * 2**20
_CHUNK = b" " * 2**16


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check found; `wrong` is None where all is right, `is_skipped` where it could not be tried."""

    name: str
    wrong: str | None = None
    is_skipped: bool = False


async def try_out(http: ClientSession, url: str, token: str, *, second_token: str | None = None) -> list[Verdict]:
    """Play every sequence against the receiver at `url` and clean up; returns the verdicts in order.

    `second_token` is another valid token of the same namespace, for trying a rotation.
    """
    sender = Sender(http, url, token)
    verdicts = []
    for name, check in _CHECKS:
        verdicts.append(await _verdict(name, check(sender)))
    name = "two tokens are valid at once, so that one can replace the other"
    if second_token is None:
        verdicts.append(Verdict(name, is_skipped=True))
    else:
        verdicts.append(await _verdict(name, _rotation(sender, second_token)))
    verdicts.append(await _verdict("everything that this check opened is settled again", _clean_up(sender)))
    return verdicts


async def _verdict(name: str, check: Awaitable[None]) -> Verdict:
    try:
        await check
    except Wrong as wrong:
        return Verdict(name, str(wrong))
    return Verdict(name)


async def _state(sender: Sender) -> None:
    state = (await sender.call("GET", "state")).accepted()
    cursor, interval = state.get("scan_cursor"), state.get("reconcile_interval_seconds")
    if cursor is not None and not isinstance(cursor, str):
        raise Wrong("`scan_cursor` is neither null nor a text")
    if interval is not None and (isinstance(interval, bool) or not isinstance(interval, int | float)):
        raise Wrong("`reconcile_interval_seconds` is not a number")


async def _wrong_token(sender: Sender) -> None:
    for token in (sender.token + "x", ""):
        (await sender.call("GET", "state", token=token)).refused(401, 403)
        (await sender.call("POST", "observations", token=token, json=body())).refused(401, 403)


async def _empty_first(sender: Sender) -> None:
    if verify := await _verify(sender):
        raise Wrong(f"asked about {len(verify)} requests of a session that never had any")


async def _life(sender: Sender) -> None:
    for kind in (Kind.USER_INPUT, Kind.TOOL_APPROVAL, Kind.MANUAL_RECOVERY):
        await _live(sender, kind)


async def _live(sender: Sender, kind: Kind) -> None:
    reference = sender.invent(kind)
    attention_id = reference["attention_id"]
    (await sender.observe(active(reference), **sender.scope())).accepted()
    if attention_id not in await sender.listed():
        raise Wrong(f"an active {kind} is not among the references")
    if attention_id not in await _verify(sender):
        raise Wrong(f"a complete session without its {kind} did not bring it into `verify`")
    for _ in range(2):
        (await sender.observe(verified(reference, "unavailable", "no_terminal_evidence"))).accepted()
    if attention_id not in await sender.listed():
        raise Wrong("`unavailable` settled a request; only a terminal state may")
    (await sender.observe(verified(reference, "resolved", "durable_closure"))).accepted()
    if attention_id in await sender.listed():
        raise Wrong("a resolved request is still among the references")


async def _duplicates(sender: Sender) -> None:
    reference = sender.invent()
    for _ in range(2):
        (await sender.observe(active(reference))).accepted()
    (await sender.observe(active(reference), active(reference))).accepted()
    if (await sender.listed()).count(reference["attention_id"]) != 1:
        raise Wrong("an observation that came several times is not listed exactly once")


async def _out_of_order(sender: Sender) -> None:
    reference = sender.invent()
    (await sender.observe(active(reference))).accepted()
    (await sender.observe(verified(reference, "cancelled", "durable_closure"))).accepted()
    (await sender.observe(active(reference), **sender.scope())).accepted()
    (await sender.observe(verified(reference, "unavailable", "no_terminal_evidence"))).accepted()
    if reference["attention_id"] in await sender.listed():
        raise Wrong("a late observation reopened a settled request")


async def _incomplete_scope(sender: Sender) -> None:
    reference = sender.invent()
    (await sender.observe(active(reference))).accepted()
    answer = (await sender.observe(**sender.scope(complete=False))).accepted()
    if answer.get("verify"):
        raise Wrong("an incomplete session brought references into `verify`")
    if reference["attention_id"] not in await sender.listed():
        raise Wrong("an incomplete session settled a request")


async def _cursor(sender: Sender) -> None:
    before = (await sender.call("GET", "state")).accepted().get("scan_cursor")
    try:
        (await sender.observe(scan={"cursor": "handoff-check", "complete": False})).accepted()
        if (await sender.call("GET", "state")).accepted().get("scan_cursor") != "handoff-check":
            raise Wrong("the scan cursor is not what the last accepted batch said")
        (await sender.observe(scan={"cursor": None, "complete": True})).accepted()
        if (await sender.call("GET", "state")).accepted().get("scan_cursor") is not None:
            raise Wrong("the scan cursor stays after a scan that ended")
    finally:
        await sender.observe(scan={"cursor": before, "complete": False})


async def _forged(sender: Sender) -> None:
    good = sender.invent()
    forged = {**sender.invent(), "action_id": "handoff-check:forged"}
    (await sender.observe(active(good), active(forged))).refused(409)
    if await _is_any_listed(sender, good, forged):
        raise Wrong("a batch with a forged identity was partly accepted")


async def _malformed(sender: Sender) -> None:
    good = sender.invent()
    wrong: tuple[object, ...] = (
        {**body(active(good)), "protocol": PROTOCOL + "0"},
        {**body(active(good)), "surprise": True},
        body({**active(good), "question": "?"}),
        body({**active(good), "state": "open"}),
        body(active({**good, "source_sequence": "1"})),
        body(active({key: value for key, value in good.items() if key != "session_id"})),
        {"observations": "none", "protocol": PROTOCOL, "runtime_version": "0.15.0"},
        [],
    )
    for content in wrong:
        (await sender.call("POST", "observations", json=content)).refused()
    (await sender.call("POST", "observations", data=b"{")).refused()
    if await _is_any_listed(sender, good):
        raise Wrong("a malformed batch was partly accepted")


async def _too_many(sender: Sender) -> None:
    many = [sender.invent() for _ in range(_MAX_VERIFY + 1)]
    (await sender.observe(*(active(item) for item in many))).refused()
    if await _is_any_listed(sender, *many):
        raise Wrong("a batch of 201 was partly accepted")


async def _oversize(sender: Sender) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(_OVERSIZE_BYTES // len(_CHUNK)):
            yield _CHUNK

    try:
        answer = await sender.call("POST", "observations", data=endless())
    except Wrong:
        return  # it hung up, which bounds it too
    answer.refused()


async def _bounded_verify(sender: Sender) -> None:
    many = [sender.invent() for _ in range(_MAX_VERIFY + 1)]
    (await sender.observe(*(active(item) for item in many[:_MAX_VERIFY]))).accepted()
    (await sender.observe(active(many[-1]))).accepted()
    first = await _verify(sender)
    if len(first) > _MAX_VERIFY:
        raise Wrong(f"`verify` holds {len(first)} references; more than 200 make the sender fail")
    missing = {item["attention_id"] for item in many} - set(first)
    checked = [sender.opened[attention_id] for attention_id in first if attention_id in sender.opened]
    (await sender.observe(*(verified(item, "active", "current_action") for item in checked))).accepted()
    if not missing <= set(await _verify(sender)):
        raise Wrong("`verify` names the same references again before those that were not asked about yet")


async def _report(sender: Sender) -> None:
    report = {"issues": ["attention_unavailable"], "observed": 1, "pages": 1}
    complete = {"scan_complete": True, "verify_complete": False}
    head = {"protocol": PROTOCOL, "runtime_version": "0.15.0"}
    (await sender.call("POST", "reconciliations", json={**head, **report, **complete})).accepted()


async def _rotation(sender: Sender, second_token: str) -> None:
    (await sender.call("GET", "state", token=second_token)).accepted()
    (await sender.call("GET", "state")).accepted()


async def _clean_up(sender: Sender) -> None:
    opened = list(sender.opened.values())
    for start in range(0, len(opened), _MAX_VERIFY):
        part = opened[start : start + _MAX_VERIFY]
        await sender.observe(*(verified(item, "superseded", "durable_supersession") for item in part))
    if left := await sender.listed():
        raise Wrong(f"{len(left)} references of session {sender.session_id} are left")


async def _verify(sender: Sender) -> list[str]:
    """Say that nothing is pending in our session; return what the receiver asks about."""
    verify = (await sender.observe(**sender.scope())).accepted().get("verify", [])
    if not isinstance(verify, list):
        raise Wrong("`verify` is not a list")
    return [str(item.get("attention_id")) for item in verify if isinstance(item, dict)]


async def _is_any_listed(sender: Sender, *references: dict[str, object]) -> bool:
    return bool({item["attention_id"] for item in references} & set(await sender.listed()))


_CHECKS: tuple[tuple[str, Callable[[Sender], Awaitable[None]]], ...] = (
    ("state says where a scan resumes", _state),
    ("a wrong or missing token is declined (401, 403)", _wrong_token),
    ("a session without requests comes first, and asks about nothing", _empty_first),
    ("a request of each kind lives, survives `unavailable`, and is resolved", _life),
    ("a duplicate is one request", _duplicates),
    ("a late observation reopens nothing", _out_of_order),
    ("an incomplete session asks about nothing", _incomplete_scope),
    ("a scan resumes at the cursor that was accepted last", _cursor),
    ("a forged identity is refused (409), with its whole batch", _forged),
    ("wrong protocol, unknown fields, wrong types are refused whole, in JSON", _malformed),
    ("a batch of more than 200 is refused whole", _too_many),
    ("an oversize body is refused", _oversize),
    ("`verify` holds at most 200, those first that were checked longest ago", _bounded_verify),
    ("a report is taken", _report),
)

"""What every source must do, as checks that any test suite can run against its own: built-in and plug-in alike.

A check takes a `Subject` (a source over a store in which requests wait) and raises AssertionError where the source
breaks what the reconciler relies on; what a source has no ability for is not asked of it. `CHECKS` holds all of them;
those of `CHANGING` leave another store behind.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.errors import SourceError, SourceUnavailable
from reconciler.references import Observation, Reference
from reconciler.sources.protocol import Incomplete, Observes, PushOnly, RefreshesSessions, Scans, Source
from reconciler.sources.testing.paging import KnownIds, all_shown, every_page
from reconciler.states import TERMINAL_STATES, AttentionState, Evidence
from reconciler.tables import ACTION_ID_CHARS, ID_CHARS, SESSION_ID_CHARS

# Ids that no store has, and that some libraries choke on.
NO_SESSIONS = ("no-such-session", " ", "", "nul\x00", "lone\udc80", "x" * 10_000, "../../etc/passwd", "a'; --")


@dataclass(frozen=True, slots=True)
class Subject:
    """A source under test, behind which at least two requests wait.

    `settle` brings one of them to its end, behind the source's back, and returns its reference. `break_down` takes
    away what the source stands on. `secrets` must never be seen in an error.
    """

    source: Source
    settle: Callable[[], Awaitable[Reference]] | None = None
    break_down: Callable[[], Awaitable[None]] | None = None
    secrets: Sequence[str] = ()


Check = Callable[[Subject], Awaitable[None]]


async def can_be_believed_at_all(subject: Subject) -> None:
    """It can be asked about a reference, or says how long its last word counts: else nothing would ever be sent."""
    assert isinstance(subject.source, Observes | PushOnly)
    if isinstance(subject.source, PushOnly):
        assert subject.source.fresh_for > timedelta(0)


async def says_who_it_is_and_passes_its_check(subject: Subject) -> None:
    """The identity stays the same, and a sound source passes its own check."""
    await subject.source.check()
    first, second = await subject.source.identity(), await subject.source.identity()
    assert first == second
    assert first is None or 0 < len(first) <= ID_CHARS


async def scan_shows_what_waits(subject: Subject) -> None:
    """Every request is shown once, as active, with what is known of it, and within the bounds of the tables."""
    if not isinstance(subject.source, Scans):
        return
    shown = await all_shown(subject.source)
    assert len(shown) >= 2, "the subject has at least two requests"
    assert len({item.reference.attention_id for item in shown}) == len(shown)
    for item in shown:
        assert (item.state, item.reason) == (AttentionState.ACTIVE, Evidence.CURRENT_ACTION)
        assert item.observed_at.tzinfo is not None
        assert item.request is not None
        assert 0 < len(item.reference.attention_id) <= ID_CHARS
        assert len(item.reference.session_id) <= SESSION_ID_CHARS
        assert len(item.reference.session_instance_id) <= ID_CHARS
        assert len(item.reference.action_id) <= ACTION_ID_CHARS


async def small_pages_show_the_same(subject: Subject) -> None:
    """A scan in the smallest pages shows what one in large ones does, without a problem."""
    if not isinstance(subject.source, Scans):
        return
    whole = await all_shown(subject.source)
    parts = await every_page(subject.source, limit=1)
    assert _references(item for page in parts for item in page.active) == _references(whole)
    assert not any(page.problems for page in parts)


async def shows_what_is_known_too(subject: Subject) -> None:
    """A request that has a notification already is still shown, under the same identity."""
    if not isinstance(subject.source, Scans):
        return
    ids = {item.reference.attention_id for item in await all_shown(subject.source)}
    again = await all_shown(subject.source, known=KnownIds(*ids))
    assert {item.reference.attention_id for item in again} == ids


async def says_that_a_cursor_is_refused(subject: Subject) -> None:
    """A cursor that it never gave is CURSOR_REFUSED, so that the next pass begins anew and does not hang there."""
    if not isinstance(subject.source, Scans):
        return
    source = subject.source
    error = await _refusal(lambda: source.page("no such cursor", limit=200, known=KnownIds()))
    assert isinstance(error, SourceUnavailable)
    assert error.reason == Incomplete.CURSOR_REFUSED


async def session_shows_what_the_scan_shows(subject: Subject) -> None:
    """The view of a session is complete, and shows those requests of the scan that are its own."""
    if not (isinstance(subject.source, Scans) and isinstance(subject.source, RefreshesSessions)):
        return
    shown = await all_shown(subject.source)
    session_id = shown[0].reference.session_id
    view = await subject.source.session(session_id, known=KnownIds())
    assert _references(view.active) == _references(i for i in shown if i.reference.session_id == session_id)
    assert not view.problems


async def session_that_is_not_there_is_not_found(subject: Subject) -> None:
    """Whatever a hint says as its session, the answer is SESSION_NOT_FOUND, never an exception."""
    if not isinstance(subject.source, RefreshesSessions):
        return
    for session_id in NO_SESSIONS:
        view = await subject.source.session(session_id, known=KnownIds())
        assert not view.active, session_id
        assert view.problems == {Incomplete.SESSION_NOT_FOUND}, session_id


async def observes_what_waits_as_active(subject: Subject) -> None:
    """Asked about a request that it shows, it says active, of that very reference."""
    if not (isinstance(subject.source, Scans) and isinstance(subject.source, Observes)):
        return
    reference = (await all_shown(subject.source))[0].reference
    answer = await subject.source.observe(reference)
    assert (answer.reference, answer.state) == (reference, AttentionState.ACTIVE)


async def stranger_is_unavailable(subject: Subject) -> None:
    """A reference whose identity is not one of its own is unavailable: nothing is invented."""
    if not (isinstance(subject.source, Scans) and isinstance(subject.source, Observes)):
        return
    reference = (await all_shown(subject.source))[0].reference
    for stranger in (
        replace(reference, attention_id="attention_" + "0" * 64),
        replace(reference, attention_id="attention_" + "1" * 64, session_id="no-such-session", action_id="none"),
    ):
        answer = await subject.source.observe(stranger)
        assert answer.state is AttentionState.UNAVAILABLE, answer


async def end_is_said_and_absence_is_not(subject: Subject) -> None:
    """What has ended is no longer shown, which says nothing; asked about it, the source says so again and again."""
    if subject.settle is None:
        return
    ended = await subject.settle()
    if isinstance(subject.source, Scans):
        shown = await all_shown(subject.source)
        assert ended.attention_id not in {item.reference.attention_id for item in shown}
        assert not any(item.state in TERMINAL_STATES for item in shown)
    if isinstance(subject.source, Observes):
        first, second = await subject.source.observe(ended), await subject.source.observe(ended)
        assert first.state in TERMINAL_STATES, first
        assert (second.state, second.reason) == (first.state, first.reason)


async def outage_is_unavailable(subject: Subject) -> None:
    """Without what it stands on, `observe` says unavailable and the rest raises, in one line without a secret."""
    if subject.break_down is None:
        return
    source = subject.source
    known = KnownIds()
    reference = (await all_shown(source))[0].reference if isinstance(source, Scans) else None
    session_id = reference.session_id if reference else "no-such-session"
    await subject.break_down()
    if isinstance(source, Observes) and reference is not None:
        answer = await source.observe(reference)
        assert (answer.state, answer.reason) == (AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE)
    if isinstance(source, Scans):
        assert _is_one_line(await _refusal(lambda: source.page(None, limit=200, known=known)), subject.secrets)
    if isinstance(source, RefreshesSessions):
        assert _is_one_line(await _refusal(lambda: source.session(session_id, known=known)), subject.secrets)
    assert _is_one_line(await _refusal(source.check), subject.secrets)


async def closes_twice(subject: Subject) -> None:
    """Closing is safe to repeat, after use."""
    await subject.source.check()
    await subject.source.close()
    await subject.source.close()


LOOKING: tuple[Check, ...] = (
    can_be_believed_at_all,
    says_who_it_is_and_passes_its_check,
    scan_shows_what_waits,
    small_pages_show_the_same,
    shows_what_is_known_too,
    says_that_a_cursor_is_refused,
    session_shows_what_the_scan_shows,
    session_that_is_not_there_is_not_found,
    observes_what_waits_as_active,
    stranger_is_unavailable,
    closes_twice,
)
CHANGING: tuple[Check, ...] = (end_is_said_and_absence_is_not, outage_is_unavailable)
CHECKS: tuple[Check, ...] = LOOKING + CHANGING


def _references(items: Iterable[Observation]) -> set[Reference]:
    return {item.reference for item in items}


async def _refusal(call: Callable[[], Awaitable[object]]) -> SourceError | None:
    """Return the error that `call` ends with, None where it ends without one."""
    try:
        await call()
    except SourceError as error:
        return error
    return None


def _is_one_line(error: SourceError | None, secrets: Sequence[str]) -> bool:
    text = str(error)
    return error is not None and "\n" not in text and not any(secret in text for secret in secrets)

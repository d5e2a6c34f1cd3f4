"""What every channel must do, as checks that any test suite can run against its own: built-in and plug-in alike.

A check takes a `Subject` (a channel with the fake provider behind it) and raises AssertionError where the channel
breaks a promise. `CHECKS` holds all of them.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from reconciler.states import AttentionState
from worker.channels.outcomes import Outcome, Permanent, Sent, Temporary, Unknown
from worker.channels.protocol import Channel, Message, SendContext, SentBefore
from worker.channels.testing import samples


@dataclass(frozen=True, slots=True)
class Subject:
    """A channel under test.

    `received` is everything the provider has got so far, as text. `break_next` are ways to make the next try fail.
    `secrets` must never be seen in an error, a log or an outcome; `forbidden` are patterns that a hostile name
    must never put into `received`.
    """

    channel: Channel
    received: Callable[[], str]
    break_next: Sequence[Callable[[], None]] = ()
    secrets: Sequence[str] = ()
    forbidden: Sequence[str] = ()


async def sends_to_each_recipient(subject: Subject) -> None:
    """An opening is sent, to every recipient, and said by its fixed summary."""
    assert subject.channel.recipients
    for recipient in subject.channel.recipients:
        outcome = await subject.channel.send(samples.message(), samples.context(recipient))
        assert isinstance(outcome, Sent), outcome
    assert samples.item().summary in subject.received()


async def tells_the_whole_life_of_a_request(subject: Subject) -> None:
    """Opening, reminder, escalation and settle are sent, and the last one names the state."""
    recipient = subject.channel.recipients[0]
    sent: list[SentBefore] = []
    for number, purpose in enumerate(("open", "reminder:1", "escalation:1")):
        key = f"{number:032x}"
        outcome = await _send(subject, samples.message(purpose=purpose, key=key), recipient, sent)
        assert isinstance(outcome, Sent), outcome
        sent.append(samples.sent(outcome.provider_ref, purpose=purpose, key=key))
    for state in (state for state in AttentionState if state.is_terminal):
        settle = samples.message(samples.settled(state), purpose="settle", key="f" * 32, footer="You are on call.")
        outcome = await _send(subject, settle, recipient, sent)
        assert isinstance(outcome, Sent), outcome
        assert re.search(state.value, subject.received(), re.IGNORECASE)


async def lists_a_digest_and_its_states(subject: Subject) -> None:
    """A digest lists its requests; told again later it shows how each of them stands."""
    recipient = subject.channel.recipients[0]
    waiting = [samples.item(agent_name=f"agent-{number}") for number in range(3)]
    first = await _send(subject, samples.message(*waiting, purpose="digest:1"), recipient, [])
    assert isinstance(first, Sent), first
    assert all(f"agent-{number}" in subject.received() for number in range(3))
    later = [samples.settled(AttentionState.SUPERSEDED, agent_name="agent-0"), *waiting[1:]]
    sent = [samples.sent(first.provider_ref, purpose="digest:1")]
    second = await _send(subject, samples.message(*later, purpose="settle", key="b" * 32), recipient, sent)
    assert isinstance(second, Sent), second
    assert re.search("superseded", subject.received(), re.IGNORECASE)


async def says_an_operator_notice(subject: Subject) -> None:
    """Handbell's own notice is said by its summary."""
    notice = samples.message(samples.item(summary="Destination ops is broken."), purpose="notice:1")
    outcome = await _send(subject, notice, subject.channel.recipients[0], [])
    assert isinstance(outcome, Sent), outcome
    assert "Destination ops is broken." in subject.received()


async def keeps_hostile_names_as_text(subject: Subject) -> None:
    """Whatever a name holds, the message is sent, and the name is nothing but text."""
    for hostile in samples.HOSTILE_NAMES:
        item = samples.item(
            agent_name=hostile, requester=hostile, namespace=hostile, link=f"https://x.example/{hostile}"
        )
        for items, purpose in ((1, "open"), (60, "digest:1")):
            message = samples.message(*[item] * items, purpose=purpose, footer=hostile)
            outcome = await _send(subject, message, subject.channel.recipients[0], [])
            assert isinstance(outcome, Sent), (hostile[:40], outcome)
    received = subject.received()
    for pattern in subject.forbidden:
        assert re.search(pattern, received) is None, pattern


async def returns_outcomes_and_leaks_no_secret(subject: Subject) -> None:
    """A try that fails in any way returns an outcome; no log, outcome or object shows a secret; the next try works."""
    recipient = subject.channel.recipients[0]
    for number, break_next in enumerate(subject.break_next):
        break_next()
        with _logged() as lines:
            outcome = await _send(subject, samples.message(key=f"{number:032x}"), recipient, [])
        assert isinstance(outcome, Temporary | Permanent | Unknown), (number, outcome)
        shown = "\n".join([*lines, repr(outcome), repr(subject.channel), str(vars(subject.channel).keys())])
        assert not any(secret in shown for secret in subject.secrets)
    outcome = await _send(subject, samples.message(key="c" * 32), recipient, [])
    assert isinstance(outcome, Sent), outcome


async def says_what_it_found_without_telling_anybody(subject: Subject) -> None:
    """A check returns one line without a secret, and nobody is told anything."""
    before = subject.received()
    line = await subject.channel.check()
    assert line
    assert "\n" not in line
    assert subject.received() == before
    assert not any(secret in line for secret in subject.secrets)


async def cancelled_means_cancelled(subject: Subject) -> None:
    """A cancelled try ends as cancelled, and the channel works on."""
    recipient = subject.channel.recipients[0]
    task = asyncio.ensure_future(_send(subject, samples.message(key="d" * 32), recipient, []))
    await asyncio.sleep(0)
    task.cancel()
    done = (await asyncio.gather(task, return_exceptions=True))[0]
    assert isinstance(done, asyncio.CancelledError | Sent), done
    outcome = await _send(subject, samples.message(key="e" * 32), recipient, [])
    assert isinstance(outcome, Sent), outcome


async def closes_twice(subject: Subject) -> None:
    """Closing is safe to repeat, before and after use."""
    await subject.channel.close()
    await _send(subject, samples.message(), subject.channel.recipients[0], [])
    await subject.channel.close()
    await subject.channel.close()


CHECKS: tuple[Callable[[Subject], Awaitable[None]], ...] = (
    sends_to_each_recipient,
    tells_the_whole_life_of_a_request,
    lists_a_digest_and_its_states,
    says_an_operator_notice,
    keeps_hostile_names_as_text,
    returns_outcomes_and_leaks_no_secret,
    says_what_it_found_without_telling_anybody,
    cancelled_means_cancelled,
    closes_twice,
)


async def _send(subject: Subject, message: Message, recipient: str, sent: Sequence[SentBefore]) -> Outcome:
    context: SendContext = samples.context(recipient, sent_before=tuple(sent))
    return await subject.channel.send(message, context)


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect every line that any library logs, down to debug."""
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter().format(record))

    root, collector = logging.getLogger(), Collector()
    level = root.level
    root.addHandler(collector)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.setLevel(level)
        root.removeHandler(collector)

"""Writes docs/reasons.md (`make docs`): every word by which Handbell says what is true, what it did, and why."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from reconciler.notices import NoticeKind
from reconciler.reasons import AttemptOutcome, DecisionReason, DeliveryStatus, Door, Verdict
from reconciler.sources.protocol import Incomplete
from reconciler.states import AttentionState, Evidence, Kind
from sinks.incidents import Incident
from worker.channels.outcomes import FailureReason
from worker.reference.meanings import meanings

_HEAD = """# Words and reasons

Whatever Handbell says about a request, a message or a sweep is said by one of these words. They stand in the output of
the commands (`--json` has the same ones), in the database and, some, as labels of metrics. The sets are closed.

This page is written by `make docs` from the code.
"""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A closed set: its title, where a person meets it, and the words."""

    title: str
    place: str
    words: type[StrEnum]


CHAPTERS: Sequence[Chapter] = (
    Chapter("States of a request", "`state` of `handbell notifications`", AttentionState),
    Chapter("Evidence of a state", "`reason` of `handbell notifications`: what the state rests on", Evidence),
    Chapter("Kinds of request", "`kind` of `handbell notifications`, and `match` of a route", Kind),
    Chapter("Doors", "how a change of state came in, in `handbell deliveries --attention ID --why`", Door),
    Chapter("Status of a delivery", "`status` of `handbell deliveries`", DeliveryStatus),
    Chapter("Verdicts", "what was decided about a message, in `--why`", Verdict),
    Chapter("Reasons of a decision", "`reason` in `--why` and `handbell deliveries`", DecisionReason),
    Chapter("Outcomes of a try", "in `--why`; label `outcome` of `handbell_delivery_attempts_total`", AttemptOutcome),
    Chapter("Reasons of a failure", "`reason` of a try and of a delivery that failed; label `reason`", FailureReason),
    Chapter("Problems of a sweep", "`problems` of `handbell status` and `handbell sweep`", Incomplete),
    Chapter("Notices to the operator", "`kind` of `handbell status`; operations.md says what to do", NoticeKind),
    Chapter("Incidents of the stream", "in the table `stream_incidents`; each makes a full sweep due", Incident),
)


def reasons_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_block(chapter) for chapter in CHAPTERS)])


def _block(chapter: Chapter) -> str:
    rows = [
        f"| `{word}` | {meaning.replace('|', chr(92) + '|')} |" for word, meaning in meanings(chapter.words).items()
    ]
    place = f"{chapter.place[:1].upper()}{chapter.place[1:]}."
    return "\n".join([f"## {chapter.title}", "", place, "", "| word | meaning |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(reasons_page())

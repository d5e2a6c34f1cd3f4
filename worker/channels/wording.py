"""What a message says, in every channel alike: its headline, the facts of a request, the lines of a digest."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import assert_never

from reconciler.states import AttentionState
from worker.channels import templates, text
from worker.channels.protocol import Item, Message


class Occasion(StrEnum):
    """Why a message is sent: its purpose without the number."""

    OPEN = "open"
    REMINDER = "reminder"
    ESCALATION = "escalation"
    SETTLE = "settle"
    DIGEST = "digest"
    NOTICE = "notice"  # Handbell's own, to its operator; the text is the item's summary


STATE_WORDS = {
    AttentionState.ACTIVE: "waiting",
    AttentionState.UNAVAILABLE: "not known now",
    AttentionState.RESOLVED: "resolved",
    AttentionState.CANCELLED: "cancelled",
    AttentionState.SUPERSEDED: "superseded",
    AttentionState.EXPIRED: "expired",
}


def occasion(message: Message) -> tuple[Occasion, str]:
    """Split a purpose into its occasion and number (`reminder:2`); an unknown purpose is said like a notice."""
    word, _, number = message.purpose.partition(":")
    try:
        return Occasion(word), number
    except ValueError:
        return Occasion.NOTICE, number


def instant(at: datetime) -> str:
    """Write an instant for a person, in UTC, to the minute."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True, slots=True)
class Wording:
    """Says messages in one channel's markup; everything it returns is escaped for that channel."""

    escape: text.Escape
    sentence: templates.Sentence

    def headline(self, message: Message) -> str:
        """Say in one line what the message is about and how it stands now."""
        if len(message.items) != 1:
            return self.escape(_count(message))
        said = self.sentence(message.item)
        if message.item.state.is_terminal:
            return f"{STATE_WORDS[message.item.state].capitalize()}: {said}"
        which, number = occasion(message)
        match which:
            case Occasion.REMINDER:
                return f"Reminder {self.escape(number)}: {said}" if number else f"Reminder: {said}"
            case Occasion.ESCALATION:
                return f"Escalated: {said}"
            case Occasion.NOTICE:
                return f"Handbell: {said}"
            case Occasion.OPEN | Occasion.SETTLE | Occasion.DIGEST:
                return said
        assert_never(which)

    def facts(self, message: Message) -> list[tuple[str, str]]:
        """Return label and value of what is known of the request of a message about one; a notice has none."""
        if occasion(message)[0] is Occasion.NOTICE:
            return []
        item = message.item
        pairs = [
            ("Agent", item.agent_name),
            ("For", item.requester),
            ("Runtime", item.namespace),
            ("State", STATE_WORDS[item.state]),
            ("Waiting since", instant(item.first_seen_at)),
            ("Settled", instant(item.state_changed_at) if item.state.is_terminal else None),
            ("Request", item.attention_id),
        ]
        cleaned = [(label, text.name(value)) for label, value in pairs if value]
        return [(label, self.escape(value)) for label, value in cleaned if value]

    def item_line(self, item: Item) -> str:
        """Say one request of a digest in one line: its state first, then what, who and where."""
        who = " for ".join(filter(None, (text.name(item.agent_name or ""), text.name(item.requester or ""))))
        said = [STATE_WORDS[item.state].capitalize() + ": " + self.sentence(item)]
        said += [self.escape(part) for part in (who, text.name(item.namespace)) if part]
        return " · ".join(said)

    def footer(self, message: Message) -> str | None:
        """Return why the recipient is told, where that is configured."""
        return self.escape(text.cut(text.one_line(message.footer), 300)) if message.footer else None


def _count(message: Message) -> str:
    states = Counter(item.state for item in message.items)
    parts = [f"{states[state]} {STATE_WORDS[state]}" for state in AttentionState if states[state]]
    return f"{len(message.items)} requests: {', '.join(parts)}." if parts else "No requests."

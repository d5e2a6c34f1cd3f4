"""How a message looks in Slack: mrkdwn blocks within Slack's limits, and the plain line of the notification."""

from dataclasses import dataclass
from typing import Any

from worker.channels import templates, text
from worker.channels.protocol import Item, Message
from worker.channels.wording import Wording

# https://docs.slack.dev/reference/block-kit/blocks/section-block (read 2026-11-30)
MAX_SECTION_UNITS = 3000
MAX_FIELDS = 10
MAX_FIELD_UNITS = 2000

# https://docs.slack.dev/reference/block-kit/blocks (read 2026-11-30): blocks in one message
MAX_BLOCKS = 50

# All blocks together fail with msg_blocks_too_long from about 13,200 on, a limit that Slack does not document:
# https://github.com/slackapi/bolt-js/issues/2509 (read 2026-11-30); the rest is room for the blocks' own JSON.
MAX_BLOCKS_UNITS = 9000

# https://docs.slack.dev/reference/methods/chat.postMessage#truncating (read 2026-11-30): recommended length of `text`
MAX_TEXT_UNITS = 4000


@dataclass(frozen=True, slots=True)
class SlackText:
    """What a message is made of, ready for the API: `text` is what a notification shows."""

    text: str
    blocks: list[dict[str, Any]]


def wording(template: str | None) -> Wording:
    """Return how requests are said in Slack, by `template` or by the fixed summaries."""
    return Wording(text.escape_mrkdwn, templates.sentence(template, text.escape_mrkdwn))


def render(message: Message, words: Wording) -> SlackText:
    """Return the message within every limit; what does not fit is cut with a mark or counted, never refused."""
    headline = text.cut(words.headline(message), MAX_SECTION_UNITS - 2, is_markup=True)
    blocks = [_section(f"*{headline}*")]
    line = headline
    if len(message.items) == 1:
        blocks += _facts(message, words)
        agent = text.escape_mrkdwn(text.name(message.item.agent_name or ""))
        line = f"{headline} ({agent})" if agent else headline
    else:
        blocks += _lines(message, words)
    footer = words.footer(message)
    if footer:
        blocks.append({"type": "context", "elements": [_mrkdwn(footer)]})
    return SlackText(text.cut(line, MAX_TEXT_UNITS, is_markup=True), blocks)


def _facts(message: Message, words: Wording) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    facts = [f"*{label}*\n{value}" for label, value in words.facts(message)]
    fields = [_mrkdwn(text.cut(fact, MAX_FIELD_UNITS, is_markup=True)) for fact in facts[:MAX_FIELDS]]
    if fields:
        blocks.append({"type": "section", "fields": fields})
    link = _link(message.item)
    if link:
        blocks.append(_section(link))
    return blocks


def _lines(message: Message, words: Wording) -> list[dict[str, Any]]:
    """Pack the requests of a digest into as few sections as they need."""
    sections: list[str] = []
    room = MAX_BLOCKS_UNITS
    for position, item in enumerate(message.items):
        line = _line(item, words)
        room -= text.units(line) + 1
        if room < 0 or len(sections) >= MAX_BLOCKS - 4:
            sections.append(f"and {len(message.items) - position} more{text.MARK}")
            break
        if sections and text.units(sections[-1]) + text.units(line) + 1 <= MAX_SECTION_UNITS:
            sections[-1] += "\n" + line
        else:
            sections.append(line)
    return [_section(section) for section in sections]


def _line(item: Item, words: Wording) -> str:
    link = _link(item)
    tail = f" · {link}" if link and text.units(link) < MAX_SECTION_UNITS // 2 else ""
    return "• " + text.cut(words.item_line(item), MAX_SECTION_UNITS // 2 - 8, is_markup=True) + tail


def _link(item: Item) -> str:
    url = text.web_link(item.link)
    link = text.slack_link(url, "Open") if url else ""
    return link if text.units(link) <= MAX_SECTION_UNITS else ""


def _section(mrkdwn: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(mrkdwn)}


def _mrkdwn(mrkdwn: str) -> dict[str, Any]:
    """Return a text object in which Slack links nothing by itself: neither addresses nor names."""
    return {"type": "mrkdwn", "text": mrkdwn, "verbatim": True}

"""Cuts the human-attention guide of the installed Cayu into sentences: the unit that the contract table lists.

The text is read from the package as `cayu guide human-attention` reads it. A sentence is known by a hash of its words,
so a reworded one in another version of Cayu is a new one that has no entry yet.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

# How much of a sentence is quoted: enough to find it, the rest stays in the guide.
QUOTED_WORDS = 8

_ENDS = re.compile(r"(?<=[.!?;])\s+(?=[A-Z`*“])|(?<=[.!?][”\"*])\s+(?=[A-Z`*“])")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, list item, table row or code block, and the heading that it stands under."""

    section: str
    text: str

    @property
    def key(self) -> str:
        """Return the first ten hex digits of the hash of its words."""
        return hashlib.sha256(" ".join(self.text.split()).encode()).hexdigest()[:10]

    @property
    def beginning(self) -> str:
        """Return its first words, without the marks of Markdown that would break a table."""
        words = self.text.replace("|", " ").replace("`", "").replace("*", "").split()
        short = " ".join(words[:QUOTED_WORDS])
        return short + (" …" if len(words) > QUOTED_WORDS else "")


def guide_text() -> str:
    """Return the guide as the installed package has it."""
    return files("cayu.guides").joinpath("human-attention.md").read_text(encoding="utf-8")


def sentences(text: str) -> list[Sentence]:
    """Return every sentence in the order of the guide; headings name sections and are none themselves."""
    return [Sentence(section, sentence) for section, block in _blocks(text) for sentence in _cut(block)]


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (section, block): a paragraph, a list item, a table row, or a code block with its fences."""
    section, lines, is_code = "", [], False
    for line in [*text.splitlines(), ""]:
        is_fence = line.lstrip().startswith("```")
        if is_code:
            lines.append(line)
            if not is_fence:
                continue
            is_code = False
        elif is_fence:
            yield from _whole(section, lines)
            lines, is_code = [line], True
            continue
        elif line.startswith("#"):
            yield from _whole(section, lines)
            section, lines = line.lstrip("# "), []
            continue
        elif line.startswith(("- ", "|")) or re.match(r"\d+\. ", line):
            yield from _whole(section, lines)
            lines = [line]
            continue
        elif line.strip():
            lines.append(line)
            continue
        yield from _whole(section, lines)
        lines = []


def _whole(section: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    if lines:
        yield section, "\n".join(lines)


def _cut(block: str) -> Iterator[str]:
    if block.startswith("```"):
        yield block
    elif block.startswith("|"):
        cells = [cell.strip() for cell in block.strip("|").split("|")]
        if not set("".join(cells)) <= {"-", ":"}:
            yield " | ".join(cells)
    else:
        joined = re.sub(r"^(- |\d+\. )", "", " ".join(block.split()))
        yield from (part for part in _ENDS.split(joined) if part)

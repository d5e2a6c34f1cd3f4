"""Writes docs/settings.md (`make docs`): the core's tables, and those of every built-in type.

It stands in this room because only here all types are known.
"""

import sys
from collections.abc import Iterator, Mapping

from config.plug_ins import PlugIns
from config.reference import Section, core_sections, reference_page, tables_of
from reconciler.sources.registry import SOURCE_TYPES
from worker.channels.registry import CHANNEL_TYPES, CommonOptions

CHANNELS = "[channels.NAME]"
TYPES: Mapping[str, PlugIns] = {"[[sources]]": SOURCE_TYPES, CHANNELS: CHANNEL_TYPES}


def sections() -> Iterator[Section]:
    """Yield every table that there is, those of the types behind the keys that they have in common."""
    for section in core_sections():
        if section.heading == CHANNELS:
            yield Section(CHANNELS, CommonOptions, section.note)
        else:
            yield section
        if section.heading in TYPES:
            yield from _types(section.heading, TYPES[section.heading])


def settings_page() -> str:
    """Return the page as Markdown."""
    return reference_page(list(sections()))


def _types(heading: str, types: PlugIns) -> Iterator[Section]:
    for name in sorted(types.built_in):
        yield from tables_of(f'{heading} type = "{name}"', types.find(name, installed=[]).Options)


if __name__ == "__main__":
    sys.stdout.write(settings_page())

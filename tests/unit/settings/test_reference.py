"""The page about the settings says what the settings are: the core's, and those of every built-in type."""

import re
from pathlib import Path

import pytest

from config.reference import Section
from config.secret_files import secret_file_keys
from config.settings import ChannelSettings, Settings
from worker.channels.registry import CommonOptions
from worker.reference.settings_page import TYPES, sections, settings_page

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
SECTIONS = list(sections())


def test_page_is_what_the_settings_say() -> None:
    """Where it fails: `make docs`."""
    assert PAGE.read_text() == settings_page()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.heading)
def test_every_setting_has_a_meaning_and_every_bare_number_a_unit(section: Section) -> None:
    assert section.model.__doc__
    for name, field in section.model.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
        assert not re.search(r"\bint\b|\bfloat\b", str(field.annotation)) or name in UNITS, name


# What each bare number counts, as its meaning says.
UNITS = {
    "pool_size": "connections",
    "remind_at_most": "reminders",
    "storm_limit": "openings",
    "attempt_limit": "tries",
    "dead_letter_limit": "dead letters",
    "port": "port",
    "max_body_bytes": "bytes",
    "requests_per_second": "requests a second",
}


def test_every_bare_number_says_what_it_counts() -> None:
    described = {name: field for section in SECTIONS for name, field in section.model.model_fields.items()}

    for name, unit in UNITS.items():
        assert unit in str(described[name].description).lower(), name


def test_every_table_of_the_tree_has_a_section() -> None:
    headings = {section.heading for section in SECTIONS}

    assert {"[database]", "[[sources]]", "[channels.NAME]", "[[routes]] quiet", "[[routes]] escalate"} <= headings
    assert len(headings) >= len(Settings.model_fields) - 1


def test_every_built_in_type_has_a_section_with_each_of_its_keys() -> None:
    page = settings_page()

    for heading, types in TYPES.items():
        for name in types.built_in:
            part = page.partition(f'## `{heading} type = "{name}"`\n')[2].partition("\n## ")[0]
            model = types.find(name, installed=[]).Options
            keys = [field.alias or key for key, field in model.model_fields.items()] + secret_file_keys(model)
            assert [key for key in keys if f"`{key}`" not in part] == [], name


def test_keys_that_the_core_knows_of_a_channel_are_those_of_every_type() -> None:
    assert ChannelSettings.model_fields.keys() <= CommonOptions.model_fields.keys()

"""The page about the settings says what the settings are."""

from pathlib import Path

from pydantic import BaseModel

from config.reference import core_sections, reference_page
from config.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def test_page_is_what_the_settings_say() -> None:
    """Where it fails: `python -m config.reference > docs/settings.md`."""
    assert PAGE.read_text() == reference_page(list(core_sections()))


def test_every_setting_is_described() -> None:
    models: list[type[BaseModel]] = [section.model for section in core_sections()]

    undescribed = [
        f"{model.__name__}.{name}"
        for model in models
        for name, field in model.model_fields.items()
        if not field.description
    ]

    assert undescribed == []


def test_every_table_of_the_tree_has_a_section() -> None:
    headings = {section.heading for section in core_sections()}

    assert {"[database]", "[[sources]]", "[channels.NAME]", "[[routes]] quiet", "[[routes]] escalate"} <= headings
    assert len(headings) >= len(Settings.model_fields) - 1

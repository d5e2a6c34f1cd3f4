"""Database URLs as operators have them, turned into what our drivers take."""

from pathlib import Path

import pytest

from config.database import database_url
from config.errors import SettingsError

FOLDER = Path("/srv/handbell")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqlite:///handbell.db", "sqlite+aiosqlite:////srv/handbell/handbell.db"),
        ("sqlite:////var/lib/x.db", "sqlite+aiosqlite:////var/lib/x.db"),
        ("postgresql://u@db/x", "postgresql+asyncpg://u@db/x"),
        ("postgres://u@db:6000/x", "postgresql+asyncpg://u@db:6000/x"),
        ("postgresql+psycopg://u@db/x", "postgresql+asyncpg://u@db/x"),
        ("postgresql://u@db/x?sslmode=require", "postgresql+asyncpg://u@db/x?ssl=require"),
        ("postgresql://u@/x?host=/run/postgresql", "postgresql+asyncpg://u@/x?host=%2Frun%2Fpostgresql"),
    ],
)
def test_url_names_our_driver(text: str, expected: str) -> None:
    url = database_url(text, relative_to=FOLDER).render_as_string(hide_password=False)

    assert url == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("postgresql://u:hunter2@db/x?sslmode=always", "unknown sslmode: it is one of disable, allow"),
        ("postgresql://u:hunter2@db/x?target_session_attrs=any", "the option 'target_session_attrs'"),
        ("mysql://u:hunter2@db/x", "names 'mysql': only sqlite:/// and postgresql://"),
        ("hunter2", "is not a URL"),
        ("sqlite:///:memory:", "names no file"),
    ],
)
def test_url_that_cannot_be_used_is_one_line_without_it(text: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        database_url(text, relative_to=FOLDER)

    assert line in str(caught.value)
    assert "hunter2" not in str(caught.value)

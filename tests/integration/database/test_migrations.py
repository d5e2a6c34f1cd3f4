"""The hand-written migrations make exactly the tables that the rooms declare, on both databases."""

import asyncio
import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

import config
import reconciler
import sinks
import worker
from config.database import VERSION_TABLE
from config.errors import ConfigError, SchemaError
from config.metadata import METADATA
from config.migrate import migrate, require_current
from tests.support.databases import engine_for

ROOMS = (config, sinks, reconciler, worker)
MIGRATE_IN_A_PROCESS = """
import asyncio, sys
from config.migrate import migrate
from tests.support.databases import engine_for

async def main():
    engine = engine_for(sys.argv[1])
    print(len(await migrate(engine)))
    await engine.dispose()

sys.stdin.readline()  # all processes are started: go
asyncio.run(main())
"""


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def declared_url(engine: AsyncEngine, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database of the same kind as `engine`'s."""
    if engine.dialect.name == "sqlite":
        return f"sqlite:///{tmp_path / 'declared.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def import_every_table() -> None:
    for room in ROOMS:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if module.name.endswith("tables"):
                importlib.import_module(module.name)


async def test_migrations_make_what_the_rooms_declare(engine: AsyncEngine) -> None:
    import_every_table()

    async with engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(
                MigrationContext.configure(sync, opts={"version_table": VERSION_TABLE}),
                METADATA,
            )
        )

    assert differences == []


async def test_migrations_and_metadata_agree_on_constraints_and_conditions(
    engine: AsyncEngine, declared_url: str
) -> None:
    """Alembic's comparison sees no check, no primary key's name, no cascade and no partial index's condition."""
    import_every_table()
    declared_engine = engine_for(declared_url)

    async with declared_engine.begin() as connection:
        await connection.run_sync(METADATA.create_all)
        declared = await connection.run_sync(fingerprint)
    async with engine.connect() as connection:
        migrated = await connection.run_sync(fingerprint)
    await declared_engine.dispose()

    assert migrated == declared


def fingerprint(connection: Connection) -> dict[str, Any]:
    """Return every table's columns, keys, checks and indexes, as the database itself tells them."""
    seen = inspect(connection)
    tables = sorted(set(seen.get_table_names()) - {VERSION_TABLE})
    return {
        table: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"], column["default"])
                for column in seen.get_columns(table)
            ],
            "primary key": seen.get_pk_constraint(table),
            "unique": by_name(seen.get_unique_constraints(table)),
            "checks": by_name(seen.get_check_constraints(table)),
            "foreign keys": by_name(seen.get_foreign_keys(table)),
            "indexes": {str(index["name"]): index_shape(index) for index in seen.get_indexes(table)},
        }
        for table in tables
    }


def index_shape(index: Any) -> tuple[list[str], bool, str]:
    options = index.get("dialect_options", {})
    condition = options.get("sqlite_where", options.get("postgresql_where", ""))
    return index["column_names"], bool(index["unique"]), str(condition)


def by_name(constraints: Any) -> dict[str, str]:
    return {str(constraint["name"]): str(sorted(constraint.items(), key=str)) for constraint in constraints}


async def test_migrating_twice_applies_nothing_the_second_time(empty_url: str) -> None:
    engine = engine_for(empty_url)

    first = await migrate(engine)
    second = await migrate(engine)
    await require_current(engine)
    await engine.dispose()

    assert first[0] == "0001"
    assert second == ()


async def test_eight_processes_at_once_migrate_once(empty_url: str) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            MIGRATE_IN_A_PROCESS,
            empty_url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(8)
    ]

    answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))

    assert [process.returncode for process in processes] == [0] * 8, [answer[1].decode() for answer in answers]
    applied = sorted(int(answer[0]) for answer in answers)
    assert applied[:7] == [0] * 7
    assert applied[7] > 0


async def test_failing_migration_leaves_nothing_behind(empty_url: str) -> None:
    """A view bears the name of a table that the last migration makes, so that it fails half-way."""
    engine = engine_for(empty_url)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE VIEW audit AS SELECT 1 AS one"))

    with pytest.raises(ConfigError, match="audit"):
        await migrate(engine)
    async with engine.connect() as connection:
        left = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    await engine.dispose()

    assert left == []


async def test_newer_database_is_refused_in_one_line(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))

    for refused in (migrate, require_current):
        with pytest.raises(SchemaError, match=r"^the database .* is at revision 9999.*upgrade Handbell here too$"):
            await refused(engine)


async def test_unmigrated_database_is_refused_in_one_line(empty_url: str) -> None:
    engine = engine_for(empty_url)

    with pytest.raises(SchemaError, match=r"run `handbell migrate`$"):
        await require_current(engine)
    await engine.dispose()


async def test_asking_for_a_missing_sqlite_file_does_not_make_one(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'missing.db'}")

    with pytest.raises(SchemaError, match=r"missing\.db does not exist"):
        await require_current(engine)
    await engine.dispose()

    assert list(tmp_path.iterdir()) == []


async def test_another_programs_database_is_left_alone(empty_url: str) -> None:
    engine = engine_for(empty_url)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE sessions (id int)"))

    with pytest.raises(SchemaError, match="holds other tables \\(sessions\\)"):
        await migrate(engine)
    async with engine.connect() as connection:
        left = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
    await engine.dispose()

    assert left == ["sessions"]


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/handbell", "the database handbell at 127.0.0.1:1 does not answer"),
        ("sqlite:////nonexistent/x.db", "the database /nonexistent/x.db cannot be opened"),
    ],
)
async def test_unreachable_database_is_one_line_without_a_secret(url: str, line: str) -> None:
    engine = engine_for(url)

    with pytest.raises(ConfigError) as caught:
        await migrate(engine)
    await engine.dispose()

    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    engine = engine_for(f"sqlite:///{path}")

    with pytest.raises(SchemaError, match="is not an SQLite file"):
        await migrate(engine)
    await engine.dispose()

    assert path.read_text() == "not a database " * 100


async def test_unknown_postgres_database_is_a_setting_to_correct(postgres_url: str) -> None:
    engine = engine_for(postgres_url.replace("/test_", "/no_such_"))

    with pytest.raises(ConfigError, match=r"refuses us .*correct \[database\] url$") as caught:
        await migrate(engine)
    await engine.dispose()

    assert caught.value.exit_code == 2

"""A store that cannot be used: one line, a fixed reason, no traceback, and nothing left behind."""

import sqlite3
from pathlib import Path

import asyncpg
import pytest

from reconciler.errors import SourceError, SourceMissing, SourceRefused, SourceUnavailable, WrongStore
from reconciler.sources.cayu import Options
from reconciler.sources.cayu_store import store_errors
from reconciler.sources.cayu_target import StoreFault, locate
from reconciler.states import AttentionState, Evidence
from tests.support.cayu_postgres import CayuServer
from tests.support.cayu_stores import CayuStore
from tests.support.postgres import new_database
from tests.support.sources import KnownIds, cayu_source, shown

PASSWORD = "hunter2-never-shown"


def make_nothing(_path: Path) -> None:
    return


def make_empty_file(path: Path) -> None:
    path.touch()


def make_text_file(path: Path) -> None:
    path.write_text("this is not a database\n" * 100)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()


BROKEN = [
    (make_nothing, SourceMissing, StoreFault.STORE_MISSING),
    (make_empty_file, SourceRefused, StoreFault.NOT_A_CAYU_STORE),
    (make_text_file, SourceRefused, StoreFault.NOT_A_CAYU_STORE),
    (make_folder, SourceRefused, StoreFault.NOT_A_CAYU_STORE),
    (make_other_database, SourceRefused, StoreFault.NOT_A_CAYU_STORE),
]


async def refusal(url: str) -> SourceError:
    """Return how the store's check fails; every other question fails in the same way."""
    source = cayu_source(url)
    with pytest.raises(SourceError) as failed:
        await source.check()
    with pytest.raises(SourceError) as again:
        await source.page(None, limit=200, known=KnownIds())
    await source.close()
    assert again.value.reason == failed.value.reason
    assert "\n" not in str(failed.value)
    return failed.value


@pytest.mark.parametrize(("make", "error", "reason"), BROKEN)
async def test_file_that_is_no_store_is_one_line_and_stays_as_it_is(
    tmp_path: Path, make: object, error: type[SourceError], reason: StoreFault
) -> None:
    path = tmp_path / "store.db"
    make(path)  # type: ignore[operator]
    before = {item: item.stat().st_size for item in tmp_path.rglob("*")}

    failed = await refusal(str(path))

    assert (type(failed), failed.reason) == (error, reason)
    assert str(path) in str(failed)
    assert {item: item.stat().st_size for item in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(("revision", "compatible_from"), [(999, 999), (1, 1)])
async def test_other_schema_version_is_refused(cayu_store: CayuStore, revision: int, compatible_from: int) -> None:
    connection = sqlite3.connect(cayu_store.url)
    connection.execute("DELETE FROM cayu_schema_migrations WHERE revision > 1")
    connection.execute(
        "UPDATE cayu_schema_migrations SET revision = ?, compatible_from = ?", (revision, compatible_from)
    )
    connection.commit()
    connection.close()

    failed = await refusal(cayu_store.url)

    assert (type(failed), failed.reason) == (SourceRefused, StoreFault.WRONG_SCHEMA_VERSION)


@pytest.mark.parametrize(
    ("url", "error", "reason"),
    [
        (f"postgresql://u:{PASSWORD}@127.0.0.1:1/agents", SourceUnavailable, StoreFault.STORE_UNREACHABLE),
        (f"postgresql://u:{PASSWORD}@127.0.0.1:1/agents?nonsense=1", SourceRefused, StoreFault.TARGET_UNREADABLE),
    ],
)
async def test_server_that_does_not_answer_is_one_line_without_the_password(
    url: str, error: type[SourceError], reason: StoreFault
) -> None:
    failed = await refusal(url)

    assert (type(failed), failed.reason) == (error, reason)
    assert PASSWORD not in str(failed)
    assert "u:" not in str(failed)


async def test_database_without_cayu_and_database_that_is_not_there(cayu_postgres_server: CayuServer) -> None:
    async with new_database(cayu_postgres_server) as url:
        empty = await refusal(url)
    gone = await refusal(cayu_postgres_server.get_uri("no_such_database"))

    assert (type(empty), empty.reason) == (SourceRefused, StoreFault.NOT_A_CAYU_STORE)
    assert (type(gone), gone.reason) == (SourceRefused, StoreFault.CREDENTIALS_REFUSED)


async def test_role_that_could_never_see_a_settled_request_is_refused_by_the_check(
    postgres_cayu_store: CayuStore,
) -> None:
    admin = await asyncpg.connect(postgres_cayu_store.url)
    await admin.execute("CREATE ROLE looker LOGIN")
    await admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    looker = cayu_source(postgres_cayu_store.url.replace("postgres@", "looker@"))

    with pytest.raises(SourceRefused, match="GRANT UPDATE ON cayu_session_operations, cayu_events") as failed:
        await looker.check()
    await admin.execute("GRANT UPDATE ON cayu_session_operations, cayu_events TO looker")
    await looker.check()
    await looker.close()
    await admin.execute("DROP OWNED BY looker")
    await admin.execute("DROP ROLE looker")
    await admin.close()

    assert failed.value.reason == StoreFault.CREDENTIALS_REFUSED


async def test_replaced_file_is_another_store_until_it_is_asked_who_it_is(
    cayu_store: CayuStore, tmp_path: Path
) -> None:
    source = cayu_source(cayu_store.url)
    first = await source.identity()
    question = (await shown(source))["ask"].reference
    (tmp_path / "copy.db").write_bytes(Path(cayu_store.url).read_bytes())
    copy = sqlite3.connect(tmp_path / "copy.db")
    copy.execute("UPDATE cayu_store_identity SET store_id = ?", ("0" * 32,))
    copy.commit()
    copy.close()
    (tmp_path / "copy.db").replace(cayu_store.url)

    with pytest.raises(WrongStore) as refused:
        await source.page(None, limit=200, known=KnownIds())
    answer = await source.observe(question)
    second = await source.identity()
    found = await shown(source)
    await source.close()

    assert refused.value.reason == "wrong_store"
    assert (answer.state, answer.reason) == (AttentionState.UNAVAILABLE, Evidence.STORE_UNAVAILABLE)
    assert (second, first != second) == ("0" * 32, True)
    assert "ask" in found


async def test_copied_store_keeps_its_identity(cayu_store: CayuStore, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_bytes(Path(cayu_store.url).read_bytes())
    original, copy = cayu_source(cayu_store.url), cayu_source(str(tmp_path / "copy.db"))

    assert await original.identity() == await copy.identity()

    await original.close()
    await copy.close()


async def test_store_that_appears_later_is_used_without_a_restart(cayu_store: CayuStore) -> None:
    away = Path(cayu_store.url).rename(cayu_store.url + ".away")
    source = cayu_source(cayu_store.url)
    with pytest.raises(SourceUnavailable):
        await source.check()

    away.rename(cayu_store.url)

    await source.check()
    await source.close()


async def test_handoff_of_the_environment_is_not_taken_over(
    cayu_store: CayuStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAYU_ATTENTION_HANDOFF_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CAYU_ATTENTION_HANDOFF_TOKEN", "t")
    source = cayu_source(cayu_store.url)

    opened = await source._opened()

    assert not opened.app.human_attention_handoff or not opened.app.human_attention_handoff.enabled
    assert not opened.app._event_sinks
    await source.close()


def test_projects_own_table_names_the_store(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/pyproject.toml").write_text(
        '[tool.cayu.session_store]\nbackend = "sqlite"\npath = "data/cayu.db"\n'
    )

    target = locate(Options(project="agents"), tmp_path)

    assert target.path == tmp_path / "agents/data/cayu.db"


@pytest.mark.parametrize(
    "pyproject",
    [
        None,
        "not toml [",
        "[tool.cayu]\n",
        '[tool.cayu.session_store]\nbackend = "sqlite"\n',
        '[tool.cayu.session_store]\nbackend = "postgres"\nenv = "NO_SUCH_VARIABLE_HERE"\n',
    ],
)
def test_project_that_names_no_store_is_one_line(tmp_path: Path, pyproject: str | None) -> None:
    if pyproject is not None:
        (tmp_path / "pyproject.toml").write_text(pyproject)

    with pytest.raises(SourceRefused, match="pyproject") as refused:
        locate(Options(project="."), tmp_path)

    assert refused.value.reason == StoreFault.TARGET_UNREADABLE
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("store", "file"),
    [
        ("sqlite:////srv/cayu.db", "/srv/cayu.db"),
        ("sqlite:///data/cayu%20two.db", "/etc/handbell/data/cayu two.db"),
        ("data/cayu.db", "/etc/handbell/data/cayu.db"),
        ("/srv/cayu.db", "/srv/cayu.db"),
    ],
)
def test_relative_files_count_from_the_configurations_folder(store: str, file: str) -> None:
    assert locate(Options.model_validate({"store": store}), Path("/etc/handbell")).path == Path(file)


@pytest.mark.parametrize("store", ["mysql://u:p@host/x", "sqlite:///", ":memory:", "postgresql://[broken"])
def test_store_of_another_kind_is_refused(store: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        locate(Options.model_validate({"store": store}), Path("/"))

    assert refused.value.reason == StoreFault.TARGET_UNREADABLE
    assert "u:p" not in str(refused.value)


def test_drivers_errors_are_all_named() -> None:
    import psycopg
    import psycopg_pool

    assert issubclass(psycopg_pool.PoolTimeout, store_errors())
    assert issubclass(psycopg.Error, store_errors())

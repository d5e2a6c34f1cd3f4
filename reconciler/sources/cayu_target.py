"""Which database a Cayu source means, worked out from its options without opening anything."""

import os
import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from reconciler.errors import SourceRefused
from reconciler.sources.cayu_options import Options


class StoreFault(StrEnum):
    """Why a Cayu store cannot be used (closed; the `reason` of the SourceError that says so).

    A `store_*` fault may pass by itself (SourceUnavailable); the others need a person (SourceRefused).
    """

    CAYU_NOT_INSTALLED = "cayu_not_installed"
    TARGET_UNREADABLE = "target_unreadable"
    NOT_A_CAYU_STORE = "not_a_cayu_store"
    WRONG_SCHEMA_VERSION = "wrong_schema_version"
    CREDENTIALS_REFUSED = "credentials_refused"
    ALIAS_KEYS_REQUIRED = "alias_keys_required"
    STORE_MISSING = "store_missing"
    STORE_UNREACHABLE = "store_unreachable"
    STORE_WITHOUT_IDENTITY = "store_without_identity"
    STORE_ERROR = "store_error"


NOT_INSTALLED = "a cayu source needs Cayu's own code: pip install 'handbell[cayu]'"


@dataclass(frozen=True, slots=True)
class Target:
    """One database: a SQLite file (`path`) or a PostgreSQL server (`dsn`, secret)."""

    path: Path | None = None
    dsn: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return how messages call it: the file, or server and database without user, password and parameters."""
        if self.path is not None:
            return str(self.path)
        parts = urlsplit(self.dsn or "")
        return f"postgresql://{(parts.hostname or 'local')}{parts.path}"


def locate(options: Options, folder: Path) -> Target:
    """Return the database that `options` name; raises SourceRefused (one line) where they name none."""
    if options.project is not None:
        return _project_target((folder / options.project).resolve())
    assert options.store is not None, "the options hold one of store and project"
    text = options.store.get_secret_value().strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _file(folder, text)
    if scheme in ("postgresql", "postgres"):
        return _server(text)
    if scheme == "sqlite":
        # As in SQLAlchemy: three slashes are relative, four absolute.
        return _file(folder, unquote(rest.removeprefix("/")))
    raise SourceRefused(
        StoreFault.TARGET_UNREADABLE,
        f"store begins with {scheme}://: use sqlite:///FILE, sqlite:////ABSOLUTE/FILE or postgresql://USER@HOST/NAME",
    )


def _file(folder: Path, name: str) -> Target:
    if not name or name == ":memory:":
        raise SourceRefused(StoreFault.TARGET_UNREADABLE, "store names no file: use sqlite:///FILE")
    return Target(path=(folder / name).resolve())


def _server(dsn: str) -> Target:
    try:
        urlsplit(dsn)
    except ValueError:
        raise SourceRefused(StoreFault.TARGET_UNREADABLE, "store is not a PostgreSQL URL that can be read") from None
    return Target(dsn=dsn)


def _project_target(project: Path) -> Target:
    pyproject = project / "pyproject.toml"
    try:
        document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise SourceRefused(
            StoreFault.TARGET_UNREADABLE, f"{pyproject} cannot be read as TOML: project names a Cayu project's folder"
        ) from None
    table = document.get("tool", {}).get("cayu", {}).get("session_store")
    if table is None:
        raise SourceRefused(
            StoreFault.TARGET_UNREADABLE, f"{pyproject} has no [tool.cayu.session_store]: name the store by `store`"
        )
    return _cayu_target(table, pyproject)


def _cayu_target(table: object, pyproject: Path) -> Target:
    """Let Cayu itself read the table, so that both open the same database."""
    try:
        from cayu.storage.targets import SessionStoreTargetError, session_store_target_from_config
    except ImportError:
        raise SourceRefused(StoreFault.CAYU_NOT_INSTALLED, NOT_INSTALLED) from None
    try:
        target = session_store_target_from_config(table, pyproject=pyproject, environ=os.environ)
    except SessionStoreTargetError as error:
        # Cayu's text names the file, the key or the variable, never a URL.
        raise SourceRefused(StoreFault.TARGET_UNREADABLE, str(error)) from None
    return Target(path=target.sqlite_path, dsn=target.postgres_dsn)

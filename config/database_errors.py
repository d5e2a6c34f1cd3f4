"""What a user is told when the database cannot be used, whichever driver found out.

Only the work of start-up stands inside `said_in_one_line`: later, a lost connection is something to wait out.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from config.errors import ConfigError, DependencyError, SchemaError, SettingsError

# https://www.postgresql.org/docs/current/errcodes-appendix.html: class 28 is authorization, 3D000 an unknown database.
_REFUSED_SQLSTATES = ("28", "3D")
_NOT_A_DATABASE = "file is not a database"
_CANNOT_OPEN = "unable to open database file"


def database_place(url: URL) -> str:
    """Return where a database is, in words that hold no user, password or option."""
    if url.get_backend_name() == "sqlite":
        return f"the database {url.database}"
    host = url.query.get("host", url.host or "localhost")
    port = f":{url.port}" if url.port else ""
    return f"the database {url.database or 'postgres'} at {host}{port}"


@asynccontextmanager
async def said_in_one_line(url: URL) -> AsyncIterator[None]:
    """Turn what a driver raises in the block into a ConfigError; errors of the code itself pass.

    Raises DependencyError where trying again later may help, SettingsError or SchemaError where it cannot.
    """
    try:
        yield
    except DBAPIError as error:
        raise _driver_problem(error, database_place(url)) from None
    except OSError as error:  # asyncpg lets these through; a timeout is one
        reason = error.strerror or type(error).__name__
        raise DependencyError(f"{database_place(url)} does not answer ({reason}): is the server running?") from None


def _driver_problem(error: DBAPIError, place: str) -> ConfigError:
    lines = str(error.orig).splitlines() or [type(error.orig).__name__]
    reason = lines[0]
    if reason == _NOT_A_DATABASE:
        return SchemaError(f"{place} is not an SQLite file: name another one in [database] url")
    if reason == _CANNOT_OPEN:
        return SettingsError(f"{place} cannot be opened: do its folder and our right to write there exist?")
    if str(getattr(error.orig, "sqlstate", "")).startswith(_REFUSED_SQLSTATES):
        return SettingsError(f"{place} refuses us ({reason}): correct [database] url")
    return DependencyError(f"{place} fails: {reason}")

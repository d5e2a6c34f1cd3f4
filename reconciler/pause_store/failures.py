"""What a failing database means: try again. Only a row may say that a token is spent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.pause_store.errors import PauseStoreUnavailableError

# Trying again would only meet these again: they are about the statement, not about the moment.
_FAULTS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


def is_passing(error: Exception) -> bool:
    """Return whether the database could not answer now: locked, down, out of connections, or a lost serialization."""
    return isinstance(error, DBAPIError | PoolTimeoutError | OSError) and not isinstance(error, _FAULTS)


async def commit(connection: AsyncConnection) -> bool:
    """Commit; False where that failed in passing, so that the database may have done it or not."""
    try:
        await connection.commit()
    except Exception as error:
        if not is_passing(error):
            raise
        return False
    return True


@asynccontextmanager
async def try_again() -> AsyncIterator[None]:
    """Turn a passing failure of the block into PauseStoreUnavailableError; every other error passes unchanged."""
    try:
        yield
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        if not is_passing(error):
            raise
        raise PauseStoreUnavailableError(f"the pause store cannot answer now ({type(error).__name__})") from error

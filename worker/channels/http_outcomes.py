"""What an HTTP exchange that did not answer as hoped means, for every channel that speaks HTTP."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError, InvalidURL

from worker.channels.addresses import AddressRefusedError
from worker.channels.http_sessions import RedirectRefusedError
from worker.channels.outcomes import FailureReason, Outcome, Permanent, Temporary, Unknown

# What an exchange may raise; every other exception is a bug.
EXCHANGE_ERRORS = (ClientError, TimeoutError, OSError)

# A provider that names a longer wait is taken to mean this: beyond it instants would overflow.
MAX_RETRY_AFTER = timedelta(days=3650)


def outcome_of_error(error: BaseException) -> Outcome:
    """Translate an exception of an exchange; what was not surely kept from the provider is unknown."""
    if isinstance(error, ClientConnectorError):
        return _not_connected(error)
    if isinstance(error, RedirectRefusedError):
        return Permanent(FailureReason.REDIRECTED)
    if isinstance(error, ConnectionTimeoutError):
        return Temporary(FailureReason.UNREACHABLE)
    if isinstance(error, InvalidURL):
        return Permanent(FailureReason.REJECTED)
    if isinstance(error, TimeoutError):
        return Unknown(FailureReason.TIMED_OUT)
    return Unknown(FailureReason.CONNECTION_LOST)


def _not_connected(error: ClientConnectorError) -> Outcome:
    if isinstance(error.os_error, AddressRefusedError):
        return Permanent(FailureReason.ADDRESS_REFUSED)
    return Temporary(FailureReason.UNREACHABLE)


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Read how long the provider asks to wait: seconds or a date (RFC 9110 10.2.3), rounded up, never shortened.

    A date is counted from `now` or from the answer's own `Date`, whichever gives the longer wait, so that a
    clock that runs ahead does not shorten it. None where there is no header or it cannot be read.
    """
    value = next((value.strip() for key, value in headers.items() if key.lower() == "retry-after"), "")
    if value.replace(".", "", 1).isdecimal() and value.isascii():
        # A number of hundreds of digits is infinite as a float, and infinity has no ceiling.
        return timedelta(seconds=math.ceil(min(float(value), MAX_RETRY_AFTER.total_seconds())))
    at = _http_date(value)
    if at is None:
        return None
    answered_at = _http_date(next((value for key, value in headers.items() if key.lower() == "date"), ""))
    starts = [now, *([answered_at] if answered_at else [])]
    return min(max(*(at - start for start in starts), timedelta(0)), MAX_RETRY_AFTER)


def _http_date(value: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)

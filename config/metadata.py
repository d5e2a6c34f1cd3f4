"""The one `MetaData` that every room's tables stand on, and the column types they share."""

from datetime import UTC, datetime

from sqlalchemy import BigInteger, Integer, MetaData, String
from sqlalchemy.engine import Dialect
from sqlalchemy.types import DateTime, TypeDecorator, TypeEngine

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only for INTEGER; PostgreSQL would run out of them at 2**31.
ROW_ID = BigInteger().with_variant(Integer, "sqlite")

_SQLITE_INSTANT_CHARS = 32


class Instant(TypeDecorator[datetime]):
    """An aware UTC instant: `timestamptz` on PostgreSQL, sortable fixed-width text on SQLite.

    SQLite has no instants and SQLAlchemy's own `DateTime` drops the zone there; the text form keeps
    microseconds and compares in time order. A naive value is a programming error (AssertionError).
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        """Choose the column type of the dialect."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(_SQLITE_INSTANT_CHARS))
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        """Turn an aware instant into what the dialect stores."""
        if value is None:
            return None
        assert value.tzinfo is not None, "an instant is aware"
        value = value.astimezone(UTC)
        return value.isoformat(timespec="microseconds") if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        """Return what is stored as an aware UTC instant."""
        if value is None:
            return None
        return datetime.fromisoformat(value) if isinstance(value, str) else value.astimezone(UTC)

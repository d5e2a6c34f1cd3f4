"""Messages that are told together: the deliveries of one group are sent as one message and share its outcome.

`carrier_id` names the one that leads; only leads are claimed, and bring with them what they carry.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from sqlalchemy import bindparam, update
from sqlalchemy.ext.asyncio import AsyncConnection

from reconciler.tables import DELIVERIES
from worker.delivery.gate import Drop, Go, Ruling, Wait
from worker.delivery.rows import Claimed

_JOIN = (
    update(DELIVERIES)
    .where(DELIVERIES.c.id == bindparam("row_id"))
    .values(carrier_id=bindparam("new_carrier_id"), message_key=bindparam("new_message_key"))
)


class _OfARow(Protocol):
    @property
    def row(self) -> Claimed: ...


Ruled = TypeVar("Ruled", bound=_OfARow)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is sent as one message: the lead first."""

    members: Sequence[Go]

    @property
    def lead(self) -> Claimed:
        """Return the delivery that the message is named by."""
        return self.members[0].row


def in_groups(rulings: Iterable[Ruled]) -> list[list[Ruled]]:
    """Return the rulings by what goes together, the lead of each first; ends of one digest edit it once."""
    groups: dict[tuple[object, ...], list[Ruled]] = {}
    for ruling in rulings:
        row = ruling.row
        key: tuple[object, ...] = (row.carrier_id or row.id,)
        if row.is_settle and row.told_with and row.sent_before:
            key = (row.recipient, row.sent_before[0].key)
        groups.setdefault(key, []).append(ruling)
    return [
        sorted(members, key=lambda one: (one.row.carrier_id is not None, one.row.id)) for members in groups.values()
    ]


def _lead_first(ruling: _OfARow) -> tuple[bool, int]:
    return ruling.row.carrier_id is not None, ruling.row.id


def together(rulings: Sequence[Ruling]) -> list[Ruling]:
    """Return the rulings so that a message which was tried before keeps its members: one that waits holds them all."""
    result: list[Ruling] = []
    for group in in_groups(rulings):
        wait = next((one for one in group if isinstance(one, Wait)), None)
        if wait is not None and _was_tried(group) and not wait.row.is_settle:
            result += [Wait(one.row, wait.reason, wait.until) if isinstance(one, Go) else one for one in group]
        else:
            result += group
    return result


async def regroup(connection: AsyncConnection, rulings: Sequence[Ruling]) -> list[Ruling]:
    """Write down who goes together now, and under which message's name; return the rulings with it.

    A lead that is dropped leaves the group to the next one; who waits leaves a group that was never tried.
    """
    result: list[Ruling] = []
    joins = []
    for group in in_groups(rulings):
        staying = [one.row for one in group if _stays(one, was_tried=_was_tried(group))]
        for one in group:
            row = _placed(one, staying)
            if row != one.row:
                joins.append({"row_id": row.id, "new_carrier_id": row.carrier_id, "new_message_key": row.message_key})
            result.append(replace(one, row=row))
    if joins:
        await connection.execute(_JOIN, joins)
    return result


def _was_tried(group: Sequence[Ruling]) -> bool:
    return len(group) > 1 and any(one.row.begun_at is not None or one.row.attempts for one in group)


def _stays(ruling: Ruling, *, was_tried: bool) -> bool:
    return not isinstance(ruling, Drop) and (was_tried or not isinstance(ruling, Wait))


def _placed(ruling: Ruling, staying: Sequence[Claimed]) -> Claimed:
    row = ruling.row
    if row.is_settle or isinstance(ruling, Drop):
        return row
    if row not in staying:
        return replace(row, carrier_id=None)
    lead = staying[0]
    return replace(row, carrier_id=None if lead.id == row.id else lead.id, message_key=lead.message_key)

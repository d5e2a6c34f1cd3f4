"""Opens and closes Handbell's own notices to its operator, with the deliveries that tell of them.

At most one notice is open per kind and subject, across restarts and processes: an outage that is still the same one
is told once.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from config.statements import insert_ignoring
from reconciler.plan import message_key
from reconciler.reasons import DecisionReason, DeliveryStatus
from reconciler.routes import Target
from reconciler.tables import DELIVERIES, NOTICES

NOTICE = "notice"
ROUTE = "operator"


class NoticeKind(StrEnum):
    """What a notice is about."""

    DESTINATION_BROKEN = "destination_broken"  # it refuses messages; the subject is its name
    DESTINATION_PAUSED = "destination_paused"  # `dead_letter_limit` of its messages became dead within an hour
    UNAVAILABLE_TOO_LONG = "unavailable_too_long"  # nothing was proven of a request for `notice_after`


_ABOUT_A_DESTINATION = frozenset({NoticeKind.DESTINATION_BROKEN, NoticeKind.DESTINATION_PAUSED})


async def open_notice(
    connection: AsyncConnection,
    kind: NoticeKind,
    subject: str,
    detail: str,
    *,
    targets: Iterable[Target],
    now: datetime,
) -> bool:
    """Store a notice and a delivery for each target, in the caller's transaction; False where one is open already.

    `detail` is fixed text, content-free: it is sent as it stands. A notice is never sent through the destination
    that it is about.
    """
    statement = insert_ignoring(connection, NOTICES).returning(NOTICES.c.id)
    values = {"kind": kind.value, "subject": subject, "detail": detail, "opened_at": now}
    notice_id = (await connection.execute(statement, [values])).scalar()
    if notice_id is None:
        return False
    told = [target for target in targets if not (kind in _ABOUT_A_DESTINATION and target.name == subject)]
    rows = [
        {
            "notice_id": notice_id,
            "destination": target.name,
            "channel": target.channel,
            "recipient": recipient,
            "purpose": NOTICE,
            "message_key": message_key(kind, f"{subject} {now.isoformat()}", target.name, recipient, NOTICE),
            "route": ROUTE,
            "status": DeliveryStatus.PENDING.value,
            "reason": DecisionReason.OPERATOR_NOTICE.value,
            "next_attempt_at": now,
            "created_at": now,
        }
        for target in told
        for recipient in target.recipients
    ]
    if rows:
        await connection.execute(insert(DELIVERIES), rows)
    return True


async def close_notices(
    connection: AsyncConnection, kinds: Iterable[NoticeKind], subject: str, *, now: datetime
) -> int:
    """Close what is open of these kinds about the subject; what was not sent of it is no longer said."""
    rows = await connection.execute(
        update(NOTICES)
        .where(
            NOTICES.c.kind.in_(sorted(kind.value for kind in kinds)),
            NOTICES.c.subject == subject,
            NOTICES.c.closed_at.is_(None),
        )
        .values(closed_at=now)
        .returning(NOTICES.c.id)
    )
    closed = [row.id for row in rows]
    if closed:
        await connection.execute(
            update(DELIVERIES)
            .where(DELIVERIES.c.notice_id.in_(closed), DELIVERIES.c.status == DeliveryStatus.PENDING.value)
            .values(
                status=DeliveryStatus.CANCELLED.value,
                reason=DecisionReason.SETTLED_BEFORE_SENDING.value,
                finished_at=now,
            )
        )
    return len(closed)

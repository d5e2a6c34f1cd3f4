"""What a proof shows of its notifications: their identity and state, and nothing that an agent said."""

from pathlib import Path
from typing import Any

from reconciler.listing import notifications
from worker.proof.folder import opened, paused_folder

_FIELDS = ("attention_id", "kind", "summary", "state")


async def inspect_in(path: Path) -> list[dict[str, Any]]:
    """Return attention id, kind, summary and state of every notification, oldest first, and nothing else."""
    async with opened(paused_folder(path)) as house:
        return [{name: row[name] for name in _FIELDS} async for row in notifications(house.engine)]

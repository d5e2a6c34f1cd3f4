"""Waits for the named steps of the flow, so that no test sleeps."""

import asyncio
from collections import Counter

from config.steps import Step


class Steps:
    """A step hook that counts what was passed and lets a test wait for it."""

    def __init__(self) -> None:
        self.passed: Counter[Step] = Counter()
        self._changed = asyncio.Event()

    def __call__(self, step: Step) -> None:
        """Count the step and wake whoever waits."""
        self.passed[step] += 1
        self._changed.set()

    async def reach(self, step: Step, times: int = 1, *, seconds: float = 20.0) -> None:
        """Return once `step` was passed `times` times in all; `TimeoutError` after `seconds`."""
        async with asyncio.timeout(seconds):
            while self.passed[step] < times:
                self._changed.clear()
                await self._changed.wait()

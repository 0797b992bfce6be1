"""Time as the engine sees it; the only place that reads the clock."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, a monotonic count of seconds, waiting, and chance."""

    def now(self) -> datetime:
        """The time of day in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; only differences mean anything."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def random(self) -> float:
        return random.random()


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds: `2026-11-30T10:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

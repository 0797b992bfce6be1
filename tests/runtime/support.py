"""What tests of the engine share: a clock that stands still, and running a program from its text."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import halo_lang
from halo_runtime import RunResult, Runtime, ScriptedModel


class FakeClock:
    """Always the same moment; waiting takes no time and is written down in `slept` (seconds)."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def random(self) -> float:
        return 0.0


def runtime(replies: dict[str, Any] | None = None, **options: Any) -> Runtime:
    """A Runtime on a fake clock and an empty environment, answering from `replies`."""
    options.setdefault("env", {})
    options.setdefault("clock", FakeClock())
    return Runtime(replies=None if replies is None else ScriptedModel(replies), **options)


def run(
    text: str, inputs: dict[str, Any] | None = None, replies: dict[str, Any] | None = None, pipeline: str = "Main",
    **options: Any,
) -> RunResult:  # fmt: skip
    """The result of running a program's `Main` (or another pipeline)."""
    return asyncio.run(runtime(replies or {}, **options).run(halo_lang.parse(text), pipeline, inputs or {}))

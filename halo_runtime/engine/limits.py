"""Time limits of pipelines, runs and single calls. Time in which people are asked is not run time (spec 2.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from halo_runtime.engine.effects import TimeUp
from halo_runtime.errors import TimeoutExceeded

Result = TypeVar("Result")


async def within(seconds: float | None, what: str, work: Awaitable[Result]) -> Result:
    """The result of `work`, which is cancelled where it takes longer, upon which this raises TimeoutExceeded."""
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await work
    except TimeoutError:
        if not timer.expired():
            raise
        raise TimeoutExceeded(f"{what} took longer than {seconds:g} s") from None


class TimeLimit:
    """`seconds` for everything inside `enforced`, counted from its start; stands still inside `standing_still`.

    `what` names the limit in the error, `path` is that of the pipeline it holds for. `parent` is the limit around it,
    `left` what is left of `seconds` where a run goes on.
    """

    def __init__(self, seconds: float, what: str, path: str, parent: TimeLimit | None, left: float) -> None:
        self.seconds = seconds
        self._what = what
        self._path = path
        self._parent = parent
        self._timer: asyncio.Timeout | None = None
        self._waiting = 0
        self._left = max(left, 0.0)

    @asynccontextmanager
    async def enforced(self, on_expiry: Callable[[TimeoutExceeded], None]) -> AsyncGenerator[None]:
        """Cancel the body when time is up, tell `on_expiry`, and raise TimeoutExceeded; a replay's time is up too."""
        try:
            async with asyncio.timeout(self._left) as self._timer:
                yield
        except TimeUp as up:
            if up.path != self._path:
                raise
            raise up.error from None
        except TimeoutError:
            if not self._timer or not self._timer.expired():
                raise
            error = TimeoutExceeded(f"{self._what} took longer than {self.seconds:g} s")
            on_expiry(error)
            raise error from None

    def remaining(self) -> float:
        """Seconds left, the limits around this one included."""
        return min(self.left(), self._parent.remaining()) if self._parent else self.left()

    def left(self) -> float:
        """Seconds left of this limit alone."""
        return self._left if self._waiting else self._until_end()

    @contextmanager
    def standing_still(self) -> Generator[None]:
        """Stop this limit and those around it while people are asked; several may be asked at once."""
        self._stop()
        try:
            yield
        finally:
            self._go_on()

    def _until_end(self) -> float:
        when = self._timer.when() if self._timer else None
        return self._left if when is None else when - asyncio.get_running_loop().time()

    def _stop(self) -> None:
        if self._parent:
            self._parent._stop()
        self._waiting += 1
        if self._waiting == 1 and self._timer and not self._timer.expired():
            self._left = self._until_end()
            self._timer.reschedule(None)

    def _go_on(self) -> None:
        self._waiting -= 1
        # An expired timer has begun to cancel and cannot be moved any more.
        if self._waiting == 0 and self._timer and not self._timer.expired():
            self._timer.reschedule(asyncio.get_running_loop().time() + self._left)
        if self._parent:
            self._parent._go_on()

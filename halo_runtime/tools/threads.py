"""Blocking work of tools off the event loop, in threads that end when nobody waits for them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final, TypeVar

T = TypeVar("T")

_THREADS: Final = 4


class Abandoned(Exception):
    """Nobody waits for the work any more; raised inside it, seen by nobody."""


class Stop:
    """What work asks now and then: whether somebody still waits for it."""

    def __init__(self) -> None:
        self._event = Event()
        self._actions: list[Callable[[], None]] = []

    def set(self) -> None:
        """Nobody waits any more."""
        self._event.set()
        for action in self._actions:
            action()

    def on_set(self, action: Callable[[], None]) -> None:
        """Break off with `action`, from another thread, what the work itself waits for; it may be called twice."""
        self._actions.append(action)
        if self._event.is_set():
            action()

    def check(self) -> None:
        """Raises Abandoned."""
        if self._event.is_set():
            raise Abandoned

    def wait(self, seconds: float) -> None:
        """Let a while pass. Raises Abandoned as soon as nobody waits."""
        self._event.wait(seconds)
        self.check()


class Workers:
    """The threads of one tool; they are made when there is work."""

    def __init__(self, name: str, threads: int = _THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"halo-{name}")

    async def do(self, work: Callable[[Stop], T]) -> T:
        """The result of `work`. Cancelled, it is told to stop, and is over when this returns."""
        stop = Stop()
        running = self._pool.submit(work, stop)
        future = asyncio.wrap_future(running)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            stop.set()
            if not running.cancel():  # it has begun
                await asyncio.wait([future])
                future.exception()  # taken note of
            raise

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False)

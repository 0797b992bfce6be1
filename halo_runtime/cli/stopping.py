"""Ctrl-C: once stops a run cleanly, twice ends the process at once (spec 08)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from halo_runtime.cli.exit_codes import ExitCode

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Whether somebody has asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def stoppable(task: asyncio.Task[Any], announce: Callable[[], None]) -> Generator[Stop]:
    """Let the first signal cancel `task`, after `announce`, and the second end the process.

    The handlers are Python's and not the event loop's, so that the second one works while the loop is busy.
    """
    stop = Stop()
    loop = asyncio.get_running_loop()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.asked:
            os._exit(ExitCode.INTERRUPTED)
        stop.asked = True
        announce()
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # wakes the loop, which may be waiting for nothing else

    previous = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

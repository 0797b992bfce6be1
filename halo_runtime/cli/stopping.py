"""Ctrl-C: once stops a run cleanly, twice ends the process at once (spec 08)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from halo_runtime.cli.exit_codes import ExitCode

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stoppable(stop: Callable[[], object]) -> Generator[None]:
    """Let the first signal call `stop` in the event loop and the second end the process, while the body runs.

    The handlers are Python's and not the event loop's, so that the second one works while the loop is busy.
    """
    loop = asyncio.get_running_loop()
    asked = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(ExitCode.INTERRUPTED)
        asked = True
        loop.call_soon_threadsafe(stop)  # not here: a handler may not write to a stream that is being written to

    previous = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)

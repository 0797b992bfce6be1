"""Work that makes much and leaves little garbage, without the collector looking for some all the while."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

SELDOM: Final = 5_000
"""New objects after which the collector looks, in place of Python's 700."""


@contextmanager
def without_collector() -> Generator[None]:
    """Nodes and findings are many, long-lived and without cycles: looking among them takes a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Seldom:
    """For `with` around a run: the collector looks seldom while any lasts, and then as often as it did before.

    The calls that run side by side hold thousands of objects until their answers come, which the collector would look
    through again and again: a fifth of a run's time. What a program has set itself, when it looks less often, holds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = gc.get_threshold()
                young, *older = self._before
                if 0 < young < SELDOM:
                    gc.set_threshold(SELDOM, *older)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and gc.get_threshold()[0] == SELDOM:
                gc.set_threshold(*self._before)


seldom: Final = Seldom()

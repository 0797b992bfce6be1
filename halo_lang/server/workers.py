"""Threads for work that takes a while, so that the session goes on reading, answering and cancelling meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")


class Workers:
    """A few threads that take jobs in order, and end with the process however far a job is.

    The standard library's pool waits for its threads at the exit; a server whose editor has gone must not.
    """

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for number in range(count):
            Thread(target=self._work, name=f"halo-worker-{number}", daemon=True).start()

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """The result of `work`. When the caller is cancelled before the job's turn, the job is dropped."""
        future: Future[_Result] = Future()
        self._jobs.put(lambda: _do(work, future))
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _do(work: Callable[[], _Result], future: Future[_Result]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as failure:  # the border of a thread: whatever it was, it is the caller's
        future.set_exception(failure)
    else:
        future.set_result(result)

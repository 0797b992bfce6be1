"""The person at the terminal: one question at a time, read without a thread, so that a stopped run waits for no key."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TextIO

from halo_runtime.cli.output import emit, is_screen, is_terminal, paint
from halo_runtime.cli.progress import Progress
from halo_runtime.cli.questions import UnclearAnswerError, countdown, meant, question_text
from halo_runtime.json_types import Json
from halo_runtime.results import Interrupt
from halo_runtime.runtime import PAUSE, Pause

CATCH_UP_STEPS = 200
CATCH_UP_STEP_SECONDS = 0.005

_COUNTED_SECONDS = 1.0
_ONE_LINE_UP = "\x1b7\x1b[1A\r\x1b[2K"
_BACK = "\x1b8"

Now = Callable[[], datetime]


class Terminal:
    """Asks at the terminal, one question at a time."""

    def __init__(self, progress: Progress, screen: TextIO, keyboard: int, now: Now = lambda: datetime.now(UTC)) -> None:
        self._progress = progress
        self._screen = screen
        self._keyboard = keyboard
        self._now = now
        self._one_at_a_time = asyncio.Lock()
        self._unread = b""

    async def ask(self, interrupt: Interrupt) -> Json | Pause:
        """The person's answer; PAUSE for `later` and at the end of input. Who asks cancels it when time runs out."""
        async with self._one_at_a_time:
            await self._told_of(interrupt)
            with self._progress.hidden():
                emit(self._screen, question_text(interrupt, self._bold) + "\n")
                try:
                    async with self._counting_down(interrupt):
                        return await self._answer(interrupt)
                except asyncio.CancelledError:
                    emit(self._screen, "\n")
                    raise

    async def _told_of(self, interrupt: Interrupt) -> None:
        """Let what happened before the question be shown before it; events come from a thread of their own."""
        for _ in range(CATCH_UP_STEPS):
            if interrupt.id in self._progress.asked:
                return
            await asyncio.sleep(CATCH_UP_STEP_SECONDS)

    async def _answer(self, interrupt: Interrupt) -> Json | Pause:
        while True:
            self._prompt(interrupt)
            line = await self._line()
            if line is None:
                emit(self._screen, "\n")
                return PAUSE
            try:
                return meant(interrupt, line)
            except UnclearAnswerError as unclear:
                emit(self._screen, f"{unclear}\n")

    def _prompt(self, interrupt: Interrupt) -> None:
        """The line that is typed on; the time left stands right above it."""
        left = countdown(interrupt, self._now())
        emit(self._screen, "> " if left is None else f"{left}\n> ")

    @asynccontextmanager
    async def _counting_down(self, interrupt: Interrupt) -> AsyncGenerator[None]:
        """Keep the time left true while the person types, where the screen can be written above the cursor."""
        if interrupt.expires_at is None or not is_screen(self._screen):
            yield
            return
        ticker = asyncio.create_task(self._count_down(interrupt))
        try:
            yield
        finally:
            ticker.cancel()

    async def _count_down(self, interrupt: Interrupt) -> None:
        while True:
            await asyncio.sleep(_COUNTED_SECONDS)
            emit(self._screen, f"{_ONE_LINE_UP}{countdown(interrupt, self._now())}{_BACK}")

    async def _line(self) -> str | None:
        """The next typed line; None at the end of input."""
        while b"\n" not in self._unread:
            data = await self._keys()
            if not data:
                rest, self._unread = self._unread, b""
                return rest.decode(errors="replace") if rest else None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    async def _keys(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._keyboard, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._keyboard)
        return os.read(self._keyboard, 65536)

    def _bold(self, text: str) -> str:
        return paint("strong", text, self._screen)


def terminal_for(progress: Progress) -> Terminal | None:
    """The person's terminal, where questions can be seen and answered."""
    if not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        return None
    return Terminal(progress, sys.stderr, sys.stdin.fileno())

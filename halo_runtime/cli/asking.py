"""Questions of a run to the person at the terminal.

What is shown and what an answer means are pure functions; `Terminal` puts one question at a time on stderr and reads
stdin without a thread, so that a stopped run never waits for a key.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

from halo_lang.excerpt import visible
from halo_runtime.cli.answers import AnswersAhead, typed_value
from halo_runtime.cli.narration import elapsed
from halo_runtime.cli.output import emit, is_terminal, paint
from halo_runtime.cli.progress import Progress
from halo_runtime.engine.clock import iso
from halo_runtime.errors import InterruptExpired
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing
from halo_runtime.results import Answer, Interrupt
from halo_runtime.runtime import PAUSE, Pause
from halo_runtime.values import text_of

LATER = "later"
"""What a person types to leave a question open; the text itself is answered as `"later"`."""

MAX_ATTACHMENT_LINES = 60
"""Lines of an attached text that are shown."""

CATCH_UP_STEPS = 200
CATCH_UP_STEP_SECONDS = 0.005

Now = Callable[[], datetime]


def question_text(interrupt: Interrupt, now: datetime, bold: Callable[[str], str] = str) -> str:
    """Everything a person needs to answer: message, attachments, choices, time left, what may be typed."""
    message = visible(interrupt.message, keep="\t\n")
    if interrupt.kind == "listen":
        message = f"waiting for {visible(interrupt.event or 'an event')}: its payload"
    lines = ["", bold(f"? {message}"), *_about(interrupt, now)]
    for attachment in interrupt.attachments:
        lines += _attachment(attachment)
    if interrupt.choices:
        lines.append(f"  the program checks for: {_choices(interrupt)}")
    lines.append(f"  type an answer (text or JSON), or {LATER} to leave the question open")
    return "\n".join(lines)


def time_left(interrupt: Interrupt, now: datetime) -> float | None:
    """Seconds until the question expires; None when it never does."""
    if interrupt.expires_at is None:
        return None
    return max(0.0, (datetime.fromisoformat(interrupt.expires_at) - now).total_seconds())


def open_question(interrupt: Interrupt) -> str:
    """For the list of what a paused run waits for: the question, and what the program checks for."""
    what = f"waits for {interrupt.event}" if interrupt.kind == "listen" else f"asks: {interrupt.message}"
    shown = visible(what, keep="\t\n").replace("\n", "\n    ")
    choices = f"\n    the program checks for: {_choices(interrupt)}" if interrupt.choices else ""
    return f"  {visible(interrupt.stage)} {shown}{choices}"


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
        """The person's answer; PAUSE for `later` and at the end of input. InterruptExpired when time runs out."""
        async with self._one_at_a_time:
            await self._told_of(interrupt)
            with self._progress.hidden():
                emit(self._screen, question_text(interrupt, self._now(), self._bold) + "\n")
                try:
                    async with asyncio.timeout(time_left(interrupt, self._now())):
                        return await self._answer(interrupt)
                except TimeoutError:
                    raise InterruptExpired(f"nobody answered {interrupt.message!r} in time") from None
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
            emit(self._screen, "> ")
            line = await self._line()
            if line is None:
                emit(self._screen, "\n")
                return PAUSE
            text = line.strip()
            if text == LATER:
                return PAUSE
            if text:
                return typed_value(text, interrupt.choices)
            emit(self._screen, f'an empty text is typed as "", {LATER} leaves the question open\n')

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


class Answering:
    """The run's interrupt handler: answers given ahead, then the terminal where there is one, else a pause."""

    def __init__(self, ahead: AnswersAhead | None, terminal: Terminal | None, person: str) -> None:
        self._ahead = ahead
        self._terminal = terminal
        self._person = person

    async def __call__(self, interrupt: Interrupt) -> Answer | Pause:
        """Answer one question."""
        answer = MISSING if self._ahead is None else self._ahead.take(interrupt)
        if not isinstance(answer, Missing):
            return Answer(answer, self._person, _now(), "ahead")
        typed = PAUSE if self._terminal is None else await self._terminal.ask(interrupt)
        return typed if isinstance(typed, Pause) else Answer(typed, self._person, _now(), "terminal")


def _now() -> str:
    return iso(datetime.now(UTC))


def terminal_for(progress: Progress) -> Terminal | None:
    """The person's terminal, where questions can be seen and answered."""
    if not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        return None
    return Terminal(progress, sys.stderr, sys.stdin.fileno())


def _choices(interrupt: Interrupt) -> str:
    return ", ".join(visible(text_of(choice)) for choice in interrupt.choices)


def _about(interrupt: Interrupt, now: datetime) -> list[str]:
    parts = [] if interrupt.channel is None else [f"channel {visible(interrupt.channel)}"]
    left = time_left(interrupt, now)
    if left is not None:
        parts.append(f"expires in {elapsed(left)}")
    return [f"  {', '.join(parts)}"] if parts else []


def _attachment(attachment: JsonObject) -> list[str]:
    name = visible(str(attachment.get("name") or "attachment"))
    if attachment.get("kind") == "file":
        return [f"  file: {visible(str(attachment.get('path')))}"]
    lines = visible(text_of(attachment.get("text")), keep="\t\n").splitlines()
    more = [f"  | ({len(lines) - MAX_ATTACHMENT_LINES} more lines)"] if len(lines) > MAX_ATTACHMENT_LINES else []
    return [f"  {name}:", *(f"  | {line}" for line in lines[:MAX_ATTACHMENT_LINES]), *more]

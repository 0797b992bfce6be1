"""How a run is shown while it goes on: plain lines, lines that move on a terminal, JSON lines, or not at all.

Each form is an observer of the run's events; it is called from a thread of its own, while `tick` and `hidden` are
called from the run's. Everything is on stderr.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TextIO

from halo_lang.assist.positions import cells, first_cells
from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_runtime.cli.narration import ITEM, Tally, describe, elapsed, started
from halo_runtime.cli.output import emit, is_terminal, paint
from halo_runtime.cli.tails import Tails, sayable
from halo_runtime.engine.events import InterruptOpened, RunEvent, RunFinished, RunStarted, StageFinished, StageStarted

TICK_SECONDS = 0.1
"""How often the live lines move; they are drawn at most twice as often, however much is told."""

MAX_TAILS = 4
"""Replies that are shown as they stream, at most; further ones wait for their turn."""

_ERASE_BELOW = "\x1b[J"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""For terminals that give a character more cells than we count: a moving line must stay one."""


class Progress:
    """Counts silently (`--quiet`); the base of the forms that show something."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.tally = Tally()
        self.run_id: str | None = None
        self.asked: set[str] = set()
        """Ids of the questions that have been told of."""
        self.caught_up = False
        """Whether the run's last event has been told."""
        self.known: frozenset[str] = frozenset()
        """Structural paths of what was done before: a run that goes on tells of it again, and nobody needs to hear."""
        self._told: set[str] = set()
        """Further ones of a run that goes on: it may begin again, to take an answer that it came to a question for."""
        self._clock = clock
        self._began = clock()

    def __call__(self, event: RunEvent) -> None:
        """Take note of an event and show it."""
        if isinstance(event, RunStarted) and self.run_id is not None:
            self._begin_again()
        self.run_id = event.run_id
        self.tally.add(event)
        try:
            if event.path not in self.known:
                self.show(event)
                if self.known and "/" in event.path:
                    self._told.add(event.path)
        finally:
            # Also where showing fails: whoever waits for it must not wait for ever.
            if isinstance(event, InterruptOpened):
                self.asked.add(event.interrupt["id"])
            self.caught_up = isinstance(event, RunFinished)

    def _begin_again(self) -> None:
        """All that happened is told once more, so it is counted from nothing."""
        self.tally = Tally()
        if self.known:
            self.known |= self._told

    def show(self, event: RunEvent) -> None:
        """Say what the event says."""

    def tick(self) -> None:
        """Time has passed."""

    def close(self) -> None:
        """Nothing more is shown that moves."""

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Keep out of the way while somebody else writes to the terminal."""
        yield

    def summary(self, status: str, figures: list[str] | None = None) -> str:
        """`completed: 2 calls, 120 tokens, 1.2 s`; the figures are those of the events where none are given."""
        told = self.tally.figures() if figures is None else figures
        return f"{status}: {', '.join([*told, elapsed(self._clock() - self._began)])}"


class PlainLines(Progress):
    """A line for each stage as it starts, and for what is printed, warned of and tried again.

    While a question has the terminal, lines wait: its prompt stays the last one.
    """

    def __init__(self, stream: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream = stream
        self._lock = threading.Lock()
        self._hidden = 0
        self._held: list[str] = []

    def show(self, event: RunEvent) -> None:
        """Write the event's line."""
        line = started(event) if isinstance(event, StageStarted) else describe(event)
        if line is not None:
            self.write(line)

    def write(self, line: str) -> None:
        """Write a line, now or when nobody else has the terminal any more."""
        with self._lock:
            if self._hidden:
                self._held.append(line)
            else:
                emit(self._stream, f"{line}\n")

    def close(self) -> None:
        """Write what still waits."""
        with self._lock:
            self._release()

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Let lines wait for a while."""
        with self._lock:
            self._hidden += 1
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1
                if not self._hidden:
                    self._release()

    def _release(self) -> None:
        held, self._held = self._held, []
        for line in held:
            emit(self._stream, f"{line}\n")


class JsonLines(Progress):
    """Every event as one line of JSON, for programs (`--events`)."""

    def __init__(self, stream: TextIO | None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream = stream

    def show(self, event: RunEvent) -> None:
        """Write the event as JSON."""
        emit(self._stream, json.dumps(event.to_json()) + "\n")


class LiveLine(PlainLines):
    """On a terminal: a line for each stage as it ends, and under them some that move with what runs now.

    These are the ends of the replies that stream, and the last one is what runs, with the figures so far.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, clock)
        self._screen = stream
        self._closed = False
        self._frame = 0
        self._since: dict[str, float] = {}
        self._tails = Tails(clock)
        self._signs = _signs(stream)
        self._drawn: tuple[str, ...] = ()
        self._drawn_at = float("-inf")

    def show(self, event: RunEvent) -> None:
        """Write what stays above the moving lines; those move with time only, however many events there are."""
        with self._lock:
            self._tails.add(event)
        line = self._line(event)
        if line is not None:
            self.write(line)

    def write(self, line: str) -> None:
        """Write a line above the moving ones, now or when nobody else has the terminal any more."""
        with self._lock:
            if self._hidden:
                self._held.append(line)
            else:
                due = self._clock() - self._drawn_at >= TICK_SECONDS / 2
                self._draw(f"{line}\n", moving=due)

    def tick(self) -> None:
        """Move the moving lines."""
        with self._lock:
            self._frame += 1
            if not self._hidden:
                self._draw()

    def close(self) -> None:
        """Take the moving lines away for good."""
        with self._lock:
            if not self._hidden:  # else the terminal is somebody's who asks
                self._draw(moving=False)
            self._closed = True
        super().close()

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Take the moving lines away for a while, and let others wait."""
        with super().hidden():
            with self._lock:
                self._draw(moving=False)
            yield

    def _line(self, event: RunEvent) -> str | None:
        if isinstance(event, StageStarted):
            self._since[event.path] = self._clock()
            return None
        if isinstance(event, StageFinished):
            took = self._clock() - self._since.pop(event.path, self._clock())
            if event.kind == ITEM or event.outcome != "completed":
                return describe(event)
            return f"{paint('good', self._signs.done, self._screen)} {visible(event.stage)} {self._dim(elapsed(took))}"
        return describe(event)

    def _draw(self, above: str = "", *, moving: bool = True) -> None:
        """Write what stays in the place of the moving lines, and those, where wanted, anew below it: all in one go."""
        lines = self._moving() if moving and not self._closed else ()
        block = "\n".join(map(self._dim, lines))
        text = self._erasing() + above + (f"{_NO_WRAP}{block}{_WRAP}" if block else "")
        self._drawn = lines
        if lines:
            self._drawn_at = self._clock()
        if text:
            emit(self._screen, text)

    def _erasing(self) -> str:
        """What takes the moving lines away, from the end of the last one; a terminal made narrower has folded them."""
        if not self._drawn:
            return ""
        columns = _columns(self._screen)
        rows = sum(max(1, -(-cells(line) // columns)) for line in self._drawn)
        return (f"\r\x1b[{rows - 1}A" if rows > 1 else "\r") + _ERASE_BELOW

    def _moving(self) -> tuple[str, ...]:
        running = list(self.tally.running.values())
        if not running:
            return ()
        columns, rows = _size(self._screen)
        encoding = self._screen.encoding or "ascii"
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        figures = [*self.tally.figures(), elapsed(self._clock() - self._began)]
        sign = self._signs.frames[self._frame % len(self._signs.frames)]
        text = f"{sign} {visible(running[-1], keep='')}{more}: {', '.join(figures)}"
        tails = self._tails.rows(
            columns - 1, min(MAX_TAILS, rows // 3), encoding, self._signs.border, self._signs.ellipsis
        )
        return (*tails, first_cells(sayable(text, encoding), columns - 1, self._signs.ellipsis))

    def _dim(self, text: str) -> str:
        return paint("dim", text, self._screen)


def choose_progress(*, events: bool, quiet: bool) -> Progress:
    """The form that was asked for, else the one that suits stderr."""
    if events:
        return JsonLines(sys.stderr)
    if quiet:
        return Progress()
    if is_terminal(sys.stderr) and os.environ.get("TERM", "dumb") != "dumb":
        return LiveLine(sys.stderr)
    return PlainLines(sys.stderr)


@record
class _Signs:
    """What a live view draws with: the sign of a finished stage, the frames of a running one, a border, a cut."""

    done: str = "✓"
    frames: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    border: str = "│"
    ellipsis: str = "…"


_ASCII_SIGNS = _Signs("*", "-\\|/", "|", "...")


def _signs(stream: TextIO) -> _Signs:
    """The signs, such as the encoding has them."""
    signs = _Signs()
    try:
        (signs.done + signs.frames + signs.border + signs.ellipsis).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _ASCII_SIGNS
    return signs


def _columns(stream: TextIO) -> int:
    """Width of the terminal that the stream is."""
    return _size(stream)[0]


def _size(stream: TextIO) -> tuple[int, int]:
    """Columns and rows of the terminal that the stream is; stdout, which others ask, may be a pipe."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns, rows = 0, 0
    usual = shutil.get_terminal_size()
    return columns or usual.columns, rows or usual.lines

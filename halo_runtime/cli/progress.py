"""How a run is shown while it goes on: plain lines, a live line on a terminal, JSON lines, or not at all.

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

from halo_lang.assist.positions import cells
from halo_lang.excerpt import visible
from halo_runtime.cli.narration import ITEM, Tally, describe, elapsed, started
from halo_runtime.cli.output import emit, is_terminal, paint
from halo_runtime.engine.events import InterruptOpened, RunEvent, RunFinished, StageFinished, StageStarted

TICK_SECONDS = 0.1
"""How often the live line moves."""

_ERASE = "\r\x1b[2K"
_ELLIPSIS = "…"


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
        self._clock = clock
        self._began = clock()

    def __call__(self, event: RunEvent) -> None:
        """Take note of an event and show it."""
        self.run_id = event.run_id
        self.tally.add(event)
        try:
            if event.path not in self.known:
                self.show(event)
        finally:
            # Also where showing fails: whoever waits for it must not wait for ever.
            if isinstance(event, InterruptOpened):
                self.asked.add(event.interrupt["id"])
            self.caught_up = isinstance(event, RunFinished)

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
    """On a terminal: a line for each stage as it ends, and under them one that moves with what runs now."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, clock)
        self._screen = stream
        self._closed = False
        self._frame = 0
        self._since: dict[str, float] = {}
        self._done, self._frames = _signs(stream)

    def show(self, event: RunEvent) -> None:
        """Write what stays above the moving line; that itself moves with time only, however many events there are."""
        line = self._line(event)
        if line is None:
            return
        self.write(f"{_ERASE}{line}")
        with self._lock:
            self._draw()

    def tick(self) -> None:
        """Move the line."""
        with self._lock:
            self._frame += 1
            self._draw()

    def close(self) -> None:
        """Take the moving line away for good."""
        with self._lock:
            self._closed = True
            emit(self._screen, _ERASE)
        super().close()

    @contextmanager
    def hidden(self) -> Generator[None]:
        """Take the moving line away for a while, and let others wait."""
        with super().hidden():
            with self._lock:
                if self._hidden == 1:  # else the line is somebody's prompt
                    emit(self._screen, _ERASE)
            yield

    def _line(self, event: RunEvent) -> str | None:
        if isinstance(event, StageStarted):
            self._since[event.path] = self._clock()
            return None
        if isinstance(event, StageFinished):
            took = self._clock() - self._since.pop(event.path, self._clock())
            if event.kind == ITEM or event.outcome != "completed":
                return describe(event)
            return f"{paint('good', self._done, self._screen)} {visible(event.stage)} {self._dim(elapsed(took))}"
        return describe(event)

    def _draw(self) -> None:
        if self._hidden or self._closed:
            return
        running = list(self.tally.running.values())
        if not running:
            emit(self._screen, _ERASE)
            return
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        figures = [*self.tally.figures(), elapsed(self._clock() - self._began)]
        text = f"{self._frames[self._frame % len(self._frames)]} {visible(running[-1])}{more}: {', '.join(figures)}"
        emit(self._screen, _ERASE + self._dim(_fitted(text, _columns(self._screen) - 1)))

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


def _signs(stream: TextIO) -> tuple[str, str]:
    """The sign of a finished stage and the frames of a running one, such as the encoding has them."""
    done, frames = "✓", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    try:
        (done + frames).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "*", "-\\|/"
    return done, frames


def _columns(stream: TextIO) -> int:
    """Width of the terminal that the stream is; stdout, which others ask, may be a pipe."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return columns or shutil.get_terminal_size().columns


def _fitted(text: str, width: int) -> str:
    """The text cut to a number of terminal cells: a live line must never wrap."""
    if cells(text) <= width:
        return text
    while text and cells(text) >= width:
        text = text[: -max(1, (cells(text) - width) // 2)]
    return text + _ELLIPSIS

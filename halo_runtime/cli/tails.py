"""The ends of replies that stream, a row each, for a terminal: never longer than it is wide, never obeyed by it.

Pure. Rows are made when they are drawn, not when text comes; of each reply only the end is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from halo_lang.assist.positions import cells, first_cells, last_cells
from halo_lang.excerpt import visible
from halo_runtime.cli.narration import elapsed
from halo_runtime.engine.events import ModelDelta, ModelRequested, ModelResponded, RunEvent, RunFinished, StageFinished

KEPT = 2_000
"""Characters kept of a reply: more than a terminal's row has, also where many marks stand on each letter."""

MAX_NAME = 32
"""Cells of a call's name."""


@dataclass(slots=True)
class _Tail:
    """A call that waits for its reply, and the end of what has come of it."""

    name: str
    attempt: int
    since: float
    text: str = ""


class Tails:
    """The replies that stream now, by the path of the try that asks for them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tails: dict[str, _Tail] = {}

    def add(self, event: RunEvent) -> None:
        """Take the event into account."""
        if isinstance(event, ModelDelta):
            tail = self._tails.get(event.path)
            if tail is not None:
                tail.text = (tail.text + event.text)[-KEPT:]
        elif isinstance(event, ModelRequested):
            self._tails[event.path] = _Tail(f"{event.agent}.{event.method}", event.attempt, self._clock())
        elif isinstance(event, ModelResponded):
            self._tails.pop(event.path, None)
        elif isinstance(event, RunFinished):
            self._tails.clear()
        elif isinstance(event, StageFinished) and event.outcome != "completed":
            # A call that was cancelled says no more; its stage does.
            for path in [path for path in self._tails if path.startswith(f"{event.path}/")]:
                del self._tails[path]

    def rows(self, width: int, height: int, encoding: str, border: str, ellipsis: str) -> list[str]:
        """At most `height` rows of at most `width` cells, in the order in which the calls began."""
        streaming = [tail for tail in self._tails.values() if tail.text]
        return [self._row(tail, width, encoding, border, ellipsis) for tail in islice(streaming, height)]

    def _row(self, tail: _Tail, width: int, encoding: str, border: str, ellipsis: str) -> str:
        again = f" (try {tail.attempt})" if tail.attempt > 1 else ""
        name = first_cells(sayable(visible(tail.name, keep=""), encoding), MAX_NAME, ellipsis)
        head = f"  {name}{again} {elapsed(self._clock() - tail.since)} {border} "
        text = sayable(visible(" ".join(tail.text.split()), keep=""), encoding)
        return first_cells(head, width, ellipsis) + last_cells(text, max(0, width - cells(head)), ellipsis)


def sayable(text: str, encoding: str) -> str:
    """The text as a stream writes it whose encoding lacks some characters, which then stand as escapes."""
    return text.encode(encoding, "backslashreplace").decode(encoding, "replace")

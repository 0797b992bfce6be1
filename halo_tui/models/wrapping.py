"""Text cut into rows for the screen. What grows is cut on, not anew; what has not changed is not cut again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from halo_lang.assist.positions import MARKS, TAB_SIZE, cells
from halo_tui.models.growing import Growing
from halo_tui.models.lines import Line, Role, Run, visible

SPACE: Final = " "
TAB: Final = SPACE * TAB_SIZE
"""No tab stops: where a tab leads would hang on where the row began, and on the pieces in which text comes."""


class Wrapper:
    """Cuts text into rows of at most `width` cells, at spaces where there are some. The text may come in pieces."""

    def __init__(self, width: int) -> None:
        self._width = max(1, width)
        self._rows: list[Line] = []
        self._open: list[Run] = []
        self._used = 0

    @property
    def rows(self) -> Sequence[Line]:
        """The rows so far; only the last one can still change."""
        return [*self._rows, tuple(self._open)] if self._open else self._rows

    def feed(self, text: str, role: Role) -> None:
        """Add text."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._end(tuple(self._open))
            self._add(line.replace("\t", TAB), role)

    def _add(self, text: str, role: Role) -> None:
        at = 0
        while at < len(text):
            # No more of a row than this, for marks take no cell.
            ahead = text[at : at + self._width * MARKS]
            taken = ahead[: self._how_many(ahead)]
            self._open.append((taken, role))
            self._used += cells(taken)
            at += len(taken)
            if at < len(text):
                at += self._break(text[at])

    def _how_many(self, text: str) -> int:
        """How many characters of the text the open row has room for; an empty one has room for any."""
        room = self._width - self._used
        if text.isascii():
            return max(0, min(room, len(text)))
        for at, character in enumerate(text):
            room -= cells(character)
            if room < 0:
                return at if at or self._open else 1
        return len(text)

    def _break(self, following: str) -> int:
        """End the row behind its last space, or where it is full; how many of the characters that follow go with it."""
        row = "".join(text for text, _ in self._open)
        end = len(row) if following == SPACE else row.rfind(SPACE) + 1
        if not row[:end].strip():
            end = len(row)
        done, rest = _split(self._open, end)
        self._end(done)
        self._open = list(rest)
        self._used = sum(cells(text) for text, _ in rest)
        return 1 if following == SPACE else 0

    def _end(self, row: Line) -> None:
        self._rows.append(row)
        self._open, self._used = [], 0


def _split(runs: Iterable[Run], at: int) -> tuple[Line, Line]:
    left: list[Run] = []
    right: list[Run] = []
    for text, role in runs:
        if at > 0:
            left.append((text[:at], role))
        if at < len(text):
            right.append((text[max(0, at) :], role))
        at -= len(text)
    return tuple(left), tuple(right)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of what a pane says. `key` tells it from others; `runs` are made anew when `stamp` is another one.

    `grows` is text that follows the runs and grows at its end, in the role `text`.
    """

    key: Hashable
    stamp: object
    runs: Callable[[], Iterable[Run]]
    grows: Growing | None = None


class _Cut:
    """A section cut into rows."""

    def __init__(self, section: Section, width: int) -> None:
        self.section = section
        self._wrapper = Wrapper(width)
        for text, role in section.runs():
            self._wrapper.feed(text, role)
        grows = section.grows
        self._first = grows.first if grows is not None else 0
        self._taken = self._first
        if self._first:
            self._wrapper.feed(f"… {self._first:,} earlier characters\n", "dim")
        self.go_on()

    @property
    def rows(self) -> Sequence[Line]:
        return self._wrapper.rows

    def stands_for(self, section: Section) -> bool:
        """Whether what is cut belongs to the section as it is now, but for what has come at its end."""
        mine = self.section
        same = mine.grows is section.grows and (mine.stamp is section.stamp or mine.stamp == section.stamp)
        return same and (section.grows is None or section.grows.first == self._first)

    def go_on(self) -> bool:
        """Cut what has come since; whether there was any."""
        grows = self.section.grows
        if grows is None or grows.total == self._taken:
            return False
        self._wrapper.feed(visible(grows.since(self._taken)), "text")
        self._taken = grows.total
        return True


class Page:
    """The rows of some sections, one below the other."""

    def __init__(self) -> None:
        self._cuts: dict[Hashable, _Cut] = {}
        self._width = 0
        self._parts: list[Sequence[Line]] = []
        self._ends: list[int] = []

    def show(self, sections: Iterable[Section], width: int) -> bool:
        """Take the sections as they are now; whether that changes any row."""
        before, self._cuts = self._cuts if width == self._width else {}, {}
        self._width = width
        changed = False
        for section in sections:
            cut = before.get(section.key)
            if cut is None or not cut.stands_for(section):
                cut, changed = _Cut(section, width), True
            elif cut.go_on():
                changed = True
            self._cuts[section.key] = cut
        if changed or list(before) != list(self._cuts):
            self._parts = [cut.rows for cut in self._cuts.values()]
            self._ends = list(accumulate(map(len, self._parts)))
            return True
        return False

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: int) -> Line:
        part = bisect_right(self._ends, index)
        return self._parts[part][index - (self._ends[part - 1] if part else 0)]

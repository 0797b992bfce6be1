"""Colours of a changing text, lexing only the lines that changed and those a screen shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from halo_lang.highlight import START, ColouredSpan, State, highlight_line

FAR: Final = 400
"""A line further below the lexed part than this is coloured from a guessed state until `advance` gets there."""

Spans = tuple[ColouredSpan, ...]

_lex = lru_cache(maxsize=8_192)(highlight_line)


class Colours:
    """The spans of each of `lines`, a list that its owner changes and reports by `spliced`.

    The state before every line is kept. After an edit, lexing goes on from the edited line until it meets a state
    that is the same as before; the lines below keep theirs.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._before: list[State | None] = [START, *[None] * len(lines)]
        self._next = 0
        """First line whose successor's state is not sure."""
        self._edited = 0
        """Lexing that meets an old state before this line has not met what is below the edit."""
        self._known = 0
        """States up to this line were sure before the edit."""
        self.guessed = False
        """Whether any spans given so far rest on a guess."""

    @property
    def complete(self) -> bool:
        """Whether the state before every line is sure."""
        return self._next >= len(self._lines)

    def spliced(self, top: int, removed: int, inserted: int) -> None:
        """Lines `top` up to `top + removed` were replaced by `inserted` others."""
        self._before[top + 1 : top + removed] = [None] * (inserted - 1)
        shift = inserted - removed
        known = max(self._known, self._next)
        self._known = known + shift if known >= top + removed else min(known, top)
        edited = self._edited + shift if self._edited > top + removed else 0
        self._edited = max(edited, top + inserted)
        self._next = min(self._next, top)

    def spans(self, row: int) -> Spans:
        """The coloured spans of a line."""
        if row - self._next > FAR:
            self.guessed = True
        else:
            self._reach(row)
        return _lex(self._lines[row], self._before[row] or START)[0]

    def settled(self, row: int) -> bool:
        """Whether the lines from `row` on keep the colours they had before the last edit, which was above it."""
        if row - self._next > FAR:
            return False
        self._reach(row)
        return self._next > row or row >= len(self._lines)

    def advance(self, lines: int) -> None:
        """Go on by at most so many lines; for idle moments."""
        for _ in range(lines):
            if self.complete:
                return
            self._step()

    def _reach(self, row: int) -> None:
        while self._next < row:
            self._step()

    def _step(self) -> None:
        row = self._next
        after = _lex(self._lines[row], self._before[row] or START)[1]
        met = self._before[row + 1] == after and row + 1 >= self._edited
        self._before[row + 1] = after
        self._next = max(row + 1, self._known) if met else row + 1
        if self._next >= self._edited:
            self._edited = 0

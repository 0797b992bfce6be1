"""Which rows of the editor are marked, from problems and from the stages that run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from halo_lang.diagnostics import Severity
from halo_tui.models.problems import GLYPHS, Problem

_WORST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class Underline:
    """A marked part of a row: columns from 0, `end` past the last, None for the rest of the row."""

    start: int
    end: int | None
    look: str


@dataclass(frozen=True, slots=True)
class GutterMark:
    """A sign beside a line's number; `look` is a severity or `running`."""

    glyph: str
    look: str


def underlines(problems: Iterable[Problem]) -> Mapping[int, tuple[Underline, ...]]:
    """By row from 0; a problem over several lines is marked on its first."""
    rows: defaultdict[int, list[Underline]] = defaultdict(list)
    for problem in problems:
        start, end = problem.start, problem.end
        last = max(end.column - 1, start.column) if end.line == start.line else None
        rows[start.line - 1].append(Underline(start.column - 1, last, problem.severity.value))
    return {row: tuple(marks) for row, marks in rows.items()}


def gutter(problems: Iterable[Problem], running: Iterable[int]) -> Mapping[int, GutterMark]:
    """By row from 0: the worst problem of a line, or that its stage runs."""
    marks: dict[int, GutterMark] = {}
    for problem in sorted(problems, key=lambda found: -_WORST.index(found.severity)):
        marks[problem.start.line - 1] = GutterMark(GLYPHS[problem.severity][0], problem.severity.value)
    return marks | {line - 1: GutterMark("▶", "running") for line in running}

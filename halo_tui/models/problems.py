"""What is wrong with the program, as the list, the editor's marks and the status line show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import halo_lang
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.source import Position, Source
from halo_runtime.cli.sources import is_priced
from halo_tui.models.lines import Line, Role, counted, one_line

if TYPE_CHECKING:
    from halo_lang import Analysis, Program

GLYPHS: dict[Severity, tuple[str, Role]] = {
    Severity.ERROR: ("●", "error"),
    Severity.WARNING: ("▲", "warning"),
    Severity.INFO: ("○", "dim"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic with its places as lines and columns from 1; `end` is past its last character."""

    diagnostic: Diagnostic
    start: Position
    end: Position

    @property
    def severity(self) -> Severity:
        return self.diagnostic.severity

    @property
    def line(self) -> Line:
        """One row of the list: mark, place, what, code, what to do."""
        glyph, role = GLYPHS[self.severity]
        found = self.diagnostic
        place = f"{self.start.line}:{self.start.column}"
        hint: Line = ((f"  {one_line(found.hint)}", "dim"),) if found.hint else ()
        return (
            (f"{glyph} ", role),
            (f"{place:<7} ", "dim"),
            (one_line(found.message), "text"),
            (f"  {found.code}", "dim"),
            *hint,
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """A checked text: its program and all its problems in order of place."""

    source: Source
    analysis: Analysis
    problems: tuple[Problem, ...]

    @property
    def program(self) -> Program:
        return self.analysis.program

    @property
    def summary(self) -> Line:
        """`● 2 errors ▲ 1 warning`; empty where there is none."""
        counts = [(severity, sum(p.severity is severity for p in self.problems)) for severity in GLYPHS]
        return tuple(
            (f"{GLYPHS[severity][0]} {counted(count, severity.value)} ", GLYPHS[severity][1])
            for severity, count in counts
            if count
        )


class Checker:
    """Parses and checks texts of one file, each time using what the last time left."""

    def __init__(self) -> None:
        self._last: Analysis | None = None

    def check(self, source: Source) -> Findings:
        """All findings of a text. Takes time in proportion to what changed; safe to call in a thread, one at a time."""
        previous = self._last
        program = halo_lang.parse(source, previous.program if previous else None)
        self._last = analysis = halo_lang.check(program, previous, is_priced=is_priced)
        return Findings(source, analysis, tuple(_problem(found, source) for found in analysis.diagnostics))


def next_problem(problems: Sequence[Problem], at: Position, *, backwards: bool = False) -> Problem | None:
    """The problem after (or before) a place, going round at the end; None when there are none."""
    if not problems:
        return None
    if backwards:
        earlier = [problem for problem in problems if problem.start < at]
        return earlier[-1] if earlier else problems[-1]
    return next((problem for problem in problems if problem.start > at), problems[0])


def _problem(found: Diagnostic, source: Source) -> Problem:
    return Problem(found, source.position(found.span.start), source.position(found.span.end))

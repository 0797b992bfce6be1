"""The checks of a program while it is written, and the way from one problem to the next."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from halo_lang.source import Position
from halo_tui.models.marks import underlines
from halo_tui.models.problems import Checker, Findings, Problem, next_problem
from halo_tui.widgets.panes import Problems

if TYPE_CHECKING:
    from textual.timer import Timer

    from halo_tui.screens.workbench import Workbench

CHECK_AFTER: Final = 0.12
"""Seconds without a key before the text is checked."""

TYPING: Final = 1.0
"""Seconds after a change of the text in which no question opens: the next key would answer it unread."""


class Checking:
    """The findings of one workbench's text."""

    def __init__(self, workbench: Workbench) -> None:
        self.findings: Findings | None = None
        self._workbench = workbench
        self._checker = Checker()
        self._checking = asyncio.Lock()
        self._edited_at = 0.0
        self._timer: Timer | None = None

    @property
    def is_typing(self) -> bool:
        """Whether the text has changed a moment ago."""
        return time.monotonic() <= self._edited_at + TYPING

    def edited(self) -> None:
        """The text has changed: it is checked once nothing has changed for a moment."""
        self._edited_at = time.monotonic()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._workbench.set_timer(CHECK_AFTER, self.begin)

    def begin(self) -> None:
        """Check the text in the background."""
        self._workbench.run_worker(self.check(), group="check", exit_on_error=False)

    async def check(self) -> Findings:
        """The findings of the text as it is now, shown too."""
        bench = self._workbench
        async with self._checking:
            if self.findings is None or self.findings.source != bench.document.source:
                self.findings = await asyncio.to_thread(self._checker.check, bench.document.source)
                bench.query_one(Problems).show_findings(self.findings)
                bench.editor.show_underlines(underlines(self.findings.problems))
                bench.show_checked()
            return self.findings

    def at(self, index: int) -> Problem | None:
        """The problem in a row of the list; None for one that is gone."""
        problems = self.findings.problems if self.findings else ()
        return problems[index] if index < len(problems) else None

    def next(self, *, backwards: bool) -> Problem | None:
        """The problem after the cursor, or before it."""
        row, column = self._workbench.editor.cursor_location
        problems = self.findings.problems if self.findings else ()
        return next_problem(problems, Position(row + 1, column + 1), backwards=backwards)

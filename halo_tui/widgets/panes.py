"""The lists of the workbench: problems, stages, data."""

from __future__ import annotations

import time

from halo_tui.models.data import DataRow, DataTree
from halo_tui.models.lines import Line
from halo_tui.models.problems import Findings, Problem
from halo_tui.models.run import RunView, StageRow
from halo_tui.widgets.rows import Rows


class Problems(Rows[Problem]):
    """What is wrong with the program."""

    def __init__(self) -> None:
        super().__init__(lambda problem: problem.line, id="problems")
        self.empty = (("✓ ", "ok"), ("No problems", "dim"))

    def show_findings(self, findings: Findings) -> None:
        """Show the problems of a checked text."""
        if findings.problems != self.items:
            self.show(findings.problems)


class Stages(Rows[tuple[int, StageRow]]):
    """The stages of a run as they go."""

    def __init__(self) -> None:
        super().__init__(self._line, id="stages", classes="pane -active")
        self.empty = (("F5", "accent"), (" runs the program; its stages appear here.", "dim"))

    def show_run(self, run: RunView) -> None:
        """Show a run, with the newest stage in sight unless a person looks at another."""
        following = not self.has_focus or self.cursor >= len(self.items) - 1
        self.show(tuple(run.rows()))
        if following:
            self.cursor = len(self.items) - 1

    def _line(self, item: tuple[int, StageRow]) -> Line:
        depth, row = item
        return row.line(depth, time.monotonic())


class Data(Rows[DataRow]):
    """The values of a run."""

    def __init__(self) -> None:
        super().__init__(lambda row: row.line, id="data", classes="pane")
        self.empty = (("context.data of a run appears here.", "dim"),)

    def show_tree(self, tree: DataTree) -> None:
        """Show the tree as it is opened."""
        self.show(tuple(tree.rows()))

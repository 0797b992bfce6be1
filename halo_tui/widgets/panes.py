"""The lists of the workbench: problems, stages, data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from halo_lang.assist.positions import MARKS
from halo_tui.models.calls import Calls
from halo_tui.models.data import DataRow, DataTree
from halo_tui.models.lines import Line
from halo_tui.models.problems import Findings, Problem
from halo_tui.models.project import Kept, RunLine
from halo_tui.models.questions import Question
from halo_tui.models.run import RunView, StageRow
from halo_tui.widgets.rows import Rows

NO_QUESTION: Final[Line] = (("✓ ", "ok"), ("No question is open.", "dim"))


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
        self._calls = Calls()
        self.empty = (("F5", "accent"), (" runs the program; its stages appear here.", "dim"))

    def show_run(self, run: RunView) -> None:
        """Show a run, with the newest stage in sight unless a person looks at another."""
        following = not self.has_focus or self.cursor >= len(self.items) - 1
        self._calls = run.calls
        self.show(tuple(run.rows()))
        if following:
            self.cursor = len(self.items) - 1

    def show_entries(self, rows: Sequence[tuple[int, StageRow]], position: int) -> None:
        """Show the timeline of a kept run, with the cursor on the entry that is looked at."""
        self._calls = Calls()
        self.show(rows)
        self.cursor = position

    def _line(self, item: tuple[int, StageRow]) -> Line:
        depth, row = item
        call = self._calls.live_within(row.path) if row.active and not row.children else None
        tail = call.live.end(self.size.width * MARKS) if call is not None and call.live is not None else ""
        return row.line(depth, time.monotonic(), tail, self.size.width)

    @property
    def chosen(self) -> str:
        """The path of the stage at the cursor."""
        return self.items[self.cursor][1].path if self.items else ""


class Data(Rows[DataRow]):
    """The values of a run."""

    def __init__(self) -> None:
        super().__init__(lambda row: row.line, id="data", classes="pane")
        self.empty = (("context.data of a run appears here.", "dim"),)

    def show_tree(self, tree: DataTree) -> None:
        """Show the tree as it is opened."""
        self.show(tuple(tree.rows()))


class Inbox(Rows[tuple[Question, int]]):
    """The open questions of the project, three rows each."""

    def __init__(self) -> None:
        super().__init__(self._line, id="inbox", classes="pane")
        self.empty = NO_QUESTION

    def show_questions(self, questions: Sequence[Question], trouble: str) -> None:
        """Show the open questions, or why they are not known."""
        self.empty = ((trouble, "error"),) if trouble else NO_QUESTION
        self.show([(question, part) for question in questions for part in range(Question.ROWS)])

    def _line(self, item: tuple[Question, int]) -> Line:
        question, part = item
        return question.lines(datetime.now(UTC))[part]


class Runs(Rows[RunLine]):
    """The kept runs of the project, the latest first."""

    def __init__(self) -> None:
        super().__init__(lambda line: line.line(datetime.now(UTC)), id="runs", classes="pane")
        self.empty = (("Runs that pause, stop or are kept with @checkpoint appear here.", "dim"),)

    def show_kept(self, kept: Kept) -> None:
        """Show the kept runs, the cursor on the run on which it stood."""
        before = self.items[self.cursor].run_id if self.items else None
        self.show(kept.runs)
        self.cursor = next((at for at, line in enumerate(kept.runs) if line.run_id == before), self.cursor)

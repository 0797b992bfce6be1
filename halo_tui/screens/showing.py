"""What the panes, the gutter and the status line of the workbench show of a program and its run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from halo_tui.models.data import DataTree
from halo_tui.models.lines import Line, one_line
from halo_tui.models.marks import gutter
from halo_tui.models.project import Kept
from halo_tui.models.questions import Question
from halo_tui.widgets.bars import Status, Tabs
from halo_tui.widgets.output import CallPane, Output
from halo_tui.widgets.panes import Data, Inbox, Runs, Stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halo_tui.screens.workbench import Workbench


class Showing:
    """Puts what is known into the widgets of one workbench; nothing here changes what is known."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._tree = DataTree()
        self._inbox: tuple[Sequence[Question], str] | None = None

    def run(self) -> None:
        """The run as it is now, or the one that is looked back at, in all panes."""
        bench = self._workbench
        replay, stages = bench.replay, bench.query_one(Stages)
        if replay is None:
            stages.show_run(bench.session.view)
            self._tree.show(bench.session.view)
        else:
            stages.show_entries(replay.rows, replay.position)
            self._tree.show(replay.view, replay.changed)
        bench.query_one(Output).show_run(bench.shown)
        self.call()
        bench.query_one(Data).show_tree(self._tree)

    def call(self) -> None:
        """The calls of the stage at the cursor."""
        bench = self._workbench
        bench.query_one(CallPane).show_calls(bench.shown.calls.within(bench.query_one(Stages).chosen))

    def toggle_value(self, index: int) -> None:
        """Open or close a value of the run's data."""
        data = self._workbench.query_one(Data)
        self._tree.toggle(data.items[index])
        data.show_tree(self._tree)

    def kept(self, kept: Kept, questions: Sequence[Question]) -> None:
        """The kept runs of the project and its open questions."""
        self._workbench.query_one(Runs).show_kept(kept)
        self.inbox(questions, kept.trouble)

    def inbox(self, questions: Sequence[Question], trouble: str) -> None:
        """The open questions, or why they are not known."""
        if (questions, trouble) == self._inbox:
            return
        self._inbox = questions, trouble
        self._workbench.query_one(Inbox).show_questions(questions, trouble)
        for tabs in self._workbench.query(Tabs):
            tabs.waiting = len(questions)

    def clock(self) -> None:
        """Ages, and the time that questions have left, as they are now."""
        self._workbench.query_one(Inbox).follow_the_clock()
        self._workbench.query_one(Runs).follow_the_clock()

    def marks(self) -> None:
        """Problems and the stages at work, beside the lines of the program."""
        bench = self._workbench
        problems = bench.findings.problems if bench.findings else ()
        replay = bench.replay
        lines = bench.session.view.running_lines if replay is None else frozenset((replay.marked_line,))
        bench.editor.show_gutter(gutter(problems, lines))
        if bench.has_class("-replaying"):
            bench.shown_editor.show_gutter(gutter((), lines))

    def status(self) -> None:
        """What is open, where the cursor stands, and how the run goes."""
        bench = self._workbench
        row, column = bench.shown_editor.cursor_location
        edited: Line = ((" ●", "warning"),) if bench.document.dirty else ()
        name = one_line(bench.document.path.name, 40)
        found: Line = bench.findings.summary if bench.findings else ()
        key: Line = (("F8", "accent"),) if found else ()
        status = bench.query_one(Status)
        status.left = ((f" {name}", "title"), *edited, (f"  {row + 1}:{column + 1}  ", "dim"), *found, *key)
        status.right = bench.shown.summary(time.monotonic())

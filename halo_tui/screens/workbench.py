"""The workbench: the editor, its problems, the panes of a run, and what the keys do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer
from textual.worker import Worker, WorkerState

from halo_lang.source import Position
from halo_tui import keymap
from halo_tui.editor.area import Editor
from halo_tui.models.data import DataTree
from halo_tui.models.document import Document
from halo_tui.models.lines import Line, one_line, pretty
from halo_tui.models.marks import gutter, underlines
from halo_tui.models.options import Options
from halo_tui.models.problems import Checker, Findings, Problem, next_problem
from halo_tui.models.project import Project
from halo_tui.models.run import RunView
from halo_tui.models.session import Session
from halo_tui.screens.dialogs import Help
from halo_tui.themes import DARK, LIGHT
from halo_tui.widgets.bars import Status, Tabs
from halo_tui.widgets.output import CallPane, Output
from halo_tui.widgets.panes import Data, Inbox, Problems, Runs, Stages
from halo_tui.widgets.rows import Rows

if TYPE_CHECKING:
    from halo_tui.models.stored import Replay
    from halo_tui.screens.filing import Filing
    from halo_tui.screens.keeping import Keeping
    from halo_tui.screens.running import Running

CHECK_AFTER: Final = 0.12
"""Seconds without a key before the text is checked."""

TYPING: Final = 1.0
"""Seconds after a change of the text in which no question opens: the next key would answer it unread."""

LOOK_FROM: Final = 0.5
"""Seconds after which the kept runs are looked at, so that the first keys do not wait for that."""

SHOW_EVERY: Final = 0.05
"""Seconds between two repaints of a run, however fast its events come."""

TICK: Final = 0.25
"""Seconds between two repaints of the elapsed time while a run goes on."""

WIDE: Final = 100
"""Columns from which the run is shown beside the editor."""

TALL: Final = 30
"""Rows from which there is room for more."""

RUN_PANES: Final = ("stages", "output", "data", "inbox", "runs", "call")
PANES: Final = ("editor", "problems", *RUN_PANES)


class Workbench(Screen[None]):
    """One program: written on the left, run on the right; under 100 columns one of them at a time."""

    BINDINGS: ClassVar[list[BindingType]] = list(keymap.bindings("workbench"))
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012
    AUTO_FOCUS = "Editor"

    def __init__(self, document: Document, options: Options) -> None:
        super().__init__(classes="-at-editor")
        self.document = document
        self.findings: Findings | None = None
        self.session = Session(self._run_changed, Project(options.open_store))
        self._options = options
        self._runs: Running | None = None
        self._kept: Keeping | None = None
        self._tree = DataTree()
        self._checker = Checker()
        self._edited_at = 0.0
        self._checking = asyncio.Lock()
        self._pane_chosen = False
        self._show_pending = False
        self._concluded = True
        self._mattered: dict[str, bool] = {}

    def compose(self) -> ComposeResult:
        # Set before there is anything in it: a class that comes later makes Textual style all widgets anew.
        columns, rows = self.host.size
        self.add_class("-wide" if columns >= WIDE else "-narrow", "-tall" if rows >= TALL else "-short")
        yield Tabs(("editor", *RUN_PANES), "editor", id="tabs-narrow")
        with Horizontal(id="room"):
            with Vertical(id="writing"):
                yield Editor(self.document.text)
                yield Problems()
            with Vertical(id="run"):
                yield Tabs(RUN_PANES, "stages", id="tabs-wide")
                yield Stages()
                yield Output()
                yield Data()
                yield Inbox()
                yield Runs()
                yield CallPane()
        yield Status()
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self._check_timer = self.set_timer(CHECK_AFTER, self._check_soon)
        self._tick = self.set_interval(TICK, self._show_run, pause=True)
        self._show_run()
        self._check_soon()
        if self._options.run:
            self._start(given=True)
        self.set_timer(LOOK_FROM, self._watch)

    def _watch(self) -> None:
        self.run_worker(self.keeping.watch(), name="the list of runs", group="watch", exit_on_error=False)

    async def on_unmount(self) -> None:
        await self.session.close()

    @property
    def running(self) -> Running:
        """How runs are started, stopped and answered."""
        if self._runs is None:
            # Imported here: the forms and what reads them are not needed for the first frame.
            from halo_tui.screens.running import Running

            self._runs = Running(self, self._options)
        return self._runs

    @property
    def filing(self) -> Filing:
        """How the document is saved and the workbench is left."""
        from halo_tui.screens.filing import Filing

        return Filing(self)

    @property
    def keeping(self) -> Keeping:
        """The kept runs of the project."""
        if self._kept is None:
            # Imported here for the same reason.
            from halo_tui.screens.keeping import Keeping

            self._kept = Keeping(self)
        return self._kept

    @property
    def replay(self) -> Replay | None:
        """The kept run that is looked back at."""
        return None if self._kept is None else self._kept.replay

    @property
    def shown(self) -> RunView:
        """The run on the screen: the one looked back at, else the one made here."""
        return self.session.view if self.replay is None else self.replay.view

    @property
    def host(self) -> App[int]:
        """The application, with the type of its result."""
        return cast("App[int]", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual leaves it open

    # --- writing ---------------------------------------------------------------------------------------------

    @property
    def editor(self) -> Editor:
        """The editor of the document."""
        return self.query_one("#editor", Editor)

    @property
    def shown_editor(self) -> Editor:
        """The editor, or the program of the run looked back at where that is another text."""
        return self.query_one("#replayed", Editor) if self.has_class("-replaying") else self.editor

    @on(Editor.TextEdited, "#editor")
    def _text_edited(self) -> None:
        self.document.text = self.editor.text
        self._edited_at = time.monotonic()
        self._check_timer.stop()
        self._check_timer = self.set_timer(CHECK_AFTER, self._check_soon)
        self.show_status()

    @on(Editor.CursorMoved)
    def _cursor_moved(self) -> None:
        self.show_status()

    def _check_soon(self) -> None:
        self.run_worker(self.check(), group="check", exit_on_error=False)

    async def check(self) -> Findings:
        """The findings of the text as it is now, shown too."""
        async with self._checking:
            if self.findings is None or self.findings.source != self.document.source:
                self.findings = await asyncio.to_thread(self._checker.check, self.document.source)
                self.query_one(Problems).show_findings(self.findings)
                self.editor.show_underlines(underlines(self.findings.problems))
                self._show_marks()
                self.show_status()
                self._show_keys()
            return self.findings

    def go_to(self, problem: Problem) -> None:
        """Put the cursor where a problem is."""
        self._show_pane("editor", None)
        self.editor.focus()
        self.editor.go_to((problem.start.line - 1, problem.start.column - 1))

    @on(Rows.Chosen, "#problems")
    def _problem_chosen(self, event: Rows.Chosen) -> None:
        if self.findings is not None and event.index < len(self.findings.problems):
            self.go_to(self.findings.problems[event.index])

    def action_next_problem(self, backwards: bool = False) -> None:
        row, column = self.editor.cursor_location
        problems = self.findings.problems if self.findings else ()
        problem = next_problem(problems, Position(row + 1, column + 1), backwards=backwards)
        if problem is None:
            self.tell("No problems")
        else:
            self.go_to(problem)

    def action_previous_problem(self) -> None:
        self.action_next_problem(backwards=True)

    # --- the file --------------------------------------------------------------------------------------------

    def action_save(self) -> None:
        self.run_worker(self.filing.save(), group="save", exclusive=True, exit_on_error=False)

    def leave(self) -> None:
        """Leave the workbench, after asking when something would be lost."""
        self.run_worker(self.filing.leave(), group="leave", exclusive=True, exit_on_error=False)

    # --- the run ---------------------------------------------------------------------------------------------

    def action_run(self) -> None:
        self._start()

    def _start(self, *, given: bool = False) -> None:
        self.run_worker(self.running.start(given=given), group="start", exclusive=True, exit_on_error=False)

    def action_stop(self) -> None:
        self.running.stop()

    def action_answer(self) -> None:
        self.running.open_question()

    def action_copy_output(self) -> None:
        self.host.copy_to_clipboard(pretty(self.shown.output))
        self.tell("The output was sent to the terminal's clipboard")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The footer shows the keys that matter now."""
        return self._what_matters().get(action, True)

    def _what_matters(self) -> dict[str, bool]:
        active = self.session.view.active
        return {
            "run": not active,
            "stop": active,
            "answer": bool(self.session.questions),
            **dict.fromkeys(("step", "continue_run", "close_replay"), self.replay is not None),
        }

    def _show_keys(self) -> None:
        """Make the footer anew, which is costly, only when other keys matter."""
        matters = self._what_matters()
        if matters != self._mattered:
            self._mattered = matters
            self.refresh_bindings()

    def run_began(self, *, at_once: bool = False) -> None:
        """A run starts: show its stages; the program where it was only just opened, which marks them too."""
        if self.replay is not None:
            self.action_close_replay()
        self._pane_chosen = self._concluded = False
        self._show_pane("editor" if at_once else self._narrow_pane("stages"), "stages")
        self._tick.resume()

    def _run_changed(self) -> None:
        # Called in the loop, but outside of any message: `call_later` brings it back into the screen's own.
        if not self._show_pending:
            self._show_pending = True
            self.call_later(self.set_timer, SHOW_EVERY, self._show_run)

    def _show_run(self) -> None:
        self._show_pending = False
        if not self.is_running:
            return
        run = self.session.view
        self._show_panes()
        self._show_marks()
        self.show_status()
        self._show_keys()
        if self._runs is not None and time.monotonic() > self._edited_at + TYPING:
            self._runs.offer_question()
        if not run.active and not self._concluded:
            self._conclude()

    def _show_panes(self) -> None:
        replay, stages = self.replay, self.query_one(Stages)
        if replay is None:
            stages.show_run(self.session.view)
            self._tree.show(self.session.view)
        else:
            stages.show_entries(replay.rows, replay.position)
            self._tree.show(replay.view, replay.changed)
        self.query_one(Output).show_run(self.shown)
        self._show_call()
        self.query_one(Data).show_tree(self._tree)
        self._show_inbox()

    def _show_call(self) -> None:
        self.query_one(CallPane).show_calls(self.shown.calls.within(self.query_one(Stages).chosen))

    def _conclude(self) -> None:
        self._concluded = True
        self._tick.pause()
        if not self._pane_chosen and self.session.view.status != "paused":
            self._show_pane(self._narrow_pane("output"), "output")

    @on(Rows.Chosen, "#stages")
    def _stage_chosen(self, event: Rows.Chosen) -> None:
        line = self.query_one(Stages).items[event.index][1].source_line
        self._show_pane("editor", None)
        self.shown_editor.focus()
        self.shown_editor.go_to((max(0, line - 1), 0))

    @on(Rows.Chosen, "#data")
    def _value_chosen(self, event: Rows.Chosen) -> None:
        data = self.query_one(Data)
        self._tree.toggle(data.items[event.index])
        data.show_tree(self._tree)

    # --- kept runs -------------------------------------------------------------------------------------------

    def show_kept(self) -> None:
        """Show the kept runs and the open questions as they are now."""
        self.query_one(Runs).show_kept(self.keeping.kept)
        self._show_inbox()

    def follow_the_clock(self) -> None:
        """Show ages, and the time that questions have left, as they are now."""
        self.query_one(Inbox).follow_the_clock()
        self.query_one(Runs).follow_the_clock()

    def show_replay(self) -> None:
        """Show the run that is looked back at, where it is looked at; the one made here when there is none."""
        self._show_run()
        replay = self.replay
        if replay is not None and replay.marked_line:
            self.shown_editor.go_to((replay.marked_line - 1, 0))

    async def show_program_of(self, replay: Replay | None) -> None:
        """Show the program of a run beside it, where it is not the text of the editor; without a run the editor."""
        await self.query("#replayed").remove()
        other = replay is not None and replay.program != self.document.text
        if replay is not None and other:
            await self.query_one("#writing").mount(Editor(replay.program, id="replayed", read_only=True), before=0)
        self.set_class(other, "-replaying")
        if replay is not None:
            self.action_show_pane("stages")

    def action_step(self, by: int) -> None:
        """Look at the stage before or after."""
        if self.replay is not None:
            self.keeping.go(self.replay.position + by)

    def action_continue_run(self) -> None:
        self.run_worker(self.keeping.continue_from_here(), group="start", exclusive=True, exit_on_error=False)

    def action_close_replay(self) -> None:
        self.run_worker(self.keeping.close(), group="replay", exit_on_error=False)

    @on(Rows.Moved, "#stages")
    def _entry_chosen(self) -> None:
        if self.replay is not None:
            self.keeping.go(self.query_one(Stages).cursor)
        else:
            self._show_call()

    @on(Rows.Chosen, "#inbox")
    def _question_chosen(self, event: Rows.Chosen) -> None:
        question, _ = self.query_one(Inbox).items[event.index]
        self.keeping.choose_question(question)

    @on(Rows.Chosen, "#runs")
    def _run_chosen(self, event: Rows.Chosen) -> None:
        line = self.query_one(Runs).items[event.index]
        self.run_worker(self.keeping.open(line.run_id), group="replay", exclusive=True, exit_on_error=False)

    def _show_inbox(self) -> None:
        if self._kept is not None:
            questions = self._kept.questions
            self.query_one(Inbox).show_questions(questions, self._kept.kept.trouble)
            for tabs in self.query(Tabs):
                tabs.waiting = len(questions)

    # --- panes -----------------------------------------------------------------------------------------------

    def action_show_pane(self, name: str) -> None:
        """Show a pane and go there."""
        self._pane_chosen = True
        in_run = name in RUN_PANES
        self._show_pane(name if in_run else "editor", name if in_run else None)
        self._pane(name).focus()

    def action_next_pane(self, step: int = 1) -> None:
        self.action_show_pane(PANES[(self._focused_pane() + step) % len(PANES)])

    def action_previous_pane(self) -> None:
        self.action_next_pane(-1)

    @on(Tabs.Selected)
    def _tab_selected(self, event: Tabs.Selected) -> None:
        self.action_show_pane(event.pane)

    def _focused_pane(self) -> int:
        return next((at for at, name in enumerate(PANES) if self._pane(name).has_focus), 0)

    def _pane(self, name: str) -> Widget:
        return self.shown_editor if name == "editor" else self.query_one(f"#{name}", Widget)

    def _narrow_pane(self, name: str) -> str:
        """The pane that a narrow screen shows; a wide one has the editor in sight anyway."""
        return name if self.has_class("-narrow") else "editor"

    def _show_pane(self, narrow: str, run_pane: str | None) -> None:
        """`narrow` is what a narrow screen shows; `run_pane` which of the run's panes is in front, None as it was."""
        self.set_class(narrow == "editor", "-at-editor")
        self.query_one("#tabs-narrow", Tabs).active = narrow
        if run_pane is not None:
            self.query_one("#tabs-wide", Tabs).active = run_pane
            for name in RUN_PANES:
                self.query_one(f"#{name}").set_class(name == run_pane, "-active")
        if self.focused is not None and not self.focused.is_on_screen:
            self._pane(narrow).focus()

    # --- the rest --------------------------------------------------------------------------------------------

    def tell(self, message: str, *, failed: bool = False) -> None:
        """A short note over the screen."""
        self.notify(one_line(message), severity="error" if failed else "information", markup=False)

    def action_help(self) -> None:
        self.host.push_screen(Help())

    def action_switch_theme(self) -> None:
        self.host.theme = LIGHT.name if self.host.current_theme.dark else DARK.name

    def action_palette(self) -> None:
        self.host.action_command_palette()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Nothing that goes wrong in the background takes the editor down."""
        worker = cast("Worker[object]", event.worker)  # pyright: ignore[reportUnknownMemberType]
        if event.state is WorkerState.ERROR:
            self.tell(f"{worker.name} failed: {worker.error}", failed=True)

    def _show_marks(self) -> None:
        problems = self.findings.problems if self.findings else ()
        replay = self.replay
        lines = self.session.view.running_lines if replay is None else frozenset((replay.marked_line,))
        self.editor.show_gutter(gutter(problems, lines))
        if self.has_class("-replaying"):
            self.shown_editor.show_gutter(gutter((), lines))

    def show_status(self) -> None:
        """Show what is open, where the cursor stands, and how the run goes."""
        row, column = self.shown_editor.cursor_location
        edited: Line = ((" ●", "warning"),) if self.document.dirty else ()
        name = one_line(self.document.path.name, 40)
        found: Line = self.findings.summary if self.findings else ()
        key: Line = (("F8", "accent"),) if found else ()
        status = self.query_one(Status)
        status.left = ((f" {name}", "title"), *edited, (f"  {row + 1}:{column + 1}  ", "dim"), *found, *key)
        status.right = self.shown.summary(time.monotonic())

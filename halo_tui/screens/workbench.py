"""The workbench: the editor, its problems, the panes of a run, and what the keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer
from textual.worker import Worker, WorkerState

from halo_tui import keymap
from halo_tui.editor.area import Editor
from halo_tui.models.document import Document
from halo_tui.models.lines import one_line, pretty
from halo_tui.models.options import Options
from halo_tui.models.problems import Findings, Problem
from halo_tui.models.project import Project
from halo_tui.models.run import RunView
from halo_tui.models.session import Session
from halo_tui.screens.arrangement import RUN_PANES, Arrangement
from halo_tui.screens.checking import Checking
from halo_tui.screens.dialogs import Help
from halo_tui.screens.showing import Showing
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


class Workbench(Screen[None]):
    """One program: written on the left, run on the right; under 100 columns one of them at a time."""

    BINDINGS: ClassVar[list[BindingType]] = list(keymap.bindings("workbench"))
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual declares it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012
    AUTO_FOCUS = "Editor"

    def __init__(self, document: Document, options: Options) -> None:
        super().__init__(classes="-at-editor")
        self.document = document
        self._checks = Checking(self)
        self.session = Session(self._run_changed, Project(options.open_store))
        self._options = options
        self._runs: Running | None = None
        self._kept: Keeping | None = None
        self._showing = Showing(self)
        self._panes = Arrangement(self)
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
        self._tick = self.set_interval(TICK, self._show_run, pause=True)
        self._show_run()
        self._checks.begin()
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
        self._checks.edited()
        self.show_status()

    @on(Editor.CursorMoved)
    def _cursor_moved(self) -> None:
        self.show_status()

    @property
    def findings(self) -> Findings | None:
        """What the last check found; None before the first."""
        return self._checks.findings

    async def check(self) -> Findings:
        """The findings of the text as it is now, shown too."""
        return await self._checks.check()

    def show_checked(self) -> None:
        """Show what depends on the findings, beside the list of them."""
        self._showing.marks()
        self.show_status()
        self._show_keys()

    def go_to(self, problem: Problem) -> None:
        """Put the cursor where a problem is."""
        self._panes.show("editor", None)
        self.editor.focus()
        self.editor.go_to((problem.start.line - 1, problem.start.column - 1))

    @on(Rows.Chosen, "#problems")
    def _problem_chosen(self, event: Rows.Chosen) -> None:
        problem = self._checks.at(event.index)
        if problem is not None:
            self.go_to(problem)

    def action_next_problem(self, backwards: bool = False) -> None:
        problem = self._checks.next(backwards=backwards)
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
        self._panes.chosen = self._concluded = False
        if at_once:
            self._panes.show("editor", "stages")
        else:
            self._panes.show_for_run("stages")
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
        self._showing.run()
        if self._kept is not None:
            self._showing.inbox(self._kept.questions, self._kept.kept.trouble)
        self._showing.marks()
        self.show_status()
        self._show_keys()
        if self._runs is not None and not self._checks.is_typing:
            self._runs.offer_question()
        if not run.active and not self._concluded:
            self._conclude()

    def _conclude(self) -> None:
        self._concluded = True
        self._tick.pause()
        if not self._panes.chosen and self.session.view.status != "paused":
            self._panes.show_for_run("output")

    @on(Rows.Chosen, "#stages")
    def _stage_chosen(self, event: Rows.Chosen) -> None:
        line = self.query_one(Stages).items[event.index][1].source_line
        self._panes.show("editor", None)
        self.shown_editor.focus()
        self.shown_editor.go_to((max(0, line - 1), 0))

    @on(Rows.Chosen, "#data")
    def _value_chosen(self, event: Rows.Chosen) -> None:
        self._showing.toggle_value(event.index)

    # --- kept runs -------------------------------------------------------------------------------------------

    def show_kept(self) -> None:
        """Show the kept runs and the open questions as they are now."""
        self._showing.kept(self.keeping.kept, self.keeping.questions)

    def follow_the_clock(self) -> None:
        """Show ages, and the time that questions have left, as they are now."""
        self._showing.clock()

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
            self._showing.call()

    @on(Rows.Chosen, "#inbox")
    def _question_chosen(self, event: Rows.Chosen) -> None:
        question, _ = self.query_one(Inbox).items[event.index]
        self.keeping.choose_question(question)

    @on(Rows.Chosen, "#runs")
    def _run_chosen(self, event: Rows.Chosen) -> None:
        line = self.query_one(Runs).items[event.index]
        self.run_worker(self.keeping.open(line.run_id), group="replay", exclusive=True, exit_on_error=False)

    # --- panes -----------------------------------------------------------------------------------------------

    def action_show_pane(self, name: str) -> None:
        """Show a pane and go there."""
        self._panes.choose(name)

    def action_next_pane(self, step: int = 1) -> None:
        self._panes.choose_next(step)

    def action_previous_pane(self) -> None:
        self.action_next_pane(-1)

    @on(Tabs.Selected)
    def _tab_selected(self, event: Tabs.Selected) -> None:
        self.action_show_pane(event.pane)

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

    def show_status(self) -> None:
        """Show what is open, where the cursor stands, and how the run goes."""
        self._showing.status()

"""The project's kept runs on the workbench: the inbox, the list, looking back, and going on from there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from halo_runtime.errors import HaloError
from halo_tui.models.lines import Run, counted
from halo_tui.models.plan import plan_text
from halo_tui.models.project import Kept
from halo_tui.models.questions import Question
from halo_tui.models.stored import Replay
from halo_tui.screens.continuing import Continue

if TYPE_CHECKING:
    from halo_lang import Analysis
    from halo_tui.models.launch import Launch
    from halo_tui.screens.workbench import Workbench

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at whether the kept runs have changed: a few file times are read."""

LOOKS_AT_WORK: Final = 5
"""Looks after which the list is read again while a process is at work: when it is killed, no file tells so."""


class Keeping:
    """Knows the kept runs and the one that is looked back at; the workbench shows them."""

    def __init__(self, workbench: Workbench) -> None:
        self.kept = Kept()
        self.replay: Replay | None = None
        self._workbench = workbench
        self._project = workbench.session.project
        self._stamp: tuple[int, ...] | None = None
        self._looks = 0
        self._known: frozenset[str] | None = None
        self._looking = asyncio.Lock()
        self._cursor = (0, 0)  # where it stood before the look back moved it

    # --- what there is ---------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Keep the lists as the files are, as long as the workbench is open."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self.look()
            self._workbench.follow_the_clock()

    async def look(self, *, again: bool = False) -> None:
        """Read the lists where something has changed; `again` in any case."""
        async with self._looking:
            await self._workbench.session.take_answers_left()
            now = datetime.now(UTC)
            stamp = await asyncio.to_thread(lambda: self._project.store.stamp())
            if not again and stamp == self._stamp and not self._is_due(now):
                return
            self._stamp, self._looks = stamp, 0
            self.kept = await asyncio.to_thread(self._project.look, now)
            self._ring()
            await self._catch_up()
            self._workbench.show_kept()

    @property
    def questions(self) -> tuple[Question, ...]:
        """The inbox: what the run here asks, then the open questions of all paused runs."""
        asked = self._workbench.session.asked
        known = {question.id for question in asked}
        return (*asked, *(question for question in self.kept.questions if question.id not in known))

    def _is_due(self, now: datetime) -> bool:
        self._looks += 1
        killed = self.kept.at_work and self._looks >= LOOKS_AT_WORK
        return killed or any(question.is_over(now) for question in self.kept.questions)

    def _ring(self) -> None:
        """Tell of questions that other processes have left open since the last look."""
        ids = frozenset(question.id for question in self.kept.questions)
        here = self._workbench.session.view.run_id
        new = [one for one in self.kept.questions if self._known is not None and one.id not in self._known]
        self._known = ids
        if any(question.run_id != here for question in new):
            self._workbench.host.bell()
            self._workbench.tell(f"{counted(len(new), 'new question')} in the inbox; Alt+5 shows it")

    async def _catch_up(self) -> None:
        """Show how the run on the screen stands, where another process has gone on with it."""
        session = self._workbench.session
        view, line = session.view, self.kept.find(session.view.run_id)
        if line is None or view.status not in ("paused", "interrupted") or line.status in ("running", "damaged"):
            return
        if (line.status, line.questions) == (view.status, len(view.open_questions)):
            return
        try:
            session.catch_up(await asyncio.to_thread(self._project.store.load, line.run_id))
        except HaloError as error:
            self._workbench.tell(error.message, failed=True)
        else:
            self._workbench.tell(f"Another process went on with the run: {session.view.status}")

    # --- the inbox -------------------------------------------------------------------------------------------

    def choose_question(self, question: Question) -> None:
        """Open the form for a question of the inbox."""
        session = self._workbench.session
        if session.view.active and question not in session.asked:
            self._workbench.tell("A run is going on here; answer or leave its questions first, or stop it")
        else:
            self._workbench.running.ask(question)

    # --- looking back ----------------------------------------------------------------------------------------

    async def open(self, run_id: str) -> None:
        """Look back at a kept run."""
        if not run_id:
            return
        editor = self._workbench.editor
        self._cursor = editor.cursor_location if self.replay is None else self._cursor
        try:
            self.replay = await asyncio.to_thread(Replay.open, self._project.store, run_id)
        except HaloError as error:
            self._workbench.tell(error.message, failed=True)
        except (KeyError, TypeError, ValueError) as error:  # sealed lines that no Halo known here has written
            self._workbench.tell(f"The journal of {run_id} cannot be read: {error!r}", failed=True)
        else:
            await self._workbench.show_program_of(self.replay)
            self._workbench.show_replay()

    def go(self, position: int) -> None:
        """Look at another position of the run."""
        if self.replay is not None and self.replay.go(position):
            self._workbench.show_replay()

    async def close(self) -> None:
        """Stop looking back."""
        if self.replay is not None:
            self.replay = None
            await self._workbench.show_program_of(None)
            self._workbench.show_replay()
            self._workbench.editor.go_to(self._cursor)

    # --- going on --------------------------------------------------------------------------------------------

    async def continue_from_here(self) -> None:
        """Show what continuing the run from here would do; then do it, or go on with the run as it is."""
        workbench, replay = self._workbench, self.replay
        if replay is None:
            workbench.tell("Open a run first: Enter in the list of runs (Alt+6)")
            return
        if workbench.session.view.active:
            workbench.tell("A run is going on; Shift+F5 stops it")
            return
        findings, launch = await workbench.check(), workbench.running.launch
        plan, possible = await self._plan(findings.analysis, replay, launch)
        choices = [("fork", "Continue as a new run")] if possible else []
        choices += [("resume", "Go on with it as it is")] if replay.goes_on else []
        place = "where it stands" if replay.entry is None else f"entry {replay.entry}"
        form = Continue(f"Continue {replay.run_id} from {place}", plan, choices)
        choice = await workbench.host.push_screen_wait(form)
        if choice in ("fork", "resume"):
            await self.close()
        if choice == "fork":
            workbench.running.go_on(self._fork(findings.analysis, replay, launch))
        elif choice == "resume":
            workbench.running.go_on(workbench.session.go_on(replay.run_id))

    async def _plan(self, program: Analysis, replay: Replay, launch: Launch) -> tuple[tuple[Run, ...], bool]:
        """What would be done, or why it cannot be, and whether it can."""
        if program.errors:
            return (("The program has errors, so that no new run can be made with it.\n", "error"),), False
        try:
            preflight = await self._workbench.session.preflight(program, replay, launch)
        except HaloError as error:
            return ((f"{error.message}\n", "error"),), False
        return tuple(plan_text(preflight)), True

    async def _fork(self, program: Analysis, replay: Replay, launch: Launch) -> None:
        session = self._workbench.session
        await session.fork(program, replay, launch)
        if session.view.run_id == replay.run_id:
            session.catch_up(replay.stored)
            self._workbench.tell("Nothing differs, so this is the run's own result")

"""One run and its questions: the workbench's only door to the engine.

Everything here happens in the event loop. The engine's observer thread only leaves its events in a queue and wakes
the loop, so a slow screen cannot slow a run and a flood of events costs one wake-up. What is in the queue is taken in
a few times a second, and for so short a time that a key never waits for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from halo_lang import Analysis, Program
from halo_runtime.cli.settings import user_name
from halo_runtime.engine.clock import iso
from halo_runtime.engine.events import RunEvent
from halo_runtime.errors import HaloError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import Answer, Interrupt, RunResult, error_to_json
from halo_tui.models.launch import Launch
from halo_tui.models.project import Project
from halo_tui.models.questions import Question
from halo_tui.models.run import RunView
from halo_tui.models.stored import Replay, view_of

if TYPE_CHECKING:
    from halo_runtime.preflight import Preflight
    from halo_runtime.runtime import Pause, Runtime
    from halo_runtime.store.stored import StoredRun

Clock = Callable[[], float]

HOW: Final = "workbench"
"""How answers were given that were given here; journals keep it."""

TAKE_EVERY: Final = 0.03
"""Seconds between two looks at what a run has told, however fast it tells."""

TAKE_FOR: Final = 0.01
"""Seconds after which the rest of what a run has told waits until keys have had their turn."""

PATIENCE: Final = 3.0
"""Seconds that a run may take to stop when the workbench is left."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that the running engine waits for."""

    interrupt: Interrupt
    answer: asyncio.Future[Answer | Pause]


class Session:
    """Runs one program at a time. `changed` is called in the loop after anything that `view` or `questions` tell."""

    def __init__(self, changed: Callable[[], None], project: Project, clock: Clock = time.monotonic) -> None:
        self.view = RunView()
        self.project = project
        self._changed = changed
        self._clock = clock
        self._asked: dict[str, _Asked] = {}
        self._left_open: dict[str, Question] = {}
        self._passed_over: frozenset[str] = frozenset()
        self._closing = False
        self._work: asyncio.Future[RunResult] | None = None
        self._runtime: Runtime | None = None
        self._launch: Launch | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    @property
    def questions(self) -> tuple[Question, ...]:
        """Open questions, oldest first: those the engine waits for, then those of a paused run."""
        return (*self.asked, *self._left_open.values())

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions that the engine waits for."""
        return tuple(Question(item.interrupt, self.view.pipeline) for item in self._asked.values())

    async def run(self, program: Program | Analysis, pipeline: str, inputs: JsonObject, launch: Launch) -> None:
        """Run a pipeline to its end or its pause. Whatever goes wrong is shown in `view`; cancelling stops the run."""
        self._show(RunView(status="running", pipeline=pipeline, on=launch.description, started=self._clock()))
        try:
            runtime = await self._open(launch)
            options = launch.to_keep()
            # Kept from its beginning, so that every run can be looked back at, and a crash loses none.
            obstacle = await asyncio.to_thread(self.project.obstacle)
            await self._conclude(runtime.run(program, pipeline, inputs, keep=not obstacle, options=options))
            if obstacle:
                self.view.warnings.append(f"the run is not kept: {obstacle}")
                self._changed()
        except HaloError as error:
            self._fail(error_to_json(error))

    async def answer_kept(self, run_id: str, interrupt_id: str, value: Json) -> None:
        """Answer a question of a kept run and go on with it here; its other questions stay open.

        Raises HaloError where that is refused, and shows what was shown before then.
        """
        await self._take_up(
            run_id,
            lambda runtime: runtime.signal(run_id, value, interrupt=interrupt_id, by=user_name(), how=HOW),
            ask_again=False,
        )

    async def go_on(self, run_id: str) -> None:
        """Go on with a paused or interrupted run as it is; its questions are asked. Raises as `answer_kept`."""
        await self._take_up(run_id, lambda runtime: runtime.resume(run_id), ask_again=True)

    async def preflight(self, program: Analysis, replay: Replay, launch: Launch) -> Preflight:
        """What `fork` would reuse and run anew. Raises HaloError where it would be refused."""
        runtime = await self._open(launch)
        return await runtime.preflight(program, replay.run_id, at=replay.entry)

    async def fork(self, program: Analysis, replay: Replay, launch: Launch) -> None:
        """Continue a kept run from where it is looked at as a new run of `program`. Raises as `answer_kept`."""
        before, left_open = self.view, self._left_open
        pipeline, source = replay.stored.pipeline, f"{launch.description}, continuing {replay.run_id}"
        self._show(RunView("running", pipeline=pipeline, on=source, started=self._clock()))

        def told(preflight: Preflight) -> None:
            self.view.reused = reused_paths(pipeline, preflight)

        try:
            runtime = await self._open(launch)
            options = launch.to_keep()
            await self._conclude(runtime.fork(program, replay.run_id, at=replay.entry, options=options, told=told))
        except HaloError:
            self._restore(before, left_open)
            raise

    def catch_up(self, stored: StoredRun) -> None:
        """Show how the shown run stands, which another process went on with."""
        view = view_of(stored)
        view.on = self.view.on
        self._show(view, stored.interrupts if view.status == "paused" else ())

    def answer(self, interrupt_id: str, value: Json) -> bool:
        """Answer a question that the engine waits for; False when it does not wait for this one."""
        return self._settle(interrupt_id, Answer(value, user_name(), iso(datetime.now(UTC)), HOW))

    def leave_open(self, interrupt_id: str) -> bool:
        """Leave a question for later: the run pauses with it. False when the engine does not wait for this one."""
        from halo_runtime.runtime import PAUSE

        return self._settle(interrupt_id, PAUSE)

    async def take_answers_left(self) -> None:
        """Give the questions that are asked now the answers that other processes have left for them."""
        runtime = self._runtime
        if runtime is None:
            return
        for item in tuple(self._asked.values()):
            answer = await asyncio.to_thread(runtime.left_for, item.interrupt)
            if answer is not None:
                self._settle(item.interrupt.id, answer)

    def stop(self) -> bool:
        """Cancel the run, keeping what it did so far; False when the engine has not begun it."""
        return self._runtime is not None and self._runtime.stop(self.view.run_id)

    async def close(self) -> None:
        """Free connections and models. A run that goes on is paused at its questions, or stopped, and kept."""
        self._closing = True
        if self._work is not None and not self._work.done():
            await self._put_away(self._work)
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.close()

    async def _put_away(self, work: asyncio.Future[RunResult]) -> None:
        # Not by the view: what the run tells may not have arrived there yet.
        waiting = bool(self._asked)
        for interrupt_id in tuple(self._asked):
            self.leave_open(interrupt_id)
        if waiting:
            await asyncio.wait({work}, timeout=PATIENCE)
        if not work.done() and (not self.stop() or not (await asyncio.wait({work}, timeout=PATIENCE))[0]):
            work.cancel()
            await asyncio.wait({work}, timeout=PATIENCE)

    async def _take_up(
        self, run_id: str, work: Callable[[Runtime], Coroutine[Any, Any, RunResult]], *, ask_again: bool
    ) -> None:
        """Go on with a kept run in this process."""
        store = self.project.store
        stored = await asyncio.to_thread(store.load, run_id)
        if stored.claimed:
            # Found out by the engine too, but not before it has waited for the other process, and the screen with it.
            raise store.busy(run_id)
        before, left_open = self.view, self._left_open
        launch = Launch.kept(stored.header["options"])
        self._show(
            RunView("running", run_id, stored.pipeline, launch.description, stored.pipeline, started=self._clock())
        )
        self._passed_over = frozenset() if ask_again else frozenset(question.id for question in stored.interrupts)
        try:
            runtime = await self._open(launch)
            await self._conclude(work(runtime))
        except HaloError:
            self._restore(before, left_open)
            raise
        finally:
            self._passed_over = frozenset()

    def _show(self, view: RunView, left_open: Iterable[Interrupt] = ()) -> None:
        self.view = view
        self._left_open = {interrupt.id: Question(interrupt, view.pipeline) for interrupt in left_open}
        self._changed()

    def _restore(self, view: RunView, left_open: dict[str, Question]) -> None:
        """Show again what was shown before something that was refused."""
        self.view, self._left_open = view, left_open
        self._changed()

    async def _open(self, launch: Launch) -> Runtime:
        """A runtime for this launch. One that talks to models stays open, because loading one takes long."""
        if self._runtime is None or launch != self._launch or launch.answers_from_a_script:
            runtime, self._runtime = self._runtime, None
            if runtime is not None:
                await runtime.close()
            self._runtime, self._launch = launch.runtime(self.project.store), launch
            self._runtime.on_interrupt(self._ask)
            self._runtime.on_listen(self._ask)
        return self._runtime

    async def _conclude(self, running: Coroutine[Any, Any, RunResult]) -> None:
        """Wait for the end of a run. It is no part of whoever waits: when that is cancelled, the run is stopped."""
        assert self._runtime is not None, "it does the work"
        self._unsubscribe()
        telling = Telling(self.view, self._clock, self._changed)
        self._unsubscribe = self._runtime.subscribe(telling)
        self._work = asyncio.ensure_future(running)
        try:
            result = await asyncio.shield(self._work)
        except asyncio.CancelledError:
            await self._put_away(self._work)
            await telling.finish()
            self.view.stop(self._clock())
            self._changed()
            raise
        except HaloError:  # that it is refused; who asked for it says so
            raise
        except Exception as error:  # a defect of the engine or a plug-in must not take the editor down
            self._fail({"type": type(error).__name__, "message": f"the engine failed: {error}"})
        else:
            await telling.finish()
            self._left_open = {one.id: Question(one, self.view.pipeline) for one in result.interrupts}
            self.view.conclude(result, self._clock())
            self._changed()
        finally:
            self._asked.clear()

    def _fail(self, error: JsonObject) -> None:
        self.view.fail(error, self._clock())
        self._changed()

    async def _ask(self, interrupt: Interrupt) -> Answer | Pause:
        from halo_runtime.runtime import PAUSE

        if self._closing or interrupt.id in self._passed_over:
            return PAUSE
        waiting: asyncio.Future[Answer | Pause] = asyncio.get_running_loop().create_future()
        self._asked[interrupt.id] = _Asked(interrupt, waiting)
        self._changed()
        try:
            return await waiting
        finally:
            self._asked.pop(interrupt.id, None)
            self._changed()

    def _settle(self, interrupt_id: str, value: Answer | Pause) -> bool:
        asked = self._asked.get(interrupt_id)
        if asked is None or asked.answer.done():
            return False
        asked.answer.set_result(value)
        return True


class Telling:
    """Takes what a run tells from the engine's thread to its view; an observer, made in the event loop."""

    def __init__(self, view: RunView, clock: Clock, changed: Callable[[], None]) -> None:
        self._view = view
        self._clock = clock
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[tuple[float, RunEvent]] = deque()
        self._woken = False

    def __call__(self, event: RunEvent) -> None:
        """Leave an event; called from the engine's thread."""
        self._arrived.append((self._clock(), event))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._loop.call_later, TAKE_EVERY, self._take)

    async def finish(self) -> None:
        """Take everything in that has been told."""
        while self._arrived:
            self._take()
            await asyncio.sleep(0)

    def _take(self) -> None:
        # Before the first is taken: what comes from now on must wake the loop again.
        self._woken = False
        end = time.monotonic() + TAKE_FOR
        while self._arrived and time.monotonic() < end:
            at, event = self._arrived.popleft()
            self._view.apply(event, at)
        if self._arrived and not self._woken:
            self._woken = True
            self._loop.call_later(TAKE_EVERY, self._take)
        self._changed()


def reused_paths(pipeline: str, preflight: Preflight) -> frozenset[str]:
    """The paths of the stages that a new run takes from the old one."""
    there = (stage for stage in preflight.stages if stage.line is not None)
    return frozenset(f"{pipeline}/{index}" for index, stage in enumerate(there) if stage.verdict == "reused")

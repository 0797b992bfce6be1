"""One run and its questions: the workbench's only door to the engine.

Everything here happens in the event loop. The engine's observer thread only leaves its events in a queue and wakes
the loop, so a slow screen cannot slow a run and a flood of events costs one wake-up.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halo_lang import Program
from halo_runtime.engine.events import RunEvent
from halo_runtime.errors import HaloError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import Interrupt, RunResult, error_to_json
from halo_tui.models.launch import Launch
from halo_tui.models.questions import Question
from halo_tui.models.run import RunView

if TYPE_CHECKING:
    from halo_runtime.runtime import Pause, Runtime

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that the running engine waits for."""

    interrupt: Interrupt
    answer: asyncio.Future[Json | Pause]


class Session:
    """Runs one program at a time. `changed` is called in the loop after anything that `view` or `questions` tell."""

    def __init__(self, changed: Callable[[], None], clock: Clock = time.monotonic) -> None:
        self.view = RunView()
        self._changed = changed
        self._clock = clock
        self._asked: dict[str, _Asked] = {}
        self._left_open: dict[str, Interrupt] = {}
        self._runtime: Runtime | None = None
        self._launch: Launch | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    @property
    def questions(self) -> tuple[Question, ...]:
        """Open questions, oldest first: those the engine waits for, then those of a paused run."""
        asked = [item.interrupt for item in self._asked.values()]
        return tuple(Question(interrupt) for interrupt in (*asked, *self._left_open.values()))

    async def run(self, program: Program, pipeline: str, inputs: JsonObject, launch: Launch) -> None:
        """Run a pipeline to its end or its pause. Whatever goes wrong is shown in `view`; cancelling stops the run."""
        self.view = RunView(status="running", pipeline=pipeline, on=launch.description, started=self._clock())
        self._asked.clear()
        self._left_open.clear()
        self._changed()
        try:
            runtime = await self._open(launch)
        except HaloError as error:
            self._fail(error_to_json(error))
            return
        self._subscribe(runtime)
        await self._conclude(runtime.run(program, pipeline, inputs))

    async def resume(self, interrupt_id: str, value: Json) -> None:
        """Answer a question of a paused run and go on with it."""
        runtime, run_id = self._runtime, self.view.run_id
        if runtime is None:
            return
        self.view.status, self.view.ended = "running", None
        await self._conclude(runtime.signal(run_id, value, interrupt=interrupt_id))

    def answer(self, interrupt_id: str, value: Json) -> bool:
        """Answer a question that the engine waits for; False when it does not wait for this one."""
        return self._settle(interrupt_id, value)

    def leave_open(self, interrupt_id: str) -> bool:
        """Leave a question for later: the run pauses with it. False when the engine does not wait for this one."""
        from halo_runtime.runtime import PAUSE

        return self._settle(interrupt_id, PAUSE)

    def stop(self) -> bool:
        """Cancel the run, keeping what it did so far; False when the engine has not begun it."""
        return self._runtime is not None and self._runtime.stop(self.view.run_id)

    async def close(self) -> None:
        """Free connections and models."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.close()

    async def _open(self, launch: Launch) -> Runtime:
        """A runtime for this launch. One that talks to models stays open, because loading one takes long."""
        if self._runtime is None or launch != self._launch or launch.replies is not None:
            await self.close()
            self._runtime, self._launch = launch.runtime(), launch
            self._runtime.on_interrupt(self._ask)
            self._runtime.on_listen(self._ask)
        return self._runtime

    async def _conclude(self, running: Awaitable[RunResult]) -> None:
        try:
            result = await running
        except asyncio.CancelledError:
            self.view.stop(self._clock())
            self._changed()
            raise
        except HaloError as error:
            self._fail(error_to_json(error))
        except Exception as error:  # a defect of the engine or a plug-in must not take the editor down
            self._fail({"type": type(error).__name__, "message": f"the engine failed: {error}"})
        else:
            self._left_open = {interrupt.id: interrupt for interrupt in result.interrupts}
            self.view.conclude(result, self._clock())
            self._changed()
        finally:
            self._asked.clear()

    def _fail(self, error: JsonObject) -> None:
        self.view.fail(error, self._clock())
        self._changed()

    def _subscribe(self, runtime: Runtime) -> None:
        loop = asyncio.get_running_loop()
        arrived: deque[tuple[float, RunEvent]] = deque()
        view = self.view

        def drain() -> None:
            while arrived:
                at, event = arrived.popleft()
                view.apply(event, at)
            self._changed()

        def observe(event: RunEvent) -> None:
            arrived.append((self._clock(), event))
            if len(arrived) == 1:
                loop.call_soon_threadsafe(drain)

        self._unsubscribe()
        self._unsubscribe = runtime.subscribe(observe)

    async def _ask(self, interrupt: Interrupt) -> Json | Pause:
        waiting: asyncio.Future[Json | Pause] = asyncio.get_running_loop().create_future()
        self._asked[interrupt.id] = _Asked(interrupt, waiting)
        self._changed()
        try:
            return await waiting
        finally:
            self._asked.pop(interrupt.id, None)
            self._changed()

    def _settle(self, interrupt_id: str, value: Json | Pause) -> bool:
        asked = self._asked.get(interrupt_id)
        if asked is None or asked.answer.done():
            return False
        asked.answer.set_result(value)
        return True

"""Runs that only their process remembers: they can be answered as long as it lives."""

from __future__ import annotations

from dataclasses import replace

from halo_runtime.answering import deliver, is_behind, is_early
from halo_runtime.engine.engine import Engine
from halo_runtime.engine.execution import Order
from halo_runtime.engine.plan import Plan
from halo_runtime.errors import UnknownRun
from halo_runtime.results import Answer, Interrupt, RunResult
from halo_runtime.store.mail import MemoryMail, Message


class RememberedRuns:
    """The runs of a Runtime without a store. `paused` are those that wait, with all that is needed to go on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._paused: dict[str, tuple[Order, RunResult]] = {}
        self._mail: dict[str, MemoryMail] = {}

    async def start(self, plan: Plan, order: Order) -> RunResult:
        """Run something new."""
        result = await self._engine.execute(self._engine.prepare(plan, order), order)
        if result.status == "paused":
            self._paused[order.run_id] = (replace(order, journal=order.journal.without_cancelled()), result)
            self._engine.waiting.add(order.run_id)
        else:
            self._mail.pop(order.run_id, None)
        return result

    async def go_on(self, run_id: str, message: Message | None) -> RunResult:
        """Go on with a paused run, with an answer or event if there is one. Raises UnknownRun, SignalError."""
        if run_id not in self._paused:
            raise UnknownRun(f"no run {run_id} is paused here")
        order, result = self._paused[run_id]
        if message is not None:
            if is_behind(message, result.interrupts, self._waits_for):
                self.post(run_id, message)
                if is_early(message, result.interrupts):
                    return result
            else:
                deliver(message, order, result.interrupts, self._engine.services.clock, self._waits_for)
        del self._paused[run_id]
        self._engine.waiting.discard(run_id)
        return await self.start(self._engine.plan(order.program), order)

    def post(self, run_id: str, message: Message) -> None:
        """Leave an answer or event for a run. Raises UnknownRun."""
        if run_id not in self._paused and run_id not in self._engine.running:
            raise UnknownRun(f"no run {run_id} is here")
        self._mail.setdefault(run_id, MemoryMail()).post(message)

    def left_for(self, question: Interrupt) -> Answer | None:
        """What was left for a question, taken with that."""
        mail = self._mail.get(question.run_id)
        message = mail.take(question) if mail is not None else None
        return None if message is None else message.answer()

    def _waits_for(self, question: Interrupt) -> Answer | None:
        """What was left for a question, and stays."""
        mail = self._mail.get(question.run_id)
        message = mail.first(question) if mail is not None else None
        return None if message is None else message.answer()

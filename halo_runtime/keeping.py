"""Runs that a store keeps: started, gone on with by any process, continued as new ones (spec 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from halo_lang import Program
from halo_lang.collector import without_collector
from halo_lang.records import record
from halo_runtime.answering import chosen, deliver, is_behind, is_early, refuse_ambiguous
from halo_runtime.continuing import (
    Origin,
    header,
    lost,
    order_of,
    past_of,
    program_of,
    refuse_incomplete,
    refuse_marked,
    result_of,
    revealed,
)
from halo_runtime.engine.budgets import charges
from halo_runtime.engine.clock import iso
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.edges import edge_of
from halo_runtime.engine.effects import Paused
from halo_runtime.engine.engine import Engine
from halo_runtime.engine.execution import Execution, Order, restore_cursors
from halo_runtime.engine.fingerprints import Fingerprints
from halo_runtime.engine.journal import EffectRecord, Journal
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.reuse import Reuse
from halo_runtime.engine.run import interrupt_id
from halo_runtime.errors import ConfigError, HaloError, RunBusy, RunRefused, StagesDiffer, StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.budgets import OnLimit
from halo_runtime.preflight import Preflight, Rehearsal, Walked
from halo_runtime.redaction import Redactor
from halo_runtime.results import Answer, Interrupt, RunResult
from halo_runtime.store.files import Claim, FileRunStore
from halo_runtime.store.mail import Message
from halo_runtime.store.runlog import RunLog
from halo_runtime.store.stored import StoredRun


@record
class Fork:
    """How a run is to be continued as a new one: `checkpoint` is its id or its journal's path.

    `at` is an entry of its trace to go back to, `inputs` are put over the old ones. `reuse_answers`: questions are not
    asked anew.
    """

    checkpoint: str
    pipeline: str | None
    inputs: JsonObject
    at: int | None
    reuse_answers: bool
    timeout: float | None = None
    max_spend: Decimal | None = None
    on_limit: OnLimit = "fail"


class KeptRuns:
    """The runs of a Runtime with a store."""

    def __init__(self, engine: Engine, store: FileRunStore) -> None:
        self._engine = engine
        self._store = store
        self._given: dict[str, str] = {}
        """Which question each message that was left has been given to."""

    # --- new runs -----------------------------------------------------------------------------------------------

    async def start(
        self, plan: Plan, order: Order, options: JsonObject, *, keep: bool, origin: Origin | None = None
    ) -> RunResult:
        """Run something new; on disk from the start with `keep` or `@checkpoint`. Raises ConfigError, StoreError."""
        edge = order.edge or self._edge(plan, order.pipeline, order.inputs, None)
        edge.kept_by(self._store.vault(order.run_id).save)
        log = self._store.new_log(order.run_id, edge, Fingerprints(plan).stage)
        first = header(order, plan, options, self._engine.services.clock.now(), origin)
        log.note("run", lambda: first)
        order = replace(order, journal=Journal(recorder=log), edge=edge)
        execution = self._engine.prepare(plan, order)  # what cannot start leaves nothing behind
        if keep or plan.pipeline(order.pipeline).directives.checkpoint:
            log.keep()
            log.sync()
        return await self._while_answered(await self._execute(execution, order, log))

    async def _execute(self, execution: Execution, order: Order, log: RunLog) -> RunResult:
        """Do a run and close its log; a run that stops before its end is kept in any case."""
        file = order.program.source.path
        self._store.live.enter(order.run_id, order.pipeline, file, self._now())
        try:
            result = await self._engine.execute(execution, order)
            return result if isinstance(result.error, StoreError) else self._closed(log, result, execution, order)
        finally:
            self._store.live.leave(order.run_id)
            log.close()

    def _closed(self, log: RunLog, result: RunResult, execution: Execution, order: Order) -> RunResult:
        """The result, once the log has its end. One that should be kept from now on and cannot says why in `error`."""
        if result.status in ("paused", "interrupted"):
            try:
                log.keep()
            except StoreError as failure:
                return replace(result, error=failure)
        if log.kept and log.caught_up:
            self._refuse_left(log, result, order)
            closing: JsonObject = {**execution.closing(result), "at": self._now()}
            closing = closing if order.edge is None else order.edge.json(closing)
            log.note("status", lambda: closing)
            log.sync()
            self._store.closed(log, closing)
            if result.status in ("completed", "failed", "halted"):
                self._store.vault(order.run_id).remove()
        return result

    def _refuse_left(self, log: RunLog, result: RunResult, order: Order) -> None:
        """Note what was left for a run and can be taken no more: it came second, or the run has ended."""
        ended = result.status in ("completed", "failed", "halted")
        answered = {interrupt_id(order.run_id, entry.path) for entry in order.journal if entry.answer is not None}
        mail = self._store.mail(order.run_id)
        for message in mail:
            if ended or message.interrupt in answered:
                reason = "the run has ended" if ended else f"the question {message.interrupt} is already answered"
                _note_refused(log, message, reason)
                mail.discard(message.id)

    # --- going on -----------------------------------------------------------------------------------------------

    async def go_on(self, run_id: str, message: Message | None) -> RunResult:
        """Go on with a paused or interrupted run, with an answer or event if there is one.

        Raises UnknownRun, RunBusy, StoreError, RunRefused for a run that has ended, and SignalError; what was sent
        and is refused stands in the journal, which changes nothing else.
        """
        return await self._while_answered(await self._go_on(run_id, message))

    async def _while_answered(self, result: RunResult) -> RunResult:
        """Go on while answers lie there that came too late for the run to take them before it paused."""
        while any(self.left_for(question) is not None for question in result.interrupts):
            try:
                result = await self._go_on(result.run_id, None)
            except RunBusy:  # who has the run now takes them
                return result
        return result

    async def _go_on(self, run_id: str, message: Message | None) -> RunResult:
        claim = await self._claim(run_id)
        if message is not None and claim.stored.status == "interrupted":
            came_to = await self._come_to_questions(claim)
            if came_to.status == "interrupted" or isinstance(came_to.error, StoreError):
                return came_to
            return await self._go_on(run_id, message)
        plan, order, log = self._reopen(claim)
        try:
            behind = message is not None and is_behind(message, claim.stored.interrupts, self.left_for)
            self._take(claim.stored, order, message, log, behind=behind)
            if message is not None and behind:
                self._store.mail(order.run_id).post(message.cleaned(self._engine.services.redactor))
                if is_early(message, claim.stored.interrupts):
                    return result_of(claim.stored)
            return await self._execute(await self._prepare(plan, order, claim.stored), order, log)
        finally:
            log.close()

    async def _come_to_questions(self, claim: Claim) -> RunResult:
        """Go on with a run that broke off, without asking anybody: what it asks is known then, and can be answered."""
        plan, order, log = self._reopen(claim)
        try:
            self._take(claim.stored, order, None, log, behind=False)
            order = replace(order, asker=_nobody)
            return await self._execute(await self._prepare(plan, order, claim.stored), order, log)
        finally:
            log.close()

    async def _claim(self, run_id: str) -> Claim:
        """The claim on a run, waited for in a thread: who has it may be about to finish."""
        claiming = asyncio.ensure_future(asyncio.to_thread(self._store.claim, run_id))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            claiming.add_done_callback(_give_up)
            raise

    async def _prepare(self, plan: Plan, order: Order, stored: StoredRun) -> Execution:
        """The rest of a run ready to be executed; what is missing is no harm where no work is left for it."""
        order = replace(order, reuse=self._still_reused(stored, plan))
        if order.reuse is not None:
            order = replace(order, spent=await self._still_spent(plan, order, stored))
        try:
            return self._engine.prepare(plan, order)
        except ConfigError:
            rehearsed = replace(order, journal=order.journal.copy(), reuse=self._still_reused(stored, plan))
            walked = await self._walk(plan, rehearsed)
            return self._engine.prepare(plan, replace(order, used=walked.left(plan)))

    async def _still_spent(self, plan: Plan, order: Order, stored: StoredRun) -> tuple[JsonObject, ...]:
        """What the calls count for in budgets that a fork is still to take from its parent."""
        rehearsed = replace(order, journal=order.journal.copy(), reuse=self._still_reused(stored, plan))
        await self._walk(plan, rehearsed)
        return tuple(charges(entry for entry in rehearsed.journal if order.journal.find(entry.path) is None))

    def _reopen(self, claim: Claim) -> tuple[Plan, Order, RunLog]:
        """A claimed run with its own program, its log open behind what is there."""
        try:
            with without_collector():
                stored, memory = self._revealed(claim.stored)
                program = program_of(stored)
                plan = self._plan_of(stored, program)
                edge = self._edge(plan, stored.pipeline, stored.header["input"], memory)
                edge.kept_by(self._store.vault(stored.run_id).save)
                log = self._store.go_on(claim, edge, Fingerprints(plan).stage)
                return plan, replace(order_of(stored, program, log), edge=edge), log
        except BaseException:
            claim.lock.release()
            raise

    def _revealed(self, stored: StoredRun) -> tuple[StoredRun, JsonObject | None]:
        """A run with what is kept out of its journal, as far as it is kept, and that. Raises StoreError."""
        memory = self._store.vault(stored.run_id).load()
        return stored if memory is None else revealed(stored, memory), memory

    def _edge(self, plan: Plan, pipeline: str, inputs: JsonObject, memory: JsonObject | None) -> Redactor:
        return edge_of(plan, pipeline, self._engine.services.redactor, inputs, memory)

    def _plan_of(self, stored: StoredRun, program: Program) -> Plan:
        """A run's own program compiled, what it reads from the environment kept secret from now on."""
        plan = self._engine.compiled(program)
        self._engine.learn_secrets(plan, stored.pipeline)
        return plan

    def _take(self, stored: StoredRun, order: Order, message: Message | None, log: RunLog, *, behind: bool) -> None:
        """Put an answer into the journal unless it waits for its turn. A refusal is noted there too."""
        try:
            _refuse_ended(stored)
            refuse_incomplete(self._revealed(stored)[0])
            refuse_marked(order)
            if message is not None and not behind:
                late = deliver(message, order, stored.interrupts, self._engine.services.clock, self.left_for)
                if late is not None:
                    _note_refused(log, message, late.message)
                log.sync()
        except HaloError as refusal:
            if message is not None:
                _note_refused(log, message, refusal.message)
            raise

    def post(self, run_id: str, message: Message) -> None:
        """Leave an answer or event for a run, whoever is at work on it. Raises UnknownRun, SignalError, StoreError."""
        stored = self._store.load(run_id)
        _refuse_ended(stored)
        program = program_of(self._revealed(stored)[0])
        self._plan_of(stored, program)
        message = message.cleaned(self._engine.services.redactor)
        if stored.status == "paused" and not is_early(message, stored.interrupts):
            order = order_of(stored, program, None)
            message = replace(message, interrupt=chosen(message, order, stored.interrupts).id)
        elif stored.status == "running" and message.interrupt is None and message.event is None:
            refuse_ambiguous(tuple(question for question in stored.questions if message.suits(question)))
        try:
            self._store.mail(stored.run_id).post(message)
        except OSError as failure:
            raise StoreError(f"nothing can be left for the run {run_id}: {failure.strerror}") from None

    def left_for(self, question: Interrupt) -> Answer | None:
        """What was left for a question; it stays until the answer is in the journal."""
        for message in self._store.mail(question.run_id):
            # One that names no question is for the first that looks, and for no other that waits beside it.
            if message.suits(question) and self._given.setdefault(message.id, question.id) == question.id:
                return message.answer()
        return None

    # --- forks --------------------------------------------------------------------------------------------------

    async def fork(
        self,
        plan: Plan,
        fork: Fork,
        options: JsonObject,
        *,
        strict: bool,
        controller: Controller | None,
        told: Callable[[Preflight], None],
    ) -> RunResult:
        """Continue a run with another program as a new run (see Runtime.fork)."""
        stored, memory, rehearsal = await self._rehearse(plan, fork)
        told(rehearsal.preflight)
        if strict and rehearsal.difference is not None:
            raise StagesDiffer(f"{rehearsal.difference}; without --strict it and all after it run anew")
        if rehearsal.is_whole:
            return result_of(stored)
        refuse_marked(rehearsal.order)
        order = replace(
            rehearsal.order,
            run_id=self._engine.new_run_id(),
            edge=self._edge(plan, rehearsal.order.pipeline, rehearsal.order.inputs, memory),
            journal=Journal(),
            controller=controller,
            reuse=self._reuse(stored, plan, fork.at, fork.reuse_answers),
            rehearsal=False,
            used=rehearsal.left,
        )
        for message in self._store.mail(stored.run_id):
            if message.event is not None:  # an event that nobody has taken yet belongs to both
                self._store.mail(order.run_id).post(message)
        lines = len(stored.reading.documents)
        origin = Origin(stored.run_id, rehearsal.reached, lines, fork.at, fork.reuse_answers)
        return await self.start(plan, order, options, keep=True, origin=origin)

    async def preflight(self, plan: Plan, fork: Fork) -> Preflight:
        """What `fork` would reuse and run anew."""
        _, _, rehearsal = await self._rehearse(plan, fork)
        return rehearsal.preflight

    async def _rehearse(self, plan: Plan, fork: Fork) -> tuple[StoredRun, JsonObject | None, Rehearsal]:
        """Walk the new program against the old journal, as far as it reaches; what is kept out of that comes too."""
        stored, memory = self._revealed(self._store.load(fork.checkpoint))
        if stored.claimed:
            raise self._store.busy(stored.run_id)
        if memory is None:
            memory = lost(stored)
        if fork.at is not None:
            stored.context(fork.at)  # it refuses an entry that is not there
        name = fork.pipeline or stored.pipeline
        if name != stored.pipeline:
            raise RunRefused(f"the run {stored.run_id} is one of {stored.pipeline}, not of {name}")
        if plan.program.find(name) is None:
            raise RunRefused(f"{plan.program.source.path} has no pipeline {name}, which the run {stored.run_id} is of")
        order = self._engine.order(plan, name, {**stored.header["input"], **fork.inputs}, fork.timeout)
        reuse = self._reuse(stored, plan, fork.at, fork.reuse_answers)
        edge = self._edge(plan, name, order.inputs, memory)
        order = replace(order, rehearsal=True, reuse=reuse, max_spend=fork.max_spend, on_limit=fork.on_limit, edge=edge)
        return stored, memory, Rehearsal(stored, plan, order, reuse, await self._walk(plan, order), fork.at)

    def _reuse(self, stored: StoredRun, plan: Plan, at: int | None, reuse_answers: bool) -> Reuse:
        past = past_of(stored, self._plan_of(stored, program_of(stored)))
        return Reuse(past, Fingerprints(plan), at=at, reuse_answers=reuse_answers, taken=self._reply_taken)

    def _still_reused(self, stored: StoredRun, plan: Plan) -> Reuse | None:
        """What a fork that goes on may still take from its parent; nothing where that is gone."""
        fork = stored.header.get("fork")
        if fork is None:
            return None
        try:
            parent = self._revealed(self._store.load(stored.header["parent"]))[0].first_lines(fork["lines"])
            return self._reuse(parent, plan, fork["at"], fork["reuseAnswers"])
        except HaloError:
            return None

    def _reply_taken(self, entry: EffectRecord) -> None:
        """A scripted provider goes on behind the replies that are taken from a journal."""
        replies = self._engine.services.replies
        if replies is not None and entry.kind == "model":
            restore_cursors([entry], replies)

    async def _walk(self, plan: Plan, order: Order) -> Walked:
        """A rehearsal: the run as far as its journal reaches, with nothing done and nobody told."""
        execution = Execution(plan, replace(order, rehearsal=True), self._engine.services, ())
        return Walked(await execution.run(), execution.unfinished)

    def _now(self) -> str:
        return iso(self._engine.services.clock.now())


async def _nobody(interrupt: Interrupt) -> Answer:
    raise Paused((interrupt,))


def _give_up(claiming: asyncio.Future[Claim]) -> None:
    """Release a claim that came when nobody wanted it any more."""
    if not claiming.cancelled() and claiming.exception() is None:
        claiming.result().lock.release()


def _note_refused(log: RunLog, message: Message, reason: str) -> None:
    document = {**message.to_json(), "reason": reason}
    log.note("refused", lambda: document)


def _refuse_ended(stored: StoredRun) -> None:
    if stored.status not in ("completed", "failed", "halted"):
        return
    error = stored.closing["error"] if stored.closing is not None else None
    why = f" ({error['type']}: {error['message']})" if error is not None else ""
    raise RunRefused(
        f"the run {stored.run_id} is {stored.status}{why}; "
        f"continue it as a new run with: halo run FILE --checkpoint {stored.run_id}"
    )

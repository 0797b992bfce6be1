"""The public entry: a Runtime runs checked programs and takes answers to their questions (spec 2)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, final

from halo_lang import Analysis, Program, check
from halo_runtime.arguments import check_arguments, choose_pipeline
from halo_runtime.continuing import Origin, header, order_of, past_of, program_of, result_of
from halo_runtime.engine.clock import Clock, SystemClock, iso
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.effects import Paused
from halo_runtime.engine.events import Observer, SystemEvent
from halo_runtime.engine.execution import Execution, Order, Services, restore_cursors
from halo_runtime.engine.fingerprints import Fingerprints
from halo_runtime.engine.journal import EffectRecord, Journal, error_to_record
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.reuse import Reuse
from halo_runtime.engine.run import expiry, interrupt_id
from halo_runtime.errors import (
    AlreadyAnswered,
    AmbiguousSignal,
    HaloError,
    InputError,
    ProgramError,
    RunError,
    RunRefused,
    SignalError,
    StagesDiffer,
    StoreError,
    UnknownInterrupt,
    UnknownRun,
)
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import ModelProvider, ProviderFactory
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.preflight import Preflight, Rehearsal, Walked
from halo_runtime.redaction import Redactor
from halo_runtime.results import Answer, Context, Interrupt, RunResult
from halo_runtime.store.files import Claim, FileRunStore
from halo_runtime.store.mail import Mail, MemoryMail, Message, new_id
from halo_runtime.store.runlog import RunLog
from halo_runtime.store.stored import StoredRun
from halo_runtime.tools.base import ToolFactory
from halo_runtime.values import digest, type_name


@final
class Pause:
    """What a handler returns to leave a question open."""


PAUSE: Final = Pause()
InterruptHandler: TypeAlias = Callable[[Interrupt], Awaitable[Json | Pause]]
SystemEventHandler: TypeAlias = Callable[[SystemEvent], None]

_PLANS_KEPT = 8


class Runtime:
    """Runs programs. One Runtime may run many, also at the same time.

    `env` is where `Env.NAME` and the services' keys are read; `model` overrides every agent's model; `replies`
    is a scripted provider that answers for every agent instead of its service. `store` keeps runs on disk; without one
    a run ends with the process.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] = os.environ,
        model: str | None = None,
        replies: ModelProvider | None = None,
        clock: Clock | None = None,
        store: FileRunStore | None = None,
    ) -> None:
        self._services = Services(
            env=env,
            clock=clock or SystemClock(),
            models=ModelRegistry(env),
            redactor=Redactor.for_environment(env),
            asker=self._ask,
            send=self._send,
            replies=replies,
            model=model,
        )
        self._observers: list[Observer] = []
        self._on_interrupt: InterruptHandler | None = None
        self._on_listen: InterruptHandler | None = None
        self._on_system_event: SystemEventHandler | None = None
        self._plans: dict[int, Plan] = {}
        self._running: dict[str, Execution] = {}
        self._paused: dict[str, tuple[Order, RunResult]] = {}
        self._store = store
        self._logs: dict[str, RunLog] = {}
        self._boxes: dict[str, MemoryMail] = {}

    # --- set-up -------------------------------------------------------------------------------------------------

    def on_interrupt(self, handler: InterruptHandler) -> None:
        """Let `handler` answer what `yield` asks; without one, or when it returns PAUSE, the run pauses."""
        self._on_interrupt = handler

    def on_listen(self, handler: InterruptHandler) -> None:
        """Let `handler` bring the events that `listen` waits for."""
        self._on_listen = handler

    def on_system_event(self, handler: SystemEventHandler) -> None:
        """Tell `handler` of Publish, Notify and their kin; what it raises fails the run at that stage."""
        self._on_system_event = handler

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Send every event of runs that start from now on to `observer`; the returned function ends that."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer) if observer in self._observers else None

    def register_tool_provider(self, name: str, factory: ToolFactory) -> None:
        """Let `factory` open tools of the provider `name`. Raises ValueError when it is registered already."""
        if name in self._services.tool_factories:
            raise ValueError(f"the tool provider {name} is registered already")
        self._services.tool_factories[name] = factory

    def register_model_provider(self, prefix: str, factory: ProviderFactory) -> None:
        """Let `factory` make the provider of all `prefix/…` models."""
        self._services.models.register(prefix, factory)

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets of this Runtime's environment and of every `Env` value read; for output edges."""
        return self._services.redactor

    # --- running ------------------------------------------------------------------------------------------------

    async def run(
        self,
        program: Program | Analysis,
        pipeline: str | None = None,
        inputs: JsonObject | None = None,
        *,
        run_id: str | None = None,
        journal: Journal | None = None,
        controller: Controller | None = None,
        timeout: float | None = None,
        keep: bool = False,
        options: JsonObject | None = None,
    ) -> RunResult:
        """Run `pipeline` (may be left out when there is one). `timeout` in seconds limits the whole run.

        A program that has been checked already is best given as its Analysis; one that has not is checked here.
        With a store a `@checkpoint` pipeline is kept on disk as it goes, another one when it pauses or is stopped, or
        from the start with `keep`; `options` are noted there for who goes on with it. Without a store `journal` may be
        given: it is written as the run goes, and what it holds already is taken from it and not done again. Raises
        ProgramError, InputError or ConfigError before anything has run, StoreError where the run cannot be kept, and
        ValueError for a `run_id` that is running; everything later is in the result.
        """
        plan = self._plan(program)
        order = self._order(plan, pipeline, inputs, timeout)
        order = replace(order, run_id=run_id or order.run_id, controller=controller)
        if self._store is None or journal is not None:
            return await self._execute(plan, replace(order, journal=Journal() if journal is None else journal))
        return await self._start(plan, order, options or {}, None, keep=keep)

    async def resume(self, run_id: str) -> RunResult:
        """Go on with a paused or interrupted run, with its own program; open questions are put to the handlers.

        Raises UnknownRun, RunBusy, StoreError, and RunRefused for a run that has ended.
        """
        return await self._continue(run_id, None)

    async def signal(
        self,
        run_id: str,
        answer: Json,
        *,
        interrupt: str | None = None,
        event: str | None = None,
        by: str | None = None,
        how: str = "api",
    ) -> RunResult:
        """Answer a question of a paused run, or bring an `event` (`Source.Event`), and go on with the run.

        An event that nobody waits for yet is kept for the next `listen` that does; the result is the run as it was
        then. Raises UnknownRun, RunBusy, UnknownInterrupt, AlreadyAnswered, AmbiguousSignal when several questions are
        open and none is named, or SignalError for what is no JSON value; the run is unchanged then, and the attempt
        recorded. After `expires_at` the answer is not taken, and the run fails with InterruptExpired.
        """
        value = self.redactor.json(_as_json(answer, SignalError, "the answer"))
        return await self._continue(run_id, self._message(value, interrupt, event, by, how))

    def post(
        self,
        run_id: str,
        answer: Json,
        *,
        interrupt: str | None = None,
        event: str | None = None,
        by: str | None = None,
        how: str = "api",
    ) -> None:
        """Leave an answer or an event for a run, whoever is at work on it; it is taken when it is asked for.

        Raises UnknownRun, StoreError, SignalError for what is no JSON value.
        """
        value = self.redactor.json(_as_json(answer, SignalError, "the answer"))
        message = self._message(value, interrupt, event, by, how)
        if self._store is None:
            self._mail(run_id).post(message)
            return
        try:
            self._mail(self._store.load(run_id).run_id).post(message)
        except OSError as failure:
            raise StoreError(f"nothing can be left for the run {run_id}: {failure.strerror}") from None

    async def fork(
        self,
        program: Program | Analysis,
        checkpoint: str,
        pipeline: str | None = None,
        inputs: JsonObject | None = None,
        *,
        at: int | None = None,
        strict: bool = False,
        reuse_answers: bool = False,
        controller: Controller | None = None,
        timeout: float | None = None,
        options: JsonObject | None = None,
        told: Callable[[Preflight], None] = lambda _: None,
    ) -> RunResult:
        """Continue a stored run with the program as it is now, as a new run; the old one is not touched.

        Stages that are as they were, and get what they got, are taken from the old journal (spec 3.2). `checkpoint` is
        a run id or a journal's path, `at` an entry of its trace to go back to, `inputs` are put over the old ones.
        `told` hears what will be reused before anything is done. A completed run that would come out the same is given
        back as it is. Raises StagesDiffer under `strict`, RunRefused, and as `run` does.
        """
        plan = self._plan(program)
        stored, rehearsal = await self._rehearse(plan, checkpoint, pipeline, inputs, at, reuse_answers, timeout)
        told(rehearsal.preflight)
        if strict and rehearsal.difference is not None:
            raise StagesDiffer(f"{rehearsal.difference}; without --strict it and all after it run anew")
        if rehearsal.is_whole:
            return result_of(stored)
        order = replace(
            rehearsal.order,
            run_id=self._new_run_id(),
            journal=Journal(),
            controller=controller,
            reuse=self._reuse(stored, plan, at, reuse_answers),
            rehearsal=False,
            used=rehearsal.left,
        )
        origin = Origin(stored.run_id, rehearsal.reached)
        return await self._start(plan, order, options or {}, origin, keep=True)

    async def preflight(
        self,
        program: Program | Analysis,
        checkpoint: str,
        pipeline: str | None = None,
        inputs: JsonObject | None = None,
        *,
        at: int | None = None,
        reuse_answers: bool = False,
    ) -> Preflight:
        """What `fork` would reuse and run anew, stage by stage, with nothing done."""
        plan = self._plan(program)
        _, rehearsal = await self._rehearse(plan, checkpoint, pipeline, inputs, at, reuse_answers, None)
        return rehearsal.preflight

    def stop(self, run_id: str) -> bool:
        """Cancel a run: requests are cancelled, its result has status `interrupted`. False when it is not running."""
        execution = self._running.get(run_id)
        if execution is None:
            return False
        execution.stop()
        return True

    async def close(self) -> None:
        """Close connections and models that runs have opened."""
        await self._services.models.close()

    # --- one run ------------------------------------------------------------------------------------------------

    def _plan(self, given: Program | Analysis) -> Plan:
        """The program checked and compiled, once."""
        program = given.program if isinstance(given, Analysis) else given
        plan = self._plans.get(id(program))
        if plan is None:
            analysis = given if isinstance(given, Analysis) else check(given)
            if analysis.errors:
                raise ProgramError(analysis.errors, program.source)
            while len(self._plans) >= _PLANS_KEPT:
                del self._plans[next(iter(self._plans))]
            plan = self._plans[id(program)] = Plan(program)  # it holds the program, so the id stays its own
        return plan

    def _order(self, plan: Plan, pipeline: str | None, inputs: JsonObject | None, timeout: float | None) -> Order:
        """What is to be run, its arguments checked."""
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds over 0, not {timeout}")
        name = choose_pipeline(plan.program, pipeline)
        given: Json = _as_json(inputs, InputError, "the input") if inputs else {}
        if not is_object(given):
            raise InputError(f"the input is an object of arguments by name, not a {type_name(given)}")
        arguments = check_arguments(name, plan.pipeline(name).parameters, given)
        return Order(plan.program, name, arguments, self._new_run_id(), Journal(), timeout=timeout)

    async def _start(
        self, plan: Plan, order: Order, options: JsonObject, origin: Origin | None, *, keep: bool
    ) -> RunResult:
        """Run something new that the store keeps."""
        assert self._store is not None, "asked before"
        log = self._store.new_log(order.run_id, self.redactor, Fingerprints(plan).stage)
        first = header(order, plan, options, self._services.clock.now(), origin)
        log.note("run", lambda: first)
        order = replace(order, journal=Journal(recorder=log))
        if keep or plan.pipeline(order.pipeline).directives.checkpoint:
            execution = self._execution(plan, order)  # what cannot start leaves nothing behind
            log.keep()
            log.sync()
        else:
            execution = self._execution(plan, order)
        return await self._kept(execution, order, log)

    async def _kept(self, execution: Execution, order: Order, log: RunLog) -> RunResult:
        """Do a run that has a log, and close it; a run that stopped before its end is kept in any case."""
        assert self._store is not None, "it gave the log"
        self._store.live.enter(order.run_id, order.pipeline, order.program.source.path, iso(self._services.clock.now()))
        self._logs[order.run_id] = log
        try:
            result = await self._do(execution, order)
            if result.status in ("paused", "interrupted"):
                log.keep()
            if log.kept and not isinstance(result.error, StoreError):
                closing = {**execution.closing(result), "at": iso(self._services.clock.now())}
                log.note("status", lambda: closing)
                log.sync()
                self._store.closed(log, closing)
            return result
        finally:
            del self._logs[order.run_id]
            self._store.live.leave(order.run_id)
            log.close()

    async def _execute(self, plan: Plan, order: Order) -> RunResult:
        """Do a run that no store keeps; a paused one is remembered."""
        result = await self._do(self._execution(plan, order), order)
        if result.status == "paused":
            self._paused[order.run_id] = (replace(order, journal=order.journal.without_cancelled()), result)
        return result

    def _execution(self, plan: Plan, order: Order) -> Execution:
        if order.run_id in self._running:
            raise ValueError(f"the run {order.run_id} is going on already")
        return Execution(plan, order, self._services, self._observers)

    async def _do(self, execution: Execution, order: Order) -> RunResult:
        self._running[order.run_id] = execution
        try:
            return await execution.run()
        finally:
            del self._running[order.run_id]

    # --- going on -----------------------------------------------------------------------------------------------

    async def _continue(self, run_id: str, message: Message | None) -> RunResult:
        if self._store is None:
            return await self._continue_here(run_id, message)
        claim = self._store.claim(run_id)
        try:
            return await self._continue_stored(claim, message)
        finally:
            claim.lock.release()

    async def _continue_here(self, run_id: str, message: Message | None) -> RunResult:
        """Go on with a paused run that is only remembered."""
        if run_id not in self._paused:
            raise UnknownRun(f"no run {run_id} is paused here")
        order, result = self._paused[run_id]
        if message is not None:
            taken = self._deliver(message, order, result.interrupts)
            if not taken:
                return result
        del self._paused[run_id]
        return await self._execute(self._plan(order.program), order)

    async def _continue_stored(self, claim: Claim, message: Message | None) -> RunResult:
        assert self._store is not None, "it gave the claim"
        stored = claim.stored
        analysis = program_of(stored)
        plan = self._plan(analysis)
        log = self._store.go_on(claim, self.redactor, Fingerprints(plan).stage)
        order = order_of(stored, analysis, log)
        try:
            self._refuse_ended(stored)
            if message is not None and not self._deliver(message, order, stored.interrupts):
                return _paused_result(stored)
        except HaloError as refusal:
            if message is not None:
                refused = {**message.to_json(), "reason": refusal.message}
                log.note("refused", lambda: refused)
            log.close()
            raise
        rehearsed = await self._walk_through(plan, replace(order, journal=order.journal.copy()))
        order = replace(order, used=rehearsed.left(plan))
        try:
            execution = self._execution(plan, order)
        except HaloError:
            log.close()
            raise
        return await self._kept(execution, order, log)

    def _refuse_ended(self, stored: StoredRun) -> None:
        if stored.status in ("completed", "failed", "halted"):
            error = stored.closing["error"] if stored.closing is not None else None
            why = f" ({error['type']}: {error['message']})" if error is not None else ""
            refused = f"the run {stored.run_id} is {stored.status}{why}"
            answered = {interrupt_id(stored.run_id, entry.path) for entry in stored.records if entry.answer is not None}
            hint = "; nothing waits for an answer" if answered else ""
            raise RunRefused(
                f"{refused}{hint}; continue it as a new run with: halo run FILE --checkpoint {stored.run_id}"
            )

    def _deliver(self, message: Message, order: Order, interrupts: tuple[Interrupt, ...]) -> bool:
        """Put what was sent where it belongs; False where nobody waits for it yet and it is kept."""
        if message.event is not None and not any(question.event == message.event for question in interrupts):
            self._mail(order.run_id).post(message)
            return False
        question = _chosen(order, interrupts, message)
        _check_answer(question, message.value)
        late = expiry(question, self._services.clock)
        kind = "human" if question.event is None else "event"
        outcome = ("done", message.value) if late is None else ("failed", error_to_record(late))
        credit = message.answer().credit() if late is None else {"by": None, "at": message.at, "how": "expired"}
        credit.pop("signal", None)
        entry = EffectRecord(question.path, kind, digest(_request_of(question)), *outcome, answer=credit)
        order.journal.append(entry)
        if isinstance(order.journal.recorder, RunLog):
            order.journal.recorder.sync()
        return True

    def _message(self, value: Json, interrupt: str | None, event: str | None, by: str | None, how: str) -> Message:
        return Message(new_id(), value, interrupt, event, by, iso(self._services.clock.now()), how)

    def _mail(self, run_id: str) -> Mail:
        if self._store is not None:
            return self._store.mail(run_id)
        return self._boxes.setdefault(run_id, MemoryMail())

    # --- forks --------------------------------------------------------------------------------------------------

    async def _rehearse(
        self, plan: Plan, checkpoint: str, pipeline: str | None, inputs: JsonObject | None, at: int | None,
        reuse_answers: bool, timeout: float | None,
    ) -> tuple[StoredRun, Rehearsal]:  # fmt: skip
        """Walk the new program against the old journal, as far as it reaches."""
        if self._store is None:
            raise StoreError("this Runtime has no store to take runs from")
        stored = self._store.load(checkpoint)
        if stored.claimed:
            raise self._store.busy(stored.run_id)
        if at is not None:
            stored.context(at)  # it refuses an entry that is not there
        name = pipeline or stored.pipeline
        if name != stored.pipeline:
            raise RunRefused(f"the run {stored.run_id} is one of {stored.pipeline}, not of {name}")
        if plan.program.find(name) is None:
            raise RunRefused(f"{plan.program.source.path} has no pipeline {name}, which the run {stored.run_id} is of")
        order = self._order(plan, name, {**stored.header["input"], **(inputs or {})}, timeout)
        order = replace(order, rehearsal=True, reuse=self._reuse(stored, plan, at, reuse_answers))
        walked = await self._walk_through(plan, order)
        assert order.reuse is not None, "given above"
        return stored, Rehearsal(stored, plan, order, order.reuse, walked, at)

    def _reuse(self, stored: StoredRun, plan: Plan, at: int | None, reuse_answers: bool) -> Reuse:
        past = past_of(stored, self._plan(program_of(stored)))
        return Reuse(past, Fingerprints(plan), at=at, reuse_answers=reuse_answers, taken=self._reply_taken)

    def _reply_taken(self, entry: EffectRecord) -> None:
        """A scripted provider goes on behind the replies that are taken from a journal."""
        if self._services.replies is not None and entry.kind == "model":
            restore_cursors([entry], self._services.replies)

    async def _walk_through(self, plan: Plan, order: Order) -> Walked:
        """A rehearsal: the run as far as its journal reaches, with nothing done and nobody told."""
        execution = Execution(plan, replace(order, rehearsal=True), self._services, ())
        return Walked(await execution.run(), execution.unfinished)

    async def _ask(self, interrupt: Interrupt) -> Answer:
        """What was left for a question, else what a handler says."""
        mail = self._mail(interrupt.run_id)
        message = mail.take(interrupt, alone=True)
        if message is not None:
            mail.discard(message.id) if interrupt.run_id not in self._logs else None
            return message.answer()
        handler = self._on_interrupt if interrupt.event is None else self._on_listen
        try:
            answer = PAUSE if handler is None else await handler(interrupt)
        except Exception as error:  # the host's own code; its failure is the run's, at this stage
            raise RunError(f"the handler of {interrupt.kind} failed: {type(error).__name__}: {error}") from error
        if isinstance(answer, Pause):
            raise Paused((interrupt,))
        if isinstance(answer, Answer):
            return replace(answer, value=_as_json(answer.value, RunError, f"what the handler of {interrupt.kind} gave"))
        value = _as_json(answer, RunError, f"what the handler of {interrupt.kind} gave")
        return Answer(value, at=iso(self._services.clock.now()), how="handler")

    def _send(self, event: SystemEvent) -> None:
        try:
            if self._on_system_event is not None:
                self._on_system_event(event)
        except Exception as error:  # the host's own code; its failure is the run's, at this stage
            raise RunError(f"the handler of {event.name} failed: {type(error).__name__}: {error}") from error

    def _new_run_id(self) -> str:
        """Sorts by time and is given once: `20261130T101500123-4f1a2b`."""
        clock = self._services.clock
        moment = clock.now()
        chance = int(clock.random() * 0x1000000)
        while True:
            run_id = f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}-{chance:06x}"
            if run_id not in self._running and run_id not in self._paused:
                return run_id
            chance += 1


def _chosen(order: Order, interrupts: tuple[Interrupt, ...], message: Message) -> Interrupt:
    """The open question that a message is for. Raises SignalError of the kind that says why there is none."""
    listed = "; ".join(f"{question.id} ({question.message})" for question in interrupts) or "none"
    fitting = [question for question in interrupts if message.event in (None, question.event)]
    if message.interrupt is None:
        if len(fitting) != 1:
            raise AmbiguousSignal(f"several questions are open, name one: {listed}")
        return fitting[0]
    found = next((question for question in fitting if question.id == message.interrupt), None)
    if found is not None:
        return found
    answered = (record.path for record in order.journal if record.kind in ("human", "event"))
    if message.interrupt in (interrupt_id(order.run_id, path) for path in answered):
        raise AlreadyAnswered(f"the question {message.interrupt} is already answered; open are: {listed}")
    raise UnknownInterrupt(f"no open question has the id {message.interrupt}; open are: {listed}")


def _check_answer(question: Interrupt, value: Json) -> None:
    """Raises SignalError for an answer that a question in doubt cannot take."""
    if question.kind != "in_doubt" or value in ("retry", "fail") or (is_object(value) and "skip" in value):
        return
    raise SignalError(f'{question.id} is answered "retry", "fail" or {{"skip": value}}')


def _paused_result(stored: StoredRun) -> RunResult:
    """A paused run as it stands."""
    document = stored.to_json()
    return RunResult(stored.run_id, "paused", None, Context(**document["context"]), None, stored.interrupts)


def _request_of(question: Interrupt) -> JsonObject:
    """The effect request that a question was asked with (see stages/ask.py)."""
    return {
        "kind": question.kind,
        "message": question.message,
        "channel": question.channel,
        "attachments": list(question.attachments),
        "choices": list(question.choices),
        "event": question.event,
    }


def _as_json(value: object, error: type[HaloError], what: str) -> Json:
    """What the host hands in as a JSON value. Raises `error` where it has no JSON form."""
    from halo_runtime.convert import ConversionError, to_json  # takes time, which a run without input shall not pay

    changed: list[str] = []
    try:
        given = to_json(value, changed.append)
    except ConversionError as problem:
        raise error(f"{what} is no JSON value: {problem}") from None
    if changed:
        raise error(f"{what} is no JSON value: {changed[0].partition(';')[0]}")
    return given

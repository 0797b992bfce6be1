"""The public entry: a Runtime runs checked programs and takes answers to their questions (spec 2)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, final

from halo_lang import Analysis, Program, check
from halo_runtime.arguments import check_arguments, choose_pipeline
from halo_runtime.engine.clock import Clock, SystemClock
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.effects import Paused
from halo_runtime.engine.events import Observer, SystemEvent
from halo_runtime.engine.execution import Execution, Order, Services
from halo_runtime.engine.journal import EffectRecord, Journal, error_to_record
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.run import expiry, interrupt_id
from halo_runtime.errors import (
    AlreadyAnswered,
    AmbiguousSignal,
    HaloError,
    InputError,
    ProgramError,
    RunError,
    SignalError,
    UnknownInterrupt,
    UnknownRun,
)
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import ModelProvider, ProviderFactory
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.redaction import Redactor
from halo_runtime.results import Interrupt, RunResult
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
    is a scripted provider that answers for every agent instead of its service.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] = os.environ,
        model: str | None = None,
        replies: ModelProvider | None = None,
        clock: Clock | None = None,
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
    ) -> RunResult:
        """Run `pipeline` (may be left out when there is one). `timeout` in seconds limits the whole run.

        A program that has been checked already is best given as its Analysis; one that has not is checked here.
        `journal` is written as the run goes; what it holds already is taken from it and not done again. Raises
        ProgramError, InputError or ConfigError before anything has run, and ValueError for a `run_id` that is
        running; everything later is in the result.
        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout is a number of seconds over 0, not {timeout}")
        plan = self._plan(program)
        name = choose_pipeline(plan.program, pipeline)
        given: Json = _as_json(inputs, InputError, "the input") if inputs else {}
        if not is_object(given):
            raise InputError(f"the input is an object of arguments by name, not a {type_name(given)}")
        order = Order(
            program=plan.program,
            pipeline=name,
            inputs=check_arguments(name, plan.pipeline(name).parameters, given),
            run_id=run_id or self._new_run_id(),
            journal=Journal() if journal is None else journal,
            controller=controller,
            timeout=timeout,
        )
        return await self._execute(plan, order)

    async def signal(self, run_id: str, answer: Json, *, interrupt: str | None = None) -> RunResult:
        """Answer a question of a paused run of this Runtime and go on with it.

        Raises UnknownRun, UnknownInterrupt, AlreadyAnswered, AmbiguousSignal when several are open and none is named,
        or SignalError for what is no JSON value; the run is unchanged then. After `expires_at` the answer is not
        taken, and the run fails with InterruptExpired.
        """
        if run_id not in self._paused:
            raise UnknownRun(f"no run {run_id} is paused here")
        order, result = self._paused[run_id]
        question = _chosen(order, result, interrupt)
        given = self.redactor.json(_as_json(answer, SignalError, "the answer"))
        late = expiry(question, self._services.clock)
        kind = "human" if question.event is None else "event"
        outcome = ("done", given) if late is None else ("failed", error_to_record(late))
        order.journal.append(EffectRecord(question.path, kind, digest(_request_of(question)), *outcome))
        del self._paused[run_id]
        return await self._execute(self._plan(order.program), order)

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

    async def _execute(self, plan: Plan, order: Order) -> RunResult:
        if order.run_id in self._running:
            raise ValueError(f"the run {order.run_id} is going on already")
        execution = Execution(plan, order, self._services, self._observers)
        self._running[order.run_id] = execution
        try:
            result = await execution.run()
        finally:
            del self._running[order.run_id]
        if result.status == "paused":
            self._paused[order.run_id] = (replace(order, journal=order.journal.without_cancelled()), result)
        return result

    async def _ask(self, interrupt: Interrupt) -> Json:
        handler = self._on_interrupt if interrupt.event is None else self._on_listen
        try:
            answer = PAUSE if handler is None else await handler(interrupt)
        except Exception as error:  # the host's own code; its failure is the run's, at this stage
            raise RunError(f"the handler of {interrupt.kind} failed: {type(error).__name__}: {error}") from error
        if isinstance(answer, Pause):
            raise Paused((interrupt,))
        return _as_json(answer, RunError, f"what the handler of {interrupt.kind} gave")

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


def _chosen(order: Order, result: RunResult, interrupt: str | None) -> Interrupt:
    """The open question that an answer is for."""
    listed = "; ".join(f"{question.id} ({question.message})" for question in result.interrupts)
    if interrupt is None:
        if len(result.interrupts) > 1:
            raise AmbiguousSignal(f"several questions are open, name one: {listed}")
        return next(iter(result.interrupts))
    for question in result.interrupts:
        if question.id == interrupt:
            return question
    answered = (record.path for record in order.journal if record.kind in ("human", "event"))
    if interrupt in (interrupt_id(order.run_id, path) for path in answered):
        raise AlreadyAnswered(f"the question {interrupt} has its answer already; open are: {listed}")
    raise UnknownInterrupt(f"no open question has the id {interrupt}; open are: {listed}")


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

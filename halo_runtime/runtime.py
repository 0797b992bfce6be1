"""The public entry: a Runtime runs checked programs and takes answers to their questions (spec 2)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from halo_lang import Program, check
from halo_runtime.engine.clock import Clock, SystemClock
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.effects import ControlFlow, Effects, Halted, Paused
from halo_runtime.engine.emitter import Emitter
from halo_runtime.engine.events import Observer, RunFinished, RunStarted, SystemEvent
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.interpreter import walk
from halo_runtime.engine.journal import EffectRecord, Journal
from halo_runtime.engine.limits import TimeLimit
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.policies import bind_policies
from halo_runtime.engine.reach import reach
from halo_runtime.engine.run import Run
from halo_runtime.engine.strand import Strand
from halo_runtime.engine.toolbox import ToolBox
from halo_runtime.engine.trace import Chain
from halo_runtime.errors import (
    AmbiguousSignal,
    ConfigError,
    HaloError,
    InputError,
    ProgramError,
    UnknownInterrupt,
    UnknownRun,
)
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelProvider, ProviderFactory
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.redaction import Redactor
from halo_runtime.results import Context, Interrupt, RunResult, Status, error_to_json
from halo_runtime.tools.base import ToolFactory
from halo_runtime.values import digest


@final
class Pause:
    """What a handler returns to leave a question open."""


PAUSE: Final = Pause()
InterruptHandler: TypeAlias = Callable[[Interrupt], Awaitable[Json | Pause]]
SystemEventHandler: TypeAlias = Callable[[SystemEvent], None]

_PLANS_KEPT = 8


@dataclass(frozen=True, slots=True)
class _Order:
    """What was asked to be run; kept for a paused run, so that an answer can go on with it."""

    program: Program
    pipeline: str
    inputs: JsonObject
    run_id: str
    journal: Journal
    controller: Controller | None
    timeout: float | None


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
        self._env = env
        self._model = model
        self._replies = replies
        self._clock = clock or SystemClock()
        self._models = ModelRegistry(env)
        self._redactor = Redactor.for_environment(env)
        self._tool_factories: dict[str, ToolFactory] = {}
        self._observers: list[Observer] = []
        self._on_interrupt: InterruptHandler | None = None
        self._on_listen: InterruptHandler | None = None
        self._on_system_event: SystemEventHandler | None = None
        self._plans: dict[int, Plan] = {}
        self._paused: dict[str, tuple[_Order, RunResult]] = {}
        self._stopping: set[str] = set()
        self._tasks: dict[str, asyncio.Task[RunResult]] = {}

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
        if name in self._tool_factories:
            raise ValueError(f"the tool provider {name} is registered already")
        self._tool_factories[name] = factory

    def register_model_provider(self, prefix: str, factory: ProviderFactory) -> None:
        """Let `factory` make the provider of all `prefix/…` models."""
        self._models.register(prefix, factory)

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets of this Runtime's environment and of every `Env` value read; for output edges."""
        return self._redactor

    # --- running ------------------------------------------------------------------------------------------------

    async def run(
        self,
        program: Program,
        pipeline: str | None = None,
        inputs: JsonObject | None = None,
        *,
        run_id: str | None = None,
        journal: Journal | None = None,
        controller: Controller | None = None,
        timeout: float | None = None,
    ) -> RunResult:
        """Run `pipeline` (may be left out when there is one). `timeout` in seconds limits the whole run.

        `journal` is written as the run goes; what it holds already is taken from it and not done again. Raises
        ProgramError, InputError or ConfigError before anything has run; everything later is in the result.
        """
        plan = self._plan(program)
        name = choose_pipeline(program, pipeline)
        arguments = check_inputs(plan, name, inputs or {})
        order = _Order(
            program, name, arguments, run_id or self._new_run_id(), Journal() if journal is None else journal,
            controller, timeout,
        )  # fmt: skip
        return await self._execute(plan, order)

    async def signal(self, run_id: str, answer: Json, *, interrupt: str | None = None) -> RunResult:
        """Answer a question of a paused run of this Runtime and go on with it.

        Raises UnknownRun, UnknownInterrupt, or AmbiguousSignal when several are open and none is named; the run is
        unchanged then.
        """
        if run_id not in self._paused:
            raise UnknownRun(f"no run {run_id} is paused here")
        order, result = self._paused[run_id]
        question = _chosen(result, interrupt)
        kind = "human" if question.event is None else "event"
        request = _request_of(question)
        order.journal.append(EffectRecord(question.path, kind, digest(request), "done", answer))
        del self._paused[run_id]
        return await self._execute(self._plan(order.program), order)

    def stop(self, run_id: str) -> bool:
        """Cancel a run: requests are cancelled, its result has status `interrupted`. False when it is not running."""
        task = self._tasks.get(run_id)
        if task is None:
            return False
        self._stopping.add(run_id)
        return task.cancel()

    async def close(self) -> None:
        """Close connections and models that runs have opened."""
        await self._models.close()

    # --- one run ------------------------------------------------------------------------------------------------

    def _plan(self, program: Program) -> Plan:
        """The program checked and compiled, once."""
        plan = self._plans.get(id(program))
        if plan is None:
            analysis = check(program)
            if analysis.errors:
                raise ProgramError(analysis.errors, program.source)
            while len(self._plans) >= _PLANS_KEPT:
                del self._plans[next(iter(self._plans))]
            plan = self._plans[id(program)] = Plan(program)  # it holds the program, so the id stays its own
        return plan

    async def _execute(self, plan: Plan, order: _Order) -> RunResult:
        run, chain = self._begin(plan, order)
        frame = Frame(run, plan.pipeline(order.pipeline), order.pipeline, run.strand, order.inputs, {})
        run.emitter.emit(RunStarted(order.run_id, order.pipeline, order.pipeline, run.redactor.json(order.inputs)))
        try:
            result = await self._settle(run, chain, frame, order)
            error = None if result.error is None else error_to_json(result.error)
            run.emitter.emit(RunFinished(order.run_id, order.pipeline, result.status, result.output, error))
        finally:
            self._stopping.discard(order.run_id)
            self._tasks.pop(order.run_id, None)
            await run.tools.close()
            if run.emitter.active:
                await asyncio.to_thread(run.emitter.close)
        if result.status == "paused":
            self._paused[order.run_id] = (replace(order, journal=order.journal.without_cancelled()), result)
        return result

    def _begin(self, plan: Plan, order: _Order) -> tuple[Run, Chain]:
        """Everything a run needs, with its configuration checked. Raises ConfigError that names all that is missing."""
        redactor = self._redactor
        used = reach(order.program, order.pipeline)
        tools = ToolBox(order.program, self._env, self._tool_factories, redactor)
        policies, problems = bind_policies(order.program, used.policies)
        problems += tools.prepare(used.tools)
        if self._replies is None:
            problems += self._missing_models({self._model or plan.agent(name).model for name in used.agents})
        if problems:
            raise ConfigError("\n".join(problems))
        self._restore_cursors(order.journal)
        chain = Chain(plan.program_sha256, order.pipeline, digest(redactor.json(order.inputs)))
        run = Run(
            run_id=order.run_id,
            plan=plan,
            effects=Effects(order.journal),
            emitter=Emitter(self._observers),
            redactor=redactor,
            clock=self._clock,
            strand=Strand(chain),
            tools=tools,
            provider_of=self._provider,
            policies=policies,
            asker=self._ask,
            send=self._send,
            controller=order.controller,
            model=self._model,
            scripted=self._replies is not None,
        )
        return run, chain

    async def _settle(self, run: Run, chain: Chain, frame: Frame, order: _Order) -> RunResult:
        """Walk the pipeline and say how it ended."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks[order.run_id] = task
        status: Status = "completed"
        error: HaloError | None = None
        interrupts: tuple[Interrupt, ...] = ()
        try:
            await _limited(run, frame, order.timeout)
        except HaloError as failure:
            status, error = "failed", failure
        except Halted as halt:
            status = "halted"
            frame.flow(halt.value, halt.origins)
        except Paused as pause:
            status, interrupts = "paused", pause.interrupts
        except asyncio.CancelledError:
            if order.run_id not in self._stopping or task is None:
                raise
            task.uncancel()
            status = "interrupted"
        if status in ("completed", "halted", "failed"):
            chain.finish(order.pipeline, status, frame.digest)
        return _result(run, chain, frame, status, error, interrupts)

    # --- what runs reach out to ---------------------------------------------------------------------------------

    def _provider(self, model: str) -> ModelProvider:
        return self._replies if self._replies is not None else self._models.provider(model)

    def _missing_models(self, models: set[str]) -> list[str]:
        problems: list[str] = []
        for model in sorted(models):
            try:
                self._models.require([model])
            except ConfigError as error:
                problems.append(error.message)
        return problems

    def _restore_cursors(self, journal: Journal) -> None:
        """Tell a scripted provider which replies a journal holds already, so that it goes on after them."""
        cursors = [_cursor(record) for record in journal if record.kind == "model" and record.outcome != "cancelled"]
        if self._replies is not None and cursors:
            self._replies.restore(cursors)

    async def _ask(self, interrupt: Interrupt) -> Json:
        handler = self._on_interrupt if interrupt.event is None else self._on_listen
        answer = PAUSE if handler is None else await handler(interrupt)
        if isinstance(answer, Pause):
            raise Paused((interrupt,))
        return answer

    def _send(self, event: SystemEvent) -> None:
        if self._on_system_event is not None:
            self._on_system_event(event)

    def _new_run_id(self) -> str:
        """Sorts by time: `20261130T101500123-4f1a2b`."""
        moment = self._clock.now()
        chance = int(self._clock.random() * 0x1000000)
        return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}-{chance:06x}"


def _cursor(record: EffectRecord) -> Json:
    return record.result.get("cursor") if record.outcome == "failed" else record.result["reply"]["cursor"]


async def _limited(run: Run, frame: Frame, timeout: float | None) -> None:
    if timeout is None:
        await walk(frame)
        return
    frame.limit = TimeLimit(timeout, "the run")
    async with frame.limit.enforced(lambda error: run.effects.time_ran_out(frame.path, error)):
        await walk(frame)


def _result(
    run: Run, chain: Chain, frame: Frame, status: Status, error: HaloError | None, interrupts: tuple[Interrupt, ...]
) -> RunResult:
    """The public result: everything in it has gone through the redactor."""
    clean = run.redactor.json
    if error is not None:
        error.args = (run.redactor.text(error.message), *error.args[1:])
    context = Context(
        current=clean(frame.current),
        input=clean(frame.input),
        data=clean(frame.data),
        meta=clean(run.meta()),
        trace=chain.to_json(),
    )
    output = context.current if status in ("completed", "halted") else None
    origins = {name: tuple(sorted(found)) for name, found in frame.origins.items()}
    return RunResult(run.run_id, status, output, context, error, interrupts, origins)


def choose_pipeline(program: Program, name: str | None) -> str:
    """The pipeline to run: the one named, or the only one. Raises InputError that lists what there is."""
    names = [pipeline.name.text for pipeline in program.pipelines]
    listed = ", ".join(names) or "none"
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InputError(f"say which pipeline to run; {program.source.path} has {listed}")
    if name not in names:
        raise InputError(f"there is no pipeline {name} in {program.source.path}; it has {listed}")
    return name


def check_inputs(plan: Plan, pipeline: str, inputs: Mapping[str, Json]) -> JsonObject:
    """The arguments in the order of the parameters. Raises InputError for missing and unknown ones, all at once."""
    parameters = plan.pipeline(pipeline).parameters
    missing = [name for name in parameters if name not in inputs]
    unknown = [name for name in inputs if name not in parameters]
    problems = [f"missing argument {name}" for name in missing] + [f"unknown argument {name}" for name in unknown]
    if problems:
        taken = ", ".join(parameters) or "no arguments"
        raise InputError(f"{'; '.join(problems)}: the pipeline {pipeline} takes {taken}")
    return {name: inputs[name] for name in parameters}


def _chosen(result: RunResult, interrupt: str | None) -> Interrupt:
    """The open question that an answer is for."""
    listed = "; ".join(f"{question.id} ({question.message})" for question in result.interrupts)
    if interrupt is None:
        if len(result.interrupts) > 1:
            raise AmbiguousSignal(f"several questions are open, name one: {listed}")
        return result.interrupts[0]
    for question in result.interrupts:
        if question.id == interrupt:
            return question
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

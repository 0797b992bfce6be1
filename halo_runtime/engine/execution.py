"""One run from its order to its result: configuration checked, pipeline walked, everything closed again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from halo_lang import Program, nodes
from halo_lang.collector import seldom, without_collector
from halo_lang.records import record
from halo_runtime.engine.budgets import Ledger
from halo_runtime.engine.clock import Clock
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.edges import edge_of
from halo_runtime.engine.effects import INPUT, Effects, Halted, Origins, Paused, TimeUp
from halo_runtime.engine.emitter import Emitter
from halo_runtime.engine.events import Observer, RunFinished, RunStarted, SystemEvent
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import BoundRule
from halo_runtime.engine.interpreter import walk
from halo_runtime.engine.journal import EffectRecord, Journal
from halo_runtime.engine.plan import Plan
from halo_runtime.engine.policies import bind_policies, judge_models
from halo_runtime.engine.reach import Reach, reach
from halo_runtime.engine.reuse import Reuse
from halo_runtime.engine.run import Run
from halo_runtime.engine.strand import Strand
from halo_runtime.engine.toolbox import ToolBox
from halo_runtime.engine.trace import Chain
from halo_runtime.errors import ConfigError, HaloError, StoreError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelProvider
from halo_runtime.models.pricing import Prices
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.policies.base import RuleFactory
from halo_runtime.policies.budgets import Budget, OnLimit
from halo_runtime.redaction import Redactor
from halo_runtime.results import Answer, Context, Interrupt, RunResult, Status, error_to_json
from halo_runtime.tools.base import ToolFactory
from halo_runtime.values import digest

if TYPE_CHECKING:
    from halo_runtime.cassettes.cassette import Cassette
    from halo_runtime.ledger.recorder import RunRecorder


@record
class Order:
    """What is to be run. `timeout` in seconds; `journal` is written, and what it holds is not done again.

    `reuse` is the run that this one continues. `rehearsal`: walk as far as the journal reaches and do nothing.
    `time_left` are the seconds that time limits had when the run stopped, by path. `used`: what is still to be
    configured, None for all that can be reached. `max_spend` in USD, `on_limit` what happens there; `spent` are the
    charges of calls that `reuse` is going to give (see budgets.py). `asker` answers in place of the host.
    """

    program: Program
    pipeline: str
    inputs: JsonObject
    run_id: str
    journal: Journal
    controller: Controller | None = None
    timeout: float | None = None
    reuse: Reuse | None = None
    rehearsal: bool = False
    time_left: Mapping[str, float] = field(default_factory=dict[str, float])
    used: Reach | None = None
    max_spend: Decimal | None = None
    on_limit: OnLimit = "fail"
    spent: tuple[JsonObject, ...] = ()
    asker: Callable[[Interrupt], Awaitable[Answer]] | None = None
    edge: Redactor | None = None
    """What keeps out of everything that leaves the run what its policies redact, where its log has one already."""


@dataclass(slots=True)
class Services:
    """What runs use: the environment, models, tools, people. `replies` answers for every agent when it is there.

    `asker` gives an answer or raises Paused; `send` takes system events. `cassette` keeps or gives what they answer.
    `recorder` logs runs to a ledger.
    """

    env: Mapping[str, str]
    clock: Clock
    models: ModelRegistry
    redactor: Redactor
    asker: Callable[[Interrupt], Awaitable[Answer]]
    send: Callable[[SystemEvent], None]
    replies: ModelProvider | None = None
    model: str | None = None
    prices: Prices = field(default_factory=Prices)
    cassette: Cassette | None = None
    recorder: RunRecorder | None = None
    tool_factories: dict[str, ToolFactory] = field(default_factory=dict[str, ToolFactory])
    rule_factories: dict[str, RuleFactory] = field(default_factory=dict[str, RuleFactory])

    def provider(self, model: str) -> ModelProvider:
        """Who answers for a model."""
        return self.replies if self.replies is not None else self.models.provider(model)


class Execution:
    """One run in progress. Making it checks the configuration: ConfigError names all that is missing."""

    def __init__(self, plan: Plan, order: Order, services: Services, observers: Sequence[Observer]) -> None:
        self._order = order
        self._task: asyncio.Task[RunResult] | None = None
        self._stopping = False
        tools, policies = _configure(plan, order, services)
        if services.replies is not None:
            restore_cursors(order.journal, services.replies)
        edge = order.edge or edge_of(plan, order.pipeline, services.redactor, order.inputs)
        cassette = None if order.rehearsal else services.cassette
        if cassette is not None:
            cassette.begin(order.run_id, edge)
        clean_inputs = edge.json(order.inputs)
        self._chain = Chain(plan.program_sha256, order.pipeline, digest(clean_inputs))
        recorder = order.journal.recorder
        self._run = Run(
            run_id=order.run_id,
            plan=plan,
            effects=Effects(order.journal, services.redactor, edge=edge, reuse=order.reuse, rehearsal=order.rehearsal),
            emitter=Emitter(observers),
            redactor=edge,
            secrets=services.redactor,
            clock=services.clock,
            strand=Strand(self._chain, recorder),
            tools=tools,
            provider_of=services.provider,
            policies=policies,
            ledger=_ledger(plan, order, policies),
            prices=services.prices,
            asker=order.asker or services.asker,
            send=services.send,
            recording=recorder is not None,
            time_left=dict(order.time_left),
            controller=order.controller,
            controlled=order.controller is not None or any(record.kind == "control" for record in order.journal),
            model=services.model,
            scripted=services.replies is not None,
            cassette=cassette,
        )
        given: dict[str, Origins] = {name: frozenset((INPUT,)) for name in order.inputs}
        self._frame = Frame(
            self._run, plan.pipeline(order.pipeline), order.pipeline, self._run.strand, order.inputs, given
        )

    async def run(self) -> RunResult:
        """Walk the pipeline to its end, whatever that is, and close what was opened."""
        run, order = self._run, self._order
        self._task = asyncio.current_task()
        inputs, continued = run.redactor.json(order.inputs), len(order.journal) > 0
        run.emitter.emit(
            RunStarted(order.run_id, order.pipeline, order.pipeline, inputs, continued, order.reuse is not None)
        )
        try:
            result = await self._settle()
            self._task = None  # it has its result: too late to stop it
            error = None if result.error is None else error_to_json(result.error)
            run.emitter.emit(
                RunFinished(order.run_id, order.pipeline, result.status, run.redactor.json(result.output), error)
            )
            return result
        finally:
            await run.tools.close()
            if run.emitter.active:
                await asyncio.to_thread(run.emitter.close)

    @property
    def frame(self) -> Frame:
        """The state of the pipeline's call: before the run, for who only wants to know what it would do."""
        return self._frame

    @property
    def unfinished(self) -> tuple[nodes.Call, ...]:
        """After a rehearsal: the calls that are still to be done."""
        return tuple(self._run.unfinished)

    def stop(self) -> None:
        """Cancel the run; its result has status `interrupted`."""
        if self._task is not None and not self._task.done():
            self._stopping = True
            self._task.cancel()

    async def _settle(self) -> RunResult:
        status: Status = "completed"
        error: HaloError | None = None
        interrupts: tuple[Interrupt, ...] = ()
        try:
            with seldom:
                async with self._run.shadows, self._run.ledger:
                    await self._walk()
        except HaloError as failure:
            status, error = "failed", failure
        except TimeUp as up:  # the journal's run had a time limit that this one has not
            status, error = "failed", up.error
        except Halted as halt:
            status = "halted"
            self._frame.flow(halt.value, halt.origins)
        except Paused as pause:
            status, interrupts = "paused", pause.interrupts
        except asyncio.CancelledError:
            self._order.journal.forget_cancelled()
            if not self._stopping or self._task is None:
                raise
            self._task.uncancel()
            status = "interrupted"
        try:
            if self._run.cassette is not None:
                self._run.cassette.end(self._run.run_id, stopped=status == "interrupted")
        except StoreError as failure:
            status, error = "failed", error or failure
        if status in ("completed", "halted", "failed"):
            self._chain.finish(self._order.pipeline, status, self._frame.digest)
        with without_collector():
            return self._result(status, error, interrupts)

    async def _walk(self) -> None:
        frame, timeout = self._frame, self._order.timeout
        if frame.plan.directives.checkpoint and not self._run.recording:
            self._run.warn(frame, "@checkpoint: without a store the run is not kept and cannot be continued later")
        with self._run.effects.during_replay(without_collector()):
            if timeout is None:
                await walk(frame)
                return
            async with self._run.time_limit(frame, timeout, "the run"):
                await walk(frame)

    def closing(self, result: RunResult) -> JsonObject:
        """What a journal keeps of how the run stopped, beside the stages and effects that it has (see store/)."""
        run, meta, chain = self._run, result.context.meta, self._chain
        trace = result.context.trace
        ended = result.status in ("completed", "halted", "failed")
        return {
            "status": result.status,
            "output": result.output,
            "current": result.context.current,
            "error": None if result.error is None else error_to_json(result.error),
            "failedAt": None if result.error is None else result.error.path,
            "interrupts": [question.to_stored() for question in result.interrupts],
            "news": run.strand.news(),
            "shadow": meta["shadow"],
            "budget": meta["budget"],
            "timeLeft": {path: limit.left() for path, limit in run.limits.items()},
            "cost": meta["cost"],
            "tokens": meta["tokens"],
            "end": trace[-1] if ended else None,
            "entries": chain.length,
            "head": result.head,
        }

    def _result(self, status: Status, error: HaloError | None, interrupts: tuple[Interrupt, ...]) -> RunResult:
        """The public result: everything in it has gone through the redactor."""
        run, frame, clean = self._run, self._frame, self._run.secrets.json
        if error is not None:
            run.redactor.clean(error)
        context = Context(
            current=clean(frame.current),
            input=clean(frame.input),
            data=clean(frame.data),
            meta=clean(run.meta()),
            trace=self._chain.to_json(),
        )
        output = context.current if status in ("completed", "halted") else None
        origins = {name: tuple(sorted(found)) for name, found in frame.origins.items()}
        return RunResult(run.run_id, status, output, context, error, interrupts, origins, run.redactor)


def _ledger(plan: Plan, order: Order, policies: Mapping[str, tuple[BoundRule, ...]]) -> Ledger:
    """The run's budgets with what has been spent of them."""

    def required(agent: str) -> Sequence[str]:
        return plan.agent(agent).policies if isinstance(order.program.find(agent), nodes.Agent) else ()

    own = None if order.max_spend is None else Budget("usd", order.max_spend, order.on_limit)
    ledger = Ledger(order.pipeline, policies, required, own)
    ledger.open(order.journal, order.spent)
    return ledger


def _configure(plan: Plan, order: Order, services: Services) -> tuple[ToolBox, Mapping[str, tuple[BoundRule, ...]]]:
    """Tools and policies that the pipeline can reach; ConfigError names everything that is missing, at once.

    What has no work left to do may be missing (spec 12.5), but the secrets that can be read are kept secret.
    """
    everything = reach(plan, order.pipeline)
    used = everything if order.used is None else order.used
    tools = ToolBox(order.program, services.env, services.tool_factories, services.redactor, services.models)
    policies, problems = bind_policies(plan, everything.policies, services.rule_factories)
    tools.prepare(everything.tools - used.tools)
    if services.cassette is not None and services.cassette.answers:
        tools.prepare(used.tools)  # what the cassette has needs nothing; the rest is told where it is asked
    elif not order.rehearsal:
        problems += tools.prepare(used.tools)
        if services.replies is None:
            own = {plan.agent(name).model for name in used.agents}
            models = own if services.model is None or not own else {services.model}
            models |= judge_models(bound for name in used.policies for bound in policies.get(name, ()))
            problems += _missing_models(services.models, models)
    if problems:
        raise ConfigError("\n".join(problems))
    return tools, policies


def _missing_models(registry: ModelRegistry, models: set[str]) -> list[str]:
    problems: list[str] = []
    for model in sorted(models):
        try:
            registry.require([model])
        except ConfigError as error:
            problems.append(error.message)
        except Exception as error:  # a provider may be a stranger's code
            problems.append(f"the provider of {model} cannot be opened: {type(error).__name__}: {error}")
    return problems


def restore_cursors(records: Iterable[EffectRecord], replies: ModelProvider) -> None:
    """Tell a scripted provider which replies a journal holds already, so that it goes on after them."""
    cursors = [_cursor(record) for record in records if record.kind == "model" and record.outcome != "cancelled"]
    if cursors:
        replies.restore(cursors)


def _cursor(record: EffectRecord) -> Json:
    return record.result.get("cursor") if record.outcome == "failed" else record.result["reply"]["cursor"]

"""The public entry: a Runtime runs checked programs and takes answers to their questions (spec 2)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias, final

from halo_lang import Analysis, Program
from halo_runtime.engine.clock import Clock, SystemClock, iso
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.effects import Paused
from halo_runtime.engine.engine import Engine, as_json
from halo_runtime.engine.events import Observer, SystemEvent
from halo_runtime.engine.execution import Services
from halo_runtime.engine.journal import Journal
from halo_runtime.errors import RunError, SignalError, StoreError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ModelProvider, ProviderFactory
from halo_runtime.models.pricing import Price, Prices
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.policies.base import RuleFactory
from halo_runtime.policies.budgets import OnLimit
from halo_runtime.redaction import Redactor
from halo_runtime.remembered import RememberedRuns
from halo_runtime.results import Answer, Interrupt, RunResult
from halo_runtime.store.mail import Message, new_id
from halo_runtime.tools.base import ToolFactory

if TYPE_CHECKING:
    from halo_lang.catalog.specs import ProviderSpec
    from halo_runtime.cassettes.cassette import Cassette
    from halo_runtime.keeping import Fork, KeptRuns
    from halo_runtime.ledger.recorder import RunRecorder
    from halo_runtime.preflight import Preflight
    from halo_runtime.preview import CallPreview, FoundCall
    from halo_runtime.probing import Probe
    from halo_runtime.store.files import FileRunStore


@final
class Pause:
    """What a handler returns to leave a question open."""


PAUSE: Final = Pause()
InterruptHandler: TypeAlias = Callable[[Interrupt], Awaitable[Json | Answer | Pause]]
"""Gives an answer, or an Answer that says who gave it and how."""
SystemEventHandler: TypeAlias = Callable[[SystemEvent], None]


class Runtime:
    """Runs programs. One Runtime may run many, also at the same time.

    `env` is where `Env.NAME` and the services' keys are read; `model` overrides every agent's model; `replies`
    is a scripted provider that answers for every agent instead of its service; `cassette` keeps what models and tools
    answer, or answers in their place. `store` keeps runs on disk; without one a run can go on as long as the Runtime
    lives. `recorder` logs what runs do to a ledger.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] = os.environ,
        model: str | None = None,
        replies: ModelProvider | None = None,
        cassette: Cassette | None = None,
        clock: Clock | None = None,
        store: FileRunStore | None = None,
        prices: Mapping[str, Price] | None = None,
        recorder: RunRecorder | None = None,
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
            cassette=cassette,
            prices=Prices(prices),
            recorder=recorder,
        )
        self._engine = Engine(self._services)
        self._remembered = RememberedRuns(self._engine)
        self._kept = None if store is None else _kept_runs(self._engine, store)
        self._on_interrupt: InterruptHandler | None = None
        self._on_listen: InterruptHandler | None = None
        self._on_system_event: SystemEventHandler | None = None

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
        self._engine.observers.append(observer)
        return lambda: self._engine.observers.remove(observer) if observer in self._engine.observers else None

    def register_tool_provider(self, name: str, factory: ToolFactory) -> None:
        """Let `factory` open tools of the provider `name`. Raises ValueError when it is registered already."""
        if name in self._services.tool_factories:
            raise ValueError(f"the tool provider {name} is registered already")
        self._services.tool_factories[name] = factory

    def register_policy_rule(self, name: str, factory: RuleFactory) -> None:
        """Let `factory` make the rules called `name`. Raises ValueError when it is registered already.

        What a program may say of the rule is the catalogue's: `halo_lang.catalog.register_rule`, for a new name.
        """
        if name in self._services.rule_factories:
            raise ValueError(f"the policy rule {name} is registered already")
        self._services.rule_factories[name] = factory

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
        max_spend: Decimal | None = None,
        on_limit: OnLimit = "fail",
        keep: bool = False,
        options: JsonObject | None = None,
    ) -> RunResult:
        """Run `pipeline` (may be left out when there is one).

        `timeout` in seconds and `max_spend` in USD limit the whole run, the pauses between its parts apart. With
        `on_limit="ask"` somebody is asked where `max_spend` is used up, by an interrupt of kind `limit`.
        A program that has been checked already is best given as its Analysis; one that has not is checked here.
        With a store a `@checkpoint` pipeline is kept on disk as it goes, another one when it pauses or is stopped, or
        from the start with `keep`; `options` are noted there for who goes on with it. With a `journal` the run is not
        kept: it is written as the run goes, and what it holds already is taken from it and not done again. Raises
        ProgramError, InputError or ConfigError before anything has run, StoreError where the run cannot be kept, and
        ValueError for a `run_id` that is running; everything later is in the result.
        """
        plan = self._engine.plan(program)
        order = self._engine.order(plan, pipeline, inputs, timeout)
        order = replace(order, max_spend=max_spend, on_limit=on_limit)
        order = replace(order, run_id=run_id or order.run_id, controller=controller)
        if journal is not None:
            order = replace(order, journal=journal)
        elif self._kept is not None:
            return await self._kept.start(plan, order, options or {}, keep=keep)
        return await self._remembered.start(plan, order)

    async def resume(self, run_id: str) -> RunResult:
        """Go on with a paused or interrupted run, with its own program; open questions are put to the handlers.

        Raises UnknownRun, RunBusy, StoreError, and RunRefused for a run that has ended.
        """
        return await (self._kept or self._remembered).go_on(run_id, None)

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
        message = self._message(answer, interrupt, event, by, how)
        return await (self._kept or self._remembered).go_on(run_id, message)

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

        Raises as `signal` does, and StoreError where nothing can be left.
        """
        (self._kept or self._remembered).post(run_id, self._message(answer, interrupt, event, by, how))

    def left_for(self, question: Interrupt) -> Answer | None:
        """What was left for a question that is being asked; a handler that waits for a person may look, and give it."""
        return (self._kept or self._remembered).left_for(question)

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
        max_spend: Decimal | None = None,
        on_limit: OnLimit = "fail",
        options: JsonObject | None = None,
        told: Callable[[Preflight], None] = lambda _: None,
    ) -> RunResult:
        """Continue a stored run with the program as it is now, as a new run; the old one is not touched.

        Stages that are as they were, and get what they got, are taken from the old journal (spec 3.2). `checkpoint` is
        a run id or a journal's path, `at` an entry of its trace to go back to, `inputs` are put over the old ones.
        `told` hears what will be reused before anything is done; `max_spend` includes what the reused calls have cost.
        A completed run that would come out the same is given back as it is. Raises StagesDiffer under `strict`,
        RunRefused, and as `run` does.
        """
        plan, kept = self._engine.plan(program), self._stored()
        fork = _fork(checkpoint, pipeline, inputs, at, reuse_answers, timeout, max_spend, on_limit)
        return await kept.fork(plan, fork, options or {}, strict=strict, controller=controller, told=told)

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
        fork = _fork(checkpoint, pipeline, inputs, at, reuse_answers, None)
        return await self._stored().preflight(self._engine.plan(program), fork)

    def agent_calls(self, program: Program | Analysis) -> Iterator[FoundCall]:
        """The agent calls of a program, in its order. Raises ProgramError."""
        from halo_runtime.preview import find_calls  # runs do not need it

        return find_calls(self._engine.plan(program))

    async def preview(self, program: Program | Analysis, found: FoundCall, given: Mapping[str, Json]) -> CallPreview:
        """What one of its agent calls would send, with nothing sent, called or asked.

        `given` are arguments, and results of earlier stages, by the call's `names`; what is missing stays visible as a
        placeholder. Raises ProgramError, and ConfigError for a policy that cannot be enforced.
        """
        from halo_runtime.preview import preview  # see `agent_calls`

        return await preview(self._engine, self._engine.plan(program), found, given)

    async def probe(self, program: Program | Analysis, *, seconds: float = 10.0) -> list[Probe]:
        """Try the models and tools that a program declares, changing nothing and sending nothing to models.

        Each tool has so many seconds. Raises ProgramError.
        """
        from halo_runtime.probing import probe_models, probe_tools  # see `agent_calls`

        plan = self._engine.plan(program)
        return [*probe_models(plan.program, self._services), *await probe_tools(plan.program, self._services, seconds)]

    async def listed_methods(
        self, program: Program | Analysis, *, seconds: float = 60.0
    ) -> tuple[dict[str, ProviderSpec], list[Probe]]:
        """What the servers of tools such as `MCP` say of their methods, by the tool's name, for `halo_lang.check`.

        Tools that could not be asked, each with so many seconds, are told of with their problem. Raises ProgramError.
        """
        from halo_runtime.probing import listed_methods  # see `agent_calls`

        return await listed_methods(self._engine.plan(program).program, self._services, seconds)

    def stop(self, run_id: str) -> bool:
        """Cancel a run: requests are cancelled, its result has status `interrupted`. False when it is not running."""
        execution = self._engine.running.get(run_id)
        if execution is None:
            return False
        execution.stop()
        return True

    async def close(self) -> None:
        """Close the connections, models and cassette that runs have opened."""
        await self._services.models.close()
        if self._services.cassette is not None:
            self._services.cassette.close()
        if self._services.recorder is not None:
            self._services.recorder.close()

    # --- what runs ask of the host ------------------------------------------------------------------------------

    async def _ask(self, interrupt: Interrupt) -> Answer:
        """What was left for a question, else what a handler says."""
        left = self.left_for(interrupt)
        if left is not None:
            return left
        handler = self._on_interrupt if interrupt.event is None else self._on_listen
        try:
            answer = PAUSE if handler is None else await handler(interrupt)
        except Exception as error:  # the host's own code; its failure is the run's, at this stage
            raise RunError(f"the handler of {interrupt.kind} failed: {type(error).__name__}: {error}") from error
        if isinstance(answer, Pause):
            raise Paused((interrupt,))
        if not isinstance(answer, Answer):
            answer = Answer(answer, at=iso(self._services.clock.now()), how="handler")
        return replace(answer, value=as_json(answer.value, RunError, f"what the handler of {interrupt.kind} gave"))

    def _send(self, event: SystemEvent) -> None:
        try:
            if self._on_system_event is not None:
                self._on_system_event(event)
        except Exception as error:  # the host's own code; its failure is the run's, at this stage
            raise RunError(f"the handler of {event.name} failed: {type(error).__name__}: {error}") from error

    def _message(self, answer: Json, interrupt: str | None, event: str | None, by: str | None, how: str) -> Message:
        value = self.redactor.json(as_json(answer, SignalError, "the answer"))
        return Message(new_id(), value, interrupt, event, by, iso(self._services.clock.now()), how)

    def _stored(self) -> KeptRuns:
        if self._kept is None:
            raise StoreError("this Runtime has no store to take runs from; give it one: Runtime(store=FileRunStore(…))")
        return self._kept


def _kept_runs(engine: Engine, store: FileRunStore) -> KeptRuns:
    from halo_runtime.keeping import KeptRuns  # only a Runtime with a store pays for it

    return KeptRuns(engine, store)


def _fork(
    checkpoint: str, pipeline: str | None, inputs: JsonObject | None, at: int | None, reuse_answers: bool,
    timeout: float | None, max_spend: Decimal | None = None, on_limit: OnLimit = "fail",
) -> Fork:  # fmt: skip
    from halo_runtime.keeping import Fork  # see `_kept_runs`

    return Fork(checkpoint, pipeline, inputs or {}, at, reuse_answers, timeout, max_spend, on_limit)

"""Everything that one run shares: services, figures, the hash chain, the way to people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from halo_lang import nodes
from halo_runtime.engine.budgets import Ledger
from halo_runtime.engine.clock import Clock, iso
from halo_runtime.engine.controller import Controller
from halo_runtime.engine.effects import Effects, Origins, Paused
from halo_runtime.engine.emitter import Emitter
from halo_runtime.engine.events import InterruptAnswered, InterruptOpened, SystemEvent, WarningRaised
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import BoundRule
from halo_runtime.engine.limits import TimeLimit
from halo_runtime.engine.notices import announce
from halo_runtime.engine.plan import AgentPlan, Plan
from halo_runtime.engine.shadows import Shadows
from halo_runtime.engine.strand import Strand
from halo_runtime.engine.toolbox import ToolBox
from halo_runtime.errors import HaloError, InterruptExpired, ModelError
from halo_runtime.json_types import MISSING, Json, JsonObject
from halo_runtime.models.base import ModelProvider, ModelReply, ModelRequest, OnDelta
from halo_runtime.models.pricing import Prices
from halo_runtime.policies.base import ToolUse
from halo_runtime.policies.vault import Vault
from halo_runtime.redaction import Redactor
from halo_runtime.results import Answer, Interrupt
from halo_runtime.values import digest

if TYPE_CHECKING:
    from halo_runtime.cassettes.cassette import Cassette
    from halo_runtime.cassettes.format import Kind, Outcome

Asker: TypeAlias = Callable[[Interrupt], Awaitable[Answer]]
"""Gives the answer to a question, or raises Paused to leave it open."""


@dataclass(slots=True)
class Run:
    """One run in progress. `model` overrides every agent's model; `scripted` tells that replies come from a script.

    `recording`: each stage is kept (see Recorder). `controlled`: stages are to be asked about, as a debugger is there,
    or was when the journal was written.
    """

    run_id: str
    plan: Plan
    effects: Effects
    emitter: Emitter
    redactor: Redactor
    """For what leaves the run: events, hashes, questions, errors."""
    secrets: Redactor
    """For values inside the run."""
    clock: Clock
    strand: Strand
    tools: ToolBox
    provider_of: Callable[[str], ModelProvider]
    policies: Mapping[str, tuple[BoundRule, ...]]
    ledger: Ledger
    prices: Prices
    asker: Asker
    send: Callable[[SystemEvent], None]
    shadows: Shadows = field(default_factory=Shadows)
    vault: Vault = field(default_factory=Vault)
    kept: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """What the run has put into conversation stores: the place of the call that it was put in by, and the text."""
    tools_used: dict[tuple[str, str], ToolUse] = field(default_factory=dict[tuple[str, str], ToolUse])
    """The methods of tools that the run has had a result of, by tool and method."""
    recording: bool = False
    controller: Controller | None = None
    controlled: bool = False
    model: str | None = None
    scripted: bool = False
    cassette: Cassette | None = None
    time_left: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of time limits that a run had left when it stopped, by pipeline call and limit."""
    limits: dict[str, TimeLimit] = field(default_factory=dict[str, "TimeLimit"])
    """The time limits of pipelines that are not over."""
    unfinished: list[nodes.Call] = field(default_factory=list[nodes.Call])
    """The calls that a rehearsal found to be done still, in no order; what is nested in them is listed by itself."""
    _warned: set[tuple[str, int, int]] = field(default_factory=set[tuple[str, int, int]])

    # --- time ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def time_limit(self, frame: Frame, seconds: float, what: str) -> AsyncGenerator[None]:
        """Hold everything inside to a time, from what is left of it where the run goes on. Raises TimeoutExceeded."""
        name = f"{frame.path}: {what}"
        limit = TimeLimit(seconds, what, frame.path, frame.limit, self.time_left.get(name, seconds))
        frame.limit = self.limits[name] = limit
        try:
            async with limit.enforced(lambda error: self.effects.time_ran_out(frame.path, error)):
                with self.effects.during_replay(limit.standing_still()):
                    yield
        except HaloError:
            del self.limits[name]
            raise
        del self.limits[name]

    # --- values -------------------------------------------------------------------------------------------------

    def digest(self, value: Json) -> str:
        """Hash of a value as it may be shown: redaction comes before hashing (spec 2.7)."""
        return digest(self.redactor.identity(value) if self.redactor.active else value)

    def meta(self) -> JsonObject:
        """`context.meta` as far as the run has come. Parallel arms are in it when their block has ended.

        The lists are copies: a program may let them flow on, and what flows does not grow.
        """
        strand = self.strand
        calls = list(strand.calls)
        costs = [call["cost"] for call in calls]
        seldom: JsonObject = {"embeddings": list(strand.embeddings)} if strand.embeddings else {}
        return {
            "cost": None if None in costs else sum(costs),
            "tokens": {kind: sum(call["tokens"][kind] for call in calls) for kind in ("input", "output", "total")},
            "calls": calls,
            "violations": list(strand.violations),
            "shadow": list(strand.shadow),
            "warnings": list(strand.warnings),
            "events": list(strand.events),
            "budget": self.ledger.figures(strand.uses, strand.raises),
            **seldom,
        }

    # --- models and policies ------------------------------------------------------------------------------------

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None) -> ModelReply:
        """Send a request to the service that answers for its model. Raises ModelError."""
        try:
            reply = await self.provider_of(request.model).complete(request, on_delta)
        except HaloError:
            raise
        except Exception as error:  # a provider may be a stranger's code; the run fails at this call, with its name
            raise ModelError(
                f"the provider of {request.model} failed: {type(error).__name__}: {error}",
                retryable=isinstance(error, ConnectionError | TimeoutError),
            ) from error
        if not (isinstance(reply, ModelReply) and isinstance(reply.text, str)):
            raise ModelError(f"the provider of {request.model} gave no reply with a text: {reply!r:.80}")
        return self._without_secrets(reply)

    async def exchange(
        self,
        path: str,
        kind: Kind,
        request: Callable[[], JsonObject],
        live: Callable[[], Awaitable[Json]],
        hear: OnDelta | None = None,
    ) -> Json:
        """What a model or tool answers: from the cassette or by `live`, as the cassette says (see Cassette.exchange).

        `request` makes all that is asked, with the model that the program declares: whichever else answers in its place
        answers this request.
        """
        if self.cassette is None:
            return await live()
        from halo_runtime.cassettes.cassette import Asked  # only runs with a cassette pay for it

        return await self.cassette.exchange(Asked(self.run_id, path, kind, request()), live, hear)

    async def all_under(self, path: str) -> None:
        """Wait in a replay until what a journal or the cassette has under `path` has come, before it is cancelled."""
        await self.effects.all_under(path)
        if self.cassette is not None:
            await self.cassette.all_under(self.run_id, path)

    def heard(self, path: str, kind: Kind, request: Callable[[], JsonObject]) -> None:
        """Tell the cassette how an exchange ended that a journal may have given."""
        record = self.effects.journal.find(path)
        if record is not None:
            self.heard_of(path, kind, request, record.outcome, record.result)

    def heard_of(
        self, path: str, kind: Kind, request: Callable[[], JsonObject], outcome: Outcome, result: Json
    ) -> None:
        """Tell the cassette how an exchange ended, or is taken to have."""
        if self.cassette is not None:
            from halo_runtime.cassettes.cassette import Asked  # see `exchange`

            self.cassette.heard(Asked(self.run_id, path, kind, request()), outcome, result)

    def _without_secrets(self, reply: ModelReply) -> ModelReply:
        if not self.secrets.active:
            return reply
        text = self.secrets.text
        calls = tuple(replace(call, arguments=text(call.arguments)) for call in reply.tool_calls)
        return replace(reply, text=text(reply.text), tool_calls=calls, warnings=tuple(map(text, reply.warnings)))

    def rules(self, agent: AgentPlan) -> tuple[BoundRule, ...]:
        """All rules that hold for an agent, in the order of its `requires`."""
        return tuple(rule for policy in agent.policies for rule in self.policies[policy])

    # --- what a run tells ---------------------------------------------------------------------------------------

    def warn(self, frame: Frame, message: str) -> None:
        """Put a warning into the figures and the event stream, once for each place and text."""
        place = frame.stage.info.place if frame.stage else None
        line, column = (place.line, place.column) if place else (None, None)
        text = self.redactor.text(message)
        key = (text, line or 0, column or 0)
        if key in self._warned:
            return
        self._warned.add(key)
        frame.strand.warnings.append({"message": text, "line": line, "column": column})
        if self.emitter.active:
            self.emitter.emit(WarningRaised(self.run_id, frame.path, text, line, column))

    async def send_event(self, frame: Frame, path: str, name: str, payload: Json, origins: Origins) -> None:
        """Send a system event to the host, once: a replay does not send it again."""
        frame.strand.events.append({"name": name, "payload": payload})
        event = SystemEvent(self.run_id, path, name, self.secrets.json(payload))
        self.emitter.emit(SystemEvent(self.run_id, path, name, self.redactor.json(payload)))

        async def send() -> Json:
            self.send(event)
            return None

        request = {"name": name, "payload": payload}
        await self.effects.perform(f"{path}/event", "event", request, send, origins=origins, guards=frame.guards)

    # --- people -------------------------------------------------------------------------------------------------

    async def ask(
        self,
        frame: Frame,
        path: str,
        question: JsonObject,
        timeout: float | None,
        binding: str | None,
        origins: Origins,
    ) -> Json:
        """The answer to a question. Raises Paused when nobody gives one now, InterruptExpired when it came too late.

        The moment of asking is an effect of its own, so a deadline stays the same however often the run goes on.
        """
        question = self._shown(question)
        before = self.effects.recorded(f"{path}/asked")
        asked_at = await self.effects.perform(f"{path}/asked", "clock", None, self._now)
        interrupt = self._interrupt(frame, path, question, timeout, binding, asked_at)
        interrupt = replace(interrupt, origins=tuple(sorted(origins)), guards=tuple(sorted(frame.guards)))
        self.emitter.emit(InterruptOpened(self.run_id, path, self.redactor.json(interrupt.to_json())))

        credit: JsonObject | None = None

        async def answer() -> Json:
            nonlocal credit
            if not before:
                self.effects.journal.ask(interrupt.to_stored())
            with frame.standing_still():
                given = await self._answer(interrupt, lambda: announce(frame, path, interrupt))
            credit = given.credit()
            return self.secrets.json(given.value)

        kind = "human" if question["event"] is None else "event"
        given = await self.effects.perform(
            path, kind, request_of(question), answer, origins=origins, guards=frame.guards, answer=lambda: credit
        )
        kept = self.effects.journal.find(path)
        by = kept.answer["by"] if kept is not None and kept.answer is not None else None
        self.emitter.emit(InterruptAnswered(self.run_id, path, interrupt.id, self.redactor.json(given), by))
        return given

    async def _answer(self, interrupt: Interrupt, announce: Callable[[], Awaitable[None]]) -> Answer:
        """What the host says, within the question's time. Raises Paused, InterruptExpired.

        People are told of a question that is not answered at once.
        """
        if late := expiry(interrupt, self.clock):
            raise late
        timer = asyncio.timeout(self._seconds_until(interrupt.expires_at))
        try:
            async with timer:
                answering = asyncio.ensure_future(self.asker(interrupt))
                try:
                    await asyncio.sleep(0)  # who has the answer ready gives it without waiting for anything
                    if not answering.done() or isinstance(answering.exception(), Paused):
                        await announce()
                    return await answering
                finally:
                    if answering.cancel():  # who asks a person leaves the screen in order before anything else is shown
                        await asyncio.wait((answering,))
        except TimeoutError:
            if not timer.expired():
                raise
            raise _expired(interrupt) from None

    def _shown(self, question: JsonObject) -> JsonObject:
        """A question as people may see it: nothing that a program puts into it tells a secret."""
        clean = self.redactor.json
        attachments = [{key: clean(value) for key, value in item.items()} for item in question["attachments"]]
        texts = {"message": clean(question["message"]), "channel": clean(question["channel"])}
        return {**question, **texts, "attachments": attachments}

    def _seconds_until(self, moment: str | None) -> float | None:
        return None if moment is None else (datetime.fromisoformat(moment) - self.clock.now()).total_seconds()

    async def _now(self) -> Json:
        return iso(self.clock.now())

    def _interrupt(
        self, frame: Frame, path: str, question: JsonObject, timeout: float | None, binding: str | None, asked_at: str
    ) -> Interrupt:
        expires = None if timeout is None else datetime.fromisoformat(asked_at) + timedelta(seconds=timeout)
        return Interrupt(
            id=interrupt_id(self.run_id, path),
            run_id=self.run_id,
            kind=question["kind"],
            message=question["message"],
            stage=frame.stage.info.label if frame.stage else "",
            path=path,
            channel=question["channel"],
            attachments=tuple(question["attachments"]),
            choices=tuple(question["choices"]),
            event=question["event"],
            binding=binding,
            asked_at=asked_at,
            expires_at=None if expires is None else iso(expires),
            former=MISSING if self.effects.reuse is None else self.effects.reuse.former(path),
            budget=question.get("budget"),
        )


def request_of(question: JsonObject) -> JsonObject:
    """What an answer in a journal is held against: all that is asked.

    The choices of a yield or listen are not in it: they come of stages behind it, which may be edited while the answer
    that was given stays. Which call comes to a limit first is chance, so of that question nothing is asked.
    """
    if question["kind"] == "limit":
        return {"kind": "limit"}
    return question if question["kind"] == "in_doubt" else {**question, "choices": []}


def interrupt_id(run_id: str, path: str) -> str:
    """An id made of run and structural path: distinct, and the same after every resume."""
    return "ask-" + sha256(f"{run_id} {path}".encode()).hexdigest()[:12]


def expiry(interrupt: Interrupt, clock: Clock) -> InterruptExpired | None:
    """The error of a question whose time for an answer is over, else None."""
    if interrupt.expires_at is None or clock.now() < datetime.fromisoformat(interrupt.expires_at):
        return None
    return _expired(interrupt)


def _expired(interrupt: Interrupt) -> InterruptExpired:
    return InterruptExpired(f"{interrupt.message!r} was not answered by {interrupt.expires_at}")

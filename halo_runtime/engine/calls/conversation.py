"""One agent call in progress: requests to the model, the tool calls it chooses, corrections (spec 2.5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from halo_runtime.engine.attempts import with_retries
from halo_runtime.engine.booking import Booking
from halo_runtime.engine.calls.chosen import ChosenTools
from halo_runtime.engine.calls.figures import Figures, tokens_of
from halo_runtime.engine.calls.request import Settings, model_request
from halo_runtime.engine.calls.streaming import Deltas
from halo_runtime.engine.calls.written import written_texts
from halo_runtime.engine.effects import Origins, Paused, TimeUp
from halo_runtime.engine.events import CANCELLED, ModelRequested, ModelResponded
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import Passed, examine, examine_messages, refuse
from halo_runtime.engine.limits import within
from halo_runtime.engine.needs import PriceOf, Spent, Use, request_need, spent_broken_off, spent_in_vain, spent_on
from halo_runtime.engine.pacing import held_to, in_turn
from halo_runtime.errors import HaloError, StepLimitError, TimeoutExceeded
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import Message, ModelReply, ModelRequest, Usage
from halo_runtime.policies.base import Examined, PolicyCall
from halo_runtime.policies.models import ModelRule, answering_id
from halo_runtime.results import error_to_json

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall


WITHHELD: Final = "(an answer that was refused and is not repeated)"
"""What a model sees in the place of an answer that may not be sent to it again."""


class Conversation:
    """Turns between the engine and one model until there is an answer that may be used.

    `origins` are the effects that the next request, and in the end the answer, came from. What happens is written
    into the strand's `calls` as it happens, so that a failed call is in the figures too.
    """

    def __init__(
        self,
        frame: Frame,
        path: str,
        call: AgentCall,
        settings: Settings,
        messages: tuple[Message, ...],
        origins: Origins,
    ) -> None:
        self.frame = frame
        self.path = path
        self.call = call
        self.settings = settings
        self.messages: tuple[Message, ...] = messages
        self.origins = origins
        self.model = frame.run.model or call.agent.model
        # Scripted replies stand for those of the declared model, so they cost what that one costs (spec 12.3).
        self.priced_as = call.agent.model if frame.run.scripted else self.model
        self.rules = frame.run.rules(call.agent)
        is_looked_at = self.rules or frame.run.plan.shadows_of(call.agent.name, self.model)
        written = written_texts(call) if is_looked_at else ()
        self.guarded = PolicyCall(call.agent.name, call.method, self.model, written)
        self._passed = Passed()
        self.accepted = ""
        """The answer that passed, as rules left it: what they took out is not put back here."""
        self.figures = Figures(frame, call.agent.name, call.method, call.agent.model, self.model)
        self.tools = ChosenTools(frame, call, self.guarded, self.figures, settings.tool_result_chars)

    async def hold(self) -> str:
        """The text of the answer, after all output rules. Raises ModelError, PolicyViolation, StepLimitError, …"""
        try:
            return await self._corrected()
        except HaloError as error:
            self.figures.failed(error)
            raise

    async def _corrected(self) -> str:
        """The first answer that passes, in as many rounds of correction as there may be.

        What the model sees of the rounds before is the last refused answer alone, with what was wrong with it: more
        would cost more from round to round and help it no better.
        """
        rounds = self.call.agent.directives.correct or self.frame.directives.correct or 0
        place, refused = self.path, range(0)
        for correction in range(rounds + 1):
            text = await self._answer(place)
            sources = tuple(message.content for message in self.messages if message.role in ("user", "tool"))
            examined = Examined("output", text, self.guarded, sources=sources)
            verdict = await examine(self.frame, place, self.rules, examined)
            if not verdict.reasons:
                self.accepted = verdict.text
                self.figures.answered(verdict.text)
                return verdict.restored
            if correction == rounds:
                raise refuse(verdict.reasons, self.guarded)
            self.figures.corrected()
            advice = f"Your answer was not accepted: {'; '.join(verdict.reasons)}. Answer again."
            kept = tuple(message for number, message in enumerate(self.messages) if number not in refused)
            # Nobody but the author speaks in it, so no rule needs to look for what others may have put into it.
            self.guarded = replace(self.guarded, written=(*self.guarded.written, advice))
            answer = WITHHELD if verdict.is_unfit else verdict.text
            said = self._passed.own(Message("assistant", answer))
            self.messages = (*kept, said, Message("user", advice))
            refused = range(len(kept), len(kept) + 2)
            place = f"{self.path}/correction{correction + 1}"
        raise AssertionError("the last round returns or raises")

    async def _answer(self, place: str) -> str:
        """One answer without tool calls, after as many tool steps as the model wants and `max_steps` allows.

        What the last request that may be made asks for is not done: no model would ever see what came of it.
        """
        limit = self.settings.max_steps
        for step in range(1, limit + 1):
            reply = await self._request(f"{place}/step{step}")
            if not reply.tool_calls:
                return reply.text
            if step == limit:
                self.tools.not_made(reply.tool_calls, f"not made: max_steps ({limit}) was reached")
                break
            said = Message("assistant", reply.text, reply.tool_calls, opaque=reply.opaque)
            self.messages += (self._passed.own(said),)
            self.messages += await self.tools.run(f"{place}/step{step}", reply.tool_calls, self.origins)
            self.origins |= {f"{place}/step{step}/call{number}" for number in range(len(reply.tool_calls))}
        raise StepLimitError(
            f"{self.call.label} still asked for tools after {limit} requests; raise max_steps:, or offer fewer tools"
        )

    # --- requests -----------------------------------------------------------------------------------------------

    async def _request(self, place: str) -> ModelReply:
        self.messages = await examine_messages(self.frame, place, self.rules, self.messages, self.guarded, self._passed)
        request = model_request(self.call, self.model, self.settings, self.messages)
        if not self.figures.sent_before:
            self.frame.run.shadows.start(self.frame, self.path, request, self.guarded)
        self.figures.sent(self.messages)
        retry = self.call.agent.directives.retry or self.frame.directives.retry
        reply, _ = await with_retries(
            self.frame, place, retry, lambda attempt: self._try(f"{place}/try{attempt}", request, attempt)
        )
        self.origins = frozenset((f"{place}/try{self.figures.last_attempt}",))
        await self._examine_model(place, reply)
        for warning in reply.warnings:
            self.frame.run.warn(self.frame, f"{self.call.label}: {warning}")
        return reply

    async def _examine_model(self, place: str, reply: ModelReply) -> None:
        """Hold the model that answered to the rules about models, where it is another than was asked.

        A script answers in the name of the model that was asked.
        """
        asked = not self.frame.run.scripted
        rules = [bound for bound in self.rules if asked and isinstance(bound.rule, ModelRule)]
        other = answering_id(self.model, reply.model_used) if rules else None
        if other is not None:
            call = replace(self.guarded, model=other)
            verdict = await examine(self.frame, f"{place}/model", rules, Examined("input", "", call))
            if verdict.reasons:
                raise refuse(verdict.reasons, self.guarded)

    async def _try(self, place: str, request: ModelRequest, attempt: int) -> ModelReply:
        """One request, recorded under `place`."""
        run = self.frame.run
        self.figures.tried(attempt)
        for use in run.ledger.broken_off(place):  # it was paid for, though no one has its answer
            self.figures.spent(spent_broken_off(request, use))
        if run.emitter.active:
            shown = run.redactor.json([message.to_json() for message in request.messages])
            agent, method, settings = request.agent, request.method, request.settings()
            run.emitter.emit(ModelRequested(run.run_id, place, agent, method, request.model, shown, attempt, settings))
        replayed = run.effects.recorded(place)
        booking = run.ledger.book(
            self.frame,
            self.guarded,
            need=lambda: request_need(request, self._price),
            begins=lambda charge: run.effects.journal.book(place, charge),
        )
        try:
            document = await run.effects.perform(
                place, "model", request.identity(), lambda: self._complete(place, request, booking),
                origins=self.origins, guards=self.frame.guards, charge=lambda: booking.charge,
            )  # fmt: skip
        except Paused:
            self.figures.not_tried()
            raise
        except HaloError as error:
            kept = run.effects.journal.find(place)
            if kept is not None and kept.was_refused:
                self.figures.not_tried()
            reused = run.effects.was_reused(place)
            spent = None if error.usage is None else spent_in_vain(request, error.usage, self._price)
            if spent is not None and kept is not None and kept.charge is not None:
                spent = replace(spent, usd=Use.from_json(kept.charge).usd)  # of the model that was asked then
            if spent is not None and not reused:
                self.figures.spent(spent)
            self._failed(place, run.redactor.json(error_to_json(error)), spent, reused=replayed or reused)
            raise
        except (asyncio.CancelledError, TimeUp):
            self._broken_off(place, request, reused=replayed)
            raise
        finally:
            run.ledger.told(self.frame, place, self.guarded, run.effects.journal.find(place))
            run.heard(place, "model", lambda: self._asked(request))
        reply, duration = ModelReply.from_json(document["reply"]), document["duration_ms"]
        spent = spent_on(request, reply, self._price_in(document))
        reused = run.effects.was_reused(place)
        if reused:
            self.figures.reused(reply)
        else:
            self.figures.replied(reply, spent, duration)
        self._responded(place, reply, spent, duration, reused=replayed or reused)
        return reply

    def _broken_off(self, place: str, request: ModelRequest, *, reused: bool) -> None:
        """Nobody waits for the answer any more; the service may have been at work on it."""
        kept = self.frame.run.effects.journal.find(place)
        if kept is None or kept.outcome != "cancelled":
            return
        if kept.charge is None:  # it was still waiting for room in a budget
            self.figures.not_tried()
            return
        spent = spent_broken_off(request, Use.from_json(kept.charge))
        self.figures.spent(spent)
        self._failed(place, CANCELLED, spent, reused=reused)

    async def _complete(self, place: str, request: ModelRequest, booking: Booking) -> Json:
        """Send a request, once the budgets admit it."""
        deltas = Deltas(self.frame.run, place, request.agent, guarded=self._is_guarded)
        async with booking:
            try:
                with deltas:
                    document = await self._send(place, request, deltas)
            except HaloError as error:
                _note_use(error, deltas)
                if error.usage is not None:
                    booking.settle(spent_in_vain(request, error.usage, self._price).use)
                raise
            except asyncio.CancelledError:
                booking.settle(spent_in_vain(request, Usage(output=deltas.heard), self._price).use)
                raise
            reply = ModelReply.from_json(document["reply"])
            booking.settle(spent_on(request, reply, self._price_in(document)).use)
        return document

    async def _send(self, place: str, request: ModelRequest, deltas: Deltas) -> Json:
        """A reply, how many milliseconds it took, and which model's prices hold where it is not the declared one."""
        run = self.frame.run

        async def live() -> Json:
            await in_turn(self.rules, run.clock)
            begun = run.clock.monotonic()
            limit, label = self.call.agent.directives.timeout, self.call.label
            reply = await held_to(self.rules, label, within(limit, label, run.complete(request, deltas.feed)))
            duration = round((run.clock.monotonic() - begun) * 1000, 3)
            other = {} if self.priced_as == self.call.agent.model else {"priced_as": self.priced_as}
            return {"reply": reply.to_json(), "duration_ms": duration, **other}

        return await run.exchange(place, "model", lambda: self._asked(request), live, deltas.feed)

    def _asked(self, request: ModelRequest) -> JsonObject:
        """The request as a cassette knows it: asked of the declared model, whichever answers in its place."""
        return {**request.to_json(), "model": self.call.agent.model}

    def _price(self, usage: Usage) -> Decimal | None:
        """What a usage costs at the prices of the model that is asked."""
        return self.frame.run.prices.cost(self.priced_as, usage)

    def _price_in(self, document: JsonObject) -> PriceOf:
        """The prices that hold for a reply: those of the model that was asked, be it asked now or when recorded."""
        model = document.get("priced_as", self.call.agent.model)
        return lambda usage: self.frame.run.prices.cost(model, usage)

    @property
    def _is_guarded(self) -> bool:
        """Whether rules look at answers: then nothing of one may be seen before they have passed."""
        return any("output" in bound.rule.points for bound in self.rules)

    def _responded(
        self, place: str, reply: ModelReply, spent: Spent, duration: float, *, reused: bool
    ) -> None:  # fmt: skip
        run = self.frame.run
        if not run.emitter.active:
            return
        guarded, agent, method = self._is_guarded, self.call.agent.name, self.call.method
        run.emitter.emit(
            ModelResponded(
                run.run_id, place, agent, method,
                reply=None if guarded else run.redactor.text(reply.text),
                tokens=tokens_of(spent.usage),
                cost=None if spent.usd is None else str(spent.usd),
                duration_ms=duration,
                error=None,
                model=reply.model_used,
                finish=reply.stop,
                usage=reply.usage.to_json(),
                tool_calls=[] if guarded else run.redactor.json([call.to_json() for call in reply.tool_calls]),
                reused=reused,
            )
        )  # fmt: skip

    def _failed(self, place: str, error: JsonObject, spent: Spent | None, *, reused: bool) -> None:
        run, agent, method = self.frame.run, self.call.agent.name, self.call.method
        if run.emitter.active:
            tokens = {} if spent is None else tokens_of(spent.usage)
            paid = None if spent is None or spent.usd is None else str(spent.usd)
            run.emitter.emit(
                ModelResponded(run.run_id, place, agent, method, None, tokens, paid, 0.0, error, reused=reused)
            )


def _note_use(error: HaloError, deltas: Deltas) -> None:
    """Have an error say what its request used, where the service did not: what came of an answer was worked for.

    A request whose time ran out was sent, and the service may have been at work on it.
    """
    usage = error.usage
    if usage is None and (deltas.heard is not None or isinstance(error, TimeoutExceeded)):
        usage = Usage()
    if usage is not None and usage.output is None:
        usage = replace(usage, output=deltas.heard)
    error.usage = usage

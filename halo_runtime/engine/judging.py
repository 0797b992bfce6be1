"""Asking a model for a rule (spec 6): a request like any other, in figures, budgets, journal, cassette and events.

It goes by the name of the policy: `Guard.judge` is its key in a replies file, and `for` in its line in `meta.calls` is
the call that it judges. What is judged stands in no event and no figure: it may be what nobody is to see.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from halo_lang.records import record
from halo_runtime.engine.attempts import with_retries
from halo_runtime.engine.calls.figures import Figures, tokens_of
from halo_runtime.engine.effects import Paused, TimeUp
from halo_runtime.engine.events import CANCELLED, ModelRequested, ModelResponded
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.limits import within
from halo_runtime.engine.needs import Spent, Use, request_need, spent_broken_off, spent_in_vain, spent_on
from halo_runtime.errors import HaloError, TimeoutExceeded
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import Message, ModelReply, ModelRequest, Usage
from halo_runtime.policies.base import AskModel, Examined
from halo_runtime.results import error_to_json

if TYPE_CHECKING:
    from halo_runtime.engine.booking import Booking

JUDGE: Final = "judge"
"""The method by which a judge goes."""

JUDGE_SECONDS: Final = 60.0
"""How long a judge may take for one answer."""


def asking(frame: Frame, place: str, policy: str, model: str, examined: Examined) -> AskModel:
    """How a rule of `policy` asks its judge model about a text; what it answers is recorded at `place`."""

    async def ask(system: str, text: str, schema: JsonObject | None = None) -> str:
        messages = (Message("system", system), Message("user", text))
        request = ModelRequest(model, policy, JUDGE, messages, temperature=0.0, json_schema=schema)
        return await _Judging(frame, place, request, examined).hold()

    return ask


class _Judging:
    """One question to a judge."""

    def __init__(self, frame: Frame, place: str, request: ModelRequest, examined: Examined) -> None:
        self._frame = frame
        self._place = place
        self._request = request
        self._guarded = examined.call
        call = f"{examined.call.agent}.{examined.call.method}"
        self._figures = Figures(frame, request.agent, JUDGE, request.model, request.model, judged=call)
        hidden = f"(a text of {len(examined.text)} characters at the point {examined.point})"
        self._shown = (request.messages[0], Message("user", hidden))

    async def hold(self) -> str:
        """The answer. Raises PolicyViolation where budgets have no room, ModelError, TimeoutExceeded."""
        self._figures.sent(self._shown)
        retry = self._frame.run.plan.agent(self._guarded.agent).directives.retry or self._frame.directives.retry
        try:
            reply, _ = await with_retries(self._frame, self._place, retry, self._try)
        except HaloError as error:
            self._figures.failed(error)
            self._frame.run.warn(self._frame, f"the judge of policy {self._request.agent}: {error.message}")
            raise
        self._figures.answered(reply.text)
        return reply.text

    async def _try(self, attempt: int) -> ModelReply:
        run, request, place = self._frame.run, self._request, f"{self._place}/try{attempt}"
        self._figures.tried(attempt)
        for use in run.ledger.broken_off(place):  # it was paid for, though no one has its answer
            self._figures.spent(spent_broken_off(request, use))
        if run.emitter.active:
            shown = run.redactor.json([message.to_json() for message in self._shown])
            settings = request.settings()
            run.emitter.emit(
                ModelRequested(run.run_id, place, request.agent, JUDGE, request.model, shown, attempt, settings)
            )
        replayed = run.effects.recorded(place)
        booking = run.ledger.book(
            self._frame,
            replace(self._guarded, model=request.model),
            need=lambda: request_need(request, self._price),
            begins=lambda charge: run.effects.journal.book(place, charge),
        )
        try:
            document = await run.effects.perform(
                place, "model", request.to_json(), lambda: self._complete(place, booking),
                guards=self._frame.guards, charge=lambda: booking.charge,
            )  # fmt: skip
        except Paused:
            self._figures.not_tried()
            raise
        except HaloError as error:
            self._refused(place, error, reused=replayed)
            raise
        except (asyncio.CancelledError, TimeUp):
            self._broken_off(place, reused=replayed)
            raise
        finally:
            run.ledger.told(self._frame, place, self._guarded, run.effects.journal.find(place))
            run.heard(place, "model", request.to_json)
        return self._answered(place, document, replayed=replayed)

    async def _complete(self, place: str, booking: Booking) -> Json:
        run, request = self._frame.run, self._request

        async def live() -> Json:
            begun = run.clock.monotonic()
            reply = await within(JUDGE_SECONDS, f"the judge of {request.agent}", run.complete(request, None))
            return {"reply": reply.to_json(), "duration_ms": round((run.clock.monotonic() - begun) * 1000, 3)}

        async with booking:
            try:
                document = await run.exchange(place, "model", request.to_json, live)
            except HaloError as error:
                if error.usage is None and isinstance(error, TimeoutExceeded):
                    error.usage = Usage()
                if error.usage is not None:
                    booking.settle(spent_in_vain(request, error.usage, self._price).use)
                raise
            except asyncio.CancelledError:
                booking.settle(spent_in_vain(request, Usage(), self._price).use)
                raise
            booking.settle(spent_on(request, ModelReply.from_json(document["reply"]), self._price).use)
        return document

    def _price(self, usage: Usage) -> Decimal | None:
        return self._frame.run.prices.cost(self._request.model, usage)

    def _answered(self, place: str, document: JsonObject, *, replayed: bool) -> ModelReply:
        run, reply, duration = self._frame.run, ModelReply.from_json(document["reply"]), document["duration_ms"]
        spent = spent_on(self._request, reply, self._price)
        reused = run.effects.was_reused(place)
        if reused:
            self._figures.reused(reply)
        else:
            self._figures.replied(reply, spent, duration)
        told = _Told(run.redactor.text(reply.text), None, spent, duration, reply.model_used)
        self._tell(place, told, reused=replayed or reused)
        return reply

    def _refused(self, place: str, error: HaloError, *, reused: bool) -> None:
        run = self._frame.run
        kept = run.effects.journal.find(place)
        if kept is not None and kept.was_refused:
            self._figures.not_tried()
        reused = reused or run.effects.was_reused(place)
        spent = None if error.usage is None else spent_in_vain(self._request, error.usage, self._price)
        if spent is not None and not run.effects.was_reused(place):
            self._figures.spent(spent)
        self._tell(place, _Told(None, run.redactor.json(error_to_json(error)), spent), reused=reused)

    def _broken_off(self, place: str, *, reused: bool) -> None:
        kept = self._frame.run.effects.journal.find(place)
        if kept is None or kept.outcome != "cancelled":
            return
        if kept.charge is None:  # it was still waiting for room in a budget
            self._figures.not_tried()
            return
        spent = spent_broken_off(self._request, Use.from_json(kept.charge))
        self._figures.spent(spent)
        self._tell(place, _Told(None, CANCELLED, spent), reused=reused)

    def _tell(self, place: str, told: _Told, *, reused: bool) -> None:
        run = self._frame.run
        if run.emitter.active:
            tokens = {} if told.spent is None else tokens_of(told.spent.usage)
            cost = None if told.spent is None or told.spent.usd is None else str(told.spent.usd)
            run.emitter.emit(
                ModelResponded(
                    run.run_id, place, self._request.agent, JUDGE, told.reply, tokens, cost, told.duration, told.error,
                    model=told.model, reused=reused,
                )
            )  # fmt: skip


@record
class _Told:
    """What came of a request, for events."""

    reply: str | None
    error: JsonObject | None
    spent: Spent | None
    duration: float = 0.0
    model: str | None = None

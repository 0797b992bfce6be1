"""One agent call in progress: requests to the model, the tool calls it chooses, corrections (spec 2.5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from halo_runtime.engine.attempts import with_retries
from halo_runtime.engine.budgets import Booking, reply_use, request_need
from halo_runtime.engine.calls.request import Settings, model_request
from halo_runtime.engine.calls.tool import bind_arguments, call_tool
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.events import ModelDelta, ModelRequested, ModelResponded
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import examine, refuse
from halo_runtime.engine.parallel import all_of
from halo_runtime.errors import HaloError, PolicyViolation, StepLimitError, TimeoutExceeded, ToolError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, Usage
from halo_runtime.models.pricing import cost
from halo_runtime.policies.base import Point, PolicyCall
from halo_runtime.prompts import cut
from halo_runtime.results import error_to_json
from halo_runtime.values import parse_json, text_of

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall


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
        self.messages = messages
        self.origins = origins
        self.model = frame.run.model or call.agent.model
        # Scripted replies stand for those of the declared model, so they cost what that one costs (spec 12.3).
        self.priced_as = call.agent.model if frame.run.scripted else self.model
        self.guarded = PolicyCall(call.agent.name, call.method, self.model)
        self.rules = frame.run.rules(call.agent)
        self.functions = {function.spec.name: function for function in call.functions}
        self.entry = _Entry(frame, call, self.model)

    async def hold(self) -> str:
        """The text of the answer, after all output rules. Raises ModelError, PolicyViolation, StepLimitError, …"""
        try:
            return await self._corrected()
        except HaloError as error:
            self.entry.failed(error)
            raise

    async def _corrected(self) -> str:
        rounds = self.call.agent.directives.correct or self.frame.directives.correct or 0
        place = self.path
        for correction in range(rounds + 1):
            text = await self._answer(place)
            verdict = examine(self.frame, place, self.rules, "output", text, self.guarded)
            if not verdict.reasons:
                self.entry.answered(verdict.text)
                return verdict.text
            if correction == rounds:
                raise refuse(verdict.reasons, self.guarded)
            self.entry.corrected()
            advice = f"Your answer was not accepted: {'; '.join(verdict.reasons)}. Answer again."
            self.messages += (Message("assistant", text), Message("user", advice))
            place = f"{self.path}/correction{correction + 1}"
        raise AssertionError("the last round returns or raises")

    async def _answer(self, place: str) -> str:
        """One answer without tool calls, after as many tool steps as the model wants and `max_steps` allows."""
        for step in range(1, self.settings.max_steps + 1):
            reply = await self._request(f"{place}/step{step}")
            if not reply.tool_calls:
                return reply.text
            self.messages += (Message("assistant", reply.text, reply.tool_calls, opaque=reply.opaque),)
            self.messages += await self._run_tools(f"{place}/step{step}", reply.tool_calls)
        raise StepLimitError(
            f"{self.call.label} still asked for tools after {self.settings.max_steps} requests; raise max_steps:, "
            "or offer fewer tools"
        )

    # --- requests -----------------------------------------------------------------------------------------------

    async def _request(self, place: str) -> ModelReply:
        self._examine_input(place)
        request = model_request(self.call, self.model, self.settings, self.messages)
        if not self.entry.sent_before:
            self.frame.run.shadows.start(self.frame, self.path, request, self.model)
        self.entry.sent(self.messages)
        retry = self.call.agent.directives.retry or self.frame.directives.retry
        reply, _ = await with_retries(
            self.frame, place, retry, lambda attempt: self._try(f"{place}/try{attempt}", request, attempt)
        )
        self.origins = frozenset((f"{place}/try{self.entry.last_attempt}",))
        for warning in reply.warnings:
            self.frame.run.warn(self.frame, f"{self.call.label}: {warning}")
        return reply

    async def _try(self, place: str, request: ModelRequest, attempt: int) -> ModelReply:
        """One request, recorded under `place`."""
        run = self.frame.run
        self.entry.tried(attempt)
        if run.emitter.active:
            shown = run.redactor.json([message.to_json() for message in request.messages])
            run.emitter.emit(
                ModelRequested(run.run_id, place, request.agent, request.method, request.model, shown, attempt)
            )
        booking = run.ledger.book(
            self.guarded,
            need=lambda: request_need(request, self.priced_as),
            begins=lambda charge: run.effects.journal.book(place, charge),
        )
        try:
            document = await run.effects.perform(
                place, "model", request.identity(), lambda: self._complete(place, request, booking),
                origins=self.origins, guards=self.frame.guards, charge=lambda: booking.charge,
            )  # fmt: skip
        except HaloError as error:
            if isinstance(error, PolicyViolation):
                self.entry.not_tried()
            self._responded(place, None, {}, None, 0.0, error)
            raise
        finally:
            run.ledger.told(self.frame, place, self.guarded, run.effects.journal.find(place))
        reply, duration = ModelReply.from_json(document["reply"]), document["duration_ms"]
        price = cost(self.priced_as, reply.usage) if reply.cost is None else reply.cost
        if run.effects.was_reused(place):
            self.entry.reused(reply)
        else:
            self.entry.replied(reply, price, duration)
        self._responded(place, reply.text, _tokens(reply.usage), price, duration, None)
        return reply

    async def _complete(self, place: str, request: ModelRequest, booking: Booking) -> Json:
        """Send a request, once the budgets admit it."""
        async with booking:
            reply, duration = await self._send(place, request)
            booking.settle(reply_use(request, reply, self.priced_as))
        return {"reply": reply.to_json(), "duration_ms": duration}

    async def _send(self, place: str, request: ModelRequest) -> tuple[ModelReply, float]:
        """A reply in the agent's time, and how many milliseconds it took."""
        run = self.frame.run
        limit = self.call.agent.directives.timeout
        begun = run.clock.monotonic()

        def stream(text: str) -> None:
            # With output rules nothing may be seen before they have passed.
            if run.emitter.active and not any("output" in bound.rule.points for bound in self.rules):
                run.emitter.emit(ModelDelta(run.run_id, place, request.agent, run.redactor.text(text)))

        timer = asyncio.timeout(limit)
        try:
            async with timer:
                reply = await run.complete(request, stream)
        except TimeoutError:
            if not timer.expired():
                raise
            raise TimeoutExceeded(f"{self.call.label} took longer than {limit:g} s") from None
        return reply, round((run.clock.monotonic() - begun) * 1000, 3)

    def _responded(
        self, place: str, text: str | None, tokens: JsonObject, price: Decimal | None, duration: float,
        error: HaloError | None,
    ) -> None:  # fmt: skip
        run = self.frame.run
        if not run.emitter.active:
            return
        guarded = any("output" in bound.rule.points for bound in self.rules)
        shown = None if text is None or guarded else run.redactor.text(text)
        failure = None if error is None else run.redactor.json(error_to_json(error))
        paid = None if price is None else str(price)
        agent, method = self.call.agent.name, self.call.method
        run.emitter.emit(ModelResponded(run.run_id, place, agent, method, shown, tokens, paid, duration, failure))

    def _examine_input(self, place: str) -> None:
        """Put all that is about to be sent through the input rules; redactions replace what is sent."""
        examined: list[Message] = []
        for message in self.messages:
            point: Point = "result" if message.role == "tool" else "input"
            verdict = examine(self.frame, place, self.rules, point, message.content, self.guarded)
            if verdict.reasons:
                raise refuse(verdict.reasons, self.guarded)
            examined.append(replace(message, content=verdict.text))
        self.messages = tuple(examined)

    # --- tools that the model chooses ---------------------------------------------------------------------------

    async def _run_tools(self, place: str, calls: tuple[ToolCall, ...]) -> tuple[Message, ...]:
        """Run the calls of one turn side by side; the answers stand in the order in which they were asked."""
        origins = self.origins
        entries = [self.entry.tool(call) for call in calls]
        results = await all_of(
            self._run_tool(f"{place}/call{number}", call, entry, origins)
            for number, (call, entry) in enumerate(zip(calls, entries, strict=True))
        )
        self.origins = origins | {f"{place}/call{number}" for number in range(len(calls))}
        return tuple(Message("tool", result, tool_call_id=call.id) for call, result in zip(calls, results, strict=True))

    async def _run_tool(self, place: str, call: ToolCall, entry: JsonObject, origins: Origins) -> str:
        """The result as the model sees it. What is wrong with a call goes back to the model, not to the user."""
        function = self.functions.get(call.name)
        try:
            if function is None:
                raise ToolError(f"there is no function {call.name}; there are {', '.join(self.functions) or 'none'}")
            arguments = _arguments(call)
            entry["args"] = arguments
            verdict = examine(self.frame, place, self.rules, "tool", text_of(arguments), self.guarded)
            if verdict.reasons:
                raise ToolError("; ".join(verdict.reasons))
            bound = bind_arguments(call.name, function.method, (), arguments)
            retry, tool, method = self.call.agent.directives.retry, function.tool, function.method.name
            result, _ = await call_tool(
                self.frame, place, tool, method, bound, origins=origins, retry=retry, asker=self.guarded
            )
        except ToolError as error:
            entry["error"] = self.frame.run.redactor.text(error.message)
            return f"Error: {error.message}"
        entry["result"] = result
        return cut(text_of(result), self.settings.tool_result_chars)


class _Entry:
    """The line of this call in `meta.calls`, in the shape of spec 8.1 and 12.3."""

    def __init__(self, frame: Frame, call: AgentCall, model: str) -> None:
        self.last_attempt = 1
        self._cost: Decimal | None = Decimal(0)
        self._paid = False
        self._line: JsonObject = {
            "agent": call.agent.name,
            "method": call.method,
            "model": call.agent.model,
            "modelUsed": None if model == call.agent.model else model,
            "messages": [],
            "reply": None,
            "tokens": {"input": 0, "output": 0, "total": 0},
            "cost": 0.0,
            "attempts": 0,
            "corrections": 0,
            "tools": [],
            "durationMs": 0.0,
            "reused": False,
        }
        frame.strand.calls.append(self._line)

    @property
    def sent_before(self) -> bool:
        """Whether a request of this call has gone out."""
        return bool(self._line["messages"])

    def sent(self, messages: tuple[Message, ...]) -> None:
        self._line["messages"] = [message.to_json() for message in messages]

    def tried(self, attempt: int) -> None:
        self.last_attempt = attempt
        self._line["attempts"] += 1

    def not_tried(self) -> None:
        """A budget refused the try, so that it was not made."""
        self._line["attempts"] -= 1

    def reused(self, reply: ModelReply) -> None:
        """The reply was paid for by the run that this one continues."""
        self._line["modelUsed"] = reply.model_used or self._line["modelUsed"]
        self._line["reused"] = not self._paid

    def replied(self, reply: ModelReply, price: Decimal | None, duration: float) -> None:
        self._paid, self._line["reused"] = True, False
        tokens = _tokens(reply.usage)
        self._line["tokens"] = {name: count + tokens[name] for name, count in self._line["tokens"].items()}
        self._cost = None if self._cost is None or price is None else self._cost + price
        self._line["cost"] = None if self._cost is None else float(self._cost)
        self._line["durationMs"] += duration
        self._line["modelUsed"] = reply.model_used or self._line["modelUsed"]

    def corrected(self) -> None:
        self._line["corrections"] += 1

    def answered(self, text: str) -> None:
        self._line["reply"] = text

    def failed(self, error: HaloError) -> None:
        self._line["error"] = {"type": type(error).__name__, "message": error.message}

    def tool(self, call: ToolCall) -> JsonObject:
        """A line for one tool call, to be filled with its result or error."""
        line: JsonObject = {"name": call.name, "args": call.arguments}
        self._line["tools"].append(line)
        return line


def _tokens(usage: Usage) -> JsonObject:
    given, made = usage.input or 0, usage.output or 0
    return {"input": given, "output": made, "total": given + made}


def _arguments(call: ToolCall) -> JsonObject:
    try:
        arguments = parse_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"the arguments of {call.name} are no JSON: {error}") from None
    if not is_object(arguments):
        raise ToolError(f"the arguments of {call.name} must be a JSON object")
    return arguments

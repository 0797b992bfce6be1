"""The tool calls that a model chooses: checked, made side by side, answered in the order asked (spec 2.5).

Whatever is wrong with a call goes back to the model as an error and not to the user: an unknown function, arguments
that do not fit, a rule that forbids it, a tool that failed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final

from halo_lang.catalog.signature import Signature
from halo_lang.records import record
from halo_runtime.engine.approvals import APPROVE, is_approved
from halo_runtime.engine.booking import Turn
from halo_runtime.engine.calls.figures import Figures
from halo_runtime.engine.calls.offering import OfferedFunction
from halo_runtime.engine.calls.tool import bind_arguments, call_tool
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import Objection, examine, refuse, report
from halo_runtime.engine.pacing import with_latency
from halo_runtime.engine.parallel import all_of
from halo_runtime.errors import TimeoutExceeded, ToolError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import Message, ToolCall
from halo_runtime.policies.base import Decision, Examined, PolicyCall, ToolUse
from halo_runtime.prompts import cut
from halo_runtime.values import parse_json, text_of

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall

MAX_CALLS: Final = 64
"""Calls of one turn that are made; a model that asks for more at once is told to ask again."""

NO_OUTPUT: Final = "(no output)"
"""What a model sees of a result without any text: some services refuse an empty one, and models ask again for it."""


@record
class _Wanted:
    """A call that may be made: its place, what it is, and its line in the figures."""

    place: str
    function: OfferedFunction
    arguments: JsonObject
    line: JsonObject
    approvals: tuple[Objection, ...]
    """The rules that want a person to be asked first."""


class ChosenTools:
    """The functions that one agent call offers its model, and the doing of those that it chooses."""

    def __init__(self, frame: Frame, call: AgentCall, guarded: PolicyCall, figures: Figures, result_chars: int) -> None:
        self._frame = frame
        self._agent = call.agent
        self._guarded = guarded
        self._rules = frame.run.rules(call.agent)
        self._figures = figures
        self._result_chars = result_chars
        self._functions = {function.spec.name: function for function in call.functions}

    async def run(self, place: str, calls: Sequence[ToolCall], origins: Origins) -> tuple[Message, ...]:
        """The answers to the calls of one turn, each under `place`; `origins` is what their arguments came from."""

        def before_stop() -> Awaitable[None]:
            return self._frame.run.all_under(place)

        found = [await self._examined(f"{place}/call{number}", number, call) for number, call in enumerate(calls)]
        if any(isinstance(one, _Wanted) and one.approvals for one in found):
            found = await all_of((self._allowed(one, origins) for one in found), before_stop)
        wanted = [one for one in found if isinstance(one, _Wanted)]
        new = sum(not self._frame.run.effects.is_known(one.place) for one in wanted)
        async with Turn(self._frame, self._guarded, new) as turn:
            made = await all_of((self._made(one, origins, turn) for one in wanted), before_stop)
        answers = dict(zip((one.place for one in wanted), made, strict=True))
        messages = (one if isinstance(one, Message) else answers[one.place] for one in found)
        return tuple(
            Message("tool", told.content, tool_call_id=call.id, is_error=told.is_error)
            for call, told in zip(calls, messages, strict=True)
        )

    def not_made(self, calls: Sequence[ToolCall], reason: str) -> None:
        """Write down calls that nobody makes."""
        for call in calls:
            self._figures.tool(call)["error"] = reason

    async def _examined(self, place: str, number: int, call: ToolCall) -> _Wanted | Message:
        """The call where it may be made, else what its model is told."""
        line = self._figures.tool(call)
        try:
            if number >= MAX_CALLS:
                raise ToolError(f"only the first {MAX_CALLS} calls of a turn are made; ask for this one in the next")
            function = self._functions.get(call.name)
            if function is None:
                raise ToolError(f"there is no function {call.name}; there are {', '.join(self._functions) or 'none'}")
            arguments = _arguments(call, function.method.signature)
            use = ToolUse(function.tool, function.method.name, arguments)
            before = self._frame.run.tools_used.values()
            examined = Examined("tool", text_of(arguments), self._guarded, role="assistant", use=use, before=before)
            verdict = await examine(self._frame, place, self._rules, examined)
            line["args"] = _arguments_of(verdict.text)
            if verdict.answers:
                raise ToolError("; ".join(verdict.reasons))
            if verdict.reasons:
                line["error"] = "; ".join(verdict.reasons)
                raise refuse(verdict.reasons, self._guarded)
            arguments = _arguments_of(verdict.restored)
            bound = bind_arguments(call.name, function.method, (), arguments)
            refused = self._frame.run.tools.refuses(function.tool, function.method.name, bound)
            if refused is not None:
                raise ToolError(f"{function.tool}.{function.method.name}: {refused}")
            return _Wanted(place, function, bound, line, verdict.approvals)
        except ToolError as error:
            return self._failed(line, error)

    async def _allowed(self, found: _Wanted | Message, origins: Origins) -> _Wanted | Message:
        """The call if it needs nobody's approval or has it. The calls of a turn wait for each other's answers."""
        if isinstance(found, Message) or not found.approvals:
            return found
        use = ToolUse(found.function.tool, found.function.method.name, found.arguments)
        place = f"{found.place}{APPROVE}"
        reasons = [objection.reason for objection in found.approvals]
        if await is_approved(self._frame, place, self._guarded, use, reasons, origins):
            return found
        refused = Decision("block", f"a person refused the call of {use.tool}.{use.method}")
        for bound in (objection.bound for objection in found.approvals):
            report(self._frame, place, bound.policy, bound.text, "tool", refused, self._guarded)
        return self._failed(found.line, ToolError(refused.reason or ""))

    async def _made(self, wanted: _Wanted, origins: Origins, turn: Turn) -> Message:
        tool, method = wanted.function.tool, wanted.function.method.name
        try:
            result, _ = await call_tool(
                self._frame, wanted.place, tool, method, wanted.arguments, origins=origins,
                directives=with_latency(self._rules, self._agent.directives), asker=self._guarded, turn=turn,
            )  # fmt: skip
        except (ToolError, TimeoutExceeded) as error:
            return self._failed(wanted.line, error)
        wanted.line["result"] = result
        text = cut(text_of(result), self._result_chars)
        return Message("tool", text if text.strip() else NO_OUTPUT)

    def _failed(self, line: JsonObject, error: ToolError | TimeoutExceeded) -> Message:
        line["error"] = self._frame.run.redactor.text(error.message)
        return Message("tool", f"Error: {error.message}", is_error=True)


def _arguments(call: ToolCall, signature: Signature) -> JsonObject:
    """The arguments of a call. An optional one that is null is left out: so say models that must give them all."""
    try:
        arguments = parse_json(call.arguments if call.arguments.strip() else "{}")
    except ValueError as error:
        raise ToolError(f"the arguments of {call.name} are no JSON: {error}") from None
    if not is_object(arguments):
        raise ToolError(f"the arguments of {call.name} must be a JSON object")
    return {name: value for name, value in arguments.items() if not _is_left_out(name, value, signature)}


def _arguments_of(text: str) -> JsonObject:
    """Arguments after the rules, which may have replaced a part of them."""
    try:
        arguments = parse_json(text)
    except ValueError:
        raise ToolError("what a policy must take out of the arguments cannot be taken out; leave it out") from None
    assert is_object(arguments), "it was an object"
    return arguments


def _is_left_out(name: str, value: Json, signature: Signature) -> bool:
    known = signature.by_name.get(name)
    return value is None and known is not None and not known.required and known.type != "any"

"""What agent calls would send, shown without sending anything and without a key (spec 2.5).

The messages, settings and functions come of the same pure functions that the engine sends with; what a call needs and
is not there yet (results of earlier stages, answers) stays visible as its placeholder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from halo_lang.records import record
from halo_runtime.engine.calls.agent import AgentCall
from halo_runtime.engine.calls.history import remembered
from halo_runtime.engine.calls.matches import shown_matches
from halo_runtime.engine.calls.request import Settings, first_messages, model_request, parameters_of, settings_of
from halo_runtime.engine.calls.tool import bind_arguments
from halo_runtime.engine.calls.written import written_texts
from halo_runtime.engine.engine import Engine
from halo_runtime.engine.execution import Order
from halo_runtime.engine.foresight import Foresight, Unknown, agent_calls, mentions, names_of, placeholder
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import BoundRule, examine
from halo_runtime.engine.journal import Journal
from halo_runtime.engine.plan import Plan, StagePlan
from halo_runtime.errors import ConfigError, HaloError, Place, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import Forecasting, Message, ModelRequest
from halo_runtime.policies.base import Examined, JudgedRule, PolicyCall
from halo_runtime.prompts import ToolResult
from halo_runtime.results import error_to_json
from halo_runtime.values import text_of

_OWN_SETTINGS: Final = ("temperature", "top_p", "max_tokens", "max_steps", "tool_result_chars")


@record
class FoundCall:
    """An agent call of a program: the pipeline and the stage it stands in."""

    pipeline: str
    stage: StagePlan
    call: AgentCall
    names: frozenset[str]
    """What values of it may be given by (see foresight.py)."""


@record
class FirstToolCall:
    """What `tool:` would call before the request; `problem` says why it would fail."""

    tool: str
    method: str
    arguments: JsonObject
    problem: str | None


_LISTED: Final = "{} is asked for its functions when the agent is called, so they are left out here"


@record
class CallPreview:
    """One agent call as it would be sent; `request` is None where it could not be made, and `error` says why.

    `unknown` are the values that are not there yet and stand in it as placeholders. `policies` is what the input rules
    changed or refused, in the shape of `meta.violations` with a `reason`; a refused request is not sent. `warnings` are
    of the model's family and of the call itself.
    """

    pipeline: str
    place: Place
    agent: str
    method: str
    model: str
    request: ModelRequest | None
    settings: JsonObject
    json_asked: bool
    first_tool: FirstToolCall | None
    unknown: tuple[Unknown, ...]
    policies: tuple[JsonObject, ...]
    warnings: tuple[str, ...]
    error: HaloError | None

    @property
    def is_blocked(self) -> bool:
        """Whether a policy refuses the request."""
        return any(policy["action"] == "block" for policy in self.policies)

    def to_json(self) -> JsonObject:
        """The shape of docs/reference/json.md."""
        request = None if self.request is None else self.request.to_json()
        first = self.first_tool
        return {
            "agent": self.agent,
            "method": self.method,
            "pipeline": self.pipeline,
            "line": self.place.line,
            "column": self.place.column,
            "model": self.model,
            "messages": None if request is None else request["messages"],
            "settings": self.settings,
            "tools": [] if request is None else request.get("tools", []),
            "schema": None if self.request is None else self.request.json_schema,
            "jsonAsked": self.json_asked,
            "firstTool": None if first is None else {
                "tool": first.tool, "method": first.method, "args": first.arguments, "problem": first.problem,
            },
            "unknown": [{"placeholder": u.placeholder, "name": u.name, "source": u.source} for u in self.unknown],
            "policies": list(self.policies),
            "blocked": self.is_blocked,
            "warnings": list(self.warnings),
            "error": None if self.error is None else error_to_json(self.error),
        }  # fmt: skip


def find_calls(plan: Plan) -> Iterator[FoundCall]:
    """All agent calls of a program, in its order."""
    for node in plan.program.pipelines:
        pipeline = plan.pipeline(node.name.text)
        for stage, call in agent_calls(pipeline):
            tools = {library.label for library in call.libraries}
            if call.first_tool is not None:
                tools.add(f"{call.first_tool.tool}.{call.method}")
            yield FoundCall(pipeline.name, stage, call, frozenset(names_of(pipeline) | tools))


async def preview(engine: Engine, plan: Plan, found: FoundCall, given: Mapping[str, Json]) -> CallPreview:
    """One call with the values `given`, by its `names`. Raises ConfigError as a run would."""
    pipeline = plan.pipeline(found.pipeline)
    arguments = {name: given.get(name, placeholder(name)) for name in pipeline.parameters}
    order = Order(plan.program, found.pipeline, arguments, engine.new_run_id(), Journal(), rehearsal=True)
    frame = engine.prepare(plan, order).frame
    foresight = Foresight(frame, given)
    foresight.go_to(found.stage)
    return await _Preview(engine, frame, foresight, found.call).made()


class _Preview:
    """One preview being made."""

    def __init__(self, engine: Engine, frame: Frame, foresight: Foresight, call: AgentCall) -> None:
        self._engine = engine
        self._frame = frame
        self._scope = foresight
        self._call = call
        self._model = engine.services.model or call.agent.model
        self._notes: list[str] = []
        self._policies: list[JsonObject] = []

    async def made(self) -> CallPreview:
        call, frame = self._call, self._frame
        request: ModelRequest | None = None
        settings: JsonObject = {}
        first: FirstToolCall | None = None
        error: HaloError | None = None
        try:
            known = self._without_unknown_settings()
            values = settings_of(known, self._scope)
            settings = _shown(known, values)
            parameters = parameters_of(known, self._scope)
            self._notes += [_LISTED.format(tool) for tool in known.listed]
            first, result = self._first_tool(values, parameters)
            contexts = tuple(shown_matches(one, self._scope.matches_of(one.label)) for one in known.libraries)
            history = await self._history()
            messages = first_messages(known, self._scope, values, parameters, result, history, contexts)
            request = await self._guarded(model_request(known, self._model, values, messages))
        except HaloError as failure:
            failure.place = failure.place or call.place
            error = failure
        warnings = [*self._notes, *(line["message"] for line in frame.strand.warnings)]
        return CallPreview(
            pipeline=frame.plan.name,
            place=call.place,
            agent=call.agent.name,
            method=call.method,
            model=self._model,
            request=request,
            settings=settings,
            json_asked=call.json_asked,
            first_tool=first,
            unknown=self._unknown(request, first),
            policies=tuple(self._policies),
            warnings=(*warnings, *(() if request is None else self._forecast(request))),
            error=error,
        )

    def _without_unknown_settings(self) -> AgentCall:
        """The call without the settings whose values are not there yet: a placeholder is no number."""
        kept = dict(self._call.settings)
        for name, expression in self._call.settings.items():
            value = expression.evaluate(self._scope)
            if name != "system" and not self._scope.is_known(value):
                del kept[name]
                self._notes.append(f"{name} is not known yet ({value}), so it is left out here")
        return replace(self._call, settings=kept)

    def _first_tool(self, settings: Settings, parameters: JsonObject) -> tuple[FirstToolCall | None, ToolResult | None]:
        """The call of `tool:`, and its result: one that is given by its name, else a placeholder."""
        call = self._call
        if call.first_tool is None:
            return None, None
        tool, problem, arguments = call.first_tool.tool, None, parameters
        label = f"{tool}.{call.method}"
        try:
            if self._scope.is_known(list(parameters.values())):
                arguments = bind_arguments(label, call.first_tool.method, (), parameters)
        except HaloError as error:
            problem = error.message
        result = self._scope.result_of(label)
        limit = settings.tool_result_chars if self._scope.is_known(result) else len(text_of(result))
        return FirstToolCall(tool, call.method, arguments, problem), ToolResult(label, result, limit)

    async def _history(self) -> tuple[Message, ...]:
        """The turns of equipped conversations as they are now, only read; a note where they cannot be."""
        found: tuple[Message, ...] = ()
        tools = self._frame.run.tools
        try:
            for history in self._call.histories:
                limit: JsonObject = {} if history.max_turns is None else {"limit": history.max_turns}
                tools.prepare(frozenset((history.store,)))  # what is wrong with it is said by the call
                try:
                    found += remembered((await tools.call(history.store, "read", limit))["value"], history)
                except ToolError as error:
                    self._notes.append(f"what {history.store} remembers is not shown: {error.message}")
        finally:
            await tools.close()
        return found

    async def _guarded(self, request: ModelRequest) -> ModelRequest:
        """The request as the input rules leave it."""
        call = self._call
        guarded = PolicyCall(call.agent.name, call.method, self._model, written_texts(call))
        rules = self._rules_without_models()
        messages = list(request.messages)
        told = self._frame.strand.violations
        for number, message in enumerate(messages):
            before = len(told)
            examined = Examined("input", message.content, guarded, role=message.role)
            verdict = await examine(self._frame, self._frame.path, rules, examined)
            found: list[JsonObject] = [{**line, "message": number, "reason": None} for line in told[before:]]
            blocks = (line for line in found if line["action"] == "block")
            for line, reason in zip(blocks, verdict.reasons, strict=True):
                line["reason"] = reason
            self._policies += found
            messages[number] = replace(message, content=verdict.text)
        return replace(request, messages=tuple(messages))

    def _rules_without_models(self) -> list[BoundRule]:
        """The agent's rules but those that ask a model: nothing is sent here."""
        rules: list[BoundRule] = []
        for bound in self._frame.run.rules(self._call.agent):
            if not isinstance(bound.rule, JudgedRule):
                rules.append(bound)
            elif "input" in bound.rule.points:
                self._notes.append(f"policy {bound.policy}, rule {bound.text} asks a model, so it is not applied here")
        return rules

    def _forecast(self, request: ModelRequest) -> Sequence[str]:
        """What the model's family leaves out of a request."""
        try:
            provider = self._engine.services.provider(self._model)
            return provider.forecast(request) if isinstance(provider, Forecasting) else ()
        except ConfigError as error:
            return (error.message,)
        except HaloError as error:
            return (f"the service would refuse this: {error.message}",)

    def _unknown(self, request: ModelRequest | None, first: FirstToolCall | None) -> tuple[Unknown, ...]:
        """The values that are not there yet, of those that the call shows."""
        texts: list[Json] = [] if request is None else [message.content for message in request.messages]
        shown = texts + ([] if first is None else [first.arguments])
        return tuple(found for text, found in self._scope.unknown.items() if mentions(shown, text))


def _shown(call: AgentCall, settings: Settings) -> JsonObject:
    """The settings that say something: those of tools only where there are tools."""
    chosen = bool(call.functions or call.listed)
    of_tools = {"max_steps": chosen, "tool_result_chars": chosen or call.first_tool is not None}
    values = {name: getattr(settings, name) for name in _OWN_SETTINGS if of_tools.get(name, True)}
    return {name: value for name, value in values.items() if value is not None}

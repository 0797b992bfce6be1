"""Agent calls: policies before, request, tool steps, policies after, result (spec 2.5).

`AgentCall` is what the program says; `Conversation` is one call in progress.
"""

from __future__ import annotations

from collections.abc import Mapping

from halo_lang.catalog.signature import Method
from halo_lang.records import record
from halo_runtime.engine.calls.base import NamespaceWrite, Outcome
from halo_runtime.engine.calls.conversation import Conversation, Settings
from halo_runtime.engine.calls.tool import bind_arguments, call_tool, written_arguments
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.expressions import Expression, Segments
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import AgentPlan
from halo_runtime.errors import RunError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ToolSpec
from halo_runtime.policies.base import PolicyCall
from halo_runtime.prompts import DEFAULT_TOOL_RESULT_CHARS, PromptCall, ToolResult, build_prompt
from halo_runtime.replies import parse_reply
from halo_runtime.values import text_of

DEFAULT_MAX_STEPS = 8


@record
class FirstTool:
    """`tool: T`: the equipped tool that runs before the prompt."""

    tool: str
    method: Method | None


@record
class OfferedFunction:
    """A tool method that the agent may call by itself, as the function it is offered as."""

    tool: str
    method: Method
    spec: ToolSpec


@record
class AgentCall:
    """`Agent.method(…)`. `schema` is what the reply must be, where this call makes a pipeline's output.

    `paths` are all places that its strings and values read; `had_placeholders` whether an instruction has any.
    """

    label: str
    agent: AgentPlan
    method: str
    instructions: tuple[Expression, ...]
    inputs: tuple[Expression, ...]
    parameters: Mapping[str, Expression]
    settings: Mapping[str, Expression]
    first_tool: FirstTool | None
    functions: tuple[OfferedFunction, ...]
    json_asked: bool
    had_placeholders: bool
    schema: JsonObject | None
    paths: tuple[Segments, ...]

    async def invoke(self, frame: Frame, path: str) -> Outcome:
        origins = frame.origins_of_all(self.paths)
        if not self.inputs and not self.had_placeholders:
            origins |= frame.current_origins
        parameters = {name: expression.evaluate(frame) for name, expression in self.parameters.items()}
        settings = self._settings(frame)
        result, writes = await self._run_first_tool(frame, path, parameters, settings, origins)
        if writes:
            origins |= writes[0].origins
        messages = build_prompt(
            PromptCall(
                method=self.method,
                flowing=frame.current,
                system=settings.system,
                instructions=tuple(text_of(expression.evaluate(frame)) for expression in self.instructions),
                had_placeholders=self.had_placeholders,
                parameters=parameters,
                inputs=tuple(expression.evaluate(frame) for expression in self.inputs),
                tool_result=result,
            )
        )
        conversation = Conversation(frame, path, self, settings, messages, origins)
        reply = parse_reply(await conversation.hold(), self.json_asked)
        if reply.warning is not None:
            frame.run.warn(frame, f"{self.label}: {reply.warning}")
        return Outcome(reply.value, conversation.origins, writes)

    async def _run_first_tool(
        self, frame: Frame, path: str, parameters: JsonObject, settings: Settings, origins: Origins
    ) -> tuple[ToolResult | None, tuple[NamespaceWrite, ...]]:
        if self.first_tool is None:
            return None, ()
        tool, label = self.first_tool.tool, f"{self.first_tool.tool}.{self.method}"
        arguments = bind_arguments(label, self.first_tool.method, (), parameters)
        arguments |= written_arguments(frame, self.first_tool.method, (), self.parameters)
        value, place = await call_tool(
            frame, f"{path}/tool", tool, self.method, arguments, origins=origins, retry=self.agent.directives.retry,
            asker=PolicyCall(self.agent.name, self.method, frame.run.model or self.agent.model),
        )  # fmt: skip
        write = NamespaceWrite(tool, self.method, value, frozenset((place,)))
        return ToolResult(label, value, settings.tool_result_chars), (write,)

    def _settings(self, frame: Frame) -> Settings:
        values = {name: expression.evaluate(frame) for name, expression in self.settings.items()}
        system = values.get("system")
        if system is None and self.agent.system is not None:
            system = self.agent.system.evaluate(frame)
        return Settings(
            system=None if system is None else text_of(system),
            temperature=_number(self.label, "temperature", values),
            top_p=_number(self.label, "top_p", values),
            max_tokens=_whole(self.label, "max_tokens", values),
            max_steps=_whole(self.label, "max_steps", values) or DEFAULT_MAX_STEPS,
            tool_result_chars=_whole(self.label, "tool_result_chars", values) or DEFAULT_TOOL_RESULT_CHARS,
        )


def _number(label: str, name: str, values: Mapping[str, Json]) -> float | None:
    value = values.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise RunError(f"{label}: {name} must be a number, not {text_of(value)}")
    return value


def _whole(label: str, name: str, values: Mapping[str, Json]) -> int | None:
    value = _number(label, name, values)
    if value is not None and (value < 1 or value != int(value)):
        raise RunError(f"{label}: {name} must be a whole number of at least 1, not {text_of(value)}")
    return None if value is None else int(value)

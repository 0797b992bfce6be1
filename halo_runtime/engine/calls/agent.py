"""Agent calls: policies before, request, tool steps, policies after, result (spec 2.5).

`AgentCall` is what the program says; `Conversation` is one call in progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halo_lang.catalog.signature import Method
from halo_lang.records import record
from halo_runtime.engine.calls.base import NamespaceWrite, Outcome
from halo_runtime.engine.calls.conversation import Conversation
from halo_runtime.engine.calls.history import History, keep, recall
from halo_runtime.engine.calls.matches import Library, find_matches
from halo_runtime.engine.calls.offering import OfferedFunction, listed_functions
from halo_runtime.engine.calls.request import Settings, first_messages, parameters_of, settings_of
from halo_runtime.engine.calls.tool import bind_arguments, call_tool, written_arguments
from halo_runtime.engine.calls.written import written_texts
from halo_runtime.engine.effects import NO_ORIGINS, Origins, ending_of
from halo_runtime.engine.events import AgentFinished, AgentStarted
from halo_runtime.engine.expressions import Expression, Segments
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import AgentPlan
from halo_runtime.errors import HaloError, Place
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import PolicyCall
from halo_runtime.prompts import StoreMatches, ToolResult
from halo_runtime.replies import parse_reply
from halo_runtime.results import error_to_json


@record
class FirstTool:
    """`tool: T`: the equipped tool that runs before the prompt."""

    tool: str
    method: Method | None


@record
class AgentCall:
    """`Agent.method(…)`. `schema` is what the reply must be, where this call makes a pipeline's output.

    `functions` are those that the catalogue has; `listed` are offered tools whose methods only their server knows.
    `paths` are all places that its strings and values read; `had_placeholders` whether an instruction has any.
    """

    label: str
    place: Place
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
    histories: tuple[History, ...] = ()
    libraries: tuple[Library, ...] = ()
    listed: tuple[str, ...] = ()

    async def invoke(self, frame: Frame, path: str) -> Outcome:
        """Do the call, and tell of its beginning and its end."""
        run = frame.run
        if not run.emitter.active:
            return await self._invoke(frame, path)
        name = self.agent.name
        run.emitter.emit(AgentStarted(run.run_id, path, name, self.method, run.model or self.agent.model))
        try:
            outcome = await self._invoke(frame, path)
        except BaseException as problem:
            error = run.redactor.json(error_to_json(problem)) if isinstance(problem, HaloError) else None
            run.emitter.emit(AgentFinished(run.run_id, path, name, self.method, ending_of(problem), error))
            raise
        run.emitter.emit(AgentFinished(run.run_id, path, name, self.method, "completed", None))
        return outcome

    async def _invoke(self, frame: Frame, path: str) -> Outcome:
        origins = frame.origins_of_all(self.paths)
        if not self.inputs and not self.had_placeholders:
            origins |= frame.current_origins
        parameters = parameters_of(self, frame)
        settings = settings_of(self, frame)
        result, writes = await self._run_first_tool(frame, path, parameters, settings, origins)
        if writes:
            origins |= writes[0].origins
        contexts, found = await self._find_matches(frame, path, origins)
        history, recalled = await recall(frame, path, self.histories, frame.run.rules(self.agent))
        call = self
        if self.listed:
            functions, said = await listed_functions(frame, path, self)
            call, origins = replace(self, functions=(*self.functions, *functions)), origins | said
        messages = first_messages(self, frame, settings, parameters, result, history, contexts)
        conversation = Conversation(frame, path, call, settings, messages, origins | found | recalled)
        text = await conversation.hold()
        said = conversation.messages[len(messages) - 1].content
        await keep(frame, path, self.histories, said, conversation.accepted, conversation.origins)
        reply = parse_reply(text, self.json_asked)
        if reply.warning is not None:
            frame.run.warn(frame, f"{self.label}: {reply.warning}")
        return Outcome(reply.value, conversation.origins, writes)

    async def _find_matches(
        self, frame: Frame, path: str, origins: Origins
    ) -> tuple[tuple[StoreMatches, ...], Origins]:
        """What the equipped vector stores add to the prompt."""
        if not self.libraries:
            return (), NO_ORIGINS
        model = frame.run.model or self.agent.model
        guarded = PolicyCall(self.agent.name, self.method, model, written_texts(self))
        return await find_matches(frame, path, self, guarded, origins)

    async def _run_first_tool(
        self, frame: Frame, path: str, parameters: JsonObject, settings: Settings, origins: Origins
    ) -> tuple[ToolResult | None, tuple[NamespaceWrite, ...]]:
        if self.first_tool is None:
            return None, ()
        tool, label = self.first_tool.tool, f"{self.first_tool.tool}.{self.method}"
        arguments = bind_arguments(label, self.first_tool.method, (), parameters)
        arguments |= written_arguments(frame, self.first_tool.method, (), self.parameters)
        value, place = await call_tool(
            frame, f"{path}/tool", tool, self.method, arguments, origins=origins, directives=self.agent.directives,
            asker=PolicyCall(self.agent.name, self.method, frame.run.model or self.agent.model),
        )  # fmt: skip
        write = NamespaceWrite(tool, self.method, value, frozenset((place,)))
        return ToolResult(label, value, settings.tool_result_chars), (write,)

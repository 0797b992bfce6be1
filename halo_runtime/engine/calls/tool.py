"""Tool calls, whoever asks for them: a stage, an agent's `tool:`, a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from halo_lang.catalog.signature import Method
from halo_runtime.engine.attempts import with_retries
from halo_runtime.engine.calls.base import Outcome
from halo_runtime.engine.effects import NO_ORIGINS, Origins
from halo_runtime.engine.events import ToolRequested, ToolResponded
from halo_runtime.engine.expressions import Expression
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import error_to_json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`Tool.method(arguments)` as a stage. `method` is the catalogue's entry, None where the provider has none."""

    label: str
    tool: str
    name: str
    method: Method | None
    positional: Sequence[Expression]
    named: Mapping[str, Expression]

    async def invoke(self, frame: Frame, path: str) -> Outcome:
        positional = [expression.evaluate(frame) for expression in self.positional]
        named = {name: expression.evaluate(frame) for name, expression in self.named.items()}
        expressions = [*self.positional, *self.named.values()]
        origins = NO_ORIGINS.union(*(frame.origins_of_all(expression.paths) for expression in expressions))
        arguments = bind_arguments(self.label, self.method, positional, named)
        place = f"{path}/tool"
        result = await call_tool(frame, place, self.tool, self.name, arguments, origins=origins)
        return Outcome(result, frozenset((place,)))


def bind_arguments(
    label: str, method: Method | None, positional: Sequence[Json], named: Mapping[str, Json]
) -> JsonObject:
    """Arguments by parameter name, checked against the catalogue. Raises ToolError before anything is done."""
    if method is None:
        if positional:
            raise ToolError(f"{label}: this provider has no catalogue entry, so its arguments need names")
        return dict(named)
    bound = method.signature.bind(positional, named)
    flaws = [f"{problem.kind} argument {problem.name}".rstrip() for problem in bound.problems] + bound.wrong_values()
    if flaws:
        raise ToolError(f"{label}{method.signature}: {'; '.join(flaws)}")
    return bound.values()


async def call_tool(
    frame: Frame, path: str, tool: str, method: str, arguments: JsonObject, *, origins: Origins
) -> Json:
    """Call a tool with retries, recorded under `path`. Raises ToolError."""
    run = frame.run
    request: JsonObject = {"tool": tool, "method": method, "args": arguments}

    async def once(attempt: int) -> Json:
        place = path if attempt == 1 else f"{path}/try{attempt}"
        if run.emitter.active:
            run.emitter.emit(ToolRequested(run.run_id, place, tool, method, run.redactor.json(arguments)))
        error: ToolError | None = None
        result: Json = None
        try:
            result = await run.effects.perform(
                place, "tool", request, lambda: run.tools.call(tool, method, arguments),
                origins=origins, guards=frame.guards,
            )  # fmt: skip
        except ToolError as failure:
            error = failure
            raise
        finally:
            if run.emitter.active:
                shown = None if error is None else run.redactor.json(error_to_json(error))
                run.emitter.emit(ToolResponded(run.run_id, place, tool, method, run.redactor.json(result), shown))
        return result

    result, _ = await with_retries(frame, path, frame.directives.retry, once)
    return result

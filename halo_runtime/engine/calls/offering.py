"""The functions of tools whose methods are not in the catalogue: their server is asked, when an agent is called.

What a server says of its methods is an effect of the run like any other, so that a run that goes on offers its model
the same as before. It is a stranger's text that goes to a model, so the rules for results look at it; a method whose
words they refuse is not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from halo_lang.catalog.signature import Method, Signature
from halo_lang.records import record
from halo_runtime.engine.effects import NO_ORIGINS, Origins
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.guards import examine
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import ToolSpec
from halo_runtime.policies.base import Examined, PolicyCall
from halo_runtime.values import compact, parse_json

if TYPE_CHECKING:
    from halo_runtime.engine.calls.agent import AgentCall

_OPEN = Signature(open_named=True)


@record
class OfferedFunction:
    """A tool method that the agent may call by itself, as the function it is offered as."""

    tool: str
    method: Method
    spec: ToolSpec


def distinct_name(tool: str, method: str, taken: Sequence[str]) -> str:
    """What a method is called as a function: `A_b.c`; with `_` behind it where `A.b_c` has that name already."""
    name = f"{tool}_{method}"
    while name in taken:
        name += "_"
    return name


async def listed_functions(frame: Frame, path: str, call: AgentCall) -> tuple[tuple[OfferedFunction, ...], Origins]:
    """The functions of `call.listed`, and the effects that they came from. Raises ToolError."""
    functions: list[OfferedFunction] = []
    origins: Origins = NO_ORIGINS
    for tool in call.listed:
        place = f"{path}/methods/{tool}"
        for number, told in enumerate(await _methods(frame, place, tool)):
            taken = [function.spec.name for function in (*call.functions, *functions)]
            function = await _function(frame, f"{place}/{number}", call, tool, told, taken)
            functions += [] if function is None else [function]
        origins |= {place}
    return tuple(functions), origins


async def _methods(frame: Frame, place: str, tool: str) -> Sequence[JsonObject]:
    run = frame.run
    request: JsonObject = {"tool": tool, "method": "(methods)", "args": {}}

    async def do() -> Json:
        return await run.exchange(place, "tool", lambda: request, lambda: run.tools.methods(tool))

    try:
        document = await run.effects.perform(place, "tool", request, do, guards=frame.guards)
    finally:
        run.heard(place, "tool", lambda: request)
    return document["value"]


async def _function(
    frame: Frame, place: str, call: AgentCall, tool: str, told: JsonObject, taken: Sequence[str]
) -> OfferedFunction | None:
    """A method as a function, None where the agent's rules refuse what its server says of it."""
    rules = frame.run.rules(call.agent)
    guarded = PolicyCall(call.agent.name, call.method, frame.run.model or call.agent.model)
    passed: list[str] = []
    for part, text in enumerate((told["name"], told["doc"], compact(told["schema"]))):
        examined = Examined("result", text, guarded, role="tool")
        verdict = await examine(frame, place, rules, examined, outside=True, judged_at=f"{place}.{part}")
        refusals = verdict.reasons or (() if part or verdict.text == text else ("its name holds what is taken out",))
        if refusals:
            frame.run.warn(frame, f"{tool}.{told['name']} is not offered to {call.agent.name}: {'; '.join(refusals)}")
            return None
        passed.append(verdict.text)
    name, doc, schema = passed
    method = Method(name, _OPEN, "", told["effect"], idempotent=False, doc=doc)
    return OfferedFunction(tool, method, ToolSpec(distinct_name(tool, name, taken), doc, parse_json(schema)))

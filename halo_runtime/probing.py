"""Whether the tools and models of a program could work here, found out without doing harm (`halo doctor`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from halo_lang import Program, catalog, nodes
from halo_lang.catalog.specs import ProviderSpec
from halo_lang.records import record
from halo_runtime.engine.execution import Services
from halo_runtime.engine.toolbox import ToolBox
from halo_runtime.errors import HaloError
from halo_runtime.json_types import JsonObject
from halo_runtime.tools.base import OfferedMethod
from halo_runtime.tools.described import described


@record
class Probe:
    """A part of a program and what came of trying it.

    `part` is its declaration as written: `tool Repo : GitHub`, `agent Bot [openai/gpt-4o]`. `found` says what is there,
    `problem` what is wrong; of a part that cannot be tried without being used neither does.
    """

    part: str
    found: str | None = None
    problem: str | None = None

    def to_json(self) -> JsonObject:
        """As `halo doctor --json` has it."""
        return {"part": self.part, "ok": self.problem is None, "found": self.found, "problem": self.problem}


def probe_models(program: Program, services: Services) -> list[Probe]:
    """Whether each agent's model has what it needs; nothing is sent."""
    return [_model(agent, services) for agent in program.declarations if isinstance(agent, nodes.Agent)]


async def probe_tools(program: Program, services: Services, seconds: float) -> list[Probe]:
    """Try the settings of every declared tool, side by side, each for so long at most."""
    return await asyncio.gather(*(_tool(program, node, services, seconds) for node in _tools(program)))


async def listed_methods(
    program: Program, services: Services, seconds: float
) -> tuple[dict[str, ProviderSpec], list[Probe]]:
    """What the servers of tools say of their methods, by the tool's name, and those that could not be asked."""
    nodes_ = [node for node in _tools(program) if (spec := catalog.provider(node.provider.text)) and spec.listed]
    asked = await asyncio.gather(*(_listed(program, node, services, seconds) for node in nodes_))
    specs = {node.name.text: told for node, told in zip(nodes_, asked, strict=True) if isinstance(told, ProviderSpec)}
    return specs, [told for told in asked if isinstance(told, Probe)]


async def _listed(
    program: Program, node: nodes.Provider, services: Services, seconds: float
) -> ProviderSpec | Probe:  # fmt: skip
    told: list[ProviderSpec] = []

    async def ask(tools: ToolBox, name: str) -> str:
        document = await tools.methods(name)
        spec = catalog.provider(node.provider.text)
        assert spec is not None, "it is listed there"
        told.append(described(spec, [OfferedMethod(**method) for method in document["value"]]))
        return f"{len(document['value'])} methods"

    probe = await _tried(program, node, services, seconds, ask)
    return told[0] if told else probe


def _tools(program: Program) -> Iterator[nodes.Provider]:
    return (node for node in program.declarations if isinstance(node, nodes.Provider))


async def _tool(program: Program, node: nodes.Provider, services: Services, seconds: float) -> Probe:
    return await _tried(program, node, services, seconds, lambda tools, name: tools.probe(name))


async def _tried(
    program: Program,
    node: nodes.Provider,
    services: Services,
    seconds: float,
    ask: Callable[[ToolBox, str], Awaitable[str | None]],
) -> Probe:
    """What `ask` finds of a tool that is opened for it alone."""
    name = node.name.text
    part = f"{node.kind} {name} : {node.provider.text}"
    tools = ToolBox(program, services.env, services.tool_factories, services.redactor, services.models)
    problems = tools.prepare(frozenset({name}))
    if problems:
        return Probe(part, problem=problems[0].removeprefix(f"{node.kind} {name}: "))
    try:
        async with asyncio.timeout(seconds):
            return Probe(part, found=await ask(tools, name))
    except HaloError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return Probe(part, problem=services.redactor.text(f"{error.message}{hint}"))
    except TimeoutError:
        return Probe(part, problem=f"did not answer within {seconds:g} s")
    finally:
        await tools.close()


def _model(agent: nodes.Agent, services: Services) -> Probe:
    model = agent.model.text
    part = f"agent {agent.name.text} [{model}]"
    try:
        problem = services.models.provider(model).missing()
    except HaloError as error:
        problem = error.message
    return Probe(part, found=None if problem else "what it needs is there", problem=problem)

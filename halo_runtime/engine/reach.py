"""What a pipeline may use: the agents, tools and policies that can be reached from it (spec 12.5)."""

from __future__ import annotations

from collections.abc import Iterator

from halo_lang import Program, nodes
from halo_lang.records import record
from halo_runtime.engine.plan import shadows


@record
class Reach:
    """Names of declarations."""

    agents: frozenset[str]
    tools: frozenset[str]
    policies: frozenset[str]


def reach(program: Program, pipeline: str) -> Reach:
    """Everything reachable from a pipeline, through nested pipelines too."""
    agents: set[str] = set()
    tools: set[str] = set()
    seen: set[str] = set()
    pending = [pipeline]
    while pending:
        name = pending.pop()
        declaration = program.find(name)
        if name in seen or not isinstance(declaration, nodes.Pipeline):
            continue
        seen.add(name)
        for call in _calls(declaration):
            target = program.find(call.callee.text)
            if isinstance(target, nodes.Pipeline):
                pending.append(target.name.text)
            elif isinstance(target, nodes.Provider):
                tools.add(target.name.text)
            elif isinstance(target, nodes.Agent):
                agents.add(target.name.text)
                tools.update(_tools_used(program, target, call))
    found = [program.find(name) for name in agents | _shadows_of(program, agents)]
    policies = {name.text for a in found if isinstance(a, nodes.Agent) for name in a.names("requires")}
    return Reach(frozenset(agents), frozenset(tools), frozenset(policies))


def _shadows_of(program: Program, agents: set[str]) -> set[str]:
    """The shadows of agents: their policies hold too. What only a shadow lacks, a key say, does not stop the run."""
    targets = set(agents)
    for name in agents:
        agent = program.find(name)
        if isinstance(agent, nodes.Agent):
            targets.add(agent.model.text)
    return {name for target, name in shadows(program) if target in targets}


def _calls(pipeline: nodes.Pipeline) -> Iterator[nodes.Call]:
    for stage in pipeline.stages:
        match stage:
            case nodes.PipeStage(call=call) | nodes.EachStage(call=call):
                yield call
            case nodes.GateStage(call=call) if call is not None:
                yield call
            case nodes.BranchStage(arms=arms):
                yield from (arm.call for arm in arms)
            case nodes.FanOutStage(items=items):
                yield from (item.call for item in items)
            case _:
                pass


def _tools_used(program: Program, agent: nodes.Agent, call: nodes.Call) -> Iterator[str]:
    """The tools that a call of an agent names, and the equipped stores that add to its prompt by themselves."""
    for argument in (*agent.config, *call.args):
        if argument.name is not None and argument.name.text in ("tool", "tools"):
            yield from _named(argument.value, agent)
    for name in agent.names("equips"):
        declaration = program.find(name.text)
        if isinstance(declaration, nodes.Provider) and declaration.provider.text in ("VectorStore", "File"):
            yield name.text


def _named(value: nodes.ArgumentValue, agent: nodes.Agent) -> Iterator[str]:
    if isinstance(value, nodes.ListValue):
        for item in value.items:
            yield from _named(item, agent)
    elif isinstance(value, nodes.Path) and value.root == "auto":
        yield from (name.text for name in agent.names("equips"))
    elif isinstance(value, nodes.Path) and value.root != "none":
        yield value.root

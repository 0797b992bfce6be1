"""What a pipeline may use: the agents, tools and policies that can be reached from it (spec 12.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from halo_lang import Program, catalog, nodes
from halo_lang.records import record
from halo_runtime.engine.labels import call_label
from halo_runtime.engine.plan import PipelinePlan, Plan, StagePlan, shadows
from halo_runtime.engine.stages.loop import Loop

_BLOCKS = ("fanout", "each")


@record
class Reach:
    """Names of declarations."""

    agents: frozenset[str]
    tools: frozenset[str]
    policies: frozenset[str]


def reach(plan: Plan, pipeline: str) -> Reach:
    """Everything reachable from a pipeline, through nested pipelines too; worked out once a program."""
    found = plan.reached.get(pipeline)
    if found is None:
        node = plan.declaration(pipeline, nodes.Pipeline)
        found = reach_of(plan.program, calls_in(node))
        found = replace(found, tools=found.tools | _told_by(plan.program, node))
        plan.reached[pipeline] = found
    return found


def reach_of(program: Program, calls: Iterable[nodes.Call]) -> Reach:
    """Everything that calls lead to."""
    agents: set[str] = set()
    tools: set[str] = set()
    pipelines: set[str] = set()
    pending = list(calls)
    while pending:
        call = pending.pop()
        target = program.find(call.callee.text)
        if isinstance(target, nodes.Pipeline) and target.name.text not in pipelines:
            pipelines.add(target.name.text)
            pending += calls_in(target)
            tools.update(_told_by(program, target))
        elif isinstance(target, nodes.Provider):
            tools.add(target.name.text)
        elif isinstance(target, nodes.Agent):
            agents.add(target.name.text)
            tools.update(_tools_used(program, target, call))
    found = [program.find(name) for name in agents | _shadows_of(program, agents)]
    policies = {name.text for a in found if isinstance(a, nodes.Agent) for name in a.names("requires")}
    return Reach(frozenset(agents), frozenset(tools), frozenset(policies))


def _told_by(program: Program, pipeline: nodes.Pipeline) -> frozenset[str]:
    """The tools that people are told of a pipeline's questions by: those that a `channel:` names and that can."""
    asked = (stage for stage in pipeline.stages if isinstance(stage, nodes.YieldStage))
    channels = (a.value for stage in asked for a in stage.args if a.name is not None and a.name.text == "channel")
    return frozenset(name for value in channels if (name := _name_in(value)) and _notifies(program, name))


def _name_in(value: nodes.ArgumentValue) -> str:
    if isinstance(value, nodes.Path):
        return value.root if len(value.parts) == 1 else ""
    return value.value if isinstance(value, nodes.String) else ""


def _notifies(program: Program, name: str) -> bool:
    declaration = program.find(name)
    spec = catalog.provider(declaration.provider.text) if isinstance(declaration, nodes.Provider) else None
    return spec is not None and spec.notifies


def calls_in(node: Any) -> Iterator[nodes.Call]:
    """Every call in a syntax tree."""
    if isinstance(node, nodes.PipeStage):
        yield node.call  # most of what a program holds
    elif isinstance(node, nodes.Call):
        yield node
    elif isinstance(node, tuple):
        for item in node:  # pyright: ignore[reportUnknownVariableType] - tuples of nodes
            yield from calls_in(item)
    else:
        for name in fields_of(node):
            yield from calls_in(getattr(node, name))


def fields_of(node: Any) -> tuple[str, ...]:
    """The names of a syntax node's parts; none for what is no node."""
    return getattr(node.__class__, "__match_args__", ())


def unfinished_calls(pipeline: PipelinePlan, stopped_at: StagePlan) -> Iterator[nodes.Call]:
    """The calls that a pipeline has still to do that stopped at a stage.

    Those inside the stage are told apart elsewhere: items of a block, stages of a nested pipeline.
    """
    index = stopped_at.info.index
    if stopped_at.info.kind not in _BLOCKS:
        yield from (call for call in calls_in(stopped_at.info.nodes) if call.method is not None)
    backwards = [stage.target for stage in pipeline.stages[index:] if isinstance(stage, Loop)]
    for stage in pipeline.stages[min([index + 1, *backwards]) :]:
        yield from calls_in(stage.info.nodes)


def calls_of_item(block: StagePlan, label: str) -> Iterator[nodes.Call]:
    """The calls in a block that are written like this, pipelines apart."""
    return (call for call in calls_in(block.info.nodes) if call.method is not None and call_label(call) == label)


def _shadows_of(program: Program, agents: set[str]) -> set[str]:
    """The shadows of agents: their policies hold too. What only a shadow lacks, a key say, does not stop the run."""
    targets = set(agents)
    for name in agents:
        agent = program.find(name)
        if isinstance(agent, nodes.Agent):
            targets.add(agent.model.text)
    return {name for target, name in shadows(program) if target in targets}


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

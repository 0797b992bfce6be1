"""From the syntax tree of a checked pipeline to its executors.

A stage kind is one entry in `_COMPILERS`; a callee kind one in `_CALLS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from halo_lang import catalog, nodes, parse_condition
from halo_lang.catalog.signature import Method
from halo_lang.collector import without_collector
from halo_lang.diagnostics import Diagnostic
from halo_lang.source import Span
from halo_runtime.conditions import CompiledCondition, compile_condition
from halo_runtime.engine.calls.agent import AgentCall, FirstTool
from halo_runtime.engine.calls.base import Call, Storage
from halo_runtime.engine.calls.history import histories
from halo_runtime.engine.calls.matches import libraries
from halo_runtime.engine.calls.offering import OfferedFunction, distinct_name
from halo_runtime.engine.calls.pipeline import PipelineCall
from halo_runtime.engine.calls.system import METHODS, SystemCall
from halo_runtime.engine.calls.tool import ToolCall
from halo_runtime.engine.choices import choices_after
from halo_runtime.engine.directives import read_directives
from halo_runtime.engine.expressions import Expression, Filled, Flowing, Read, all_paths
from halo_runtime.engine.labels import call_label, condition_label
from halo_runtime.engine.plan import PipelinePlan, Plan, StageInfo, StagePlan, canonical_settings
from halo_runtime.engine.stages.ask import Ask, Listen
from halo_runtime.engine.stages.branch import Branch, CompiledArm
from halo_runtime.engine.stages.each import Each
from halo_runtime.engine.stages.fanout import CompiledItem, FanOut
from halo_runtime.engine.stages.gate import Gate
from halo_runtime.engine.stages.loop import Loop
from halo_runtime.engine.stages.pipe import Pipe
from halo_runtime.models.base import ToolSpec
from halo_runtime.replies import asks_for_json


def compile_pipeline(plan: Plan, node: nodes.Pipeline) -> PipelinePlan:
    """Compile a pipeline of a program without errors."""
    with without_collector():
        return PipelineCompiler(plan, node).compile()


class PipelineCompiler:
    """One pipeline being compiled. `targets` remembers the latest stage that calls each agent, for loops."""

    def __init__(self, plan: Plan, node: nodes.Pipeline) -> None:
        self.plan = plan
        self.node = node
        self.hidden = plan.declared | {parameter.name.text for parameter in node.params}
        self.output = plan.schemas.result_type(node.returns)
        self.stages: list[StagePlan] = []
        self.targets: dict[str, int] = {}

    def compile(self) -> PipelinePlan:
        for stage in self.node.stages:
            _COMPILERS[type(stage)](self, stage)
        return PipelinePlan(
            name=self.node.name.text,
            place=self.plan.place(self.node, self.node.name.span, self.node.name.text),
            parameters=tuple(parameter.name.text for parameter in self.node.params),
            start=None if self.node.start is None else self.plan.value(self.node.start),
            stages=tuple(self.stages),
            directives=read_directives(self.node.directives),
            output=self.output,
        )

    def info(self, kind: str, label: str, span: Span, *made_of: object) -> StageInfo:
        """The info of the stage that comes next; `made_of` are the nodes that say all of it."""
        return StageInfo(len(self.stages), kind, label, partial(self.plan.place, self.node, span, label), made_of)

    def call(self, node: nodes.Call, *, makes_output: bool = False) -> Call:
        """The compiled call; `makes_output` where its result is the pipeline's output."""
        kind = "System" if node.callee.text == "System" else type(self.plan.program.find(node.callee.text)).__name__
        return _CALLS[kind](self, node, makes_output)

    def storage(self, node: nodes.Call, binding: nodes.Name | None) -> Storage:
        """Where the call's result is stored (spec 2.1, 12.2)."""
        name = None if binding is None else binding.text
        if node.method is None:
            return Storage(None, None, node.callee.text, name)
        if node.callee.text == "System":
            method = catalog.system_method(node.method.text)
            if method is not None and method.passes:
                return Storage(None, None, None, name)
        alone = None if node.method.text in self.hidden else node.method.text
        return Storage(node.callee.text, node.method.text, alone, name)

    def calls_agent(self, *calls: nodes.Call) -> None:
        """Note that the stage that comes next is one that a loop may jump to."""
        for call in calls:
            self.targets[call.callee.text] = len(self.stages)

    def condition(self, node: nodes.Condition) -> CompiledCondition:
        return compile_condition(node)

    def is_last(self, stage: nodes.Stage) -> bool:
        return stage is self.node.stages[-1]

    def expressions(self, arguments: Mapping[str, nodes.ArgumentValue]) -> dict[str, Expression]:
        return {name: self.plan.value(value) for name, value in arguments.items()}


# --- calls --------------------------------------------------------------------------------------------------


def split_arguments(
    arguments: tuple[nodes.Argument, ...],
) -> tuple[list[nodes.ArgumentValue], dict[str, nodes.ArgumentValue]]:
    """Positional and named argument values."""
    positional = [argument.value for argument in arguments if argument.name is None]
    return positional, {argument.name.text: argument.value for argument in arguments if argument.name is not None}


def _system_call(compiler: PipelineCompiler, node: nodes.Call, makes_output: bool) -> Call:
    assert node.method is not None, "checked by HL301"
    method = catalog.system_method(node.method.text)
    assert method is not None, "checked by HL301"
    bound = method.signature.bind(*split_arguments(node.args))
    return SystemCall(call_label(node), compiler.expressions(bound.arguments), METHODS[method.name])


def _pipeline_call(compiler: PipelineCompiler, node: nodes.Call, makes_output: bool) -> Call:
    target = compiler.plan.declaration(node.callee.text, nodes.Pipeline)
    positional, named = split_arguments(node.args)
    names = [parameter.name.text for parameter in target.params]
    arguments = dict(zip(names, positional, strict=False)) | named
    return PipelineCall(node.callee.text, compiler.expressions(arguments), compiler.plan)


def _tool_call(compiler: PipelineCompiler, node: nodes.Call, makes_output: bool) -> Call:
    assert node.method is not None, "checked by HL204"
    positional, named = split_arguments(node.args)
    tool, name = node.callee.text, node.method.text
    method = compiler.plan.provider_method(tool, name)
    flowing = _left_to_flow(method, positional, named) if method is not None else {}
    return ToolCall(
        label=call_label(node),
        tool=tool,
        name=name if method is None or method.name == "*" else method.name,
        method=method,
        positional=[compiler.plan.value(value) for value in positional],
        named=compiler.expressions(named) | flowing,
    )


def _left_to_flow(
    method: Method, positional: Sequence[nodes.ArgumentValue], named: Mapping[str, nodes.ArgumentValue]
) -> dict[str, Expression]:
    """The arguments that are left out and taken from the flowing value."""
    given = method.signature.bind(positional, named).arguments
    return {p.name: Flowing(p.name) for p in method.signature.parameters if p.flows and p.name not in given}


def _agent_call(compiler: PipelineCompiler, node: nodes.Call, makes_output: bool) -> Call:
    assert node.method is not None, "checked by HL204"
    plan, agent = compiler.plan, compiler.plan.agent(node.callee.text)
    positional, named = split_arguments(node.args)
    instructions = [plan.value(value) for value in positional if isinstance(value, nodes.String)]
    inputs = [plan.value(value) for value in positional if not isinstance(value, nodes.String)]
    own = canonical_settings(node.args)
    known = catalog.CALL_SETTINGS.by_name
    parameters = compiler.expressions({name: value for name, value in named.items() if name not in known})
    settings = {**agent.settings, **own}
    tools = settings.pop("tools", None)
    if agent.system is not None and "system" not in own:
        settings.pop("system", None)  # the modifier wins over the brackets
    tool = settings.pop("tool", None)
    compiled = compiler.expressions(settings)
    values = [*instructions, *inputs, *parameters.values(), *compiled.values()]
    system = [agent.system] if agent.system is not None and "system" not in own else []
    schema = compiler.output.json_schema if makes_output and compiler.output is not None else None
    return AgentCall(
        label=call_label(node),
        place=plan.place(compiler.node, node.span, call_label(node)),
        agent=agent,
        method=node.method.text,
        instructions=tuple(instructions),
        inputs=tuple(inputs),
        parameters=parameters,
        settings=compiled,
        first_tool=None if tool is None else _first_tool(plan, node.method.text, tool),
        functions=tuple(_functions(plan, _offered(agent.tools, tools), auto=_is_auto(tools))),
        json_asked=schema is not None
        or asks_for_json(_static_texts(named, positional, agent.system_text if system else ""))
        or _requires_json(plan, agent.policies),
        had_placeholders=any(isinstance(expression, Filled) for expression in instructions),
        schema=schema,
        paths=all_paths([*values, *system]),
        histories=tuple(histories(plan, agent.tools)),
        libraries=tuple(libraries(plan, agent.tools)),
        listed=tuple(tool for tool in _offered(agent.tools, tools) if (spec := plan.provider(tool)) and spec.listed),
    )


def _static_texts(
    named: Mapping[str, nodes.ArgumentValue], positional: list[nodes.ArgumentValue], system: str
) -> Iterator[str]:
    yield system
    for value in (*positional, *named.values()):
        if isinstance(value, nodes.String):
            yield value.value


def _requires_json(plan: Plan, policies: tuple[str, ...]) -> bool:
    rules = (rule for name in policies for rule in plan.declaration(name, nodes.Policy).rules)
    return any(rule.name.text in ("RequireJSON", "RequireSchema") for rule in rules)


def _first_tool(plan: Plan, method: str, node: nodes.ArgumentValue) -> FirstTool:
    assert isinstance(node, nodes.Path), "checked by HL303"
    return FirstTool(node.root, plan.provider_method(node.root, method))


def _offered(equipped: tuple[str, ...], node: nodes.ArgumentValue | None) -> list[str]:
    """The tools of `tools:`: a list of them, `auto` for all equipped ones, `none`."""
    tools: Iterable[str] = ()
    if isinstance(node, nodes.ListValue):
        tools = (item.root for item in node.items if isinstance(item, nodes.Path))
    elif isinstance(node, nodes.Path) and node.root != "none":
        tools = equipped if _is_auto(node) else (node.root,)
    return list(dict.fromkeys(tools))


def _is_auto(node: nodes.ArgumentValue | None) -> bool:
    return isinstance(node, nodes.Path) and node.root == "auto"


def _switches(provider: nodes.Provider) -> dict[str, bool]:
    """The settings of a declaration that are true or false."""
    named = ((argument.name.text, argument.value) for argument in provider.args if argument.name is not None)
    return {name: value.value for name, value in named if isinstance(value, nodes.Boolean)}


def _functions(plan: Plan, tools: Iterable[str], *, auto: bool) -> Iterator[OfferedFunction]:
    """The functions of tools, as far as the catalogue has their methods and the tools' settings let them work."""
    names: list[str] = []
    for tool in tools:
        spec = plan.provider(tool)
        for method in spec.offered(_switches(plan.declaration(tool, nodes.Provider)), auto=auto) if spec else ():
            names.append(distinct_name(tool, method.name, names))
            yield OfferedFunction(tool, method, ToolSpec(names[-1], method.doc, method.signature.json_schema()))


_CallCompiler: TypeAlias = Callable[[PipelineCompiler, nodes.Call, bool], Call]
_CALLS: Final[dict[str, _CallCompiler]] = {
    "System": _system_call,
    "Pipeline": _pipeline_call,
    "Provider": _tool_call,
    "Agent": _agent_call,
}


# --- stages -------------------------------------------------------------------------------------------------


def _pipe(compiler: PipelineCompiler, stage: nodes.PipeStage) -> None:
    _add_pipe(compiler, stage.call, stage.binding, stage.operator, compiler.is_last(stage))


def _add_pipe(compiler: PipelineCompiler, call: nodes.Call, binding: nodes.Name | None, span: Span, last: bool) -> None:
    compiler.calls_agent(call)
    info = compiler.info("pipe", f"|> {call_label(call)}", span, call, binding)
    compiled = compiler.call(call, makes_output=last)
    compiler.stages.append(Pipe(info, compiled, compiler.storage(call, binding)))


def _gate(compiler: PipelineCompiler, stage: nodes.GateStage) -> None:
    info = compiler.info("gate", f"|? ({condition_label(stage.condition)})", stage.operator, stage.condition)
    compiler.stages.append(Gate(info, compiler.condition(stage.condition)))
    if stage.call is not None:
        _add_pipe(compiler, stage.call, stage.binding, stage.call.span, compiler.is_last(stage))


def _branch(compiler: PipelineCompiler, stage: nodes.BranchStage) -> None:
    label = f"|? {{ {', '.join(call_label(arm.call) for arm in stage.arms)} }}"
    info = compiler.info("branch", label, stage.operator, stage)
    compiler.calls_agent(*(arm.call for arm in stage.arms))
    arms = tuple(
        CompiledArm(
            None if arm.condition is None else compiler.condition(arm.condition),
            compiler.call(arm.call, makes_output=compiler.is_last(stage)),
            compiler.storage(arm.call, None),
        )
        for arm in stage.arms
    )
    compiler.stages.append(Branch(info, arms, _text(stage.binding)))


def _fan_out(compiler: PipelineCompiler, stage: nodes.FanOutStage) -> None:
    label = f"|* {{ {', '.join(call_label(item.call) for item in stage.items)} }}"
    info = compiler.info("fanout", label, stage.operator, stage)
    compiler.calls_agent(*(item.call for item in stage.items))
    items = tuple(
        CompiledItem(key, compiler.call(item.call), compiler.storage(item.call, item.binding))
        for key, item in zip(_keys(stage.items), stage.items, strict=True)
    )
    compiler.stages.append(FanOut(info, items, _text(stage.binding)))


def _keys(items: tuple[nodes.FanOutItem, ...]) -> list[str]:
    """The `as` name, else the method's or pipeline's, else `Callee.method` where two items would share it."""
    short = [
        item.binding.text if item.binding else item.call.method.text if item.call.method else item.call.callee.text
        for item in items
    ]
    return [
        call_label(item.call) if item.binding is None and short.count(name) > 1 else name
        for name, item in zip(short, items, strict=True)
    ]


def _each(compiler: PipelineCompiler, stage: nodes.EachStage) -> None:
    info = compiler.info("each", f"|* each({stage.item.text}) => {call_label(stage.call)}", stage.operator, stage)
    compiler.calls_agent(stage.call)
    settings = catalog.EACH.bind(*split_arguments(stage.args)).arguments
    on_error = settings.get("onError")
    compiler.stages.append(
        Each(
            info=info,
            name=stage.item.text,
            source=compiler.plan.value(stage.source),
            concurrency=_count(settings.get("concurrency"), 4),
            on_error=on_error.value if isinstance(on_error, nodes.String) else "fail",
            call=compiler.call(stage.call),
            storage=compiler.storage(stage.call, stage.binding),
        )
    )


def _yield(compiler: PipelineCompiler, stage: nodes.YieldStage) -> None:
    arguments = catalog.YIELD.bind(*split_arguments(stage.args)).arguments
    info = compiler.info("yield", "|! yield", stage.operator, stage)
    choices = choices_after(compiler.node, stage, ())
    expressions = compiler.expressions(arguments)
    channel = arguments.get("channel")
    if isinstance(channel, nodes.Path) and len(channel.parts) == 1:
        expressions["channel"] = Read(channel.segments, channel.root)  # any name will do, also one of nothing here
    compiler.stages.append(Ask(info, expressions, choices, _text(stage.binding)))


def _listen(compiler: PipelineCompiler, stage: nodes.ListenStage) -> None:
    source, event = stage.source.text, stage.event.text
    info = compiler.info("listen", f"~> listen({source}.{event})", stage.operator, stage)
    choices = choices_after(compiler.node, stage, (source, event))
    compiler.stages.append(Listen(info, source, event, choices, _text(stage.binding)))


def _loop(compiler: PipelineCompiler, stage: nodes.LoopStage) -> None:
    condition = parse_condition(stage.condition.value)
    assert not isinstance(condition, Diagnostic), "checked by HL406"
    agent = stage.agent.text
    settings = catalog.LOOP.bind(*split_arguments(stage.args)).arguments
    compiler.stages.append(
        Loop(
            # Its bound is not part of it: a loop that ran out of rounds goes on with a larger one.
            info=compiler.info(
                "loop", f"|<> loop({agent})", stage.operator, stage.agent, stage.condition, stage.binding
            ),
            agent=agent,
            target=compiler.targets[agent],
            condition=compiler.condition(condition),
            text=stage.condition.value,
            limit=_count(settings.get("max"), 3),
            binding=_text(stage.binding),
        )
    )


def _text(name: nodes.Name | None) -> str | None:
    return None if name is None else name.text


def _count(node: nodes.ArgumentValue | None, default: int) -> int:
    return int(node.value) if isinstance(node, nodes.Number) else default


_COMPILERS: Final[dict[type, Callable[[PipelineCompiler, nodes.Stage], None]]] = {
    nodes.PipeStage: _pipe,
    nodes.GateStage: _gate,
    nodes.BranchStage: _branch,
    nodes.FanOutStage: _fan_out,
    nodes.EachStage: _each,
    nodes.YieldStage: _yield,
    nodes.ListenStage: _listen,
    nodes.LoopStage: _loop,
}  # pyright: ignore[reportAssignmentType] - each compiler takes the node of its key

"""The parts of declarations that several checks look at: calls, bindings, arguments, values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from halo_lang import catalog, nodes
from halo_lang.diagnostics import Diagnostic
from halo_lang.nodes import Argument, ArgumentValue, Call, Condition, Declaration, Name, Path, Stage
from halo_lang.source import Span
from halo_lang.strings import Literal
from halo_lang.symbols import Scope

Leaf: TypeAlias = (
    nodes.String | nodes.Number | nodes.Duration | nodes.Boolean | nodes.Null | nodes.Path | nodes.ModelRef
)


def calls(stage: Stage) -> tuple[Call, ...]:
    """The calls that a stage may make."""
    match stage:
        case nodes.PipeStage() | nodes.EachStage():
            return (stage.call,)
        case nodes.BranchStage():
            return tuple(arm.call for arm in stage.arms)
        case nodes.FanOutStage():
            return tuple(item.call for item in stage.items)
        case nodes.GateStage():
            return (stage.call,) if stage.call is not None else ()
        case _:
            return ()


def passes(call: Call) -> bool:
    """Whether a call is one of `System` that lets the value pass and leaves no result."""
    method = catalog.system_method(call.method.text) if call.method is not None else None
    return call.callee.text == "System" and method is not None and method.passes


def flowing(stages: Sequence[Stage], number: int) -> int | None:
    """The stage whose result flows into stage `number`: the last before it that does not let the value pass as it is.

    For the number of stages, that is the stage whose result is the pipeline's; None where it is the start value.
    """
    for earlier in reversed(range(number)):
        match stages[earlier]:
            case nodes.GateStage(call=None) | nodes.LoopStage():
                continue
            case nodes.PipeStage(call=call) if passes(call):
                continue
            case _:
                return earlier
    return None


def item_keys(stage: nodes.FanOutStage) -> list[str]:
    """The keys of what a fan-out gives, one an item (spec 2.2).

    A key is the item's `as` name, else its method's or pipeline's name; where several share that, the callee is in it.
    """
    short = [(item.binding or item.call.method or item.call.callee).text for item in stage.items]
    shared = Counter(short)
    pairs = zip(stage.items, short, strict=True)
    return [_full_key(item.call) if shared[key] > 1 and item.binding is None else key for item, key in pairs]


def _full_key(call: Call) -> str:
    return call.callee.text if call.method is None else f"{call.callee.text}.{call.method.text}"


def type_names(type_: nodes.TypeRef) -> Iterator[Name]:
    """The names in a type: `Array<Answer>` has two."""
    inner: nodes.TypeRef | None = type_
    while inner is not None:
        yield inner.name
        inner = inner.item


def bindings(stage: Stage) -> tuple[Name, ...]:
    """The names that a stage binds with `as`, those of its items included."""
    items = stage.items if isinstance(stage, nodes.FanOutStage) else ()
    names = (*(item.binding for item in items), stage.binding)
    return tuple(name for name in names if name is not None)


def conditions(stage: Stage) -> tuple[Condition, ...]:
    """The conditions written in a stage (a loop's is a string: see `loop_condition`)."""
    match stage:
        case nodes.GateStage():
            return (stage.condition,)
        case nodes.BranchStage():
            return tuple(arm.condition for arm in stage.arms if arm.condition is not None)
        case _:
            return ()


def arguments(stage: Stage) -> Iterator[Argument]:
    """All arguments of a stage: those of its calls and its own."""
    for call in calls(stage):
        yield from call.args
    if isinstance(stage, nodes.EachStage | nodes.YieldStage | nodes.LoopStage):
        yield from stage.args


def leaves(values: Iterable[ArgumentValue]) -> Iterator[Leaf]:
    """The values that are no lists or rules, in order, however deep they stand."""
    waiting = [iter(values)]
    while waiting:
        match next(waiting[-1], None):
            case None:
                waiting.pop()
            case nodes.ListValue() as items:
                waiting.append(iter(items.items))
            case nodes.Rule() as rule:
                waiting.append(argument.value for argument in rule.args)
            case leaf:
                yield leaf


def condition_paths(stage: Stage, scope: Scope) -> Iterator[Path]:
    """The paths in a stage's conditions, that of a loop included, with their places in the source."""
    for condition in conditions(stage):
        yield from (operand for operand in operands(condition) if isinstance(operand, Path))
    if isinstance(stage, nodes.LoopStage):
        yield from (operand for operand, _ in loop_operands(stage, scope) if isinstance(operand, Path))


def operands(condition: Condition) -> list[nodes.Path | nodes.String]:
    """The paths and texts in a condition, in order."""
    found: list[nodes.Path | nodes.String] = []
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        match node:
            case nodes.Or() | nodes.And():
                waiting += reversed(node.operands)
            case nodes.Comparison():
                waiting += (node.right, node.left)
            case nodes.Not():
                waiting.append(node.operand)
            case nodes.Path() | nodes.String():
                found.append(node)
            case _:
                pass
    return found


def written_values(declaration: Declaration) -> Iterator[Leaf]:
    """Every value in a declaration outside conditions; the condition of a loop counts as the string it is."""
    return _WRITTEN[type(declaration)](declaration)


@lru_cache(maxsize=1024)
def loop_condition(text: str) -> Condition | Diagnostic:
    """The condition in a loop's string, or why it is none; places count in the string's value."""
    # The parser takes time to load, and only few programs have a loop.
    from halo_lang.parser import parse_condition

    return parse_condition(text)


def loop_operands(stage: nodes.LoopStage, scope: Scope) -> Iterator[tuple[Path | nodes.String, Span]]:
    """The paths and texts in a loop's condition, each with its place in the source; none where it does not parse."""
    text = stage.condition
    condition = loop_condition(text.value)
    if not isinstance(condition, Diagnostic):
        literal = Literal(scope.source(text.span))
        for operand in operands(condition):
            place = inside(literal, text.span, operand.span)
            if isinstance(operand, Path):
                parts = tuple(Name(part.text, inside(literal, text.span, part.span)) for part in operand.parts)
                operand = Path(parts, place)
            yield operand, place


def inside(literal: Literal, place: Span, span: Span) -> Span:
    """Where in the source a span of a string's value is written; `place` is that of the literal."""
    return Span(place.start + literal.offset(span.start), place.start + literal.end(span.start, span.end))


def _values(args: Iterable[Argument]) -> Iterator[Leaf]:
    return leaves(argument.value for argument in args)


def _policy(node: nodes.Policy) -> Iterator[Leaf]:
    return leaves(node.rules)


def _provider(node: nodes.Provider) -> Iterator[Leaf]:
    return _values(node.args)


def _schema(_: nodes.Schema) -> Iterator[Leaf]:
    return iter(())


def _agent(node: nodes.Agent) -> Iterator[Leaf]:
    for directive in node.directives:
        yield from _values(directive.args)
    yield from _values(node.config)
    yield from (modifier.text for modifier in node.modifiers if isinstance(modifier, nodes.SystemModifier))


def _pipeline(node: nodes.Pipeline) -> Iterator[Leaf]:
    for directive in node.directives:
        yield from _values(directive.args)
    if node.start is not None:
        yield from leaves((node.start,))
    for stage in node.stages:
        if isinstance(stage, nodes.EachStage):
            yield from leaves((stage.source,))
        if isinstance(stage, nodes.LoopStage):
            yield stage.condition
        yield from _values(arguments(stage))


_WRITTEN: Final[dict[type, Callable[..., Iterator[Leaf]]]] = {
    nodes.Policy: _policy,
    nodes.Provider: _provider,
    nodes.Schema: _schema,
    nodes.Agent: _agent,
    nodes.Pipeline: _pipeline,
}

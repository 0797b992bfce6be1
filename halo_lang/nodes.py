"""The syntax tree: frozen dataclasses, each with the span it covers.

Spans are relative to the start of the declaration that holds the node, so an unchanged declaration keeps its
nodes when text before it changes; `Program` (parser.py) knows where each declaration stands. The shapes follow
spec 1.2 line by line. Names keep their own span because diagnostics point at them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from halo_lang.records import record
from halo_lang.source import Span


@record
class Name:
    """An identifier, keyword-as-name or path digit where it is written."""

    text: str
    span: Span


# --- values -------------------------------------------------------------------------------------------------


@record
class String:
    """A string literal: `value` after escapes and dedent, `quote` one of `"`, `'`, `\"\"\"`.

    Places inside it are found with `halo_lang.strings`, from the literal's text.
    """

    value: str
    quote: str
    span: Span


@record
class Number:
    """`12`, `-3`, `0.5`, `1e6`: an int where it is written as one, else a float."""

    value: int | float
    span: Span


@record
class Duration:
    """`500ms`, `1.5h`: as a value it is its text as written (spec 12.1); `seconds` for those that wait."""

    text: str
    seconds: float
    span: Span


@record
class Boolean:
    """`true` or `false`."""

    value: bool
    span: Span


@record
class Null:
    """`null`."""

    span: Span


@record
class ListValue:
    """`[a, b]`."""

    items: tuple[Value, ...]
    span: Span


@record
class Path:
    """`name`, `name.field.0`, `context`, `context.data.x`, `Env.NAME`: its parts in order, digits as text."""

    parts: tuple[Name, ...]
    span: Span

    @property
    def root(self) -> str:
        return self.parts[0].text

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts as plain text."""
        return tuple(part.text for part in self.parts)


@record
class ModelRef:
    """A model id as written, without quotes."""

    text: str
    span: Span


@record
class Rule:
    """A policy rule `Name(args)`; also an argument of another rule (spec 12.1: `Audit(Block(PII))`)."""

    name: Name
    args: tuple[Argument, ...]
    span: Span


Value: TypeAlias = String | Number | Duration | Boolean | Null | ListValue | Path
ArgumentValue: TypeAlias = Value | ModelRef | Rule


@record
class Argument:
    """`value` or `name: value`, of a call, a provider, a directive, a rule or an agent's brackets."""

    name: Name | None
    value: ArgumentValue
    span: Span


# --- conditions ---------------------------------------------------------------------------------------------

Comparator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">="]


@record
class Or:
    """`a || b || …`: at least two operands, in order."""

    operands: tuple[Condition, ...]
    span: Span


@record
class And:
    """`a && b && …`: at least two operands, in order."""

    operands: tuple[Condition, ...]
    span: Span


@record
class Not:
    """`!operand`."""

    operand: Condition
    span: Span


@record
class Comparison:
    """`left operator right`."""

    operator: Comparator
    left: Condition
    right: Condition
    span: Span


Condition: TypeAlias = Or | And | Not | Comparison | String | Number | Duration | Boolean | Null | Path


# --- calls and stages ---------------------------------------------------------------------------------------


@record
class Call:
    """`Callee.method(args)`, or `Pipeline(args)` with no method. `close` is the closing bracket."""

    callee: Name
    method: Name | None
    args: tuple[Argument, ...]
    close: Span
    span: Span


@record
class PipeStage:
    """`|> call as name`"""

    call: Call
    binding: Name | None
    operator: Span
    span: Span


@record
class GateStage:
    """`|? (condition)`; the arrow form `|? (condition) => call as name` is this gate and then `|> call`.

    `arrow` is the span of `=>` where it is written (the call behind it may be left out).
    """

    condition: Condition
    arrow: Span | None
    call: Call | None
    binding: Name | None
    operator: Span
    span: Span


@record
class Arm:
    """`(condition) => call`, or `else => call` with no condition."""

    condition: Condition | None
    call: Call
    span: Span


@record
class BranchStage:
    """`|? { arms } as name`"""

    arms: tuple[Arm, ...]
    binding: Name | None
    operator: Span
    span: Span


@record
class FanOutItem:
    """One `Call() as name` of a fan-out."""

    call: Call
    binding: Name | None
    span: Span


@record
class FanOutStage:
    """`|* { call as name, call } as name`"""

    items: tuple[FanOutItem, ...]
    binding: Name | None
    operator: Span
    span: Span


@record
class EachStage:
    """`|* each(item in source, args) => call as name`"""

    item: Name
    source: Value
    args: tuple[Argument, ...]
    call: Call
    binding: Name | None
    operator: Span
    span: Span


@record
class YieldStage:
    """`|! yield(args) as name`"""

    args: tuple[Argument, ...]
    binding: Name | None
    operator: Span
    span: Span


@record
class ListenStage:
    """`~> listen(Source.Event) as name`"""

    source: Name
    event: Name
    binding: Name | None
    operator: Span
    span: Span


@record
class LoopStage:
    """`|<> loop(Agent, "condition", args) as name`"""

    agent: Name
    condition: String
    args: tuple[Argument, ...]
    binding: Name | None
    operator: Span
    span: Span


Stage: TypeAlias = PipeStage | GateStage | BranchStage | FanOutStage | EachStage | YieldStage | ListenStage | LoopStage


# --- declarations -------------------------------------------------------------------------------------------


@record
class Directive:
    """`@name(args)`; `span` begins at the `@`."""

    name: Name
    args: tuple[Argument, ...]
    span: Span


@record
class Policy:
    """`policy Name : Rule(args) & Rule(args)`."""

    name: Name
    rules: tuple[Rule, ...]
    span: Span


@record
class Provider:
    """A `tool` or a `store`: both mean the same (seed 004)."""

    kind: Literal["tool", "store"]
    name: Name
    provider: Name
    args: tuple[Argument, ...]
    span: Span


@record
class TypeRef:
    """`Name` or `Name<item>`."""

    name: Name
    item: TypeRef | None
    span: Span


@record
class Field:
    """A schema's field or a pipeline's parameter: `name: type`."""

    name: Name
    type: TypeRef
    span: Span


@record
class Schema:
    """`schema Name { field: Type, … }`."""

    name: Name
    fields: tuple[Field, ...]
    span: Span


@record
class SystemModifier:
    """`system "…"`."""

    text: String
    span: Span


@record
class NamesModifier:
    """`equips A, B` or `requires P, Q`."""

    kind: Literal["equips", "requires"]
    names: tuple[Name, ...]
    span: Span


Modifier: TypeAlias = SystemModifier | NamesModifier


@record
class Agent:
    """`agent Name [model, key: value, …]` with its modifiers."""

    directives: tuple[Directive, ...]
    name: Name
    model: ModelRef
    config: tuple[Argument, ...]
    modifiers: tuple[Modifier, ...]
    span: Span

    @property
    def system(self) -> String | None:
        """The `system` modifier; the last one where there are several."""
        texts = [modifier.text for modifier in self.modifiers if isinstance(modifier, SystemModifier)]
        return texts[-1] if texts else None

    def names(self, kind: Literal["equips", "requires"]) -> tuple[Name, ...]:
        """All names that the agent `equips` or `requires`, in order."""
        chosen = (m for m in self.modifiers if isinstance(m, NamesModifier) and m.kind == kind)
        return tuple(name for modifier in chosen for name in modifier.names)


@record
class Pipeline:
    """`pipeline Name(param: Type, …) -> Type:` with its start value and stages."""

    directives: tuple[Directive, ...]
    name: Name
    params: tuple[Field, ...]
    returns: TypeRef
    start: Value | None
    stages: tuple[Stage, ...]
    span: Span


Declaration: TypeAlias = Policy | Provider | Schema | Agent | Pipeline

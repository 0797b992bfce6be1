"""From what the parser reduces to nodes, with no tree between.

Each method of `Builder` bears the name of a rule in grammar.lark and takes that rule's children: tokens (of
terminals written by name) and nodes. Spans are offsets into the text that is parsed. What the grammar cannot
refuse without losing its shape, a keyword in the place of a value for one, is refused here.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias, cast, get_args

from halo_lang import nodes
from halo_lang.diagnostics import Diagnostic, error
from halo_lang.lexicon import KEYWORDS, MAX_NESTING
from halo_lang.source import Span
from halo_lang.strings import decode

_VALUES = get_args(nodes.Value)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

MADE: Final[Any] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
"""Makes a named tuple of a tuple in half the time that calling its class takes; parsing makes very many."""

# A rule's children differ from rule to rule; each method knows its own from the grammar.
Children: TypeAlias = list[Any]


class Token(NamedTuple):
    """A terminal where it stands."""

    type: str
    value: str
    span: Span


class Refusal(Exception):
    """Raised while nodes are built: the text fits the grammar, but `diagnostic` says why it is no program."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Head(NamedTuple):
    """A pipeline up to the colon behind its type."""

    directives: tuple[nodes.Directive, ...]
    name: nodes.Name
    params: tuple[nodes.Field, ...]
    returns: nodes.TypeRef
    span: Span

    def pipeline(self, start: nodes.Value | None, stages: tuple[nodes.Stage, ...], span: Span) -> nodes.Pipeline:
        """The whole pipeline, once its body is known."""
        return nodes.Pipeline(self.directives, self.name, self.params, self.returns, start, stages, span)


class Builder:
    """What makes nodes, one method a rule."""

    # --- declarations

    def policy(self, children: Children) -> nodes.Policy:
        keyword, name, *rules = children
        return nodes.Policy(_name(name), tuple(rules), _between(keyword, rules[-1]))

    def rule(self, children: Children) -> nodes.Rule:
        name, *args = children
        end = args.pop() if args else name
        return nodes.Rule(_reference(name), tuple(args), _between(name, end))

    def provider(self, children: Children) -> nodes.Provider:
        keyword, name, provider, *args = children
        end = args.pop() if args else provider
        kind = "tool" if keyword.type == "TOOL" else "store"
        return nodes.Provider(kind, _name(name), _reference(provider), tuple(args), _between(keyword, end))

    def schema(self, children: Children) -> nodes.Schema:
        keyword, name, *fields, close = children
        return nodes.Schema(_name(name), tuple(fields), _between(keyword, close))

    def field(self, children: Children) -> nodes.Field:
        name, type_ = children
        return nodes.Field(_name(name), _flat_enough(type_), _between(name, type_))

    def type(self, children: Children) -> nodes.TypeRef:
        name, *item = children
        if not item:
            return nodes.TypeRef(_reference(name), None, name.span)
        inner, close = item
        return nodes.TypeRef(_reference(name), inner, _between(name, close))

    def agent(self, children: Children) -> nodes.Agent:
        directives, (_, name, model, *rest) = _after_directives(children)
        close = next(index for index, child in enumerate(rest) if type(child) is Token)
        return nodes.Agent(
            directives,
            _name(name),
            _model(model),
            tuple(rest[:close]),
            tuple(rest[close + 1 :]),
            _between(children[0], rest[-1]),
        )

    def system(self, children: Children) -> nodes.SystemModifier:
        keyword, text = children
        return nodes.SystemModifier(text, _between(keyword, text))

    def names(self, children: Children) -> nodes.NamesModifier:
        keyword, *names = children
        kind = "equips" if keyword.type == "EQUIPS" else "requires"
        return nodes.NamesModifier(kind, tuple(map(_reference, names)), _between(keyword, names[-1]))

    def head(self, children: Children) -> Head:
        directives, (_, name, *params, returns, colon) = _after_directives(children)
        return Head(directives, _name(name), tuple(params), _flat_enough(returns), _between(children[0], colon))

    def pipeline(self, children: Children) -> nodes.Pipeline:
        head, *body = children
        start = body.pop(0) if body and isinstance(body[0], _VALUES) else None
        return head.pipeline(start, tuple(body), _between(head, children[-1]))

    def directive(self, children: Children) -> nodes.Directive:
        at, name, *args = children
        end = args.pop() if args else name
        return nodes.Directive(_name(name), tuple(args), _between(at, end))

    def shadow(self, children: Children) -> nodes.Directive:
        at, name, *args = children
        end = args.pop() if args else name
        return nodes.Directive(_name(name), tuple(map(_target, args)), _between(at, end))

    def named_target(self, children: Children) -> nodes.Argument:
        name, target = children
        return nodes.Argument(_name(name), _target(target).value, _between(name, target))

    # --- stages

    def pipe(self, children: Children) -> nodes.PipeStage:
        operator, call, *binding = children
        return nodes.PipeStage(call, _optional(binding), operator.span, _between(operator, children[-1]))

    def gate(self, children: Children) -> nodes.GateStage:
        operator, condition, _, *arrow_form = children
        arrow, call, binding = (*arrow_form, None, None, None)[:3]
        return nodes.GateStage(
            condition, arrow.span if arrow else None, call, binding, operator.span, _between(operator, children[-1])
        )

    def branch(self, children: Children) -> nodes.BranchStage:
        operator, arms, binding = _block(children)
        return nodes.BranchStage(arms, binding, operator, _between(children[0], children[-1]))

    def arm(self, children: Children) -> nodes.Arm:
        first, *condition, call = children
        return nodes.Arm(_optional(condition), call, _between(first, call))

    def fan_out(self, children: Children) -> nodes.FanOutStage:
        operator, items, binding = _block(children)
        return nodes.FanOutStage(items, binding, operator, _between(children[0], children[-1]))

    def item(self, children: Children) -> nodes.FanOutItem:
        call, *binding = children
        return nodes.FanOutItem(call, _optional(binding), _between(call, children[-1]))

    def each(self, children: Children) -> nodes.EachStage:
        operator, item, source, *args = children
        binding = args.pop() if isinstance(args[-1], nodes.Name) else None
        call = args.pop()
        return nodes.EachStage(
            _name(item), source, tuple(args), call, binding, operator.span, _between(operator, children[-1])
        )

    def ask(self, children: Children) -> nodes.YieldStage:
        operator, args, binding = _block(children)
        return nodes.YieldStage(args, binding, operator, _between(children[0], children[-1]))

    def listen(self, children: Children) -> nodes.ListenStage:
        operator, source, event, _, *binding = children
        return nodes.ListenStage(
            _reference(source),
            _name(event),
            _optional(binding),
            operator.span,
            _between(operator, children[-1]),
        )

    def loop(self, children: Children) -> nodes.LoopStage:
        operator, agent, condition, *rest = children
        _, args, binding = _block([operator, *rest])
        return nodes.LoopStage(
            _reference(agent), condition, args, binding, operator.span, _between(operator, children[-1])
        )

    def binding(self, children: Children) -> nodes.Name:
        return _name(children[0])

    def call(self, children: Children) -> nodes.Call:
        callee, *args, close = children
        method = _name(args.pop(0)) if args and type(args[0]) is Token else None
        return nodes.Call(_reference(callee), method, tuple(args), close.span, _between(callee, close))

    def arg(self, children: Children) -> nodes.Argument:
        value = children[-1]
        if len(children) == 1:
            return nodes.Argument(None, value, value.span)
        return nodes.Argument(_name(children[0]), value, _between(children[0], value))

    # --- values

    def path(self, children: Children) -> nodes.Path:
        root = children[0]
        if root.value in KEYWORDS and root.value != "context":
            raise _reserved(root)
        return nodes.Path(tuple(map(_name, children)), _between(root, children[-1]))

    def string(self, children: Children) -> nodes.String:
        text = children[0].value
        return nodes.String(decode(text), '"""' if text.startswith('"""') else text[0], children[0].span)

    def number(self, children: Children) -> nodes.Number:
        token = children[0]
        return nodes.Number(_number(token.value, token), token.span)

    def duration(self, children: Children) -> nodes.Duration:
        token = children[0]
        digits = token.value.rstrip("mshd")
        seconds = _number(digits, token) * _SECONDS[token.value[len(digits) :]]
        return nodes.Duration(token.value, seconds, token.span)

    def boolean(self, children: Children) -> nodes.Boolean:
        return nodes.Boolean(children[0].type == "TRUE", children[0].span)

    def null(self, children: Children) -> nodes.Null:
        return nodes.Null(children[0].span)

    def list(self, children: Children) -> nodes.ListValue:
        open_, *items, close = children
        return nodes.ListValue(tuple(items), _between(open_, close))

    # --- conditions

    def condition(self, children: Children) -> nodes.Condition:
        return _not_too_deep(children[0])

    def any_of(self, children: Children) -> nodes.Or:
        return nodes.Or(tuple(children), _between(children[0], children[-1]))

    def all_of(self, children: Children) -> nodes.And:
        return nodes.And(tuple(children), _between(children[0], children[-1]))

    def negation(self, children: Children) -> nodes.Not:
        bang, operand = children
        return nodes.Not(operand, _between(bang, operand))

    def comparison(self, children: Children) -> nodes.Comparison:
        left, operator, right = children
        return nodes.Comparison(cast(nodes.Comparator, operator.value), left, right, _between(left, right))


def empty(pipeline: nodes.Pipeline) -> Diagnostic:
    """HL108: a pipeline with neither a value nor a stage."""
    hint = "write a start value or a stage behind the colon"
    return error("HL108", f"the pipeline `{pipeline.name.text}` is empty", pipeline.name.span, hint=hint)


def too_deep(span: Span) -> Diagnostic:
    """HL106, at the place that is one level too deep."""
    hint = "name inner results with `as`, or move a part into a pipeline of its own"
    return error("HL106", f"this is nested deeper than {MAX_NESTING} levels", span, hint=hint)


def _name(token: Any) -> nodes.Name:
    return nodes.Name(token.value, token.span)


def _reference(token: Any) -> nodes.Name:
    """A name that refers to a declaration: no keyword can be one."""
    if token.value in KEYWORDS:
        raise _reserved(token)
    return _name(token)


_MEANT = {
    "yield": "a question to a person is the stage `|! yield(…)`",
    "listen": "waiting for an event is the stage `~> listen(Source.Event)`",
    "loop": 'a loop is the stage `|<> loop(Agent, "condition")`',
    "each": "a call for each item is the stage `|* each(item in list) => call`",
    "else": "`else` stands in a branch: `|? { (condition) => call, else => call }`",
    "as": "`as` stands behind a call and names its result",
}


def _reserved(token: Any) -> Refusal:
    """A keyword where a name must stand."""
    hint = _MEANT.get(token.value, "use another name")
    return Refusal(error("HL102", f"`{token.value}` is a keyword and names nothing", token.span, hint=hint))


def _between(first: Any, last: Any) -> Span:
    return MADE(Span, (first.span[0], last.span[1]))


def _optional(children: Children) -> Any:
    return children[0] if children else None


def _after_directives(children: Children) -> tuple[tuple[nodes.Directive, ...], Children]:
    count = next(index for index, child in enumerate(children) if type(child) is Token)
    return tuple(children[:count]), children[count:]


def _block(children: Children) -> tuple[Span, tuple[Any, ...], nodes.Name | None]:
    """`operator, item…, close, binding?` as the operator's span, the items and the binding."""
    binding = children[-1] if isinstance(children[-1], nodes.Name) else None
    items = children[1:-2] if binding else children[1:-1]
    return children[0].span, tuple(items), binding


def _model(child: Any) -> nodes.ModelRef:
    """A model id where one must stand, quoted or not."""
    return nodes.ModelRef(child.value, child.span)


def _target(child: Any) -> nodes.Argument:
    """What `@shadow` names: a plain word is an agent, anything else a model."""
    if isinstance(child, nodes.Argument):
        return child
    text = child.value
    value = nodes.Path((_name(child),), child.span) if type(child) is Token and text.isidentifier() else _model(child)
    return nodes.Argument(None, value, value.span)


def _number(text: str, token: Any) -> int | float:
    """The number that is written; a float must be finite, an integer short enough for Python to read."""
    try:
        value = int(text)
    except ValueError:
        value = float(text)
    if not isfinite(value):
        raise Refusal(error("HL102", "this number is too large", token.span, hint="write a smaller one"))
    return value


def _flat_enough(type_: nodes.TypeRef) -> nodes.TypeRef:
    inner: nodes.TypeRef | None = type_
    for _ in range(MAX_NESTING):
        inner = inner and inner.item
    if inner:
        raise Refusal(too_deep(inner.span))
    return type_


def _not_too_deep(condition: nodes.Condition) -> nodes.Condition:
    """The condition; refused where its tree is so deep that a walk over it could run out of stack."""
    level = [condition]
    for _ in range(MAX_NESTING):
        level = [part for node in level for part in _parts(node)]
        if not level:
            return condition
    raise Refusal(too_deep(level[0].span))


def _parts(node: nodes.Condition) -> tuple[nodes.Condition, ...]:
    match node:
        case nodes.Or() | nodes.And():
            return node.operands
        case nodes.Comparison():
            return node.left, node.right
        case nodes.Not():
            return (node.operand,)
        case _:
            return ()

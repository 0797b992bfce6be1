"""Names that refer to declarations: they exist (HL203) and are of the right kind (HL204)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.checks.walk import calls, type_names
from halo_lang.diagnostics import Diagnostic, Fix, error
from halo_lang.nodes import Argument, Call, Declaration, Name
from halo_lang.records import record
from halo_lang.spelling import NameIndex, listed
from halo_lang.symbols import ARRAYS, FIELD_TYPES, Kind, Scope

_FIELD_TYPE_INDEX: Final = NameIndex(FIELD_TYPES)
_BUILT_IN: Final = frozenset({"System", "Env"})
_TOOL_WORDS: Final = frozenset({"auto", "none"})
_CALLABLE: Final = (Kind.AGENT, Kind.TOOL, Kind.PIPELINE)


@record
class Reference:
    """A name that must be declared as one of `kinds`; `wanted` says so in words: `agent or model`."""

    name: Name
    wanted: str
    kinds: tuple[Kind, ...]
    likely: tuple[Kind, ...] = ()
    """Those of `kinds` that a misspelt name can have meant; all when empty."""


def references(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL203 and HL204 at every name in a reference position (spec 12.1)."""
    for reference in names_in(declaration, scope):
        found = _resolve(reference, declaration.name.text, scope)
        if found is not None:
            yield found


def names_in(declaration: Declaration, scope: Scope) -> Iterator[Reference]:
    """The names in a declaration that stand where a declaration's name must, in no order."""
    return _REFERENCES[type(declaration)](declaration, scope)


def item_types(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL204: of all types only a list takes the type of its items."""
    if isinstance(declaration, nodes.Schema):
        for field in declaration.fields:
            outer = field.type
            while outer.item is not None:
                if outer.name.text not in ARRAYS:
                    message = f"`{outer.name.text}` is no list, so it takes no type in `<…>`"
                    hint = f"write `Array<{outer.item.name.text}>` for a list"
                    yield error("HL204", message, outer.name.span, hint=hint)
                outer = outer.item


def call_forms(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL204: agents, tools and `System` are called by a method, pipelines by their name alone."""
    if not isinstance(declaration, nodes.Pipeline):
        return
    for stage in declaration.stages:
        for call in calls(stage):
            found = _call_form(call, scope)
            if found is not None:
                yield found


def tool_names(args: Iterable[Argument]) -> Iterator[Name]:
    """The names that `tool: A` and `tools: [A, B]` give; other shapes of these arguments are HL303's business."""
    for argument in args:
        setting = argument.name.text if argument.name is not None else ""
        if setting == "tool" and isinstance(argument.value, nodes.Path):
            yield argument.value.parts[0]
        elif setting == "tools" and isinstance(argument.value, nodes.ListValue):
            yield from (item.parts[0] for item in argument.value.items if isinstance(item, nodes.Path))


def is_agent_call(call: Call, scope: Scope) -> bool:
    """Whether a call's callee is a declared agent."""
    found = scope.lookup(call.callee.text)
    return found is not None and found.kind is Kind.AGENT


def _resolve(reference: Reference, owner: str, scope: Scope) -> Diagnostic | None:
    name = reference.name
    found = scope.lookup(name.text)
    if found is not None:
        if found.kind is Kind.UNKNOWN or found.kind in reference.kinds:
            return None
        message = f"`{name.text}` is {_a(found.kind)}, not {_a(reference.wanted)}"
    elif name.text in _BUILT_IN:
        message = f"`{name.text}` is built in, not {_a(reference.wanted)}"
    else:
        return _unknown(reference, owner, scope)
    return error("HL204", message, name.span, hint=_existing(reference, scope))


def _unknown(reference: Reference, owner: str, scope: Scope) -> Diagnostic:
    name = reference.name
    message = f"there is no {reference.wanted} `{name.text}`"
    guess = scope.suggest(name.text, *(reference.likely or reference.kinds))
    if guess is None and Kind.SCHEMA in reference.kinds:
        guess = _FIELD_TYPE_INDEX.nearest(name.text)
    hint = f"did you mean `{guess.name}`?" if guess is not None else _existing(reference, scope)
    if name.text in _TOOL_WORDS and Kind.TOOL in reference.kinds:
        hint = f"write `tools: {name.text}`, without brackets"
    # What a declaration calls is seldom itself.
    fix = Fix.of(guess, name.span) if guess is not None and guess.name != owner else None
    return error("HL203", message, name.span, hint=hint, fix=fix)


def _existing(reference: Reference, scope: Scope) -> str:
    names = scope.existing(*reference.kinds)
    return f"here one of these can stand: {listed(names)}" if names else f"declare {_a(reference.wanted)} of that name"


def _call_form(call: Call, scope: Scope) -> Diagnostic | None:
    name = call.callee
    found = scope.lookup(name.text)
    if found is None or found.kind is Kind.UNKNOWN:
        return None
    if call.method is None and found.kind in (Kind.AGENT, Kind.TOOL):
        message = f"`{name.text}` is {_a(found.kind)}: a call names one of its methods"
        return error("HL204", message, name.span, hint=f"write `{name.text}.method(…)`")
    if call.method is not None and found.kind is Kind.PIPELINE:
        message = f"`{name.text}` is a pipeline: it has no methods"
        return error("HL204", message, name.span, hint=f"write `{name.text}(…)`")
    return None


def _a(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


# --- where references stand


def _tools(names: Iterable[Name]) -> Iterator[Reference]:
    return (Reference(name, "tool or store", (Kind.TOOL,)) for name in names)


def _policy(node: nodes.Policy, _: Scope) -> Iterator[Reference]:
    waiting = list(reversed(node.rules))
    while waiting:
        rule = waiting.pop()
        waiting += [argument.value for argument in rule.args if isinstance(argument.value, nodes.Rule)]
        spec = catalog.rule(rule.name.text)
        if spec is not None:
            yield from _rule(rule, spec.signature)


def _rule(rule: nodes.Rule, signature: catalog.Signature) -> Iterator[Reference]:
    by_position = list(signature.parameters)
    for index, argument in enumerate(rule.args):
        if argument.name is not None:
            parameter = signature.by_name.get(argument.name.text)
        else:
            parameter = by_position[index] if index < len(by_position) else signature.rest
            parameter = signature.rest if parameter is not None and parameter.named_only else parameter
        if parameter is None or not isinstance(argument.value, nodes.Path):
            continue
        if parameter.type == "method":
            yield from _tools(argument.value.parts[:1])
        elif parameter.type == "schema":
            yield Reference(argument.value.parts[0], "schema", (Kind.SCHEMA,))


def _provider(_: nodes.Provider, __: Scope) -> Iterator[Reference]:
    return iter(())


def _schema(node: nodes.Schema, _: Scope) -> Iterator[Reference]:
    for field in node.fields:
        for name in type_names(field.type):
            if name.text not in FIELD_TYPES:
                yield Reference(name, "schema or type", (Kind.SCHEMA,))


def _agent(node: nodes.Agent, _: Scope) -> Iterator[Reference]:
    yield from _directives(node.directives)
    yield from _tools(tool_names(setting for setting in node.config if setting.name and setting.name.text == "tools"))
    yield from _tools(node.names("equips"))
    for name in node.names("requires"):
        yield Reference(name, "policy", (Kind.POLICY,))


def _directives(directives: Iterable[nodes.Directive]) -> Iterator[Reference]:
    for directive in directives:
        if directive.name.text != "shadow":
            continue
        for argument in directive.args:
            if isinstance(argument.value, nodes.Path):
                yield Reference(argument.value.parts[0], "agent or model", (Kind.AGENT,))


def _pipeline(node: nodes.Pipeline, scope: Scope) -> Iterator[Reference]:
    for stage in node.stages:
        if isinstance(stage, nodes.LoopStage):
            yield Reference(stage.agent, "agent", (Kind.AGENT,))
        for call in calls(stage):
            if call.callee.text not in _BUILT_IN:
                likely = (Kind.PIPELINE,) if call.method is None else (Kind.AGENT, Kind.TOOL)
                yield Reference(call.callee, "agent, tool or pipeline", _CALLABLE, likely)
            if is_agent_call(call, scope):
                yield from _tools(tool_names(call.args))


_REFERENCES: Final[dict[type, Callable[..., Iterator[Reference]]]] = {
    nodes.Policy: _policy,
    nodes.Provider: _provider,
    nodes.Schema: _schema,
    nodes.Agent: _agent,
    nodes.Pipeline: _pipeline,
}

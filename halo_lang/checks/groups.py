"""Argument lists and the signatures that they must fit, wherever a declaration has some."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from halo_lang import catalog, nodes
from halo_lang.catalog.signature import Parameter, Signature
from halo_lang.checks.catalogued import prior_tool
from halo_lang.checks.walk import calls
from halo_lang.nodes import Argument, Call, Declaration, Name
from halo_lang.records import record
from halo_lang.source import Span
from halo_lang.symbols import Kind, Scope


@record
class Group:
    """The arguments of one call, declaration, directive, rule or stage.

    `signature` is None where nothing is known about them. `close` is where a missing argument is reported. `unknown`
    is the code for a name that does not exist. `fixed`: nothing flows here, so every value must be written out.
    """

    what: str
    args: tuple[Argument, ...]
    signature: Signature | None
    close: Span
    unknown: str = "HL302"
    fixed: bool = False


def groups(declaration: Declaration, scope: Scope) -> Iterator[Group]:
    """All argument lists of a declaration."""
    return _GROUPS[type(declaration)](declaration, scope)


@lru_cache(maxsize=1024)
def _required(names: tuple[str, ...]) -> Signature:
    return Signature(tuple(Parameter(name, required=True) for name in dict.fromkeys(names)))


def _closing(span: Span, before: Span) -> Span:
    """The bracket at the end of `span`, or the name `before` it where there are no brackets."""
    return before if span.end == before.end else Span(span.end - 1, span.end)


def _directives(directives: Iterable[nodes.Directive], target: str) -> Iterator[Group]:
    for directive in directives:
        spec = catalog.directive(directive.name.text)
        close = _closing(directive.span, directive.name.span)
        applies = spec is not None and target in spec.applies_to
        signature = spec.signature if spec is not None and applies else None
        yield Group(f"@{directive.name.text}", directive.args, signature, close, fixed=True)


def _rules(rules: Iterable[nodes.Rule]) -> Iterator[Group]:
    for rule in rules:
        spec = catalog.rule(rule.name.text)
        close = _closing(rule.span, rule.name.span)
        yield Group(rule.name.text, rule.args, spec.signature if spec else None, close, fixed=True)
        yield from _rules(argument.value for argument in rule.args if isinstance(argument.value, nodes.Rule))


def _policy(node: nodes.Policy, _: Scope) -> Iterator[Group]:
    return _rules(node.rules)


def _provider(node: nodes.Provider, _: Scope) -> Iterator[Group]:
    spec = catalog.provider(node.provider.text)
    close = _closing(node.span, node.provider.span)
    yield Group(node.provider.text, node.args, spec.config if spec else None, close, unknown="HL304", fixed=True)


def _schema(_: nodes.Schema, __: Scope) -> Iterator[Group]:
    return iter(())


def _agent(node: nodes.Agent, _: Scope) -> Iterator[Group]:
    yield from _directives(node.directives, "agent")
    what = f"agent {node.name.text}"
    yield Group(what, node.config, catalog.AGENT_SETTINGS, node.name.span, unknown="HL304", fixed=True)


def _pipeline(node: nodes.Pipeline, scope: Scope) -> Iterator[Group]:
    yield from _directives(node.directives, "pipeline")
    for stage in node.stages:
        for call in calls(stage):
            yield from _call(call, scope)
        close = Span(stage.span.end - 1, stage.span.end)
        match stage:
            case nodes.EachStage():
                yield Group("each", stage.args, catalog.EACH, close)
            case nodes.YieldStage():
                yield Group("yield", stage.args, catalog.YIELD, close)
            case nodes.LoopStage():
                yield Group("loop", stage.args, catalog.LOOP, close)
            case _:
                pass


def _call(call: Call, scope: Scope) -> Iterator[Group]:
    callee, method = call.callee.text, call.method
    what = callee if method is None else f"{callee}.{method.text}"
    if callee == "System":
        entry = catalog.system_method(method.text) if method is not None else None
        yield Group(what, call.args, entry.signature if entry else None, call.close)
        return
    found = scope.lookup(callee)
    kind = found.kind if found is not None else Kind.UNKNOWN
    signature = None
    if found is not None and kind is Kind.PIPELINE and method is None:
        signature = _required(found.parameters)
    elif kind is Kind.TOOL and method is not None:
        entire = _method_signature(callee, method, scope)
        signature = entire.in_flow if entire is not None else None
    elif kind is Kind.AGENT:
        signature = catalog.CALL_SETTINGS
        yield from _prior_call(call, scope)
    yield Group(what, call.args, signature, call.close)


def _prior_call(call: Call, scope: Scope) -> Iterator[Group]:
    """The tool call that `tool:` makes before the prompt: it takes the named arguments that are no settings."""
    tool = prior_tool(call)
    signature = _method_signature(tool.text, call.method, scope) if tool is not None and call.method else None
    if tool is None or signature is None or call.method is None:
        return
    named: dict[str, Argument] = {}
    for argument in call.args:
        if argument.name is not None and argument.name.text not in catalog.CALL_SETTINGS.by_name:
            # A name that comes twice is told with the agent's own arguments.
            named.setdefault(argument.name.text, argument)
    yield Group(f"{tool.text}.{call.method.text}", tuple(named.values()), signature, call.close)


def _method_signature(tool: str, method: Name, scope: Scope) -> Signature | None:
    spec = scope.provider(tool)
    entry = spec.method(method.text) if spec is not None else None
    return entry.signature if entry is not None else None


_GROUPS: Final[dict[type, Callable[..., Iterator[Group]]]] = {
    nodes.Policy: _policy,
    nodes.Provider: _provider,
    nodes.Schema: _schema,
    nodes.Agent: _agent,
    nodes.Pipeline: _pipeline,
}

"""Names that the catalogue must know: methods (HL301), providers, rules and directives (HL304), models (HL306)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from halo_lang import catalog, nodes
from halo_lang.checks.references import is_agent_call, tool_names
from halo_lang.checks.walk import calls
from halo_lang.diagnostics import Diagnostic, Fix, error
from halo_lang.nodes import Call, Declaration, Name
from halo_lang.source import Span
from halo_lang.spelling import listed, nearest
from halo_lang.symbols import Scope


def methods(declaration: Declaration, scope: Scope) -> Iterator[Diagnostic]:
    """HL301: the methods of `System`, of tools, of the tool that an agent call names with `tool:`, and those that
    the rules of a policy speak of."""
    if isinstance(declaration, nodes.Policy):
        yield from _methods_in_rules(declaration.rules, scope)
    if not isinstance(declaration, nodes.Pipeline):
        return
    for stage in declaration.stages:
        for call in calls(stage):
            found = _system_method(call) if call.callee.text == "System" else _tool_method(call, scope)
            if found is not None:
                yield found


def providers(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL304 at the provider of a tool or store."""
    if isinstance(declaration, nodes.Provider) and catalog.provider(declaration.provider.text) is None:
        yield _unknown("provider", declaration.provider, catalog.providers().names)


def rules(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL304 at the rules of a policy, those in other rules included."""
    if isinstance(declaration, nodes.Policy):
        for name in _rule_names(declaration.rules):
            if catalog.rule(name.text) is None:
                yield _unknown("policy rule", name, catalog.rules().names)


def directives(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL304 at the name of a directive."""
    if isinstance(declaration, nodes.Agent | nodes.Pipeline):
        for directive in declaration.directives:
            if catalog.directive(directive.name.text) is None:
                yield _unknown("directive", directive.name, catalog.directives().names)


def models(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL306 at an agent's model and at the model of `@shadow`."""
    if not isinstance(declaration, nodes.Agent):
        return
    yield from _model(declaration.model.text, declaration.model.span)
    for directive in declaration.directives:
        for argument in directive.args:
            match argument.value:
                case nodes.ModelRef(text, span):
                    yield from _model(text, span)
                case nodes.String(value, _, span) if directive.name.text == "shadow":
                    yield from _model(value, span)
                case _:
                    pass


def prior_tool(call: Call) -> Name | None:
    """The tool of an agent call that runs before the prompt (`tool: Repo`)."""
    single = (argument for argument in call.args if argument.name is not None and argument.name.text == "tool")
    return next(tool_names(single), None)


def _system_method(call: Call) -> Diagnostic | None:
    known = [method.name for method in catalog.SYSTEM_METHODS]
    if call.method is None:
        return error("HL301", "a call of System names a method", call.callee.span, hint=f"there are {listed(known)}")
    if call.method.text in known:
        return None
    return _unknown_method("System", call.method, known)


def _tool_method(call: Call, scope: Scope) -> Diagnostic | None:
    if call.method is None:
        return None
    tool = prior_tool(call) if is_agent_call(call, scope) else call.callee
    spec = scope.provider(tool.text) if tool is not None else None
    if spec is None or tool is None or spec.method(call.method.text) is not None:
        return None
    return _unknown_method(f"{tool.text} ({spec.name})", call.method, spec.method_names)


def _methods_in_rules(rules_: Iterable[nodes.Rule], scope: Scope) -> Iterator[Diagnostic]:
    """A rule about a method that its tool does not have would hold nothing back: `DenyTools(Shell.rnu)`."""
    for rule in rules_:
        for argument in rule.args:
            match argument.value:
                case nodes.Rule():
                    yield from _methods_in_rules((argument.value,), scope)
                case nodes.Path(parts=(tool, method, *_)):
                    spec = scope.provider(tool.text)
                    if spec is not None and spec.method(method.text) is None:
                        yield _unknown_method(f"{tool.text} ({spec.name})", method, spec.method_names)
                case _:
                    pass


def _unknown_method(owner: str, name: Name, known: Iterable[str]) -> Diagnostic:
    names = list(known)
    guess = nearest(name.text, names)
    meant = f"did you mean `{guess.name}`? " if guess else ""
    return error(
        "HL301",
        f"{owner} has no method `{name.text}`",
        name.span,
        hint=f"{meant}There are {listed(names, limit=40)}" if meant else f"there are {listed(names, limit=40)}",
        fix=Fix.of(guess, name.span),
    )


def _unknown(what: str, name: Name, known: Iterable[str]) -> Diagnostic:
    names = list(known)
    guess = nearest(name.text, names)
    hint = f"did you mean `{guess.name}`?" if guess else f"there are {listed(names, limit=40)}"
    broken = catalog.why_missing(name.text)
    if broken is not None:
        message = f"the {what} `{name.text}` cannot be loaded"
        return error("HL304", message, name.span, hint=f"mend or remove the package that brings it: {broken}")
    return error("HL304", f"there is no {what} `{name.text}`", name.span, hint=hint, fix=Fix.of(guess, name.span))


def _rule_names(rules_: Iterable[nodes.Rule]) -> Iterator[Name]:
    for rule in rules_:
        yield rule.name
        spec = catalog.rule(rule.name.text)
        for argument in rule.args:
            if isinstance(argument.value, nodes.Rule):
                yield from _rule_names((argument.value,))
            elif spec is not None and isinstance(argument.value, nodes.Path) and _takes_rule(spec.signature):
                yield argument.value.parts[0]


def _takes_rule(signature: catalog.Signature) -> bool:
    return any(parameter.type == "rule" for parameter in signature.parameters)


def _model(model: str, span: Span) -> Iterator[Diagnostic]:
    if catalog.model_route(model) is not None:
        return
    prefix, slash, rest = model.partition("/")
    known = catalog.model_prefixes().names
    if not slash:
        yield _without_service(model, span)
        return
    if not rest:
        yield error("HL306", f"`{model}` names no model", span, hint=f"write the model behind the `{prefix}/`")
        return
    guess = nearest(prefix, known)
    meant = f"did you mean `{guess.name}/{rest}`?" if guess else f"services are {listed(known)}"
    place = _inside_quotes(model, span)
    fix = Fix.of(guess, Span(place, place + len(prefix)))
    yield error("HL306", f"there is no model service `{prefix}`", span, hint=meant, fix=fix)


def _without_service(model: str, span: Span) -> Diagnostic:
    message = f"`{model}` does not say which service it is from"
    service = catalog.service_of(model)
    place = _inside_quotes(model, span)
    hint = f"write `{service}/{model}`" if service else f"put the service before it, for example `openai/{model}`"
    fix = Fix(Span(place, place), f"{service}/") if service else None
    return error("HL306", message, span, hint=hint, fix=fix)


def _inside_quotes(model: str, span: Span) -> int:
    """Where a model's id begins, which may be quoted; no id needs an escape."""
    return span.start + (span.end - span.start - len(model)) // 2

"""Declared policies made into rules that can be evaluated, before a run starts (fail closed)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from halo_lang import Program, catalog, nodes
from halo_runtime.engine.guards import BoundRule
from halo_runtime.engine.plan import Plan
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies import made_by, rule_factory
from halo_runtime.policies.base import JudgedRule, RuleFactory


def bind_policies(
    plan: Plan, names: Iterable[str], factories: Mapping[str, RuleFactory]
) -> tuple[dict[str, tuple[BoundRule, ...]], list[str]]:
    """The rules of each policy, and in words what cannot be enforced.

    `factories` make rules that the host has registered, by their names.
    """
    program = plan.program
    bound: dict[str, tuple[BoundRule, ...]] = {}
    problems: list[str] = []
    for name in sorted(names):
        policy = program.find(name)
        if isinstance(policy, nodes.Policy):
            try:
                bound[name] = tuple(_bind(plan, factories, policy, rule) for rule in policy.rules)
            except ConfigError as error:
                problems.append(f"policy {name}: {error.message}")
    return bound, problems


def judge_models(rules: Iterable[BoundRule]) -> set[str]:
    """The models that rules ask."""
    return {bound.rule.judge_model for bound in rules if isinstance(bound.rule, JudgedRule)}


def _bind(plan: Plan, factories: Mapping[str, RuleFactory], policy: nodes.Policy, rule: nodes.Rule) -> BoundRule:
    text, told = (_as_written(plan.program, policy, rule, hidden) for hidden in (False, True))
    audited = rule.name.text == "Audit"
    if audited:
        (rule,) = (argument.value for argument in rule.args if isinstance(argument.value, nodes.Rule))
    name = rule.name.text
    made = made_by(name, factories.get(name) or rule_factory(name), _arguments(plan, rule))
    if audited and not made.points:
        raise ConfigError(f"{text}: {name} looks at no text, so it cannot be tried; take Audit away")
    return BoundRule(policy.name.text, text, made, audited, told if told != text else None)


def _as_written(program: Program, policy: nodes.Policy, rule: nodes.Rule, hidden: bool) -> str:
    """A rule as the program has it, on one line; `hidden` without the patterns that it stops."""
    text, at, parts = program.source.text, program.span(policy, rule.span).start, list[str]()
    for pattern in _patterns(rule) if hidden else ():
        span = program.span(policy, pattern.span)
        parts += (text[at : span.start], '"…"')
        at = span.end
    return " ".join("".join((*parts, text[at : program.span(policy, rule.span).end])).split())


def _patterns(rule: nodes.Rule) -> Iterator[nodes.String]:
    spec = catalog.rule(rule.name.text)
    stops = spec is not None and spec.signature.rest is not None and spec.signature.rest.type == "pattern"
    for argument in rule.args:
        if isinstance(argument.value, nodes.Rule):
            yield from _patterns(argument.value)
        elif stops and argument.name is None and isinstance(argument.value, nodes.String):
            yield argument.value


def _arguments(plan: Plan, rule: nodes.Rule) -> JsonObject:
    """The arguments by name. The name of a schema gives way to the schema itself, as a SchemaType."""
    spec = catalog.rule(rule.name.text)
    positional = [_value(argument.value) for argument in rule.args if argument.name is None]
    named = {argument.name.text: _value(argument.value) for argument in rule.args if argument.name is not None}
    if spec is None:
        return named
    arguments = spec.signature.bind(positional, named).values()
    for parameter in spec.signature.parameters:
        if parameter.type == "schema" and parameter.name in arguments:
            arguments[parameter.name] = plan.schemas.named(str(arguments[parameter.name]))
    return arguments


def _value(node: nodes.ArgumentValue) -> Json:
    """A rule's argument as JSON: names as text, durations as written."""
    match node:
        case nodes.String() | nodes.Number() | nodes.Boolean():
            return node.value
        case nodes.Duration() | nodes.ModelRef():
            return node.text
        case nodes.Null():
            return None
        case nodes.ListValue():
            return [_value(item) for item in node.items]
        case nodes.Path():
            return ".".join(node.segments)
        case nodes.Rule():
            raise AssertionError("only Audit takes a rule")

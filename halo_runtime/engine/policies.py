"""Declared policies made into rules that can be evaluated, before a run starts (fail closed)."""

from __future__ import annotations

from collections.abc import Iterable

from halo_lang import Program, catalog, nodes
from halo_runtime.engine.guards import BoundRule
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies import rule_factory


def bind_policies(program: Program, names: Iterable[str]) -> tuple[dict[str, tuple[BoundRule, ...]], list[str]]:
    """The rules of each policy, and in words what cannot be enforced."""
    bound: dict[str, tuple[BoundRule, ...]] = {}
    problems: list[str] = []
    for name in sorted(names):
        policy = program.find(name)
        if isinstance(policy, nodes.Policy):
            try:
                bound[name] = tuple(_bind(program, policy, rule) for rule in policy.rules)
            except ConfigError as error:
                problems.append(f"policy {name}: {error.message}")
    return bound, problems


def _bind(program: Program, policy: nodes.Policy, rule: nodes.Rule) -> BoundRule:
    span = program.span(policy, rule.span)
    text = " ".join(program.source.text[span.start : span.end].split())
    audited = rule.name.text == "Audit"
    if audited:
        (rule,) = (argument.value for argument in rule.args if isinstance(argument.value, nodes.Rule))
    made = rule_factory(rule.name.text)(_arguments(rule))
    if audited and not made.points:
        raise ConfigError(f"{text}: {rule.name.text} looks at no text, so it cannot be tried; take Audit away")
    return BoundRule(policy.name.text, text, made, audited)


def _arguments(rule: nodes.Rule) -> JsonObject:
    spec = catalog.rule(rule.name.text)
    positional = [_value(argument.value) for argument in rule.args if argument.name is None]
    named = {argument.name.text: _value(argument.value) for argument in rule.args if argument.name is not None}
    return spec.signature.bind(positional, named).values() if spec else named


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

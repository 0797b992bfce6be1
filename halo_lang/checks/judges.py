"""Rules that a judge model decides, without a judge (HL512)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from halo_lang import nodes
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Declaration
from halo_lang.symbols import Scope

_JUDGED: Final = "Toxicity"
"""A kind of `Block(…)` that no list of words tells."""


def missing_judges(declaration: Declaration, _: Scope) -> Iterator[Diagnostic]:
    """HL512 at a rule that asks a model and names none: no run starts with it."""
    if isinstance(declaration, nodes.Policy):
        yield from _missing(declaration.rules)


def _missing(rules: Iterable[nodes.Rule]) -> Iterator[Diagnostic]:
    for rule in rules:
        yield from _missing(argument.value for argument in rule.args if isinstance(argument.value, nodes.Rule))
        if rule.name.text == "Block" and (asks := _what_asks(rule)) and not _names_judge(rule):
            message = f"Block({asks}) asks a judge model, and none is named, so no run starts"
            hint = 'name one, as in `Block(Toxicity, model: "openai/gpt-4o-mini")`'
            yield Diagnostic("HL512", Severity.WARNING, message, rule.span, hint)


def _what_asks(rule: nodes.Rule) -> str | None:
    """What of the rule's arguments a model decides."""
    for argument in rule.args:
        if argument.name is not None and argument.name.text == "Topic":
            return "Topic: …"
        if argument.name is None and isinstance(argument.value, nodes.Path) and argument.value.root == _JUDGED:
            return _JUDGED
    return None


def _names_judge(rule: nodes.Rule) -> bool:
    named = (argument.value for argument in rule.args if argument.name is not None and argument.name.text == "model")
    return any(not (isinstance(value, nodes.String) and not value.value.strip()) for value in named)

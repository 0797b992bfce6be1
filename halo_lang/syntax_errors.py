"""From what the parser could not read to what a person can mend.

`explain` takes the first entry of mistakes.py that fits the place where parsing stopped, and else says what was
found there and what could have stood there.
"""

from __future__ import annotations

from collections.abc import Iterator

from halo_lang.automaton import END, Stopped
from halo_lang.diagnostics import Diagnostic, error
from halo_lang.grammar import spelling
from halo_lang.mistakes import MISTAKES
from halo_lang.situation import DECLARATIONS, OPERANDS, VALUES, Situation
from halo_lang.source import Span

# Sets of terminals that people know under one name, larger ones before their parts.
_GROUPS = (
    (OPERANDS, "a condition"),
    (VALUES, "a value"),
    (DECLARATIONS, "a declaration"),
    (frozenset(("PIPE", "GATE", "FAN", "HUMAN", "EVENT", "AGAIN")), "a stage such as `|> Agent.method()`"),
    (frozenset(("COMPARATOR", "_AND", "_OR")), "an operator such as `==` or `&&`"),
)
_CALLED = {
    "NAME": "a name",
    "STRING": "a string",
    "DIGITS": "an index",
    "MODEL": "a model such as `openai/gpt-4o-mini`",
    "COMPARATOR": "a comparison such as `==`",
}
# What may follow where a part of a program is complete.
_NEXT = {"declaration": "the next declaration", "value": "a stage", "stage": "the next stage"}
_PARTS = {
    "declaration": "the declaration",
    "head": "the pipeline's head",
    "value": "the start value",
    "stage": "the stage",
    "condition": "the condition",
}


def explain(stop: Stopped, text: str, span: Span, rule: str) -> Diagnostic:
    """The diagnostic for what stopped the parser while it read `span` of `text` by a rule of the grammar."""
    # Nothing fits where a whole value stands in front of a token that other places allow behind one.
    expected = stop.expected or frozenset((END,))
    situation = Situation.at(stop.place, text, span, rule, expected)
    for mistake in MISTAKES:
        if mistake.applies(situation):
            return mistake.diagnostic(situation)
    found = str(situation.found) if situation.found.text else f"the end of {_PARTS[rule]}"
    words = [*_words(expected - {END}), *([_NEXT.get(rule, "the end")] if END in expected else [])]
    wanted = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return error("HL102", f"expected {wanted}, found {found}", situation.found.span)


def _words(terminals: frozenset[str]) -> Iterator[str]:
    """What people call the terminals."""
    for group, words in _GROUPS:
        if group <= terminals:
            terminals -= group
            yield words
    for terminal in sorted(terminals):
        yield _CALLED.get(terminal) or f"`{spelling(terminal)}`"

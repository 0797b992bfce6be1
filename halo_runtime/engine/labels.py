"""Stages as one line of text, for people and for the hash chain.

A label follows from the syntax tree alone, so layout and comments do not change it.
"""

from __future__ import annotations

from halo_lang import nodes
from halo_runtime.conditions import describe

LONGEST = 100
"""Code points. Longer conditions are cut; the chain binds the whole program by its hash."""

_JOINED = {nodes.And: " && ", nodes.Or: " || "}


def call_label(call: nodes.Call) -> str:
    """`Writer.summarize`, or `Review` for a pipeline."""
    return call.callee.text if call.method is None else f"{call.callee.text}.{call.method.text}"


def condition_label(condition: nodes.Condition) -> str:
    """A condition as text: `n > 5 && (a == b || c)`."""
    text = _text(condition, nested=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _text(condition: nodes.Condition, *, nested: bool) -> str:
    if not isinstance(condition, nodes.And | nodes.Or):
        return describe(condition)
    text = _JOINED[type(condition)].join(_text(operand, nested=True) for operand in condition.operands)
    return f"({text})" if nested else text

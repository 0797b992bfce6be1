"""Conditions that come out the same in every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from halo_lang import nodes
from halo_lang.nodes import Comparator, Comparison, Condition

_SIGNS: Final[dict[Comparator, tuple[int, ...]]] = {
    "==": (0,),
    "!=": (-1, 1),
    "<": (-1,),
    "<=": (-1, 0),
    ">": (1,),
    ">=": (0, 1),
}
"""For each comparison the orders of left to right in which it holds."""


def constant(condition: Condition) -> bool | None:
    """Whether a condition always passes (True) or never does (False); None where that depends on the run.

    Only literals are known. Of two that a comparison holds side by side, two numbers or two texts are compared; how
    other types meet is left to the run.
    """
    # HL106 bounds how deep conditions nest, so this may recurse.
    match condition:
        case nodes.Or(operands):
            return _decided(True, map(constant, operands))
        case nodes.And(operands):
            return _decided(False, map(constant, operands))
        case nodes.Not(operand):
            known = constant(operand)
            return None if known is None else not known
        case Comparison():
            return _compared(condition)
        case _:
            return _truth(condition)


def _decided(decisive: bool, operands: Iterable[bool | None]) -> bool | None:
    known = set(operands)
    if decisive in known:
        return decisive
    return None if None in known else not decisive


def _compared(condition: Comparison) -> bool | None:
    match condition.left, condition.right:
        case nodes.Number(left), nodes.Number(right):
            order = (left > right) - (left < right)
        case nodes.String(left), nodes.String(right):
            order = (left > right) - (left < right)
        case _:
            return None
    return order in _SIGNS[condition.operator]


def _truth(literal: Condition) -> bool | None:
    match literal:
        case nodes.Boolean(value):
            return value
        case nodes.Number(value):
            return value != 0
        case nodes.String(value):
            return value not in ("", "false")
        case nodes.Null():
            return False
        case _:
            return None

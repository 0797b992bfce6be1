"""Conditions of gates, branches and loops: compiled once a program, evaluated in three-valued logic (spec 2.3, 12.2).

A condition is true, false or *unknown*. Unknown comes from an ordering with null or a missing path; it spreads by
Kleene's rules and never passes, so a guard on a value that is not there stays shut, also when it is negated.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from halo_lang import nodes
from halo_lang.nodes import And, Comparison, Not, Or
from halo_lang.records import record
from halo_runtime.errors import ConditionError
from halo_runtime.json_types import MISSING, Json, Missing
from halo_runtime.values import compact, truthy, type_name

Read: TypeAlias = Callable[[tuple[str, ...]], Json | Missing]
"""Gives the value at a path's segments, MISSING where there is none."""

# A truth is a bool or, where it is unknown, the comparison that made it so: that is what a warning has to name.
_Truth: TypeAlias = bool | Comparison
_Logic: TypeAlias = Callable[[Read], _Truth]
_Operand: TypeAlias = Callable[[Read], Json]

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLEANS: Final = {"true": True, "false": False}
_ORDERINGS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Verdict(NamedTuple):
    """What a condition came to. `value` None is unknown, and then `unknown` is the comparison it comes from."""

    value: bool | None
    unknown: Comparison | None = None

    @property
    def passes(self) -> bool:
        return self.value is True


_TRUE: Final = Verdict(True)
_FALSE: Final = Verdict(False)


@record
class CompiledCondition:
    """A condition ready to be evaluated often; `paths` are all paths it may read, in order of first mention."""

    paths: tuple[tuple[str, ...], ...]
    _logic: _Logic

    def evaluate(self, read: Read) -> Verdict:
        """Evaluate, reading no more paths than needed.

        Raises ConditionError, naming the comparison and both types, where two values have no order.
        """
        truth = self._logic(read)
        if truth is True:
            return _TRUE
        return _FALSE if truth is False else Verdict(None, truth)


def compile_condition(node: nodes.Condition) -> CompiledCondition:
    """Turn a condition's tree into closures."""
    paths: dict[tuple[str, ...], None] = {}
    logic = _logic(node, paths)
    return CompiledCondition(tuple(paths), logic)


def describe(node: nodes.Condition) -> str:
    """A condition as text, for warnings and errors; what is nested or long is shortened to `…`."""
    match node:
        case Comparison():
            return f"{_operand_text(node.left)} {node.operator} {_operand_text(node.right)}"
        case _:
            return _operand_text(node)


def equal(left: Json, right: Json) -> bool:
    """`==`: deep, and at the top level a String that is a number or a Boolean meets one of these as one."""
    if left.__class__ is right.__class__ and left.__class__ is not list and left.__class__ is not dict:
        return left == right
    return _same(_as_kind_of(left, right), _as_kind_of(right, left))


# --- logic --------------------------------------------------------------------------------------------------


def _logic(node: nodes.Condition, paths: dict[tuple[str, ...], None]) -> _Logic:
    match node:
        case And(operands):
            return partial(_chain, tuple(_logic(operand, paths) for operand in operands), False)
        case Or(operands):
            return partial(_chain, tuple(_logic(operand, paths) for operand in operands), True)
        case Not():
            return _negation(node, paths)
        case Comparison():
            return _comparison(node, paths)
        case _:
            operand = _operand(node, paths)
            return lambda read: truthy(operand(read))


def _chain(operands: tuple[_Logic, ...], decisive: bool, read: Read) -> _Truth:
    """Kleene's `&&` (decided by a false) and `||` (decided by a true); an unknown decides nothing."""
    unknown: Comparison | None = None
    for operand in operands:
        truth = operand(read)
        if truth is decisive:
            return decisive
        if unknown is None and isinstance(truth, Comparison):
            unknown = truth
    return not decisive if unknown is None else unknown


def _negation(node: Not, paths: dict[tuple[str, ...], None]) -> _Logic:
    negated = False
    inner: nodes.Condition = node
    while isinstance(inner, Not):
        negated = not negated
        inner = inner.operand
    logic = _logic(inner, paths)
    if not negated:
        return logic

    def negation(read: Read) -> _Truth:
        truth = logic(read)
        return truth if isinstance(truth, Comparison) else not truth

    return negation


def _operand(node: nodes.Condition, paths: dict[tuple[str, ...], None]) -> _Operand:
    match node:
        case nodes.Path():
            paths[node.segments] = None
            return partial(_read_or_null, node.segments)
        case And() | Or() | Not() | Comparison():
            return _logic(node, paths)
        case _:
            value = _literal(node)
            return lambda _: value


def _read_or_null(segments: tuple[str, ...], read: Read) -> Json:
    value = read(segments)
    return None if value is MISSING else value


def _literal(node: nodes.String | nodes.Number | nodes.Duration | nodes.Boolean | nodes.Null) -> Json:
    match node:
        case nodes.Duration():
            return node.text
        case nodes.Null():
            return None
        case _:
            return node.value


# --- comparisons --------------------------------------------------------------------------------------------


def _comparison(node: Comparison, paths: dict[tuple[str, ...], None]) -> _Logic:
    left, right = _operand(node.left, paths), _operand(node.right, paths)
    compare = _equality(node) if node.operator in ("==", "!=") else partial(_order, node)

    def comparison(read: Read) -> _Truth:
        a, b = left(read), right(read)
        if a.__class__ is Comparison:
            return a
        if b.__class__ is Comparison:
            return b
        return compare(a, b)

    return comparison


def _equality(node: Comparison) -> Callable[[Json, Json], bool]:
    wanted = node.operator == "=="
    return lambda a, b: equal(a, b) is wanted


def _order(node: Comparison, left: Json, right: Json) -> _Truth:
    if left is None or right is None:
        return node
    a, b = _as_kind_of(left, right), _as_kind_of(right, left)
    if (_is_number(a) and _is_number(b)) or (a.__class__ is str and b.__class__ is str):
        return _ORDERINGS[node.operator](a, b)
    raise ConditionError(
        f"`{describe(node)}` compares a {type_name(left)} with a {type_name(right)}: "
        "only two numbers or two strings have an order"
    )


def _as_kind_of(value: Json, other: Json) -> Json:
    """Models answer text: a String becomes the number or Boolean that it spells where it meets one."""
    if value.__class__ is not str or other.__class__ is str:
        return value
    if other.__class__ is bool:
        return _BOOLEANS.get(value, value)
    if _is_number(other):
        found = _NUMBER.fullmatch(value)
        return value if found is None else _number(value, whole=found.lastindex is None)
    return value


def _number(text: str, *, whole: bool) -> int | float:
    # int() refuses texts of more than 4,300 digits; as no value is that large, infinity compares alike.
    return int(text) if whole and len(text) < 4_000 else float(text)


def _is_number(value: Json) -> bool:
    return value.__class__ is int or value.__class__ is float


def _same(left: Json, right: Json) -> bool:
    # Python's == takes True for 1, also deep inside, and is right and fast for all else.
    return left == right and _booleans_agree(left, right)


def _booleans_agree(left: Json, right: Json) -> bool:
    if left.__class__ is list:
        return all(map(_booleans_agree, left, right))
    if left.__class__ is dict:
        return all(_booleans_agree(value, right[key]) for key, value in left.items())
    return (left.__class__ is bool) == (right.__class__ is bool)


# --- text ---------------------------------------------------------------------------------------------------


def _operand_text(node: nodes.Condition) -> str:
    match node:
        case nodes.Path():
            return ".".join(node.segments)
        case Not():
            return f"!{_operand_text(node.operand)}" if not isinstance(node.operand, Not) else "!…"
        case And() | Or() | Comparison():
            return "(…)"
        case _:
            text = compact(_literal(node))
            return text if len(text) <= 40 else f"{text[:39]}…"

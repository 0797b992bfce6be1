"""Conditions: comparisons of JSON values, Kleene's logic, and what is read."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import nodes, parse_condition
from halo_lang.diagnostics import Diagnostic
from halo_lang.source import Span
from halo_runtime.conditions import CompiledCondition, Verdict, compile_condition, describe
from halo_runtime.errors import ConditionError
from halo_runtime.json_types import MISSING, Json, Missing
from halo_runtime.values import lookup

SPAN = Span(0, 0)


def parsed(text: str) -> nodes.Condition:
    condition = parse_condition(text)
    assert not isinstance(condition, Diagnostic), condition
    return condition


def compiled(text: str) -> CompiledCondition:
    return compile_condition(parsed(text))


def verdict(text: str, **values: Json) -> bool | None:
    return compiled(text).evaluate(lambda path: lookup(values, path)).value


# --- a reference: truth tables and the words of the specification, without a thought for speed -----------------

AND = {
    ("T", "T"): "T", ("T", "U"): "U", ("T", "F"): "F",
    ("U", "T"): "U", ("U", "U"): "U", ("U", "F"): "F",
    ("F", "T"): "F", ("F", "U"): "F", ("F", "F"): "F",
}  # fmt: skip
NOT = {"T": "F", "U": "U", "F": "T"}
DECIDES = {nodes.And: "F", nodes.Or: "T"}
KINDS = {bool: "Boolean", int: "Number", float: "Number", str: "String", list: "List", dict: "Object"}
JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)


class NoOrder(Exception):
    """Two values that cannot be ordered."""


def truth(node: nodes.Condition, values: dict[str, Json]) -> str:
    """T, F or U."""
    if isinstance(node, nodes.And | nodes.Or):
        return chained(node, values)
    if isinstance(node, nodes.Not):
        return NOT[truth(node.operand, values)]
    if isinstance(node, nodes.Comparison):
        return compared(node, values)
    value = operand(node, values)
    return "F" if any(alike(value, empty) for empty in (None, False, 0, "", "false", [], {})) else "T"


def operand(node: nodes.Condition, values: dict[str, Json]) -> Json:
    if isinstance(node, nodes.Path):
        return values.get(node.root)
    if isinstance(node, nodes.Null):
        return None
    if isinstance(node, nodes.String | nodes.Number | nodes.Boolean):
        return node.value
    return {"T": True, "F": False, "U": "unknown"}[truth(node, values)]


def chained(node: nodes.And | nodes.Or, values: dict[str, Json]) -> str:
    found = truth(node.operands[0], values)
    for operand in node.operands[1:]:
        if found == DECIDES[type(node)]:
            return found
        more = truth(operand, values)
        # De Morgan: one table is enough.
        found = AND[found, more] if isinstance(node, nodes.And) else NOT[AND[NOT[found], NOT[more]]]
    return found


def compared(node: nodes.Comparison, values: dict[str, Json]) -> str:
    logical = (nodes.And, nodes.Or, nodes.Not, nodes.Comparison)
    unknown = [isinstance(side, logical) and truth(side, values) == "U" for side in (node.left, node.right)]
    a, b = operand(node.left, values), operand(node.right, values)
    if any(unknown):
        return "U"
    if node.operator in ("==", "!="):
        return "T" if alike(met(a, b), met(b, a)) == (node.operator == "==") else "F"
    if a is None or b is None:
        return "U"
    a, b = met(a, b), met(b, a)
    if (kind(a), kind(b)) not in (("Number", "Number"), ("String", "String")):
        raise NoOrder
    return "T" if {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[node.operator] else "F"


def met(value: Json, other: Json) -> Json:
    """A String that meets a Number or a Boolean."""
    if kind(value) == "String" and kind(other) == "Number" and JSON_NUMBER.fullmatch(value):
        return json.loads(value)
    if kind(value) == "String" and kind(other) == "Boolean" and value in ("true", "false"):
        return json.loads(value)
    return value


def kind(value: Json) -> str:
    return KINDS.get(type(value), "Null")


def alike(a: Json, b: Json) -> bool:
    """Deep equality that knows true from 1."""
    if kind(a) != kind(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    return a == b


SCALARS: list[Json] = [None, True, False, 0, 1, 1.0, 7, "", "0", "1", "7", "7.0", "07", " 7", "true", "false", "abc"]
VALUES = [*SCALARS, [], [1], ["1"], [True], {}, {"a": 1}, {"a": True}]
NAMES = ("a", "b", "c", "missing")


def literal(value: Json) -> nodes.Condition:
    kinds = {str: lambda: nodes.String(value, '"', SPAN), bool: lambda: nodes.Boolean(value, SPAN)}
    return nodes.Null(SPAN) if value is None else kinds.get(type(value), lambda: nodes.Number(value, SPAN))()


LEAVES = st.sampled_from(SCALARS).map(literal) | st.sampled_from(NAMES).map(
    lambda name: nodes.Path((nodes.Name(name, SPAN),), SPAN)
)


def compounds(inner: st.SearchStrategy[nodes.Condition]) -> st.SearchStrategy[nodes.Condition]:
    span = st.just(SPAN)
    operands = st.lists(inner, min_size=2, max_size=4).map(tuple)
    operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return (
        st.builds(nodes.And, operands, span)
        | st.builds(nodes.Or, operands, span)
        | st.builds(nodes.Not, inner, span)
        | st.builds(nodes.Comparison, operators, inner, inner, span)
    )


CONDITIONS = st.recursive(LEAVES, compounds, max_leaves=10)
CONTEXTS = st.fixed_dictionaries({name: st.sampled_from(VALUES) for name in NAMES[:3]})


def agree(node: nodes.Condition, values: dict[str, Json]) -> None:
    """The compiled condition and the reference come to the same, an error included."""
    letters = {True: "T", False: "F", None: "U"}
    try:
        expected = truth(node, values)
    except NoOrder:
        with pytest.raises(ConditionError):
            compile_condition(node).evaluate(lambda path: lookup(values, path))
    else:
        found = compile_condition(node).evaluate(lambda path: lookup(values, path))
        assert letters[found.value] == expected
        assert (found.unknown is not None) == (expected == "U")


@settings(max_examples=300)
@given(CONDITIONS, CONTEXTS)
def test_conditions_agree_with_the_reference(node: nodes.Condition, values: dict[str, Json]) -> None:
    agree(node, values)


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_every_two_values_compare_as_the_reference_says(operator: str) -> None:
    node = parsed(f"a {operator} b")
    for a, b in itertools.product(VALUES, VALUES):
        agree(node, {"a": a, "b": b})


TRUE, FALSE, UNKNOWN = (parsed(text) for text in ("1 == 1", "1 == 2", "null > 1"))


def all_of_one_operator() -> list[nodes.Condition]:
    """Every operator over true, false and unknown."""
    sides = list(itertools.product((TRUE, FALSE, UNKNOWN), repeat=2))
    equalities = [nodes.Comparison(operator, a, b, SPAN) for operator in ("==", "!=") for a, b in sides]
    chains = [kind((a, b), SPAN) for kind in (nodes.And, nodes.Or) for a, b in sides]
    negations = [nodes.Not(a, SPAN) for a in (TRUE, FALSE, UNKNOWN)]
    return [*equalities, *chains, *negations, TRUE, FALSE, UNKNOWN]


@pytest.mark.parametrize("kind", [nodes.And, nodes.Or])
def test_every_two_truths_combine_as_the_tables_say(kind: type[nodes.And | nodes.Or]) -> None:
    for left, right in itertools.product(all_of_one_operator(), repeat=2):
        agree(kind((left, right), SPAN), {})
        agree(nodes.Comparison("==", left, right, SPAN), {})


# --- comparisons --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("7.0", 7), ("-0.5e1", -5), ("1e3", 1000), ("9007199254740993", 9007199254740993), ("true", True)],
)
def test_text_that_is_a_number_or_boolean_meets_one_as_such(text: str, value: Json) -> None:
    assert verdict("a == b", a=text, b=value) is True
    assert verdict("b == a", a=text, b=value) is True


@pytest.mark.parametrize(
    ("text", "value"),
    [("7 apples", 7), (" 7", 7), ("7\n", 7), ("07", 7), (".5", 0.5), ("٧", 7), ("NaN", 0), ("True", True), ("1", True)],
)
def test_text_that_only_looks_like_a_number_or_boolean_stays_text(text: str, value: Json) -> None:
    assert verdict("a == b", a=text, b=value) is False


def test_a_text_of_thousands_of_digits_is_a_number_too() -> None:
    assert verdict("a > 3", a="9" * 5000) is True
    assert verdict("a == 3", a="9" * 5000) is False


def test_inside_lists_and_objects_text_stays_text_and_true_is_not_one() -> None:
    assert verdict("a == b", a=["7"], b=[7]) is False
    assert verdict("a == b", a={"x": "true"}, b={"x": True}) is False
    assert verdict("a == b", a=[[True]], b=[[1]]) is False
    assert verdict("a == b", a={"x": [1, {"y": 2}], "z": 0}, b={"z": 0.0, "x": [1.0, {"y": 2}]}) is True


def test_two_strings_are_ordered_as_text_also_where_both_are_numbers() -> None:
    assert verdict('"10" < "9"') is True


def test_a_duration_is_its_text() -> None:
    assert verdict("a == 90s", a="90s") is True


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [("a > 3", "String", "Number"), ("3 > a", "Number", "String"), ("a < true", "String", "Boolean")],
)
def test_values_without_an_order_are_an_error_that_names_the_comparison_and_both_types(
    text: str, left: str, right: str
) -> None:
    with pytest.raises(ConditionError, match=f"`{re.escape(text)}` compares a {left} with a {right}"):
        verdict(text, a="abc")


@pytest.mark.parametrize("value", [True, [1], {"a": 1}, "abc"])
def test_only_numbers_and_strings_have_an_order(value: Json) -> None:
    with pytest.raises(ConditionError):
        verdict("a >= 1", a=value)


# --- logic --------------------------------------------------------------------------------------------------


def test_a_missing_path_is_null() -> None:
    assert verdict("nobody == null") is True
    assert verdict("nobody") is False


@pytest.mark.parametrize(
    "text", ["n > 3", "!(n > 3)", "!!(n > 3)", "nobody <= 3", "(n > 3) == false", "(n > 3) != true", "n < nobody"]
)
def test_an_ordering_with_null_is_unknown_however_it_is_turned(text: str) -> None:
    assert verdict(text, n=None) is None


def test_an_unknown_verdict_does_not_pass_and_names_its_comparison() -> None:
    found = compiled("!(x && n > 3)").evaluate(lambda path: {"x": 1, "n": None}[path[0]])
    assert found.unknown is not None
    assert not found.passes
    assert describe(found.unknown) == "n > 3"


def test_a_decided_condition_does_not_mention_unknown_parts() -> None:
    found = compiled("n > 3 || x == 1").evaluate(lambda path: {"x": 1, "n": None}[path[0]])
    assert found == Verdict(True, None)


@pytest.mark.parametrize("text", ["no && boom > 1", "yes || boom > 1", "yes || no && boom > 1"])
def test_what_is_decided_reads_no_further(text: str) -> None:
    def read(path: tuple[str, ...]) -> Json | Missing:
        assert path != ("boom",)
        return path == ("yes",)

    assert compiled(text).evaluate(read).value is text.startswith("yes")


def test_an_unknown_left_side_does_not_hide_an_error_on_the_right() -> None:
    with pytest.raises(ConditionError):
        verdict("n > 3 && word > 1", n=None, word="abc")


def test_precedence_is_or_and_comparison_not() -> None:
    assert verdict("no && no || !no", no=False) is True
    assert verdict("!word == no", word="abc", no=False) is True


# --- compiling ----------------------------------------------------------------------------------------------


def test_paths_are_all_that_may_be_read_each_once() -> None:
    condition = compiled("a.0.x > 3 && !(context.data.b == a.0.x) || c")
    assert condition.paths == (("a", "0", "x"), ("context", "data", "b"), ("c",))


def test_a_path_is_read_by_its_segments() -> None:
    assert verdict("a.0.x == 5", a=[{"x": 5}]) is True
    assert compiled("a").evaluate(lambda _: MISSING).value is False


@pytest.mark.parametrize("kind", [nodes.And, nodes.Or])
def test_chains_longer_than_the_stack_is_deep_evaluate(kind: type[nodes.And | nodes.Or]) -> None:
    chain = kind((literal(1),) * 5000, SPAN)
    assert compile_condition(chain).evaluate(lambda _: MISSING).value is True


def test_thousands_of_negations_evaluate() -> None:
    node: nodes.Condition = literal("x")
    for _ in range(5001):
        node = nodes.Not(node, SPAN)
    assert compile_condition(node).evaluate(lambda _: MISSING).value is False
    assert describe(node) == "!…"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.b >= 3.0", "a.b >= 3"),
        ('!a == "x"', '!a == "x"'),
        ("(a > 1) != null", "(…) != null"),
        (f'a == "{"x" * 99}"', f'a == "{"x" * 38}…'),
    ],
)
def test_a_comparison_is_described_as_it_is_written_but_short(text: str, said: str) -> None:
    assert describe(parsed(text)) == said

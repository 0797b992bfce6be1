"""JSON values as text, as canonical bytes, by path, and for truth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import RunError
from halo_runtime.json_types import MISSING, Json
from halo_runtime.values import (
    MAX_DEPTH,
    MAX_WRITTEN_DEPTH,
    canonical,
    compact,
    digest,
    indented,
    lookup,
    number_text,
    parse_json,
    text_of,
    truthy,
    type_name,
)


def json_values(integers: st.SearchStrategy[int], characters: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    texts = st.text(characters)
    scalars = st.none() | st.booleans() | integers | st.floats(allow_nan=False, allow_infinity=False) | texts
    return st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=12)


EXACT = st.integers(-(2**53) + 1, 2**53 - 1)
RFC_VALUES = json_values(EXACT, st.characters(exclude_categories=["Cs"]))
ALL_VALUES = json_values(st.integers(), st.characters())


# --- writing ------------------------------------------------------------------------------------------------


@given(RFC_VALUES)
def test_canonical_is_rfc_8785_where_that_has_a_form(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(ALL_VALUES)
def test_all_written_forms_of_any_value_are_json_that_says_the_same(value: Json) -> None:
    for text in (compact(value), indented(value), canonical(value).decode("utf-8", "surrogatepass")):
        assert canonical(json.loads(text)) == canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_written_as_ecmascript_does(number: float) -> None:
    assert number_text(number) == rfc8785.dumps(number).decode()


@given(ALL_VALUES)
def test_canonical_does_not_depend_on_the_order_of_keys(value: Json) -> None:
    assert canonical(reordered(value)) == canonical(value)


def reordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(ALL_VALUES)
def test_indented_without_floats_is_what_python_writes(value: Json) -> None:
    value = without_floats(value)
    assert indented(value) == json.dumps(value, indent=2, ensure_ascii=False)


def without_floats(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: without_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_floats(item) for item in value]
    return 0 if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (2.50, "2.5"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (0.00001, "0.00001"),
        (float(2**60), "1152921504606847000"),
        (2**60, "1152921504606846976"),
        (None, "null"),
        (True, "true"),
        ([1.0, [True, None]], "[1,[true,null]]"),
        ({"b": 1.0, "a": "é漢", "n": None}, '{"b":1,"a":"é漢","n":null}'),
        ("a\n\x7f\x1f", '"a\\n\x7f\\u001f"'),
    ],
)
def test_compact_writes_ecmascript_numbers_whole_ints_and_raw_text_in_key_order(value: Json, text: str) -> None:
    assert compact(value) == text


def test_in_a_text_strings_are_as_they_are_and_others_compact() -> None:
    assert text_of('say "x"') == 'say "x"'
    assert text_of(["x"]) == '["x"]'


def test_canonical_sorts_keys_by_utf_16_unit() -> None:
    # U+1F600 is D83D DE00 in UTF-16, so it stands before U+FFEE, though its code point is larger.
    assert canonical({"\uffee": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\uffee":1}'.encode()


def test_a_lone_surrogate_has_a_hash_of_its_own() -> None:
    assert len({digest("\ud800"), digest("\udfff"), digest("?"), digest({"\ud800": 1})}) == 4


def test_digest_is_the_sha_256_of_the_canonical_form() -> None:
    assert digest({"b": 1.0, "a": 2}) == "d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772"


def nested(depth: int, innermost: Json) -> Json:
    value = innermost
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return value


WRITERS = [compact, indented, canonical, digest]


@pytest.mark.parametrize("innermost", [1, 0.5])
@pytest.mark.parametrize("write", WRITERS)
def test_a_program_may_wrap_the_deepest_value_that_comes_in_but_not_without_end(
    write: Callable[[Json], str | bytes], innermost: Json
) -> None:
    assert write(nested(MAX_WRITTEN_DEPTH, innermost))
    for depth in (MAX_WRITTEN_DEPTH + 1, 100_000):
        with pytest.raises(RunError, match="nested deeper than 300"):
            write(nested(depth, innermost))


# --- reading ------------------------------------------------------------------------------------------------

DOCUMENT: Json = {"a": {"b": [10, {"c": None}]}, "0": "zero", "text": "abc"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.0", 10),
        ("a.b.1.c", None),
        ("0", "zero"),
        ("a.b.00", 10),
        ("a.b.2", MISSING),
        ("a.b.x", MISSING),
        ("a.b.-1", MISSING),
        ("a.b.²", MISSING),
        ("a.b." + "9" * 5000, MISSING),
        ("a.b.1.c.d", MISSING),
        ("text.0", MISSING),
        ("nobody", MISSING),
    ],
)
def test_digits_index_a_list_and_are_keys_of_an_object(path: str, value: Json) -> None:
    assert lookup(DOCUMENT, tuple(path.split("."))) is value


def test_no_segments_lead_to_the_value_itself() -> None:
    assert lookup(DOCUMENT, ()) is DOCUMENT


@pytest.mark.parametrize("value", [None, False, 0, 0.0, -0.0, "", "false", [], {}], ids=repr)
def test_a_bare_value_fails_for_null_false_zero_and_what_is_empty(value: Json) -> None:
    assert not truthy(value)


@pytest.mark.parametrize("value", [True, 1, -1, 0.1, "x", "0", "null", "False", " ", [0], {"a": None}], ids=repr)
def test_any_other_bare_value_passes(value: Json) -> None:
    assert truthy(value)


def test_types_have_the_names_of_the_language() -> None:
    values: list[Json] = [None, True, 1, 1.5, "", [], {}, MISSING]
    names = ["Null", "Boolean", "Number", "Number", "String", "List", "Object", "nothing"]
    assert [type_name(value) for value in values] == names


# --- parsing ------------------------------------------------------------------------------------------------


@given(ALL_VALUES)
def test_a_written_value_parses_to_itself(value: Json) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "1e999", "{'a': 1}", "", "[1,]", "1" * 5000])
def test_what_is_no_json_or_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_json(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize("pair", ["[]", '{"a":'])
def test_deep_nesting_is_refused(depth: int, pair: str) -> None:
    text = "[" * depth + "]" * depth if pair == "[]" else '{"a":' * depth + "1" + "}" * depth
    with pytest.raises(ValueError, match="nested deeper than 200"):
        parse_json(text)


def test_the_deepest_allowed_nesting_and_brackets_in_texts_are_read() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert parse_json(json.dumps(["[" * 1000])) == ["[" * 1000]


def test_of_two_equal_keys_the_last_wins() -> None:
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}


def test_whole_numbers_stay_exact_and_fractions_finite() -> None:
    assert parse_json("9007199254740993") == 9007199254740993
    assert math.isfinite(parse_json("1.7976931348623157e308"))


def test_a_value_that_doubles_itself_is_refused_before_it_is_written() -> None:
    value: Json = [1]
    for _ in range(64):
        value = [value, value]
    with pytest.raises(RunError, match="doubling"):
        digest(value)

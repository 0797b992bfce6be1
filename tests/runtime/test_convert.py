"""Python objects as JSON values: one rule a type, and a clear refusal for the rest."""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.convert import ConversionError, to_json
from halo_runtime.json_types import Json
from halo_runtime.values import MAX_DEPTH


@dataclass
class Point:
    x: int
    inner: object = None


class Colour(Enum):
    RED = Decimal("1.5")


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    YES = "yes"


Pair = namedtuple("Pair", "a b")


def converted(value: object) -> Json:
    """The value, where nothing is to be warned of."""
    return to_json(value, pytest.fail)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (b"\x00hi", "AGhp"),
        (bytearray(b"hi"), "aGk="),
        (memoryview(b"hi"), "aGk="),
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2026-01-02T03:04:05+00:00"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (dt.time(3, 4), "03:04:00"),
        (dt.timedelta(minutes=1, milliseconds=500), 60.5),
        (Decimal("2"), 2),
        (Decimal("1.50"), 1.5),
        (Decimal("0.1"), 0.1),
        (Decimal("12345678901234567890"), 12345678901234567890),
        (Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
        (Decimal("1E+5000"), "1E+5000"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("/a/b"), "/a/b"),
        (ipaddress.ip_interface("10.0.0.1/8"), "10.0.0.1/8"),
        (ipaddress.ip_network("::/64"), "::/64"),
        ((1, (2,)), [1, [2]]),
        (Pair(1, 2), [1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": ()}), {"a": []}),
        ({1: "x"}, {"1": "x"}),
        (Point(1, Point(2, [b"hi"])), {"x": 1, "inner": {"x": 2, "inner": ["aGk="]}}),
        (Colour.RED, 1.5),
        ([Level.LOW, Word.YES], [1, "yes"]),
        ({Word.YES: 1}, {"yes": 1}),
    ],
)
def test_each_type_has_its_rule(value: object, result: Json) -> None:
    assert converted(value) == result
    assert type(converted(value)) is type(result)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_values_come_through_equal_and_as_copies(value: Json) -> None:
    result = converted(value)
    assert result == value
    assert not isinstance(value, list | dict) or result is not value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("-Infinity"), Decimal("sNaN")]
)
def test_numbers_that_json_lacks_become_null_with_a_warning_that_says_where(value: object) -> None:
    warnings: list[str] = []
    assert to_json({"rows": [1, value]}, warnings.append) == {"rows": [1, None]}
    assert len(warnings) == 1
    assert "the result's rows.1 was " in warnings[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {2}]}, "the result's a.1 is of type set, which has no JSON form"),
        (object(), "the result is of type object"),
        (Point, "the result is of type type"),
        ([deque()], "the result's 0 is of type deque"),
        ({"a": {(1,): 1}}, "the result's a has a key of type tuple; keys are text"),
        ({True: 1}, "a key of type bool"),
        ([10**4001], "the result's 0 is a whole number of more than 4,000 digits"),
    ],
)
def test_what_has_no_rule_is_refused_with_its_path_and_type(value: object, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        converted(value)


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_nesting_is_bounded() -> None:
    assert converted(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(ConversionError, match="nested deeper than 200"):
        converted(nested(MAX_DEPTH + 1))


def test_what_contains_itself_is_refused_and_what_stands_twice_is_not() -> None:
    loop: list[object] = []
    loop.append({"again": loop})
    with pytest.raises(ConversionError, match=r"the result's 0\.again contains itself"):
        converted(loop)
    shared = [1]
    assert converted([shared, {"x": shared}]) == [[1], {"x": [1]}]

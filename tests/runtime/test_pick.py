"""System.Pick: a field mask that keeps the shape, and a cut of whole items."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.json_types import Json
from halo_runtime.pick import pick
from halo_runtime.values import compact

ISSUE: Json = {
    "number": 1,
    "title": "a",
    "labels": [{"name": "bug", "color": "red"}, {"name": "ui", "color": "blue"}],
    "user": {"login": "ann", "id": 7},
}


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        (["title"], {"title": "a"}),
        (["title", "number"], {"number": 1, "title": "a"}),
        (["labels.name"], {"labels": [{"name": "bug"}, {"name": "ui"}]}),
        (["user.login", "user.id"], {"user": {"login": "ann", "id": 7}}),
        (["user", "user.login"], {"user": {"login": "ann", "id": 7}}),
        (["user.login", "user"], {"user": {"login": "ann", "id": 7}}),
        (["user.nope"], {"user": {}}),
        (["nope", "nope.deeper"], {}),
        ([], {}),
    ],
)
def test_only_the_named_fields_stay_in_their_order_and_shape(fields: list[str], kept: Json) -> None:
    assert pick(ISSUE, fields).value == kept
    assert pick([ISSUE, ISSUE], fields).value == [kept, kept]
    assert list(pick(ISSUE, fields).value) == list(kept)


def test_lists_are_mapped_over_at_any_depth() -> None:
    value = {"pages": [[[{"n": 1, "x": 2}]], {"n": 3, "x": 4}]}
    assert pick(value, ["pages.n"]).value == {"pages": [[[{"n": 1}]], {"n": 3}]}


def test_without_fields_all_stays() -> None:
    assert pick(ISSUE).value == ISSUE


@pytest.mark.parametrize("value", [None, 7, "text", True])
def test_what_has_no_fields_is_kept_as_it_is(value: Json) -> None:
    assert pick(value, ["a"]).value == value
    assert pick({"a": [value, {"b": 1, "c": 2}]}, ["a.b"]).value == {"a": [value, {"b": 1}]}


def test_the_picked_value_is_cut_and_the_left_out_items_counted() -> None:
    items = [{"title": letter * 100, "body": "long" * 50} for letter in "abcd"]
    assert pick(items, ["title"], max_chars=280) == ([{"title": "a" * 100}, {"title": "b" * 100}], 2)


@pytest.mark.parametrize(("limit", "kept"), [(7, 3), (6, 2), (5, 2), (4, 1), (3, 1), (2, 0), (0, 0)])
def test_the_limit_counts_brackets_and_commas(limit: int, kept: int) -> None:
    assert pick([1, 2, 3], max_chars=limit) == ([1, 2, 3][:kept], 3 - kept)


@pytest.mark.parametrize("value", [ISSUE, "a long text"])
def test_only_lists_are_cut(value: Json) -> None:
    assert pick(value, max_chars=3) == (value, 0)


@given(st.lists(st.none() | st.text() | st.floats(allow_nan=False, allow_infinity=False)), st.integers(2, 60))
def test_as_many_items_stay_as_fit(items: list[Json], limit: int) -> None:
    kept, dropped = pick(items, max_chars=limit)
    assert kept == items[: len(items) - dropped]
    assert len(compact(kept)) <= limit
    assert not dropped or len(compact(items[: len(kept) + 1])) > limit

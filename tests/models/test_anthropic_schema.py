"""The part of JSON Schema that structured output takes: the same rules as the official SDK's, and nothing forbidden."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from anthropic import transform_schema
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.models.anthropic_schema import NotExpressible, parameters, structured
from tests.fakes.anthropic_rules import check

STRING = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def request(schema: Any) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "hi"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }


REFERRING = closed(person={"$ref": "#/$defs/Person"}) | {"$defs": {"Person": closed(name=STRING)}}
SAME = [
    closed(),
    closed(city=STRING, population={"type": "integer", "description": "People"}),
    closed(tags={"type": "array", "items": STRING, "minItems": 1}),
    closed(kind={"enum": ["a", "b", None]}, version={"const": 2}),
    closed(value={"anyOf": [STRING, {"type": "null"}]}, on={"type": "string", "format": "date"}),
    {"type": "array", "items": closed(deep=closed(done={"type": "boolean"}))},
    REFERRING,
]


@pytest.mark.parametrize("schema", SAME)
def test_a_schema_within_the_rules_stays_as_it_is_as_with_the_official_client(schema: dict[str, Any]) -> None:
    check(request(schema))
    assert structured(schema) == schema == transform_schema(schema)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 1}, {"type": "integer", "description": '{"minimum": 1}'}),
        (
            {"type": "string", "description": "A name", "maxLength": 9, "pattern": "a+"},
            {"type": "string", "description": 'A name\n\n{"maxLength": 9, "pattern": "a+"}'},
        ),
        ({"type": "string", "format": "regex"}, {"type": "string", "description": '{"format": "regex"}'}),
        (
            {"type": "array", "items": STRING, "minItems": 2},
            {"type": "array", "items": STRING, "description": '{"minItems": 2}'},
        ),
        ({"oneOf": [STRING, {"type": "null"}]}, {"anyOf": [STRING, {"type": "null"}]}),
        (
            {"type": ["string", "null"], "description": "Maybe"},
            {"description": "Maybe", "anyOf": [STRING, {"type": "null"}]},
        ),
        ({"type": "object", "properties": {"a": STRING}}, closed(a=STRING) | {"required": []}),
    ],
)
def test_what_is_refused_is_told_in_words_or_said_in_another_way(schema: Any, expected: Any) -> None:
    assert structured(schema) == expected
    check(request(expected))


TREE = closed(children={"type": "array", "items": {"$ref": "#/$defs/Tree"}})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "values of any type"),
        ({"description": "Anything"}, "values of any type"),
        (closed(a={}), "values of any type"),
        ({"type": "array"}, "values of any type"),
        ({"type": "array", "items": True}, "values of any type"),
        ({"type": "object"}, "objects with any fields"),
        ({"anyOf": [STRING, {"type": "object", "properties": {}}]}, "objects with any fields"),
        (TREE | {"$defs": {"Tree": TREE}}, "types that contain themselves"),
        (
            closed(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": closed(tree={"$ref": "#/$defs/Tree"}), "Tree": TREE}},
            "types that contain themselves",
        ),
        (closed(self={"$ref": "#"}), "types that contain themselves"),
    ],
)
def test_a_schema_that_allows_more_than_can_be_asked_for_is_not_narrowed(schema: Any, said: str) -> None:
    with pytest.raises(NotExpressible, match=said):
        structured(schema)


def test_a_type_used_twice_does_not_contain_itself() -> None:
    pair = closed(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/A"}) | {"$defs": {"A": closed(s={"$ref": "#/$defs/S"})}}
    pair["$defs"]["S"] = STRING
    assert structured(pair) == pair


def test_a_tools_arguments_are_an_object_and_otherwise_what_they_are() -> None:
    free = {"type": "object", "properties": {"a": {}}, "minProperties": 1}
    assert parameters(free) == free
    assert parameters({}) == {"type": "object"}
    told = parameters({"description": "One of", "oneOf": [STRING]})
    assert told == {"type": "object", "description": 'One of\n\n{"oneOf": [{"type": "string"}]}'}


LEAVES = st.sampled_from(
    [
        {},
        STRING,
        {"type": "object"},
        {"type": "integer", "minimum": 3},
        {"type": ["number", "null"], "maximum": 3},
        {"type": "string", "format": "regex", "maxLength": 2},
        {"type": "string", "format": "uuid"},
        {"enum": [1, "a"]},
        {"$ref": "#/$defs/Tree"},
    ]
)


def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(st.sampled_from(["a", "type", "anyOf", "$ref"]), inner, max_size=3)
    return st.one_of(
        fields.map(lambda properties: closed(**properties)),
        fields.map(lambda properties: {"type": "object", "properties": properties, "patternProperties": {}}),
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 2)),
        st.lists(inner, min_size=1, max_size=2).map(lambda items: {"oneOf": items}),
    )


@given(st.recursive(LEAVES, wider, max_leaves=8))
def test_every_schema_is_brought_within_the_rules_or_told_to_be_out_of_reach(schema: dict[str, Any]) -> None:
    with suppress(NotExpressible):
        converted = structured(schema)
        check(request(converted))
        assert structured(converted) == converted

"""What servers say of their tools and what tools give, as Halo takes it: pure functions over a stranger's JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from halo_runtime.errors import ToolError
from halo_runtime.tools.mcp.limits import MAX_DOC, MAX_SCHEMA, MAX_TEXT
from halo_runtime.tools.mcp.listing import argument_schema, checkable, find_tool, read_tool
from halo_runtime.tools.mcp.results import read_result

KEYS = st.sampled_from(
    ["type", "properties", "required", "anyOf", "allOf", "oneOf", "$ref", "$defs", "pattern", "items", "x"]
)
WORDS = st.sampled_from(["object", "string", "#/$defs/x", "#", "#/properties/x", "x", ""])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def tool(name: str = "echo", **more: Any) -> Any:
    return read_tool({"name": name, "inputSchema": {"type": "object"}, **more})


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        ({"type": "object"}, {"properties": {}}),
        ({"$schema": "x", "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
         {"properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}}, "additionalProperties": False}}},
         {"$defs": {"A": {"properties": {"a": {}}, "additionalProperties": False}}, "properties": {"a": {}},
          "additionalProperties": False}),
        ({"anyOf": [{"properties": {"a": {}, "b": {}}, "required": ["a", "b"]},
                    {"properties": {"a": {}, "c": {}}, "required": ["a"]}]},
         {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["a"]}),
        ({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]},
         {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
        ({"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": {}}}),
        ({"$ref": "#"}, {"properties": {}}),
        ({"$ref": "https://evil.example/schema.json"}, {"properties": {}}),
        ({"properties": {"a": {"description": "y" * MAX_SCHEMA}}}, {"properties": {}}),
        (None, {"properties": {}}),
    ],
)  # fmt: skip
def test_a_schema_has_an_object_at_its_root(schema: Any, taken: dict[str, Any]) -> None:
    assert argument_schema(schema) == {"type": "object", **taken}


@given(ANY)
def test_whatever_a_schema_is_it_becomes_one_that_services_take(schema: Any) -> None:
    taken = argument_schema(schema)
    assert taken["type"] == "object"
    assert isinstance(taken["properties"], dict)
    assert set(taken.get("required", ())) <= taken["properties"].keys()
    assert taken.keys().isdisjoint({"anyOf", "oneOf", "allOf", "$ref", "$schema"})


@given(ANY)
def test_whatever_a_schema_is_no_reference_and_no_pattern_of_it_is_followed(schema: Any) -> None:
    def keywords(value: Any, named: bool = False) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keywords, value))
        if not isinstance(value, dict):
            return set()
        own = set[str]() if named else set(value)
        inner = ((key, item) for key, item in value.items() if named or key not in ("enum", "const", "required"))
        return own.union(*(keywords(item, not named and key == "properties") for key, item in inner))

    assert keywords(checkable(schema)).isdisjoint({"$ref", "pattern", "$defs"})


def test_a_schema_that_unfolds_without_end_is_checked_at_once() -> None:
    steps = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
    bomb = {"$defs": {**steps, "a60": {}}, "properties": {"x": {"$ref": "#/$defs/a0"}, "n": {"type": "integer"}}}
    check = Draft202012Validator(checkable(argument_schema(bomb)))
    assert [error.message for error in check.iter_errors({"x": 1, "n": "1"})] == ["'1' is not of type 'integer'"]


def test_every_part_of_a_tool_that_changes_changes_its_marks() -> None:
    parts: dict[str, dict[str, Any]] = {
        "description": {"description": "other"},
        "arguments": {"inputSchema": {"type": "object", "properties": {"a": {}}}},
        "annotations": {"annotations": {"readOnlyHint": True}},
        "result": {"outputSchema": {"type": "object"}},
    }
    for part, more in parts.items():
        changed = [name for name, mark in tool(**more).marks.items() if mark != tool().marks[name]]
        assert changed == [part]


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({}, "write"),
        ({"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}, "write"),
        ({"destructiveHint": True, "readOnlyHint": True}, "destructive"),
        ({"destructiveHint": "yes"}, "write"),
    ],
)
def test_hints_make_a_tool_more_dangerous_and_never_less(hints: dict[str, Any], effect: str) -> None:
    assert tool(annotations=hints).effect == effect


@given(st.text(max_size=3_000))
def test_a_description_is_bounded(text: str) -> None:
    assert len(tool(description=text).doc) <= MAX_DOC


@pytest.mark.parametrize("name", ["read_file", "readFile"])
def test_both_spellings_of_a_name_are_one_tool(name: str) -> None:
    tools = [tool("readFile"), tool("write_file")]
    assert find_tool(tools, name).name == "readFile"


def test_of_many_tools_not_all_are_named() -> None:
    with pytest.raises(ToolError, match="t26 and 80 more"):
        find_tool([tool(f"t{number}") for number in range(100)], "x")


TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ({"content": [TEXT]}, "hi"),
        ({"content": [TEXT, TEXT]}, "hi\nhi"),
        ({"content": []}, ""),
        ({"content": [TEXT], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"content": [], "structuredContent": [1]}, [1]),
        ({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
         {"attachments": [{"type": "image", "mimeType": "image/png", "bytes": 3}]}),
        ({"content": [{"type": "audio", "data": "AAA=", "mimeType": "audio/wav"}, TEXT]},
         {"text": "hi", "attachments": [{"type": "audio", "mimeType": "audio/wav", "bytes": 2}]}),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "words"}}], "structuredContent": {"a": 1}
          },
         {"structured": {"a": 1}, "attachments": [{"type": "resource", "uri": "a:b", "text": "words"}]}),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}]},
         {"attachments": [{"type": "resource", "uri": "a:b", "bytes": 3}]}),
        ({"content": [{"type": "resource_link", "uri": "a:b", "name": "n", "size": 5}]},
         {"attachments": [{"type": "resource_link", "uri": "a:b", "name": "n"}]}),
    ],
)  # fmt: skip
def test_a_result_is_its_structured_content_or_its_text(document: dict[str, Any], value: Any) -> None:
    assert read_result(document) == value


def test_structured_content_that_is_too_large_is_its_text_cut() -> None:
    result = read_result({"content": [TEXT], "structuredContent": {"a": "x" * MAX_TEXT}})
    assert result == "hi"
    cut = read_result({"content": [], "structuredContent": {"a": "x" * MAX_TEXT}})
    assert isinstance(cut, str)
    assert cut.startswith('{"a":"xxx')
    assert "characters left out" in cut


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"isError": True, "content": [TEXT]}, "the tool failed: hi"),
        ({"isError": True, "content": []}, "the tool failed: it does not say why"),
        ({"resultType": "input_required", "inputRequests": {}}, "wants to ask a person or a model"),
    ],
)
def test_a_result_that_is_none_is_an_error(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        read_result(document)


@given(st.dictionaries(st.sampled_from(["content", "structuredContent", "isError"]), ANY))
def test_whatever_a_result_is_it_is_a_value_or_an_error(document: dict[str, Any]) -> None:
    if document.get("isError") is True:
        with pytest.raises(ToolError, match="the tool failed"):
            read_result(document)
    else:
        json.dumps(read_result(document))

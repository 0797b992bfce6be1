"""Outputs against declared schemas: what matches, what changes, what is said, and the JSON Schema of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import nodes
from halo_lang.source import Span
from halo_runtime.errors import SchemaValidationError
from halo_runtime.json_types import Json
from halo_runtime.schemas import MAX_FAILURES, SchemaType, compile_schemas

SPAN = Span(0, 0)


def name(text: str) -> nodes.Name:
    return nodes.Name(text, SPAN)


def type_ref(text: str) -> nodes.TypeRef:
    outer, _, inner = text.partition("<")
    return nodes.TypeRef(name(outer), type_ref(inner.removesuffix(">")) if inner else None, SPAN)


def schema(title: str, /, **fields: str) -> nodes.Schema:
    declared = (nodes.Field(name(key), type_ref(type_name), SPAN) for key, type_name in fields.items())
    return nodes.Schema(name(title), tuple(declared), SPAN)


def result_type(text: str, *declared: nodes.Schema) -> SchemaType:
    found = compile_schemas(declared).result_type(type_ref(text))
    assert found is not None
    return found


def field_type(text: str) -> SchemaType:
    """A schema with the one field `f`, next to `Part { id: Integer }`."""
    return result_type("Whole", schema("Whole", f=text), schema("Part", id="Integer"))


def failure(declared: SchemaType, value: Json) -> str:
    with pytest.raises(SchemaValidationError) as caught:
        declared.check(value)
    return caught.value.message


PART = {"id": 1}
MATCHING: dict[str, list[Json]] = {
    "String": ["", "7"],
    "Number": [0, -1.5, 2**70],
    "Integer": [0, -3, 1.0],
    "Boolean": [True, False],
    "Array": [[], [1, "x", None]],
    "List": [[], [[]]],
    "Array<String>": [[], ["x"]],
    "List<Array<Integer>>": [[[1], []]],
    "Object": [{}, {"k": [1]}],
    "Part": [PART, {"id": 2, "extra": "passes"}],
    "JSON": [None, True, 1, [], {}, "text", '"quoted"', "7"],
    "Any": [None, True, 1, [], {}, "text", "{}", "[1]"],
}
FAILING: dict[str, list[Json]] = {
    "String": [None, 1, True, [], {}],
    "Number": [None, "1", True, [], {}],
    "Integer": [None, "1", False, 1.5, 1e-9],
    "Boolean": [None, 0, 1, "true"],
    "Array": [None, {}, "x", "{}", "1"],
    "Array<String>": [[1], ["x", None], "[1]"],
    "Object": [None, [], "x", "[]", "null"],
    "Part": [None, {}, {"id": "1"}, '{"id": "1"}', [PART]],
}


@pytest.mark.parametrize(("declared", "value"), [(kind, value) for kind in MATCHING for value in MATCHING[kind]])
def test_a_value_of_the_declared_type_matches_unchanged(declared: str, value: Json) -> None:
    assert field_type(declared).check({"f": value}) == {"f": value}


@pytest.mark.parametrize(("declared", "value"), [(kind, value) for kind in FAILING for value in FAILING[kind]])
def test_any_other_value_fails_at_its_field(declared: str, value: Json) -> None:
    assert "f" in failure(field_type(declared), {"f": value})


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("Object", '{"k": 1}', {"k": 1}),
        ("Array<String>", ' ["x"] ', ["x"]),
        ("List", "[]", []),
        ("Part", '{"id": 1}', PART),
        ("Array<Part>", '["{\\"id\\": 1}"]', [PART]),
        ("JSON", '{"k": 1}', {"k": 1}),
        ("JSON", "[1]", [1]),
    ],
)
def test_text_that_is_the_declared_list_or_object_gives_way_to_it(declared: str, text: str, value: Json) -> None:
    assert field_type(declared).check({"f": text}) == {"f": value}


def test_the_whole_output_may_be_text_too_and_the_given_value_is_not_touched() -> None:
    given_value = {"f": '{"id": 1}'}
    assert field_type("Part").check(json.dumps(given_value)) == {"f": PART}
    assert field_type("Part").check(given_value) == {"f": PART}
    assert given_value == {"f": '{"id": 1}'}


def test_text_is_parsed_once() -> None:
    assert "String that is no JSON object" in failure(field_type("Object"), {"f": json.dumps(json.dumps({}))})


def test_every_failing_path_is_listed_with_what_was_expected_and_found() -> None:
    item = schema("Item", title="String", n="Integer")
    answer = result_type("Answer", schema("Answer", text="String", score="Number", items="Array<Item>"), item)
    value = {"text": 5, "items": [{"title": "a", "n": 1}, {"n": 1.5}, None]}
    assert failure(answer, value) == (
        "the output does not match Answer: text: expected String, found Number; "
        "score: expected Number, found nothing; items.1.title: expected String, found nothing; "
        "items.1.n: expected Integer, found Number with a fraction; items.2: expected Item, found Null"
    )


def test_an_output_that_is_no_object_says_so() -> None:
    expected = "the output does not match Whole: the whole: expected Whole, found "
    assert failure(field_type("Any"), "I do not know.") == f"{expected}String that is no JSON object"
    assert failure(field_type("Any"), None) == f"{expected}Null"


def test_a_missing_field_fails_whatever_its_type() -> None:
    assert failure(field_type("Any"), {}).endswith("f: expected Any, found nothing")


def test_the_message_stays_short_for_thousands_of_failures() -> None:
    message = failure(field_type("Array<Part>"), {"f": [{}] * 10_000})
    assert message.count("expected") == MAX_FAILURES
    assert message.endswith("; and 9,950 more")


def test_a_schema_may_hold_itself_in_a_list() -> None:
    tree = result_type("Tree", schema("Tree", value="Integer", children="Array<Tree>"))
    value: Json = {"value": 1, "children": [{"value": 2, "children": "[]"}]}
    assert tree.check(value) == {"value": 1, "children": [{"value": 2, "children": []}]}
    value["children"][0]["children"] = [{"value": "x", "children": []}]
    assert "children.0.children.0.value: expected Integer" in failure(tree, value)


def test_only_a_result_type_that_names_a_schema_is_checked() -> None:
    schemas = compile_schemas([schema("Part", id="Integer")])
    assert [schemas.result_type(type_ref(text)) for text in ("Result", "String", "Array<String>")] == [None] * 3
    listed = schemas.result_type(type_ref("Array<Part>"))
    assert listed is not None
    assert listed.check('[{"id": 1}]') == [PART]
    assert "0.id" in failure(listed, [{"id": "x"}])


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_checking_any_value_ends_in_the_value_or_in_a_schema_error(value: Json) -> None:
    tree = result_type("Tree", schema("Tree", value="Any", children="Array<Tree>"))
    assert tree.check({"value": value, "children": []}) == {"value": value, "children": []}
    with pytest.raises(SchemaValidationError, match=r"children\.0"):
        tree.check({"value": None, "children": [value]})


# --- JSON Schema --------------------------------------------------------------------------------------------


def test_the_json_schema_asks_for_every_field_and_no_other() -> None:
    whole = schema("Whole", s="String", n="Number", i="Integer", b="Boolean", o="Object", j="JSON", a="Any")
    assert result_type("Whole", whole).json_schema == {
        "title": "Whole",
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "n": {"type": "number"},
            "i": {"type": "integer"},
            "b": {"type": "boolean"},
            "o": {"type": "object"},
            "j": {},
            "a": {},
        },
        "required": ["s", "n", "i", "b", "o", "j", "a"],
        "additionalProperties": False,
    }


def test_schemas_inside_are_referred_to_and_defined_once() -> None:
    tree = schema("Tree", leaf="Leaf", children="Array<Tree>", leaves="List<Leaf>", any="List")
    document = result_type("Tree", tree, schema("Leaf", n="Integer"), schema("Other", x="Any")).json_schema
    assert document is not None
    assert document["properties"] == {
        "leaf": {"$ref": "#/$defs/Leaf"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        "leaves": {"type": "array", "items": {"$ref": "#/$defs/Leaf"}},
        "any": {"type": "array", "items": {}},
    }
    assert list(document["$defs"]) == ["Leaf", "Tree"]
    assert document["$defs"]["Tree"]["properties"] == document["properties"]


def test_a_list_of_schemas_has_no_json_schema_as_services_answer_objects_only() -> None:
    assert result_type("Array<Part>", schema("Part", id="Integer")).json_schema is None


def test_schemas_that_share_parts_stay_small() -> None:
    layers = [schema(f"S{level}", a=f"S{level + 1}", b=f"S{level + 1}") for level in range(40)]
    document = result_type("S0", *layers, schema("S40", x="Any")).json_schema
    assert document is not None
    assert len(document["$defs"]) == 40

"""Replies: which are JSON, which are text, and how prose around JSON is read."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.json_types import Json
from halo_runtime.replies import Reply, asks_for_json, parse_reply

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
CONTAINERS = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)).filter(
    lambda value: isinstance(value, list | dict)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": 1}\n', {"a": 1}),
        ("[1, 2]", [1, 2]),
        ("{}", {}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("\n ```\r\n[1, 2]\r\n```\n", [1, 2]),
        ('```{"a": 1}```', {"a": 1}),
        ("``` JSON\n[]\n```", []),
        ('````\n{"a": "```"}\n````', {"a": "```"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
    ],
)
@pytest.mark.parametrize("json_asked", [False, True])
def test_a_reply_that_is_wholly_json_is_its_value(text: str, value: Json, json_asked: bool) -> None:
    assert parse_reply(text, json_asked) == Reply(value)


@pytest.mark.parametrize(
    "text",
    [
        *("7", "true", "null", '"x"', "  two  \n", "", "NaN", '{"a": NaN}', "[Infinity]", "[1e999]"),
        *("{'a': 1}", '{"a": 1,}', '"{}"', "[" * 300 + "]" * 300, '{"a": 1} {"b": 2}', 'Here: {"a": 1}'),
        *("```json\n7\n```", "````\n[1]\n```", "```\n[1]\n```\n```", '```json\n{"a": }\n```'),
        '```json\n{"a": 1}\n```\nDone.',
    ],
)
def test_every_other_reply_is_the_text_exactly_as_it_came(text: str) -> None:
    assert parse_reply(text, json_asked=False) == Reply(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('Here it is: {"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ("Sure!\n```\n[1]\n```", [1]),
        ('So: {"code": "```js\\n{}```", "n": [1]}', {"code": "```js\n{}```", "n": [1]}),
        ('The list [1, {"b": 2}] it is', [1, {"b": 2}]),
        ('I {really} mean [so] it :-{ {"a": "}"}', {"a": "}"}),
        ('As {"key": value} says: {"a": 1}', {"a": 1}),
        ('It\'s "quoted" and {"a": "\\"{"}', {"a": '"{'}),
        ("[note] []", []),
    ],
)
def test_where_json_was_asked_for_prose_around_the_one_value_is_dropped(text: str, value: Json) -> None:
    assert parse_reply(text, json_asked=True) == Reply(value)


FENCED_INSIDE = {"code": "```js\nlet a = {};\n```"}


@pytest.mark.parametrize(
    "frame",
    [
        "{}", "```json\n{}\n```", "````\n{}\n````", "Here:\n```json\n{}\n```\nDone.", "First `x`, then {} and ```y```.",
        "```js\nf(a);\n```\nand the answer:\n{}", "It's \"so\": {}", "  ```json {} ```  ",
    ],
)  # fmt: skip
def test_fences_and_backticks_inside_and_around_a_value_do_not_matter(frame: str) -> None:
    for text in (json.dumps(FENCED_INSIDE), json.dumps({"code": "```js```"}), json.dumps(["`", '"', "}", "{"])):
        assert parse_reply(frame.replace("{}", text), json_asked=True) == Reply(json.loads(text))


PROSE = st.text(st.characters(exclude_characters="{}[]", exclude_categories=["Cs"]) | st.sampled_from("`\"'\n\\"))


@given(CONTAINERS, PROSE, PROSE, st.sampled_from(["```json\n{}\n```", "```\n{}\n```", "{}", "`{}`"]), st.booleans())
def test_any_value_in_prose_with_fences_is_found_again(
    value: Json, before: str, after: str, fence: str, ascii_only: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_reply(f"{before}\n{fence.replace('{}', text)}\n{after}", json_asked=True) == Reply(value)


@pytest.mark.parametrize("text", ['Either {"a": 1} or {"a": 2}', "[1] [2] [3]", '{"a": 1}{"a": 1}', '[1] {"a": 2}'])
def test_two_candidates_leave_the_text_and_a_warning(text: str) -> None:
    reply = parse_reply(text, json_asked=True)
    assert reply.value == text
    assert reply.warning is not None
    assert "more than one" in reply.warning


@pytest.mark.parametrize(
    "text",
    [
        '{"items": [{"a": 1}, {"a": 2',
        '[1] says {"a": [',
        '{"a": {"b": 1},}',
        '{"x": {"y": 1}, \'z\': [1, 2]}',
        'See {"a": [1, 2}',
    ],
)
def test_no_part_of_a_broken_value_is_taken_for_the_answer(text: str) -> None:
    reply = parse_reply(text, json_asked=True)
    assert reply.value == text
    assert reply.warning is not None
    assert "broken or cut off" in reply.warning


@pytest.mark.parametrize("text", ["7", "I do not know.", "{maybe} [not]", "{'a': [1, 2]}", "{a: {}}", ""])
def test_a_reply_without_json_stays_text_without_a_warning(text: str) -> None:
    assert parse_reply(text, json_asked=True) == Reply(text)


@given(CONTAINERS, st.booleans(), st.sampled_from([None, 2]))
def test_written_json_comes_back_bare_and_fenced(value: Json, json_asked: bool, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert parse_reply(text, json_asked) == Reply(value)
    assert parse_reply(f"\n```json\n{text}\n```  ", json_asked) == Reply(value)


@given(
    CONTAINERS, st.text(st.characters(exclude_characters='{}[]"')), st.text(st.characters(exclude_characters="{}[]"))
)
def test_json_in_prose_without_brackets_is_found(value: Json, before: str, after: str) -> None:
    assert parse_reply(f"{before} {json.dumps(value, ensure_ascii=False)} {after}", json_asked=True) == Reply(value)


@given(st.text(st.sampled_from('{}[]",:\\`1a \n')), st.booleans())
def test_no_text_fails_and_what_is_not_taken_is_unchanged(text: str, json_asked: bool) -> None:
    value = parse_reply(text, json_asked).value
    assert value == text if isinstance(value, str) else isinstance(value, list | dict)


@pytest.mark.parametrize(
    "piece", ["{", "[", "`", '{"a":', '["', '["\\"', "[ ", "[1,", "[[]", '{"a"x}', '"{', "{\n", '\\"[']
)
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    assert parse_reply(text, json_asked=True).value == text
    assert time.process_time() - start < 5  # quadratic would be hours


@pytest.mark.parametrize("text", ["Reply with JSON.", "answer in json", "(Json)", '"JSON"', "application/json"])
def test_the_word_json_asks_for_json(text: str) -> None:
    assert asks_for_json(["Go on.", text])


@pytest.mark.parametrize("text", ["", "Jason", "jsonl", "geojson", "json_file"])
def test_other_words_do_not(text: str) -> None:
    assert not asks_for_json([text])

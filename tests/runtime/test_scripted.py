"""The scripted model and its replies file (spec 2.9)."""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ConfigError, ModelError
from halo_runtime.models import script as script_module
from halo_runtime.models.base import Message, ModelReply, ModelRequest, Usage
from halo_runtime.models.script import CONTROL_KEYS, Script
from halo_runtime.models.scripted import ScriptedModel


def request(call: str, *messages: Message) -> ModelRequest:
    agent, _, method = call.partition(".")
    return ModelRequest("openai/gpt-4o-mini", agent, method, messages or (Message("user", "hi"),))


async def texts(model: ScriptedModel, *calls: str) -> list[str]:
    return [(await model.complete(request(call))).text for call in calls]


async def failure(model: ScriptedModel, call: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.complete(request(call))
    return caught.value


# --- which reply ------------------------------------------------------------------------------------------------------


async def test_a_call_is_answered_by_its_method_then_its_agent_then_the_star() -> None:
    model = ScriptedModel({"A.one": "by method", "A": "by agent", "*": "by star"})
    assert await texts(model, "A.one", "A.two", "B.one") == ["by method", "by agent", "by star"]


async def test_a_value_that_is_no_list_answers_every_call() -> None:
    assert await texts(ScriptedModel({"A": "same"}), "A.x", "A.x", "A.y") == ["same"] * 3


async def test_a_list_is_used_in_turn_and_then_runs_out_naming_the_key_and_the_count() -> None:
    model = ScriptedModel({"A.one": ["first", "second"]})
    assert await texts(model, "A.one", "A.one") == ["first", "second"]
    error = await failure(model, "A.one")
    assert '2 replies of "A.one" are used up' in error.message
    assert not error.retryable


async def test_one_reply_that_is_used_up_is_told_of_as_one() -> None:
    model = ScriptedModel({"A": ["only"]})
    await texts(model, "A.x")
    assert 'the 1 reply of "A" is used up' in (await failure(model, "A.x")).message


async def test_an_empty_list_has_run_out_at_once() -> None:
    assert '0 replies of "A"' in (await failure(ScriptedModel({"A": []}), "A.x")).message


async def test_repeat_gives_the_last_reply_again_and_again() -> None:
    model = ScriptedModel({"A": {"replies": ["first", "then"], "repeat": True}})
    assert await texts(model, *["A.x"] * 4) == ["first", "then", "then", "then"]


@pytest.mark.parametrize("form", [{"replies": ["only"]}, {"replies": ["only"], "repeat": False}])
async def test_replies_without_repeat_run_out_like_a_list(form: Any) -> None:
    model = ScriptedModel({"A": form})
    assert await texts(model, "A.x") == ["only"]
    assert "1 reply" in (await failure(model, "A.x")).message


async def test_a_call_that_no_key_answers_fails_and_says_which_keys_would() -> None:
    error = await failure(ScriptedModel({"B": "x"}), "A.one")
    assert 'no reply for A.one; add one under "A.one", "A" or "*"' in error.message
    assert not error.retryable


async def test_calls_that_start_together_take_replies_in_the_order_they_start() -> None:
    model = ScriptedModel({"D": [{"delay": "20ms", "reply": "p"}, "q", "r"]})
    replies = await asyncio.gather(*(model.complete(request("D.x")) for _ in range(3)))
    assert [reply.text for reply in replies] == ["p", "q", "r"]


# --- what a reply says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        ({}, "{}"),
        ({"reply": "x"}, "x"),
        ({"reply": {"a": 1}}, '{"a": 1}'),
        ({"reply": [1, None]}, "[1, null]"),
        ({"reply": {"error": "not found"}}, '{"error": "not found"}'),
        ({"reply": "x", "note": "not a control key"}, '{"reply": "x", "note": "not a control key"}'),
        ({"usage": {"input": 1}}, ""),
        ("[/red] \x1b[31m \x00", "[/red] \x1b[31m \x00"),
    ],
)
async def test_strings_are_sent_as_they_are_and_objects_as_json(value: Any, text: str) -> None:
    assert await texts(ScriptedModel({"A": value}), "A.x") == [text]


async def test_without_usage_a_reply_has_no_tokens_and_costs_nothing() -> None:
    reply = await ScriptedModel({"A": "x"}).complete(request("A.x"))
    assert (reply.usage, reply.cost, reply.model_used) == (Usage(0, 0), Decimal(0), "scripted")


async def test_with_usage_the_tokens_are_the_files_and_the_price_is_left_to_the_declared_model() -> None:
    model = ScriptedModel({"A": {"reply": "x", "usage": {"input": 10, "output": 5, "cached": 4}}})
    reply = await model.complete(request("A.x"))
    assert (reply.usage, reply.cost) == (Usage(10, 5, cached=4), None)


async def test_a_delay_is_awaited_before_the_answer() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    replies = [{"delay": delay, "reply": "x"} for delay in ("200ms", "1.5s", "2m", "1h", "1d")]
    model = ScriptedModel({"A": [*replies, "at once"]}, sleep=wait)
    await texts(model, *["A.x"] * 6)
    assert waits == [0.2, 1.5, 120.0, 3600.0, 86400.0]


@pytest.mark.parametrize(
    ("text", "delay", "pieces", "wait"),
    [
        ("one two  three\n", "150ms", ["one ", "two  ", "three\n"], 0.05),
        ("one two three four", "100ms", ["one two ", "three four"], 0.05),
        ("one", "10s", ["one"], 10.0),
        ("one two", "10ms", ["one two"], 0.01),
        ("", "1s", [], 1.0),
        (" \n ", "1s", [" \n "], 1.0),
    ],
)
async def test_a_text_with_a_delay_streams_meanwhile(text: str, delay: str, pieces: list[str], wait: float) -> None:
    told: list[str] = []
    waits: list[float] = []

    async def pass_time(seconds: float) -> None:
        waits.append(seconds)

    model = ScriptedModel({"A": {"delay": delay, "reply": text}}, sleep=pass_time)
    reply = await model.complete(request("A.x"), told.append)
    assert (told, reply.text) == (pieces, text)
    assert waits == pytest.approx([wait] * max(1, len(pieces)))


async def test_a_failure_with_a_delay_streams_nothing() -> None:
    told: list[str] = []
    model = ScriptedModel({"A": {"delay": "1ms", "error": 500, "reply": "x y"}})
    with pytest.raises(ModelError):
        await model.complete(request("A.x"), told.append)
    assert told == []


async def test_a_call_can_be_cancelled_in_its_delay_and_its_reply_is_spent() -> None:
    model = ScriptedModel({"A": [{"delay": "1d", "reply": "late"}, "quick"]})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await model.complete(request("A.x"))
    assert await texts(model, "A.x") == ["quick"]


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529, 599])
async def test_statuses_that_may_pass_are_retryable(status: int) -> None:
    error = await failure(ScriptedModel({"A": {"error": status}}), "A.x")
    assert (error.status, error.retryable) == (status, True)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422])
async def test_statuses_that_will_not_pass_are_not(status: int) -> None:
    error = await failure(ScriptedModel({"A": {"error": status}}), "A.x")
    assert (error.status, error.retryable) == (status, False)


async def test_a_network_error_has_no_status_and_is_retryable() -> None:
    error = await failure(ScriptedModel({"A": {"error": "network"}}), "A.x")
    assert (error.status, error.retryable) == (None, True)


async def test_an_error_hands_on_how_long_to_wait() -> None:
    error = await failure(ScriptedModel({"A": {"error": 429, "retry_after": 1.5}}), "A.x")
    assert error.retry_after == 1.5


async def test_errors_use_up_their_place_in_a_list() -> None:
    model = ScriptedModel({"A": [{"error": 429}, {"error": "network"}, "fine"]})
    await failure(model, "A.x")
    await failure(model, "A.x")
    assert await texts(model, "A.x") == ["fine"]


async def test_tool_calls_are_handed_on_as_json_text() -> None:
    calls = [{"tool": "Repo_get", "args": {"n": 7}}, {"tool": "Repo_all"}, {"tool": "Repo_bad", "args": "{oops"}]
    reply = await ScriptedModel({"A": {"tool_calls": calls, "reply": "so"}}).complete(request("A.x"))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("Repo_get", '{"n": 7}'),
        ("Repo_all", "{}"),
        ("Repo_bad", "{oops"),
    ]
    assert (reply.text, reply.stop) == ("so", "tool")


async def test_tool_call_ids_are_distinct_in_a_transcript_and_the_same_in_every_run() -> None:
    script = {"A": {"tool_calls": [{"tool": "T_a"}, {"tool": "T_b"}]}}

    async def ids() -> list[str]:
        model, first = ScriptedModel(script), request("A.x")
        reply = await model.complete(first)
        answers = (Message("tool", "r", tool_call_id=call.id) for call in reply.tool_calls)
        turn = (*first.messages, Message("assistant", "", reply.tool_calls), *answers)
        again = await model.complete(request("A.x", *turn))
        return [call.id for call in (*reply.tool_calls, *again.tool_calls)]

    assert len(set(await ids())) == 4
    assert await ids() == await ids()


# --- going on where a run was -----------------------------------------------------------------------------------------


async def test_a_continued_run_takes_the_next_unused_reply() -> None:
    script = Script.load({"A": ["a", {"error": 503}, "c", "d"]})
    first = ScriptedModel(script)
    reply = await first.complete(request("A.x"))
    error = await failure(first, "A.x")
    again = ScriptedModel(script)
    again.restore([reply.cursor, error.cursor])
    assert await texts(again, "A.x") == ["c"]


async def test_a_reply_that_a_journal_lacks_is_given_again_though_a_later_one_was_used() -> None:
    model = ScriptedModel({"A": ["a", "b", "c"]})
    model.restore([{"key": "A", "index": 1}])
    assert await texts(model, "A.x", "A.x") == ["a", "c"]


async def test_a_repeated_last_reply_goes_on_after_a_continuation() -> None:
    model = ScriptedModel({"A": {"replies": ["a", "b"], "repeat": True}})
    model.restore([{"key": "A", "index": index} for index in (0, 1, 1)])
    assert await texts(model, "A.x", "A.x") == ["b", "b"]


async def test_cursors_of_another_file_or_of_a_service_are_passed_over() -> None:
    model = ScriptedModel({"A": ["a"]})
    model.restore([None, {"key": "gone", "index": 3}, {"key": "A", "index": 7}, "text", {}])
    assert await texts(model, "A.x") == ["a"]


async def test_a_cursor_survives_the_journal() -> None:
    reply = await ScriptedModel({"A": ["a"]}).complete(request("A.x"))
    assert ModelReply.from_json(json.loads(json.dumps(reply.to_json()))) == reply


# --- what is wrong with a file ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "expected an object"),
        ("text", "found a string"),
        ({"A.b.c": "x"}, '"A.b.c" is no key; write "Agent.method", "Agent" or "*"'),
        ({"": "x"}, '"" is no key'),
        ({"A.": "x"}, '"A." is no key'),
        ({"A b": "x"}, '"A b" is no key'),
        ({"A": 7}, '"A": a reply is a string or an object, not a number'),
        ({"A": None}, "not null"),
        ({"A": True}, "not a Boolean"),
        ({"A": ["ok", ["list"]]}, '"A", reply 2: a reply is a string or an object, not a list'),
        ({"A": {"replies": "x"}}, '"replies" is a list of replies, not a string'),
        ({"A": {"replies": ["x"], "repeat": 1}}, '"repeat" is true or false'),
        ({"A": {"replies": [], "repeat": True}}, "no last reply to repeat"),
        ({"A": {"error": 200}}, '"error" is an HTTP status from 400 to 599 or "network"'),
        ({"A": {"error": True}}, '"error" is an HTTP status'),
        ({"A": {"error": "not found"}}, 'write {"reply": {"error": …}}'),
        ({"A": {"delay": "soon"}}, '"delay" is a duration such as "200ms"'),
        ({"A": {"delay": 5}}, '"delay" is a duration'),
        ({"A": {"delay": "9" * 400 + "s"}}, "a year at most"),
        ({"A": {"retry_after": 1}}, 'stands only beside "error"'),
        ({"A": {"error": 429, "retry_after": -1}}, '"retry_after" is a number of seconds'),
        ({"A": {"error": 429, "retry_after": "1s"}}, '"retry_after" is a number of seconds'),
        ({"A": {"usage": {"in": 1}}}, '"usage" has no "in"; allowed are cached, input, output, reasoning'),
        ({"A": {"usage": {"input": -1}}}, '"input" is a whole number from 0'),
        ({"A": {"usage": {"input": True}}}, '"input" is a whole number'),
        ({"A": {"usage": 5}}, '"usage" is an object, not a number'),
        ({"A": {"tool_calls": []}}, '"tool_calls" is a list such as'),
        ({"A": {"tool_calls": ["T_x"]}}, "a tool call is an object"),
        ({"A": {"tool_calls": [{"args": {}}]}}, 'names its function in "tool"'),
        ({"A": {"tool_calls": [{"tool": "T_x", "args": [1]}]}}, '"args" is an object'),
        ({"A": {"tool_calls": [{"tool": "T_x", "arguments": {}}]}}, 'a tool call has no "arguments"'),
    ],
)
def test_what_is_wrong_is_named_with_its_key_and_what_is_allowed(document: Any, said: str, tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text(json.dumps(document))
    with pytest.raises(ConfigError) as caught:
        Script.load(file)
    assert said in caught.value.message
    assert str(file) in caught.value.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"A": "x",\n  "B" "y"}', ":2:7: invalid JSON"),
        (b"", ":1:1: invalid JSON"),
        (b'{"A": "\xff"}', "not UTF-8 text (byte 8)"),
        (b'{"A": "x", "A": "y"}', 'the key "A" stands twice'),
        (b'{"A": {"a": NaN}}', "NaN is no JSON value"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"A": {"n": ' + b"9" * 5000 + b"}}", "digits"),
        (b'{"A": "\\ud800"}', "surrogate"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Script.load(file)
    assert said in caught.value.message


@pytest.mark.parametrize(("name", "said"), [("gone.json", "No such file"), (".", "directory"), ("a\0b", "null")])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the replies file") as caught:
        Script.load(tmp_path / name)
    assert said in caught.value.message


def test_a_file_that_never_ends_is_refused() -> None:
    with pytest.raises(ConfigError, match="at most 16 MiB"):
        Script.load("/dev/zero")


def test_a_byte_order_mark_and_a_schema_line_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_bytes(b'\xef\xbb\xbf{"$schema": "replies.schema.json", "A": "x"}')
    assert list(Script.load(file).lists) == ["A"]


def test_every_example_of_the_reference_page_is_a_replies_file(root: Path) -> None:
    page = (root / "docs/reference/replies.md").read_text()
    examples = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 4
    assert all(Script.load(json.loads(example)).lists for example in examples)


def test_the_schema_for_editors_knows_the_same_keys() -> None:
    schema = json.loads(Path(script_module.__file__).with_name("replies.schema.json").read_text())
    assert set(schema["$defs"]["control"]["properties"]) == CONTROL_KEYS
    assert set(schema["$defs"]["onlyControlKeys"]["propertyNames"]["enum"]) == CONTROL_KEYS
    assert re.compile(next(iter(schema["patternProperties"]))).fullmatch("Prüfer.prüfe")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
control_keys = st.sampled_from(["reply", "usage", "delay", "error", "retry_after", "tool_calls", "replies", "repeat"])


@given(json_values | st.dictionaries(control_keys, json_values, max_size=4))
def test_any_value_is_either_taken_or_refused_with_its_key(value: Any) -> None:
    try:
        outcome = Script.load({"A": value}).find("A", "x")
    except ConfigError as error:
        outcome = error.message
    assert outcome is not None
    assert outcome == "A" or '"A"' in outcome


@given(st.dictionaries(st.text(min_size=1), json_values, min_size=1))
def test_an_object_with_a_key_of_its_own_comes_back_as_the_json_it_is(value: dict[str, Any]) -> None:
    document = value | {"a key of its own": 1}
    script = Script.load({"A": document})
    assert json.loads(script.lists["A"].replies[0].text) == document

"""Anthropic's messages API against a server that refuses what Anthropic refuses, whole and streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.errors import ModelError
from halo_runtime.models.anthropic import Anthropic
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, ToolSpec, Usage
from tests.fakes.anthropic_server import (
    EVENT_STREAM,
    KEY,
    FakeAnthropic,
    document,
    error,
    event,
    events,
    failure,
    message,
    stream,
    text,
    thinking,
    tool_use,
    usage,
)
from tests.fakes.wire import Answer, crumbs, reply

HI = (Message("user", "hi"),)
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def ask(model: str = "anthropic/claude-sonnet-4-5", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeAnthropic]:
    async with FakeAnthropic() as fake:
        yield fake


@pytest_asyncio.fixture
async def anthropic(server: FakeAnthropic) -> AsyncIterator[Anthropic]:
    provider = Anthropic(server.env)
    yield provider
    await provider.close()


async def both(server: FakeAnthropic, provider: Anthropic, answer: Answer, request: ModelRequest) -> ModelReply:
    """The reply to a message, which must be the same whole and streamed."""
    server.answer(answer, answer)
    deltas: list[str] = []
    whole, streamed = await provider.complete(request), await provider.complete(request, deltas.append)
    assert whole == streamed
    assert "".join(deltas) == whole.text
    return whole


async def failed(provider: Anthropic, request: ModelRequest | None = None, *, streaming: bool = False) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await provider.complete(request or ask(), [].append if streaming else None)
    assert KEY not in f"{caught.value!r} {caught.value.detail} {provider!r} {vars(provider)}"
    return caught.value


def answered(turn: ModelReply, *results: str) -> tuple[Message, ...]:
    """The question, the turn that asked for tools, and their results."""
    pairs = zip(results, turn.tool_calls, strict=True)
    asked = Message("assistant", turn.text, turn.tool_calls, opaque=turn.opaque)
    return (*HI, asked, *(Message("tool", said, tool_call_id=call.id) for said, call in pairs))


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_request_holds_the_turns_and_the_settings_that_were_made(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    messages = (Message("system", "Be brief."), *HI)
    await anthropic.complete(ask(messages=messages, temperature=0.2, max_tokens=40))
    assert server.requests[0].body == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 40,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "temperature": 0.2,
    }
    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("claude-3-haiku-20240307", 4096),
        ("claude-3-5-sonnet-latest", 8192),
        ("claude-3-7-sonnet-20250219", 8192),
        ("claude-opus-4-20250514", 8192),
        ("claude-sonnet-4-0", 8192),
        ("claude-opus-4-1-20250805", 8192),
        ("claude-haiku-4-5", 16_000),
        ("claude-opus-5-5", 16_000),
        ("claude-next-9", 16_000),
        ("glm-5", 4096),
    ],
)
async def test_the_limit_that_the_service_wants_is_one_that_the_model_takes(
    server: FakeAnthropic, anthropic: Anthropic, model: str, limit: int
) -> None:
    await anthropic.complete(ask(f"anthropic/{model}"))
    assert server.requests[0].body["max_tokens"] == limit


NEW = (
    "claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-sonnet-5 claude-opus-5-5 claude-sonnet-5-5 claude-haiku-5-5 "
    "claude-fable-5 claude-fable-5-2 claude-mythos-5-1"
)


@pytest.mark.parametrize("model", NEW.split())
async def test_new_families_get_no_sampling_settings(server: FakeAnthropic, anthropic: Anthropic, model: str) -> None:
    reply = await anthropic.complete(ask(model, temperature=0.2, top_p=0.5))
    assert server.requests[0].body.keys() == {"model", "max_tokens", "messages"}
    assert reply.warnings == (
        f"{model} does not take temperature; it was left out",
        f"{model} does not take top_p; it was left out",
    )


@pytest.mark.parametrize("model", ["claude-opus-4-1", "claude-sonnet-4-6", "claude-haiku-4-5-20251001"])
async def test_some_families_take_one_sampling_setting(server: FakeAnthropic, anthropic: Anthropic, model: str) -> None:
    reply = await anthropic.complete(ask(model, temperature=0.2, top_p=0.5))
    assert server.requests[0].body["temperature"] == 0.2
    assert reply.warnings == (f"{model} does not take top_p beside temperature; it was left out",)
    assert (await anthropic.complete(ask(model, top_p=0.5))).warnings == ()
    assert server.requests[1].body["top_p"] == 0.5


@pytest.mark.parametrize("model", ["claude-3-5-haiku-latest", "claude-sonnet-4-20250514", "claude-opus-4-0"])
async def test_old_families_take_both(server: FakeAnthropic, anthropic: Anthropic, model: str) -> None:
    assert (await anthropic.complete(ask(model, temperature=0.2, top_p=0.5))).warnings == ()
    assert {"temperature", "top_p"} <= server.requests[0].body.keys()


@pytest.mark.parametrize("setting", ["temperature", "top_p"])
async def test_a_setting_that_the_service_refuses_costs_one_request_and_is_remembered(
    server: FakeAnthropic, anthropic: Anthropic, setting: str
) -> None:
    server.answer(failure(400, said=f"`{setting}` is deprecated for this model."))
    for _ in range(2):
        reply = await anthropic.complete(ask(**{setting: 0.5}))
        assert reply.warnings == (f"claude-sonnet-4-5 does not take {setting}; it was left out",)
    assert [setting in request.body for request in server.requests] == [True, False, False]


async def test_a_value_that_is_out_of_range_is_refused_and_not_left_out(server: FakeAnthropic) -> None:
    async with FakeAnthropic(refusals_expected=True) as strict:
        provider = Anthropic(strict.env)
        assert (await failed(provider, ask(temperature=1.5))).detail == "temperature: range: 0..1"
        await provider.close()
        assert len(strict.requests) == 1


async def test_a_schema_is_asked_for_as_structured_output(server: FakeAnthropic, anthropic: Anthropic) -> None:
    reply = await anthropic.complete(ask(json_schema=SCHEMA))
    assert server.requests[0].body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert reply.warnings == ()


@pytest.mark.parametrize(
    ("model", "schema", "said"),
    [
        ("claude-sonnet-4-5", SCHEMA | {"properties": {"city": {}}}, "values of any type"),
        ("claude-opus-5", SCHEMA | {"properties": {"city": {"type": "object"}}}, "objects with any fields"),
        ("claude-3-5-sonnet-latest", SCHEMA, "a schema"),
    ],
)
async def test_a_schema_that_cannot_be_asked_for_so_is_asked_for_in_words(
    server: FakeAnthropic, anthropic: Anthropic, model: str, schema: dict[str, Any], said: str
) -> None:
    reply = await anthropic.complete(ask(model, json_schema=schema, messages=(Message("system", "Be brief."), *HI)))
    body = server.requests[0].body
    assert "output_config" not in body
    assert body["system"].startswith("Be brief.\n\nAnswer with JSON only")
    assert json.loads(body["system"].splitlines()[-1]) == schema
    assert reply.warnings == (f"{model} does not take {said} in its JSON mode; the schema was sent in words",)


async def test_structured_output_that_the_service_refuses_is_asked_for_in_words(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    server.answer(failure(400, said="output_config: Extra inputs are not permitted"))
    reply = await anthropic.complete(ask(json_schema=SCHEMA))
    assert "JSON Schema" in server.requests[1].body["system"]
    assert len(reply.warnings) == 1


async def test_tools_are_offered_with_the_schemas_of_their_arguments(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    choice = ToolSpec("Pick", "", {"anyOf": [{"type": "object"}, {"type": "null"}]})
    await anthropic.complete(ask(tools=(WEATHER, choice)))
    weather, pick = server.requests[0].body["tools"]
    assert weather == {
        "name": "Weather_at",
        "description": "Weather of a city",
        "input_schema": WEATHER.parameters,
    }
    assert pick["input_schema"] == {
        "type": "object",
        "description": '{"anyOf": [{"type": "object"}, {"type": "null"}]}',
    }


async def test_names_that_the_service_refuses_are_mapped_there_and_back(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in ("Über.a", "Äber/a", "T." + "x" * 80))
    await anthropic.complete(ask(tools=tools))
    wire = [tool["name"] for tool in server.requests[0].body["tools"]]
    blocks = [tool_use(f"c{number}", name, {}) for number, name in enumerate(wire)]
    turn = await both(server, anthropic, message(*blocks, tool_use("c9", "unknown", {})), ask(tools=tools))
    assert [call.name for call in turn.tool_calls] == [*(tool.name for tool in tools), "unknown"]


async def test_the_results_of_one_turn_go_back_in_one_message_in_the_order_of_the_calls(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    blocks = (text("Looking."), tool_use("c1", "Weather_at", {"city": "Oslo"}), tool_use("c2", "Weather_at", {}))
    turn = await both(server, anthropic, message(*blocks), ask(tools=(WEATHER,)))
    assert turn.tool_calls == (ToolCall("c1", "Weather_at", '{"city": "Oslo"}'), ToolCall("c2", "Weather_at", "{}"))
    await anthropic.complete(ask(messages=answered(turn, "4C", ""), tools=(WEATHER,)))
    assert server.requests[-1].body["messages"][1:] == [
        {"role": "assistant", "content": [{"type": "text", "text": "Looking."}, *blocks[1:]]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "4C"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "(no output)"},
            ],
        },
    ]


async def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_is_dropped(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    open_call = Message("assistant", "", (ToolCall("c1", "Weather_at", "{}"),))
    stray = Message("tool", "4C", tool_call_id="c0")
    await anthropic.complete(ask(messages=(*HI, open_call, stray, Message("user", "Well?")), tools=(WEATHER,)))
    result, question = server.requests[0].body["messages"][2]["content"]
    assert (result["tool_use_id"], result["is_error"], question["text"]) == ("c1", True, "Well?")


async def test_what_another_service_left_is_made_legal(server: FakeAnthropic, anthropic: Anthropic) -> None:
    turns: list[Message] = [*HI]
    for arguments in ('{"city": "Os', "[1]", "", "[" * 100_000):
        calls = tuple(ToolCall(id_, "Weather_at", arguments) for id_ in ("functions.at:0", "functions_at:0"))
        results = (Message("tool", "x", tool_call_id=call.id) for call in calls)
        turns += [Message("assistant", " \n", calls, opaque={"gemini": {"content": []}}), *results]
    await anthropic.complete(ask(messages=tuple(turns), tools=(WEATHER,)))
    blocks = [block for turn in server.requests[0].body["messages"][1::2] for block in turn["content"]]
    assert {block["type"] for block in blocks} == {"tool_use"}
    assert [block["input"] for block in blocks][::2][:3] == [
        {"INVALID_JSON": '{"city": "Os'},
        {"INVALID_JSON": "[1]"},
        {},
    ]


async def test_neighbours_of_one_role_are_merged_and_blank_text_is_left_out(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    messages = (Message("system", " "), *HI, Message("assistant", ""), Message("user", "a\ud83d"), Message("user", " "))
    await anthropic.complete(ask(messages=messages))
    assert server.requests[0].body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "a\ufffd"}]}
    ]
    assert "system" not in server.requests[0].body


async def test_a_last_turn_of_the_models_own_ends_in_no_white_space(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    await anthropic.complete(ask(messages=(*HI, Message("assistant", "It is \n"))))
    assert server.requests[0].body["messages"][-1]["content"] == [{"type": "text", "text": "It is"}]


async def test_long_answers_are_streamed_in_any_case(server: FakeAnthropic, anthropic: Anthropic) -> None:
    assert (await anthropic.complete(ask(max_tokens=32_000))).text == "ok"
    assert server.requests[0].body["stream"] is True


# --- thinking ---------------------------------------------------------------------------------------------------------

THOUGHT = message(thinking("Oslo…"), text("Looking."), thinking(), tool_use("c1", "Weather_at", {"city": "Oslo"}))
THINKER = ask("claude-sonnet-5-5", tools=(WEATHER,))


async def test_a_turn_with_thinking_goes_back_as_it_came(server: FakeAnthropic, anthropic: Anthropic) -> None:
    turn = await both(server, anthropic, THOUGHT, THINKER)
    assert (turn.text, [call.id for call in turn.tool_calls]) == ("Looking.", ["c1"])
    turn = ModelReply.from_json(json.loads(json.dumps(turn.to_json())))
    await anthropic.complete(ask(THINKER.model, messages=answered(turn, "4C"), tools=(WEATHER,)))
    blocks = server.requests[-1].body["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "thinking", "tool_use"]
    assert "Oslo…" not in json.dumps([message.to_json() for message in answered(turn, "4C")])


async def test_two_turns_with_thinking_both_go_back(server: FakeAnthropic, anthropic: Anthropic) -> None:
    first = await both(server, anthropic, THOUGHT, THINKER)
    history = answered(first, "4C")
    server.answer(message(thinking(), tool_use("c2", "Weather_at", {})))
    second = await anthropic.complete(ask(THINKER.model, messages=history, tools=(WEATHER,)))
    history += answered(second, "5C")[1:]
    await anthropic.complete(ask(THINKER.model, messages=history, tools=(WEATHER,)))
    kinds = [block["type"] for turn in server.requests[-1].body["messages"][1::2] for block in turn["content"]]
    assert kinds.count("thinking") == 3


@pytest.mark.parametrize(
    ("change", "tools"),
    [
        (lambda history: (Message("user", "hello"), *history[1:]), (WEATHER,)),
        (lambda history: (Message("system", "Be brief."), *history), (WEATHER,)),
        (lambda history: history, (WEATHER, ToolSpec("More", "", {"type": "object"}))),
    ],
    ids=["an old message", "the instructions", "the tools"],
)
async def test_thinking_is_left_out_where_what_it_is_bound_to_was_changed(
    server: FakeAnthropic, anthropic: Anthropic, change: Any, tools: tuple[ToolSpec, ...]
) -> None:
    turn = await both(server, anthropic, THOUGHT, THINKER)
    await anthropic.complete(ask(THINKER.model, messages=change(answered(turn, "4C")), tools=tools))
    assert "thinking" not in json.dumps(server.requests[-1].body["messages"])


async def test_what_a_rule_cut_from_a_turn_does_not_go_back_with_its_thinking(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    turn = await both(server, anthropic, THOUGHT, THINKER)
    _, said, result = answered(turn, "4C")
    cut = Message("assistant", "[CUT]", said.tool_calls, opaque=said.opaque)
    await anthropic.complete(ask(THINKER.model, messages=(*HI, cut, result), tools=(WEATHER,)))
    assert "Looking." not in json.dumps(server.requests[-1].body)


async def test_thinking_of_a_whole_answer_is_no_part_of_its_text(server: FakeAnthropic, anthropic: Anthropic) -> None:
    turn = await both(server, anthropic, message(thinking(), text("a"), text("b")), ask("claude-opus-5-5"))
    assert (turn.text, turn.stop) == ("ab", "end")


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_a_reply_has_text_usage_and_the_model_that_answered(server: FakeAnthropic, anthropic: Anthropic) -> None:
    counted = usage(40, 60, read=2000, written=100, thought=20)
    turn = await both(server, anthropic, message(text('Grüße \u2028\x85 \\ "x"'), usage=counted), ask())
    assert (turn.text, turn.stop, turn.cost) == ('Grüße \u2028\x85 \\ "x"', "end", None)
    assert turn.usage == Usage(input=2140, output=60, cached=2000, reasoning=20, cache_written=100)
    assert turn.model_used == "claude-sonnet-4-5-20250929"


@pytest.mark.parametrize(
    ("reported", "known"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"input_tokens": "9", "output_tokens": -1}, Usage()),
        ({"input_tokens": 9, "output_tokens": 3}, Usage(9, 3)),
        ({"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": None}, Usage(9, 3)),
        ({"cache_read_input_tokens": 5, "output_tokens": 3}, Usage(None, 3, cached=5)),
    ],
)
async def test_usage_that_is_not_reported_is_unknown_and_not_zero(
    server: FakeAnthropic, anthropic: Anthropic, reported: Any, known: Usage
) -> None:
    server.answer(reply(document(text("x")) | {"usage": reported}))
    assert (await anthropic.complete(ask())).usage == known


@pytest.mark.parametrize("stop", ["end_turn", "tool_use", "stop_sequence", "something_new"])
async def test_calls_are_told_by_their_presence_and_not_by_the_reason_to_stop(
    server: FakeAnthropic, anthropic: Anthropic, stop: str
) -> None:
    called = await both(server, anthropic, message(tool_use("c", "Weather_at", {}), stop=stop), ask(tools=(WEATHER,)))
    plain = await both(server, anthropic, message(text("x"), stop=stop), ask())
    assert (called.stop, plain.stop) == ("tool", "end")


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        ("max_tokens", "output_limit"),
        ("model_context_window_exceeded", "context_overflow"),
        ("refusal", "refusal"),
    ],
)
async def test_a_reply_that_is_not_whole_is_an_error(
    server: FakeAnthropic, anthropic: Anthropic, stop: str, code: str
) -> None:
    with pytest.raises(ModelError) as caught:
        await both(server, anthropic, message(text("half a"), stop=stop), ask())
    assert caught.value.code == code


async def test_a_turn_that_the_service_paused_says_so(server: FakeAnthropic, anthropic: Anthropic) -> None:
    turn = await both(server, anthropic, message(text("half a"), stop="pause_turn"), ask())
    assert (turn.text, turn.stop) == ("half a", "end")
    assert "the reply is not whole" in turn.warnings[0]


async def test_a_refusal_says_why_and_makes_no_calls(server: FakeAnthropic, anthropic: Anthropic) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    answer = message(tool_use("c", "Weather_at", {}), stop="refusal", stop_details=details)
    with pytest.raises(ModelError, match=r"declined to answer: It could do harm\.") as caught:
        await both(server, anthropic, answer, ask(tools=(WEATHER,)))
    assert caught.value.detail == "It could do harm."


async def test_nothing_to_say_after_the_results_of_tools_is_an_empty_answer(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    turn = await both(server, anthropic, message(tool_use("c", "Weather_at", {})), ask(tools=(WEATHER,)))
    request = ask(messages=answered(turn, "4C"), tools=(WEATHER,))
    assert (await both(server, anthropic, message(), request)).text == ""


async def test_calls_with_no_id_or_the_same_one_get_distinct_ids(server: FakeAnthropic, anthropic: Anthropic) -> None:
    blocks = [tool_use(id_, "Weather_at", {"city": "Oslo"}) for id_ in ("a", "a", "")]
    turn = await both(server, anthropic, message(*blocks), ask(tools=(WEATHER,)))
    assert len({call.id for call in turn.tool_calls}) == 3
    await anthropic.complete(ask(messages=answered(turn, "1", "2", "3"), tools=(WEATHER,)))


@pytest.mark.parametrize(
    ("answer", "said", "retryable"),
    [
        (message(), 'empty message (stop_reason "end_turn")', True),
        (message(stop="max_tokens"), "spent all its tokens before its answer began; raise max_tokens", False),
        (message(thinking("…"), stop="max_tokens"), "spent all its tokens before its answer began", False),
        (message(stop="model_context_window_exceeded"), "no room left for an answer", False),
        (message(tool_use("c", "Weather_at", {"path": "/a"}), stop="max_tokens"), "cut off inside a tool call", False),
        (message(text("x"), tool_use("c", "T", {}), stop="model_context_window_exceeded"), "cut off inside a", False),
    ],
)
async def test_an_answer_that_is_none_says_why(
    server: FakeAnthropic, anthropic: Anthropic, answer: Answer, said: str, retryable: bool
) -> None:
    server.answer(answer, answer)
    whole, streamed = await failed(anthropic), await failed(anthropic, streaming=True)
    assert said in whole.message
    assert whole.message == streamed.message
    assert (whole.retryable, streamed.retryable) == (retryable, retryable)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (reply({"error": {"message": "model\n overloaded"}}), "without any content: model overloaded"),
        (reply({"error": "out of memory"}), "without any content: out of memory"),
        (reply({"content": "text"}), "without any content"),
        (Answer(body=b""), "broken JSON (0 bytes)"),
        (Answer(body=b'{"content": [{"ty'), "broken JSON"),
        (Answer(body=b'{"content": "\xff"}'), "broken JSON"),
        (Answer(body=b"[" * 200_000), "broken JSON"),
        (Answer(body=b"[]"), "JSON that is no object"),
        (Answer(body=b"<html>", content_type="text/html"), "answered text/html instead of JSON; is ANTHROPIC_BASE_URL"),
        (Answer(body=b"{}", content_type=None), "something without a type instead of JSON"),
        (Answer(body=b"x" * 2**25 + b"x"), "more than 32 MiB"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_an_answer_that_cannot_be_used_names_the_host_and_the_reason(
    server: FakeAnthropic, anthropic: Anthropic, answer: Answer, said: str, streaming: bool
) -> None:
    server.answer(answer)
    problem = await failed(anthropic, streaming=streaming)
    assert said in problem.message
    assert "Anthropic (127.0.0.1:" in problem.message


@pytest.mark.parametrize("content", [[None, 5, {}], [{"type": "text"}, {"type": "text", "text": 5}], [{"type": "new"}]])
async def test_blocks_that_make_no_sense_are_no_text(
    server: FakeAnthropic, anthropic: Anthropic, content: list[Any]
) -> None:
    server.answer(reply(document() | {"content": content}))
    assert "empty message" in (await failed(anthropic)).message


# --- streams ----------------------------------------------------------------------------------------------------------

WHOLE = document(thinking("…"), text("Grüße, 世界"), tool_use("c1", "Weather_at", {"city": "Zürich"}))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_stream_may_come_in_any_pieces_with_any_line_ends(
    server: FakeAnthropic, anthropic: Anthropic, end: str, size: int
) -> None:
    server.answer(stream(events(WHOLE), end=end, size=size))
    deltas: list[str] = []
    turn = await anthropic.complete(ask(tools=(WEATHER,)), deltas.append)
    assert (turn.text, turn.tool_calls[0].arguments) == ("Grüße, 世界", '{"city": "Zürich"}')
    assert "".join(deltas) == turn.text


def parts(*fragments: str, id_: str = "c1", index: Any = 0) -> list[dict[str, Any]]:
    """The events of one call whose arguments come in these fragments."""
    place = {} if index is None else {"index": index}
    start = {"type": "content_block_start", **place, "content_block": tool_use(id_, "Weather_at", {})}
    deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
    return [start, *({"type": "content_block_delta", **place, "delta": delta} for delta in deltas)]


def around(*inner: dict[str, Any], stop: str = "tool_use") -> list[dict[str, Any]]:
    """The events before and after the blocks of a message."""
    begin, *_, last, end = events(document(stop=stop))
    return [begin, *inner, last, end]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize(
    ("fragments", "arguments"),
    [
        ((), "{}"),
        (("",), "{}"),
        (("", '{"a":', "1}"), '{"a": 1}'),
        (('{"a":',), '{"a":'),
        (("[1]",), "[1]"),
    ],
)
async def test_arguments_come_in_fragments_and_the_empty_ones_of_the_start_are_none_of_them(
    server: FakeAnthropic, anthropic: Anthropic, fragments: tuple[str, ...], arguments: str, index: Any
) -> None:
    server.answer(stream(around(*parts(*fragments, index=index))))
    turn = await anthropic.complete(ask(tools=(WEATHER,)), [].append)
    assert [call.arguments for call in turn.tool_calls] == [arguments]


async def test_calls_may_interleave_and_a_new_block_at_a_known_place_is_another_one(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    one, two, three = parts('{"a":', "1}"), parts('{"b":', "2}", id_="c2", index=1), parts('{"c":3}', id_="c3")
    server.answer(stream(around(one[0], two[0], one[1], two[1], two[2], one[2], *three)))
    turn = await anthropic.complete(ask(tools=(WEATHER,)), [].append)
    assert [(call.id, call.arguments) for call in turn.tool_calls] == [
        ("c1", '{"a": 1}'),
        ("c2", '{"b": 2}'),
        ("c3", '{"c": 3}'),
    ]


async def test_arguments_cut_off_in_a_stream_are_not_used(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(stream(around(*parts('{"path":"/a'), stop="max_tokens")))
    assert "cut off inside a tool call" in (await failed(anthropic, streaming=True)).message


async def test_what_is_unknown_in_a_stream_is_passed_over(server: FakeAnthropic, anthropic: Anthropic) -> None:
    begin, *rest = events(document(text("ok")))
    odd: list[dict[str, Any]] = [
        {"type": "news", "x": 1},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "lost"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "news_delta", "news": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "ping"},
    ]
    server.answer(stream([begin, *odd, *rest, {"type": "message_start", "message": {}}]))
    assert (await anthropic.complete(ask(), [].append)).text == "ok"


async def test_usage_at_the_end_of_a_stream_takes_the_place_of_that_at_its_start(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    found = events(document(text("ok"), usage=usage(9, 30, read=100)))
    found[-2]["usage"] = {"output_tokens": 30, "input_tokens": 12, "cache_read_input_tokens": None}
    server.answer(stream(found), stream(events(document(text("ok"), usage=None))))
    assert (await anthropic.complete(ask(), [].append)).usage == Usage(
        112, 30, cached=100, reasoning=0, cache_written=0
    )
    assert (await anthropic.complete(ask(), [].append)).usage == Usage()


@pytest.mark.parametrize("kept", [0, 1, 4, -1])
async def test_a_stream_without_its_end_is_no_answer(server: FakeAnthropic, anthropic: Anthropic, kept: int) -> None:
    server.answer(stream(events(document(text("ok")))[:kept]))
    problem = await failed(anthropic, streaming=True)
    assert "ended its stream before its answer was complete" in problem.message
    assert problem.retryable


async def test_a_connection_cut_in_the_middle_of_a_stream_may_be_tried_again(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    server.answer(stream(events(document(text("ok")))[:4], cut=True))
    problem = await failed(anthropic, streaming=True)
    assert problem.retryable
    assert "ended the connection" in problem.message
    assert (await anthropic.complete(ask(), [].append)).text == "ok"


async def test_a_stream_that_is_complete_counts_whatever_becomes_of_its_connection(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    server.answer(stream(events(document(text("ok"))), cut=True), stream(events(document(text("ok"))), hang=True))
    assert (await anthropic.complete(ask(), [].append)).text == "ok"
    assert (await anthropic.complete(ask(), [].append)).text == "ok"


@pytest.mark.parametrize(
    ("kind", "status", "retryable"),
    [
        ("overloaded_error", 529, True),
        ("api_error", 500, True),
        ("timeout_error", 504, True),
        ("rate_limit_error", 429, True),
        ("invalid_request_error", 400, False),
        ("authentication_error", 401, False),
        ("request_too_large", 413, False),
        ("something_new", 500, True),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 4])
async def test_a_failure_within_a_stream_counts_by_its_kind(
    server: FakeAnthropic, anthropic: Anthropic, kind: str, status: int, retryable: bool, before: int
) -> None:
    server.answer(stream([*events(document(text("ok")))[:before], error(kind, "Overloaded")]))
    problem = await failed(anthropic, streaming=True)
    assert (problem.status, problem.retryable, problem.detail) == (status, retryable, "Overloaded")


@pytest.mark.parametrize("data", ["{", "[" * 100_000, "\x00"])
async def test_an_event_that_is_no_json_is_told(server: FakeAnthropic, anthropic: Anthropic, data: str) -> None:
    body = event({"type": "message_start", "message": {}}) + f"event: message_delta\ndata: {data}\n\n"
    server.answer(Answer(pieces=crumbs(body, 100), content_type=EVENT_STREAM))
    assert "an event that is no JSON" in (await failed(anthropic, streaming=True)).message


async def test_a_server_that_answers_whole_to_a_question_for_a_stream_is_understood(
    server: FakeAnthropic, anthropic: Anthropic
) -> None:
    server.answer(reply(document(text("ok"))))
    assert (await anthropic.complete(ask(), [].append)).text == "ok"


# --- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (402, "billing_error", False),
        (403, "permission_error", False),
        (404, "not_found_error", False),
        (409, "conflict_error", True),
        (413, "request_too_large", False),
        (429, "rate_limit_error", True),
        (500, "api_error", True),
        (504, "timeout_error", True),
        (529, "overloaded_error", True),
    ],
)
async def test_a_refusal_has_the_services_words_and_tells_whether_to_try_again(
    server: FakeAnthropic, anthropic: Anthropic, status: int, kind: str, retryable: bool, streaming: bool
) -> None:
    server.answer(failure(status, kind, "The service's words."))
    problem = await failed(anthropic, streaming=streaming)
    assert (problem.status, problem.retryable, problem.detail) == (status, retryable, "The service's words.")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "code",
    ["enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached"],
)
async def test_no_waiting_helps_against_a_limit_of_spending(
    server: FakeAnthropic, anthropic: Anthropic, code: str
) -> None:
    server.answer(failure(429, "rate_limit_error", "limit reached", {"error_code": code}))
    problem = await failed(anthropic)
    assert not problem.retryable
    assert "no credit left" in problem.message


async def test_waiting_helps_against_a_limit_of_growth(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(failure(429, "rate_limit_error", "slower", {"error_code": "ramp_limit_exceeded"}))
    assert (await failed(anthropic)).retryable


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "9999"}, 9999.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
async def test_how_long_to_wait_is_handed_on(
    server: FakeAnthropic, anthropic: Anthropic, headers: dict[str, str], wait: float | None
) -> None:
    server.answer(failure(429, "rate_limit_error", headers=headers))
    assert (await failed(anthropic, streaming=True)).retry_after == wait


@pytest.mark.parametrize(("status", "verdict", "retryable"), [(400, "true", True), (529, "false", False)])
async def test_the_services_own_word_on_retrying_wins(
    server: FakeAnthropic, anthropic: Anthropic, status: int, verdict: str, retryable: bool
) -> None:
    server.answer(failure(status, headers={"x-should-retry": verdict}))
    assert (await failed(anthropic)).retryable is retryable


async def test_a_prompt_that_is_too_long_is_told_with_what_to_do(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(failure(400, said="prompt is too long: 210000 tokens > 200000 maximum"))
    problem = await failed(anthropic)
    assert "210000 tokens" in problem.message
    assert "give the call less to read" in (problem.hint or "")


async def test_an_error_page_of_a_proxy_is_told_by_its_status(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(Answer(502, b"<html>Bad gateway", content_type="text/html"))
    problem = await failed(anthropic, streaming=True)
    assert (problem.status, problem.retryable, problem.detail) == (502, True, None)


async def test_a_redirect_is_not_followed(server: FakeAnthropic, anthropic: Anthropic) -> None:
    async with FakeAnthropic() as elsewhere:
        server.answer(Answer(307, headers={"location": f"{elsewhere.address}/v1/messages"}))
        assert "set ANTHROPIC_BASE_URL to the final address" in (await failed(anthropic)).message
        assert elsewhere.requests == []


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("begun", [(), events(document(text("ok")))[:4]])
async def test_cancelling_a_call_closes_its_connection(
    server: FakeAnthropic, anthropic: Anthropic, streaming: bool, begun: list[dict[str, Any]]
) -> None:
    server.answer(stream(begun, hang=True) if begun else Answer(hang=True))
    call = asyncio.create_task(anthropic.complete(ask(), [].append if streaming else None))
    await server.hanging.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(5):
        await server.left.wait()


async def test_requests_share_a_connection_streamed_or_not(server: FakeAnthropic, anthropic: Anthropic) -> None:
    for streaming in (False, True, False, True):
        await anthropic.complete(ask(), [].append if streaming else None)
    assert server.connections == 1


def test_one_provider_serves_one_event_loop_after_another() -> None:
    provider = Anthropic({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})

    async def use() -> None:
        assert "cannot be reached" in (await failed(provider)).message
        await provider.close()

    asyncio.run(use())
    asyncio.run(use())


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [{}, {"ANTHROPIC_API_KEY": ""}, {"ANTHROPIC_API_KEY": " \n", "ANTHROPIC_BASE_URL": ""}])
async def test_a_missing_key_is_named_with_two_ways_to_run_without_one(env: dict[str, str]) -> None:
    provider = Anthropic(env)
    problem = provider.missing() or ""
    assert all(said in problem for said in ("ANTHROPIC_API_KEY", "--replies", "--model local/smollm2"))
    assert (await failed(provider)).message == problem


async def test_a_wrong_key_is_named_by_its_variable_and_never_shown() -> None:
    wrong = "sk-ant-wrong-0123456789abcdef"
    async with FakeAnthropic(refusals_expected=True) as server:
        provider = Anthropic(server.env | {"ANTHROPIC_API_KEY": wrong})
        problem = await failed(provider)
        await provider.close()
    assert "check ANTHROPIC_API_KEY" in problem.message
    assert wrong not in f"{problem!r} {problem.detail} {provider!r} {vars(provider)}"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/messages", " \n"])
async def test_the_address_may_end_as_people_write_it(server: FakeAnthropic, ending: str) -> None:
    provider = Anthropic({"ANTHROPIC_API_KEY": f" {KEY}\n", "ANTHROPIC_BASE_URL": server.address + ending})
    assert provider.missing() is None
    assert (await provider.complete(ask())).text == "ok"
    await provider.close()


async def test_a_server_on_this_machine_needs_no_key() -> None:
    async with FakeAnthropic(key=None) as server:
        provider = Anthropic({"ANTHROPIC_BASE_URL": server.address})
        assert (await provider.complete(ask())).text == "ok"
        await provider.close()
        assert "x-api-key" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("http://models.example", KEY, "plain http to another machine"),
        ("https://models.example", "", "ANTHROPIC_API_KEY is not set"),
        ("models.example", KEY, "no plain http or https address"),
        ("", "sk two words", "ANTHROPIC_API_KEY holds white space"),
    ],
)
def test_what_a_key_must_not_be_sent_to_is_found_before_anything_is_sent(url: str, key: str, said: str) -> None:
    assert said in (Anthropic({"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}).missing() or "")

"""Anthropic's messages: what is sent, and thinking that goes back as it came."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.models.anthropic import Anthropic
from halo_runtime.models.base import Message, ModelReply, ToolCall, ToolSpec
from tests.fakes.anthropic_server import (
    KEY,
    FakeAnthropic,
    failure,
    message,
    text,
    thinking,
    tool_use,
)
from tests.models.anthropic_calls import HI, SCHEMA, WEATHER, answered, ask, both, failed


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeAnthropic]:
    async with FakeAnthropic() as fake:
        yield fake


@pytest_asyncio.fixture
async def anthropic(server: FakeAnthropic) -> AsyncIterator[Anthropic]:
    provider = Anthropic(server.env)
    yield provider
    await provider.close()


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

"""OpenAI's responses API: when it is asked, what is sent, and what it turns out not to take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.models.base import Message, ModelReply, ToolCall, ToolSpec
from halo_runtime.models.turns import answered
from tests.fakes.openai_responses import (
    function_call,
    reasoning,
    response,
)
from tests.fakes.openai_server import FakeOpenAI, completion, refusal
from tests.models.responses_calls import CITY, HI, MODEL, TURN, WEATHER, ask, both, complete, failure, opened, paths


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake


@pytest_asyncio.fixture
async def lenient() -> AsyncIterator[FakeOpenAI]:
    """A server that may refuse."""
    async with FakeOpenAI(refusals_expected=True) as fake:
        yield fake


# --- which API --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "with_tools", "without"),
    [
        ("gpt-4.1-mini", "chat/completions", "chat/completions"),
        ("o3-mini", "chat/completions", "chat/completions"),
        ("gpt-5-mini", "chat/completions", "chat/completions"),
        ("gpt-5.5", "chat/completions", "chat/completions"),
        ("gpt-5.6-terra", "responses", "chat/completions"),
        ("gpt-6-sol", "responses", "chat/completions"),
        ("gpt-6-astra", "responses", "chat/completions"),
        ("gpt-6.1-sol-2026-11-12", "responses", "chat/completions"),
        ("gpt-6.2-astra", "responses", "chat/completions"),
        ("gpt-7", "responses", "chat/completions"),
        ("ft:gpt-6-luna:me::1", "responses", "chat/completions"),
        ("o3-pro", "responses", "responses"),
        ("gpt-5.5-pro-2026-04-23", "responses", "responses"),
        ("gpt-5.1-codex-max", "responses", "responses"),
        ("gpt-6-cyber", "responses", "responses"),
        ("gpt-oss-120b", "chat/completions", "chat/completions"),
        ("gpt-prototype", "chat/completions", "chat/completions"),
        ("qwen3", "chat/completions", "chat/completions"),
    ],
)
async def test_a_family_is_asked_where_it_takes_what_is_asked(
    server: FakeOpenAI, model: str, with_tools: str, without: str
) -> None:
    await complete(server, ask(model, max_tokens=64))
    await complete(server, ask(model, max_tokens=64, tools=()))
    assert paths(server) == [with_tools, without]


async def test_a_conversation_with_calls_stays_where_it_was_though_no_tools_are_offered_any_more(
    server: FakeOpenAI,
) -> None:
    turn = (*HI, Message("assistant", "", (ToolCall("c1", "Weather_at", "{}"),)), Message("tool", "4C", (), "c1"))
    await complete(server, ask(messages=turn, tools=()))
    assert paths(server) == ["responses"]


async def test_a_model_that_says_where_it_wants_to_be_asked_is_asked_there_from_then_on(lenient: FakeOpenAI) -> None:
    advice = "Function tools with reasoning_effort are not supported for next. Please use /v1/responses instead."
    lenient.answer(refusal(400, advice, param="reasoning_effort"))
    provider = opened(lenient)
    replies = [await provider.complete(ask("next", tools=())) for _ in range(2)]
    await provider.close()
    # The second refusal is of encrypted reasoning, which a model that does not reason has not.
    assert paths(lenient) == ["chat/completions", "responses", "responses", "responses"]
    assert "include" not in lenient.requests[-1].body
    assert [reply.warnings for reply in replies] == [(), ()]


@pytest.mark.parametrize("told", [None, []])
async def test_a_server_without_responses_is_asked_in_chat_completions_from_then_on(told: list[str] | None) -> None:
    async with FakeOpenAI(responses=False, refusals_expected=True) as server:
        provider = opened(server)
        server.turn(completion("one"), completion("two"))
        hear = None if told is None else told.append
        replies = [await provider.complete(ask("gpt-6-sol"), hear) for _ in range(2)]
        await provider.close()
    assert paths(server) == ["responses", "chat/completions", "chat/completions"]
    assert {request.body.get("reasoning_effort") for request in server.requests} == {None, "none"}
    assert [reply.text for reply in replies] == ["one", "two"]
    assert all("reasoning_effort was set to none" in reply.warnings[0] for reply in replies)


async def test_a_model_whose_reasoning_cannot_be_off_needs_responses() -> None:
    async with FakeOpenAI(responses=False, refusals_expected=True) as server:
        assert (
            "has no responses API, and gpt-6-astra takes tools nowhere else"
            in (await failure(server, request=ask("gpt-6-astra"))).message
        )
    assert paths(server) == ["responses"]


@pytest.mark.parametrize(
    "said", ["The model `gpt-6.1-sol` does not exist or you do not have access to it.", "Item with id 'rs_1' not found"]
)
async def test_a_404_about_what_was_asked_is_no_reason_to_ask_elsewhere(server: FakeOpenAI, said: str) -> None:
    server.answer(refusal(404, said))
    error = await failure(server)
    assert (error.status, error.detail, len(server.requests)) == (404, said, 1)


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_request_holds_the_conversation_and_is_not_stored(server: FakeOpenAI) -> None:
    messages = (Message("system", "Be brief."), *HI, Message("assistant", "Hello."), Message("user", "again"))
    await complete(server, ask(messages=messages, max_tokens=64, json_schema=CITY))
    assert server.requests[0].body == {
        "model": MODEL,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "again"},
        ],
        "max_output_tokens": 64,
        "tools": [
            {
                "type": "function",
                "name": "Weather_at",
                "description": "Weather of a city",
                "parameters": WEATHER.parameters,
                "strict": False,
            }
        ],
        "text": {"format": {"type": "json_schema", "name": "City", "schema": CITY, "strict": True}},
    }


@pytest.mark.parametrize(
    ("parameters", "strict"), [(CITY, True), (WEATHER.parameters, False), ({"type": "object"}, False)]
)
async def test_a_tool_is_strict_where_its_parameters_keep_the_rules(
    server: FakeOpenAI, parameters: dict[str, Any], strict: bool
) -> None:
    await complete(server, ask(tools=(ToolSpec("T_m", "", parameters),)))
    assert server.requests[0].body["tools"][0]["strict"] is strict


async def test_sampling_is_left_out_with_a_warning(server: FakeOpenAI) -> None:
    reply = await complete(server, ask(temperature=0.2, top_p=0.5))
    assert not server.requests[0].body.keys() & {"temperature", "top_p"}
    assert reply.warnings == tuple(
        f"{MODEL} does not take {name}; it was left out" for name in ("temperature", "top_p")
    )


async def test_names_that_the_service_refuses_are_mapped_there_and_back(server: FakeOpenAI) -> None:
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in ("Über_a", "Äber_a", "T." + "x" * 80))
    await complete(server, ask(tools=tools))
    wire = [tool["name"] for tool in server.requests[0].body["tools"]]
    server.turn(response(*(function_call(f"c{n}", name) for n, name in enumerate([*wire, "unknown"]))))
    reply = await complete(server, ask(tools=tools))
    assert [call.name for call in reply.tool_calls] == [*(tool.name for tool in tools), "unknown"]


async def conversation(server: FakeOpenAI, reply: ModelReply, text: str | None = None, model: str = MODEL) -> Any:
    """The input of the request that goes on after a reply, its calls answered."""
    said = reply.text if text is None else text
    turn = Message("assistant", said, reply.tool_calls, opaque=reply.opaque)
    results = (Message("tool", f"{n} °C", tool_call_id=call.id) for n, call in enumerate(reply.tool_calls))
    await complete(server, ask(model, messages=(*HI, turn, *results)))
    return server.requests[-1].body["input"]


async def test_a_turn_goes_back_as_it_came_with_its_reasoning_encrypted(server: FakeOpenAI) -> None:
    reply = await both(server, TURN)
    sent = await conversation(server, reply)
    assert [item.get("type", item.get("role")) for item in sent] == [
        "user", "reasoning", "message", "message", "function_call", "function_call",
        "function_call_output", "function_call_output",
    ]  # fmt: skip
    assert sent[1] == reasoning()
    assert sent[2]["phase"] == "commentary"
    assert sent[4] == function_call("call_1", "Weather_at", '{"city": "Zürich"}')
    assert sent[-1] == {"type": "function_call_output", "call_id": "call_2", "output": "1 °C"}


@pytest.mark.parametrize(("text", "model"), [("[redacted]", MODEL), (None, "gpt-6.2-sol")])
async def test_a_turn_that_was_changed_or_is_another_models_is_made_anew(
    server: FakeOpenAI, text: str | None, model: str
) -> None:
    reply = await both(server, TURN)
    sent = await conversation(server, reply, text, model)
    assert sent[1:4] == [
        {"role": "assistant", "content": text or reply.text},
        {"type": "function_call", "call_id": "call_1", "name": "Weather_at", "arguments": '{"city": "Zürich"}'},
        {"type": "function_call", "call_id": "call_2", "name": "Weather_at", "arguments": "{}"},
    ]


async def test_reasoning_that_only_the_service_could_know_is_not_referred_to(server: FakeOpenAI) -> None:
    reply = await both(server, response(reasoning(encrypted=None), function_call("call_1", "Weather_at")))
    assert [item.get("type") for item in await conversation(server, reply)] == [
        None, "function_call", "function_call_output",
    ]  # fmt: skip


async def test_a_conversation_that_was_broken_off_within_its_calls_goes_on(server: FakeOpenAI) -> None:
    reply = await both(server, TURN)
    turn = Message("assistant", reply.text, reply.tool_calls, opaque=reply.opaque)
    broken = (*HI, Message("tool", "to nothing", tool_call_id="c0"), turn, Message("tool", "4C", (), "call_2"), *HI)
    await complete(server, ask(messages=broken))
    outputs = [item for item in server.requests[-1].body["input"] if item.get("type") == "function_call_output"]
    assert [(item["call_id"], item["output"]) for item in outputs] == [
        ("call_2", "4C"),
        ("call_1", "(this call was not finished)"),
    ]


CALLS = st.lists(st.sampled_from("abc"), unique=True).map(lambda ids: tuple(ToolCall(id_, "T_m", "{}") for id_ in ids))
TURNS = st.one_of(
    st.just(Message("user", "x")),
    st.builds(lambda calls: Message("assistant", "x", calls), CALLS),
    st.builds(lambda id_: Message("tool", "x", tool_call_id=id_), st.sampled_from("abcd")),
)


@given(st.lists(TURNS, max_size=8))
def test_every_call_is_answered_once_before_anything_else_is_said(turns: list[Message]) -> None:
    waiting = set[str | None]()
    for turn in answered(turns):
        assert (turn.tool_call_id in waiting) if turn.role == "tool" else not waiting
        waiting = waiting - {turn.tool_call_id} | {call.id for call in turn.tool_calls}
    assert not waiting
    assert answered(answered(turns)) == answered(turns)


# --- what the service turns out not to take ---------------------------------------------------------------------------


async def test_a_schema_that_a_model_does_not_take_is_asked_for_in_words_from_then_on(server: FakeOpenAI) -> None:
    provider = opened(server)
    server.answer(refusal(400, "'text.format' of type 'json_schema' is not supported with this model."))
    replies = [await provider.complete(ask(json_schema=CITY)) for _ in range(2)]
    await provider.close()
    assert ["text" in request.body for request in server.requests] == [True, False, False]
    assert '"city"' in server.requests[1].body["instructions"]
    warning = f"{MODEL} takes no schema here; it was asked for in the system prompt instead"
    assert [reply.warnings for reply in replies] == [(warning,)] * 2


@pytest.mark.parametrize(
    ("said", "first", "then"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.", "temperature", None),
    ],
)
async def test_a_model_that_the_table_does_not_know_is_learnt_from_its_refusals(
    server: FakeOpenAI, said: str, first: str, then: str | None
) -> None:
    provider = opened(server)
    server.answer(refusal(400, said, param=first, code="unsupported_parameter"))
    replies = [await provider.complete(ask("next", temperature=0.2, max_tokens=64, tools=())) for _ in range(2)]
    await provider.close()
    assert [first in request.body for request in server.requests] == [True, False, False]
    assert [then is None or then in request.body for request in server.requests] == [then is None, True, True]
    assert [len(reply.warnings) for reply in replies] == ([1, 1] if then is None else [0, 0])


async def test_what_cannot_be_left_out_is_told_in_the_services_words(server: FakeOpenAI) -> None:
    server.answer(refusal(400, "Unsupported parameter: 'store' is not supported with this model.", param="store"))
    error = await failure(server)
    assert (error.status, error.retryable, len(server.requests)) == (400, False, 1)
    assert "'store' is not supported" in error.message


async def test_an_encrypted_item_that_was_forged_is_refused_by_the_service(lenient: FakeOpenAI) -> None:
    reply = await both(lenient, TURN)
    assert reply.opaque is not None
    reply.opaque["responses"]["items"][0]["encrypted_content"] = "forged"
    turn = Message("assistant", reply.text, reply.tool_calls, opaque=reply.opaque)
    results = tuple(Message("tool", "4C", tool_call_id=call.id) for call in reply.tool_calls)
    error = await failure(lenient, request=ask(messages=(*HI, turn, *results)))
    assert (error.status, "could not be verified" in error.message) == (400, True)

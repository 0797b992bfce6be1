"""The fake beside OpenAI's own client in the responses API, which holds it to something not ours.

Chat completions are held to it in test_chat_services.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import openai as sdk
import pytest
import pytest_asyncio

from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolSpec
from halo_runtime.models.openai import open_openai
from tests.fakes.openai_responses import (
    document,
    error,
    events,
    failed,
    function_call,
    incomplete,
    message,
    reasoning,
    response,
    stream,
    usage,
)
from tests.fakes.openai_server import KEY, FakeOpenAI, refusal

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
        "additionalProperties": False}  # fmt: skip
TOOL = {"type": "function", "name": "Weather_at", "description": "", "parameters": CITY, "strict": True}
FORMAT = {"format": {"type": "json_schema", "name": "City", "schema": CITY, "strict": True}}
QUESTION: Any = {
    "model": "gpt-6.1-sol", "input": [{"role": "user", "content": "hi"}], "store": False,
    "include": ["reasoning.encrypted_content"], "tools": [TOOL],
}  # fmt: skip
TURN = response(
    reasoning(),
    message("Grüße \u2028"),
    function_call("call_1", "Weather_at", '{"city": "Zürich"}'),
    function_call("call_2", "Weather_at", '{"city": "Rome"}'),
    usage=usage(90, 40, cached=64, reasoning=20),
)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake


def official(server: FakeOpenAI) -> sdk.AsyncOpenAI:
    return sdk.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0)


async def streamed(client: sdk.AsyncOpenAI) -> Any:
    async with client.responses.stream(**QUESTION) as answer:
        return await answer.get_final_response()


async def ours(server: FakeOpenAI) -> ModelReply:
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url})
    weather = ToolSpec("Weather_at", "", CITY)
    request = ModelRequest("openai/gpt-6.1-sol", "Bot", "answer", (Message("user", "hi"),), tools=(weather,))
    reply = await provider.complete(request, [].append)
    await provider.close()
    return reply


async def test_the_official_client_reads_the_same_response_whole_and_streamed(server: FakeOpenAI) -> None:
    server.turn(TURN, TURN)
    async with official(server) as client:
        whole, pieces = await client.responses.create(**QUESTION), await streamed(client)
    dumped = [[item.model_dump(exclude={"parsed", "parsed_arguments"}, exclude_none=True) for item in answer.output]
              for answer in (whole, pieces)]  # fmt: skip
    for item in dumped[1]:
        for part in item.get("content", ()):
            part.pop("parsed", None)
    assert dumped[0] == dumped[1]
    assert whole.usage == pieces.usage


async def test_the_official_client_and_ours_read_the_same_from_the_fake(server: FakeOpenAI) -> None:
    server.turn(TURN, TURN)
    reply = await ours(server)
    async with official(server) as client:
        theirs = await streamed(client)
    assert theirs.output_text == reply.text
    calls = [(item.call_id, item.name, item.arguments) for item in theirs.output if item.type == "function_call"]
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == calls
    assert (theirs.usage.input_tokens, theirs.usage.output_tokens) == (reply.usage.input, reply.usage.output)
    assert theirs.usage.output_tokens_details.reasoning_tokens == reply.usage.reasoning


async def test_what_the_official_client_asks_is_what_ours_asks(server: FakeOpenAI) -> None:
    server.turn(TURN, TURN)
    await ours(server)
    async with official(server) as client:
        await streamed(client)
    first, second = (request.body for request in server.requests)
    assert first == second


async def test_the_official_client_sends_back_a_turn_with_reasoning_that_the_fake_takes(server: FakeOpenAI) -> None:
    server.turn(TURN, response(message('{"city": "Zürich"}', "msg_2")))
    async with official(server) as client:
        turn = await client.responses.create(**QUESTION)
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "4C"}
            for item in turn.output
            if item.type == "function_call"
        ]
        conversation = [*QUESTION["input"], *turn.output, *results]
        last = await client.responses.create(**QUESTION | {"input": conversation, "text": FORMAT})
    assert json.loads(last.output_text) == {"city": "Zürich"}


@pytest.mark.parametrize(
    ("turn", "status", "reason", "code"),
    [
        (incomplete(reasoning()), "incomplete", "max_output_tokens", None),
        (incomplete(message("half"), reason="content_filter"), "incomplete", "content_filter", None),
        (failed("server_error"), "failed", None, "server_error"),
    ],
)
async def test_the_official_client_sees_how_a_response_ended(
    server: FakeOpenAI, turn: Any, status: str, reason: str | None, code: str | None
) -> None:
    server.turn(turn)
    async with official(server) as client:
        answer = await client.responses.create(**QUESTION)
    seen = answer.incomplete_details and answer.incomplete_details.reason, answer.error and answer.error.code
    assert (answer.status, *seen) == (status, reason, code)


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (400, sdk.BadRequestError),
        (401, sdk.AuthenticationError),
        (403, sdk.PermissionDeniedError),
        (404, sdk.NotFoundError),
        (409, sdk.ConflictError),
        (429, sdk.RateLimitError),
        (500, sdk.InternalServerError),
    ],
)
async def test_the_official_client_knows_the_failures_of_the_fake(
    server: FakeOpenAI, status: int, raised: type[sdk.APIStatusError]
) -> None:
    server.answer(refusal(status, "The service's words."))
    async with official(server) as client:
        with pytest.raises(raised, match=r"The service's words\.") as caught:
            await client.responses.create(**QUESTION)
    assert (caught.value.status_code, caught.value.request_id) == (status, "req_1")


async def test_the_official_client_sees_a_failure_within_a_stream(server: FakeOpenAI) -> None:
    server.answer(stream([*events(document(message("ok")))[:4], error("server_error", "It broke.")]))
    async with official(server) as client:
        seen = [event async for event in await client.responses.create(**QUESTION, stream=True)]
    assert (seen[-1].type, seen[-1].message, seen[-1].code) == ("error", "It broke.", "server_error")


USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "Weather_at", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "4C"}
WRONG: list[dict[str, Any]] = [
    {"temperature": 0.5},
    {"top_p": 0.5},
    {"max_tokens": 64},
    {"max_output_tokens": 0},
    {"model": "gpt-4.1", "include": ["reasoning.encrypted_content"]},
    {"include": ["everything"]},
    {"input": []},
    {"input": [{"role": "robot", "content": "hi"}]},
    {"input": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
    {"input": [USER, CALL]},
    {"input": [USER, CALL, USER]},
    {"input": [USER, OUTPUT]},
    {"input": [USER, CALL, OUTPUT, OUTPUT]},
    {"input": [USER, CALL, CALL, OUTPUT]},
    {"input": [USER, CALL | {"arguments": {}}, OUTPUT]},
    {"input": [USER, CALL | {"name": "a.b"}, OUTPUT]},
    {"input": [USER, {"role": "tool", "tool_call_id": "c1", "content": "4C"}]},
    {"tools": [{"type": "function", "function": {"name": "a", "parameters": CITY}}]},
    {"tools": [TOOL | {"name": "a.b"}]},
    {"tools": [TOOL, TOOL]},
    {"tools": [TOOL | {"parameters": CITY | {"required": []}}]},
    {"tools": [TOOL | {"parameters": {"type": "string"}}]},
    {"tools": [{"type": "function", "name": "a", "parameters": {"type": "object", "properties": {"b": {}}}}]},
    {"text": {"format": {"type": "json_schema", "json_schema": {"name": "a", "schema": CITY}}}},
    {"text": {"format": FORMAT["format"] | {"schema": {"type": "array", "items": CITY}}}},
    {"text": {"format": FORMAT["format"] | {"name": "a b"}}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
async def test_the_fake_refuses_what_the_service_refuses(wrong: dict[str, Any]) -> None:
    async with FakeOpenAI(refusals_expected=True) as server, official(server) as client:
        with pytest.raises(sdk.BadRequestError):
            await client.responses.create(**QUESTION, extra_body=wrong)


@pytest.mark.parametrize(
    ("kept", "status", "said"),
    [
        (("message", "function_call"), 400, "without its required 'reasoning' item"),
        (("reasoning",), 400, "without its required following item"),
        ((), 404, "not found. Items are not persisted"),
    ],
)
async def test_the_fake_wants_items_back_together_and_as_it_made_them(
    kept: tuple[str, ...], status: int, said: str
) -> None:
    async with FakeOpenAI(refusals_expected=True) as server, official(server) as client:
        server.turn(TURN)
        turn = await client.responses.create(**QUESTION)
        items: Any = [item for item in turn.output if item.type in kept] or [reasoning("rs_7")]
        results = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "4C"}
            for item in items
            if kept and item.type == "function_call"
        ]
        with pytest.raises(sdk.APIStatusError, match=said) as caught:
            await client.responses.create(**QUESTION | {"input": [USER, *items, *results]})
    assert caught.value.status_code == status

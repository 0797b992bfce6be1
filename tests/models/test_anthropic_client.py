"""The fake beside Anthropic's own client, which holds it to something not ours; and programs on it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic as sdk
import pytest
import pytest_asyncio

import halo_lang
from halo_runtime import RunResult, Runtime
from halo_runtime.models.anthropic import Anthropic
from halo_runtime.models.base import Message, ModelRequest, ToolSpec
from tests.fakes.anthropic_server import (
    KEY,
    FakeAnthropic,
    document,
    error,
    events,
    failure,
    message,
    stream,
    text,
    thinking,
    tool_use,
    usage,
)

QUESTION: Any = {"model": "claude-sonnet-5-5", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
TURN = message(
    thinking("Oslo…"),
    text("Grüße \u2028"),
    tool_use("c1", "Weather_at", {"city": "Zürich"}),
    tool_use("c2", "Weather_at", {}),
    usage=usage(40, 60, read=2000, written=100, thought=20),
)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeAnthropic]:
    async with FakeAnthropic() as fake:
        yield fake


def official(server: FakeAnthropic) -> sdk.AsyncAnthropic:
    return sdk.AsyncAnthropic(api_key=KEY, base_url=server.address, max_retries=0)


async def streamed(client: sdk.AsyncAnthropic) -> Any:
    async with client.messages.stream(**QUESTION) as answer:
        return await answer.get_final_message()


# --- the official client ----------------------------------------------------------------------------------------------


async def test_the_official_client_reads_the_same_message_whole_and_streamed(server: FakeAnthropic) -> None:
    server.answer(TURN, TURN)
    async with official(server) as client:
        whole, pieces = await client.messages.create(**QUESTION), await streamed(client)
    shown = {"content": True, "stop_reason": True, "id": True, "model": True}
    assert whole.model_dump(include=shown) == pieces.model_dump(include=shown)
    assert (whole.usage.output_tokens, pieces.usage.output_tokens) == (60, 60)


async def test_the_official_client_and_ours_read_the_same_from_the_fake(server: FakeAnthropic) -> None:
    server.answer(TURN, TURN)
    ours = Anthropic(server.env)
    weather = ToolSpec("Weather_at", "", {"type": "object"})
    request = ModelRequest("claude-sonnet-5-5", "Bot", "answer", (Message("user", "hi"),), tools=(weather,))
    turn = await ours.complete(request, [].append)
    await ours.close()
    async with official(server) as client:
        theirs = await streamed(client)
    assert [block.text for block in theirs.content if block.type == "text"] == [turn.text]
    calls = [(block.id, block.name, block.input) for block in theirs.content if block.type == "tool_use"]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in turn.tool_calls] == calls
    assert turn.usage.output == theirs.usage.output_tokens


async def test_the_official_client_sends_back_a_turn_with_thinking_that_the_fake_takes(server: FakeAnthropic) -> None:
    server.answer(TURN)
    async with official(server) as client:
        turn = await client.messages.create(**QUESTION)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "4C"}
            for block in turn.content
            if block.type == "tool_use"
        ]
        turns = [{"role": "assistant", "content": turn.content}, {"role": "user", "content": results}]
        last = await client.messages.create(**QUESTION | {"messages": QUESTION["messages"] + turns})
    assert last.content[0].type == "text"


@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "invalid_request_error", sdk.BadRequestError),
        (401, "authentication_error", sdk.AuthenticationError),
        (403, "permission_error", sdk.PermissionDeniedError),
        (404, "not_found_error", sdk.NotFoundError),
        (409, "conflict_error", sdk.ConflictError),
        (429, "rate_limit_error", sdk.RateLimitError),
        (500, "api_error", sdk.InternalServerError),
        (529, "overloaded_error", sdk.InternalServerError),
    ],
)
async def test_the_official_client_knows_the_failures_of_the_fake(
    server: FakeAnthropic, status: int, kind: str, raised: type[sdk.APIStatusError]
) -> None:
    server.answer(failure(status, kind, "The service's words."))
    async with official(server) as client:
        with pytest.raises(raised, match=r"The service's words\.") as caught:
            await client.messages.create(**QUESTION)
    assert (caught.value.status_code, caught.value.request_id) == (status, "req_1")


async def test_the_official_client_knows_a_failure_within_a_stream(server: FakeAnthropic) -> None:
    server.answer(stream([*events(document(text("ok")))[:4], error("overloaded_error", "Overloaded")]))
    async with official(server) as client:
        with pytest.raises(sdk.APIError, match="Overloaded"):
            await streamed(client)


WRONG = [
    {"temperature": 0.5},
    {"model": "claude-sonnet-4-5", "temperature": 0.5, "top_p": 0.5},
    {"max_tokens": 0},
    {"messages": [{"role": "user", "content": " "}]},
    {"messages": [{"role": "user", "content": []}]},
    {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "It is"}]},
    {"messages": [{"role": "assistant", "content": "hi"}]},
    {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "y"}]}]},
    {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "T", "input": {}}]},
            {"role": "user", "content": "Well?"},
        ]
    },
    {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "forged"}]},
            {"role": "user", "content": "Well?"},
        ]
    },
    {"tools": [{"name": "a.b", "input_schema": {"type": "object"}}]},
    {"tools": [{"name": "a", "input_schema": {}}]},
    {"tools": [{"name": "a", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"}},
    {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}}},
    {"output_config": {"format": {"type": "json_schema", "schema": {"type": "string", "maxLength": 5}}}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
async def test_the_fake_refuses_what_the_service_refuses(wrong: dict[str, Any]) -> None:
    async with FakeAnthropic(refusals_expected=True) as server, official(server) as client:
        with pytest.raises(sdk.BadRequestError):
            await client.messages.create(**QUESTION, extra_body=wrong)


# --- programs ---------------------------------------------------------------------------------------------------------

PROGRAM = """\
tool Sh : Bash(allow: ["echo"])
schema Answer { city: String }
agent Bot [anthropic/claude-sonnet-5-5]
  equips Sh
  @retry(2)
pipeline Main(text: String) -> Answer:
  text |> Bot.find(context, tools: [Sh])
"""

RAN = message(
    thinking(),
    tool_use("c1", "Sh_run", {"command": "echo Oslo"}),
    tool_use("c2", "Sh_run", {"command": "echo Rome"}),
    usage=usage(1000, 200, read=500),
)
DONE = message(text('{"city": "Oslo"}'), usage=usage(100, 20))


async def run(server: FakeAnthropic, program: str = PROGRAM) -> RunResult:
    runtime = Runtime(env=server.env | {"PATH": "/usr/bin:/bin"})
    result = await runtime.run(halo_lang.parse(program), "Main", {"text": "Where?"})
    await runtime.close()
    return result


async def test_a_program_runs_with_a_loop_of_tools_and_a_result_by_schema(server: FakeAnthropic) -> None:
    server.answer(RAN, DONE)
    result = (await run(server)).raise_for_status()
    assert result.output == {"city": "Oslo"}
    assert result.context.meta["cost"] == pytest.approx(0.00445)  # $2 a million tokens read, 0.1 cached, 10 written
    first, last = (request.body for request in server.requests)
    assert first["output_config"]["format"]["schema"]["required"] == ["city"]
    assert [block["type"] for block in last["messages"][1]["content"]] == ["thinking", "tool_use", "tool_use"]
    contents = [block["content"] for block in last["messages"][2]["content"]]
    assert ["Oslo" in contents[0], "Rome" in contents[1]] == [True, True]


async def test_a_failed_request_is_tried_again_as_often_as_the_program_says(server: FakeAnthropic) -> None:
    retry = {"retry-after-ms": "1"}
    server.answer(failure(529, "overloaded_error", headers=retry), failure(429, "rate_limit_error", headers=retry))
    server.answer(message(text('{"city": "Oslo"}')))
    result = (await run(server)).raise_for_status()
    assert len(server.requests) == 3
    assert result.context.meta["calls"][0]["attempts"] == 3


async def test_a_program_without_a_key_says_so_before_anything_is_sent() -> None:
    async with FakeAnthropic(key=None) as server:
        runtime = Runtime(env={})
        with pytest.raises(Exception, match="ANTHROPIC_API_KEY is not set"):
            await runtime.run(halo_lang.parse(PROGRAM), "Main", {"text": "Where?"})
        assert server.requests == []

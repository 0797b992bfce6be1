"""Google's own client against the fake: what it sends is taken, and it reads what it is answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from google.genai import Client, errors, types

from halo_runtime.models.base import Message, ModelRequest
from halo_runtime.models.gemini import Gemini
from tests.fakes.gemini_server import KEY, FakeGemini, call, events, failure, refusal, turn, usage

NEW, OLD = "gemini-3.5-flash", "gemini-2.5-flash"
WEATHER = types.FunctionDeclaration(
    name="weather",
    description="Weather of a city",
    parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}},
)
TOOLS: Any = [types.Tool(function_declarations=[WEATHER])]
NO_SENDING = types.AutomaticFunctionCallingConfig(disable=True)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeGemini]:
    async with FakeGemini() as fake:
        yield fake


@asynccontextmanager
async def official(server: FakeGemini) -> AsyncGenerator[Client]:
    """Google's client, over httpx where aiohttp is installed too, in which it warns of itself."""
    async with httpx.AsyncClient(trust_env=False) as transport:
        options = types.HttpOptions(base_url=server.address, httpx_async_client=transport)
        client = Client(api_key=KEY, http_options=options)
        yield client
        await client.aio.aclose()
        client.close()


@pytest_asyncio.fixture
async def client(server: FakeGemini) -> AsyncIterator[Client]:
    async with official(server) as sdk:
        yield sdk


async def test_settings_and_a_schema_are_taken(server: FakeGemini, client: Client) -> None:
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        temperature=0.2,
        top_p=0.9,
        max_output_tokens=40,
        response_mime_type="application/json",
        response_json_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
    )
    server.turn(turn([{"text": '{"n": 1}'}], usageMetadata=usage(90, 21, cached=64, thoughts=40)))
    answer = await client.aio.models.generate_content(model=NEW, contents="hi", config=config)
    assert answer.text == '{"n": 1}'
    counts = answer.usage_metadata
    assert counts is not None
    assert (counts.prompt_token_count, counts.cached_content_token_count, counts.thoughts_token_count) == (90, 64, 40)


async def test_calls_and_their_results_go_round_with_signatures(server: FakeGemini, client: Client) -> None:
    server.turn(turn([call("weather", {"city": "Oslo"}, "f1", NEW), call("weather", {"city": "Rome"}, "f2")]))
    config = types.GenerateContentConfig(tools=TOOLS, automatic_function_calling=NO_SENDING)
    question = types.Content(role="user", parts=[types.Part(text="Weather?")])
    answer = await client.aio.models.generate_content(model=NEW, contents=[question], config=config)
    assert [asked.args for asked in answer.function_calls or ()] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert answer.candidates
    asked = answer.candidates[0].content
    assert asked is not None
    results = [
        types.Part(function_response=types.FunctionResponse(id=one.id, name=one.name, response={"output": "4C"}))
        for one in answer.function_calls or ()
    ]
    contents = [question, asked, types.Content(role="user", parts=results)]
    assert (await client.aio.models.generate_content(model=NEW, contents=contents, config=config)).text == "ok"


async def test_a_turn_without_its_signature_is_refused() -> None:
    async with FakeGemini(refusals_expected=True) as server, official(server) as client:
        made = types.Part(function_call=types.FunctionCall(id="f1", name="weather", args={}))
        result = types.Part(function_response=types.FunctionResponse(id="f1", name="weather", response={}))
        contents = [
            types.Content(role="user", parts=[types.Part(text="Weather?")]),
            types.Content(role="model", parts=[made]),
            types.Content(role="user", parts=[result]),
        ]
        with pytest.raises(errors.ClientError, match="missing a thought_signature"):
            await client.aio.models.generate_content(model=NEW, contents=contents)


async def test_a_stream_in_crumbs_is_read(server: FakeGemini, client: Client) -> None:
    server.turn(turn([{"text": "Grüße, \U0001f600 und so weiter"}], usageMetadata=usage(9, 7)))
    stream = await client.aio.models.generate_content_stream(model=OLD, contents="hi")
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.text or "" for chunk in chunks) == "Grüße, \U0001f600 und so weiter"
    counts = chunks[-1].usage_metadata
    assert counts is not None
    assert counts.candidates_token_count == 7


async def test_refusals_are_read_with_their_details(server: FakeGemini, client: Client) -> None:
    server.answer(refusal(429, "slow down", "RESOURCE_EXHAUSTED", {"retryDelay": "36s"}))
    with pytest.raises(errors.ClientError) as caught:
        await client.aio.models.generate_content(model=OLD, contents="hi")
    assert (caught.value.code, caught.value.status, caught.value.message) == (429, "RESOURCE_EXHAUSTED", "slow down")


async def test_a_failure_after_a_stream_began_is_read(server: FakeGemini, client: Client) -> None:
    server.answer(events(turn([{"text": "half"}], None), failure(503, "overloaded", "UNAVAILABLE"), size=10_000))
    with pytest.raises(errors.APIError, match="overloaded"):
        async for _ in await client.aio.models.generate_content_stream(model=OLD, contents="hi"):
            pass


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_over_several_exchanges_is_put_together_by_both_clients_alike(
    server: FakeGemini, client: Client, stream: bool
) -> None:
    turns = [
        turn([{"text": "One, "}], "CONTINUATION", continuationToken="dG9rZW4x", usageMetadata=usage(10, 5)),
        turn([{"text": "two."}], usageMetadata=usage(10, 6, thoughts=7)),
    ]
    server.turn(*turns, *turns)
    if stream:
        chunks = [chunk async for chunk in await client.aio.models.generate_content_stream(model=NEW, contents="hi")]
    else:
        chunks = [await client.aio.models.generate_content(model=NEW, contents="hi")]
    provider = Gemini({"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.address})
    request = ModelRequest(NEW, "Bot", "answer", (Message("user", "hi"),))
    ours = await provider.complete(request, (lambda text: None) if stream else None)
    await provider.close()
    counts = chunks[-1].usage_metadata
    assert counts is not None
    assert "".join(chunk.text or "" for chunk in chunks) == ours.text == "One, two."
    assert (
        (counts.prompt_token_count, counts.thoughts_token_count) == (ours.usage.input, ours.usage.reasoning) == (20, 7)
    )
    assert ours.usage.output == 18

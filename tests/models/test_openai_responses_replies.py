"""OpenAI's responses API: what comes back, streams, refusals and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.errors import ModelError
from halo_runtime.models.base import ToolCall, Usage
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
from tests.fakes.wire import Answer, reply
from tests.models.responses_calls import TURN, ask, both, complete, failure, opened


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_a_reply_has_its_answer_its_calls_and_its_usage(server: FakeOpenAI) -> None:
    reply = await both(server, TURN)
    assert (reply.text, reply.stop, reply.model_used) == ("Grüße \u2028", "tool", "gpt-6.1-sol-2026-11-12")
    assert reply.tool_calls == (
        ToolCall("call_1", "Weather_at", '{"city": "Zürich"}'),
        ToolCall("call_2", "Weather_at", "{}"),
    )
    assert reply.usage == Usage(90, 40, cached=64, reasoning=20, cache_written=8)
    assert reply.warnings == ()


@pytest.mark.parametrize("reported", [None, {}, "many", {"input_tokens": "9", "output_tokens": -1}])
async def test_usage_that_is_not_reported_is_unknown_and_not_zero(server: FakeOpenAI, reported: Any) -> None:
    assert (await both(server, response(message("x"), usage=reported))).usage == Usage()


async def test_a_refusal_is_an_error_in_the_models_words(server: FakeOpenAI) -> None:
    with pytest.raises(ModelError, match=r"declined to answer: I cannot\.") as caught:
        await both(server, response(reasoning(), message(None, refusal="I cannot.")))
    assert (caught.value.code, caught.value.detail) == ("refusal", "I cannot.")


@pytest.mark.parametrize(
    ("items", "reason", "code"),
    [
        ((reasoning(), message("half a")), "max_output_tokens", "output_limit"),
        ((message("half"),), "content_filter", "content_filter"),
        ((), "content_filter", "content_filter"),
    ],
)
async def test_a_reply_that_is_not_whole_is_an_error(
    server: FakeOpenAI, items: tuple[Any, ...], reason: str, code: str
) -> None:
    with pytest.raises(ModelError) as caught:
        await both(server, incomplete(*items, reason=reason))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("items", "reason", "stop", "text"),
    [
        ((message("half"),), "steered", "end", "half"),
        ((function_call("c", "Weather_at"),), "max_output_tokens", "tool", ""),
    ],
)
async def test_a_reply_that_may_be_used_although_it_is_not_whole_says_so(
    server: FakeOpenAI, items: tuple[Any, ...], reason: str, stop: str, text: str
) -> None:
    reply = await both(server, incomplete(*items, reason=reason))
    assert (reply.stop, reply.text, len(reply.warnings)) == (stop, text, 1)


@pytest.mark.parametrize("told", [None, []], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "said", "code", "retryable"),
    [
        (response(reasoning()), "empty message", "empty_response", True),
        (response(message("")), "empty message", "empty_response", True),
        (response(message("Hm.", phase="commentary")), "empty message", "empty_response", True),
        (
            incomplete(reasoning(), usage=usage(9, 64, reasoning=60)),
            "spent all its 64 tokens, 60 of them on reasoning, before its answer began; raise max_tokens",
            "output_limit",
            False,
        ),
        (incomplete(usage=None), "spent all its tokens before its answer began", "output_limit", False),
        (incomplete(reason="steered"), "broke off before its answer began (steered)", "empty_response", True),
        (
            incomplete(function_call("c", "Weather_at", '{"city": "/a', status="incomplete")),
            "cut off inside a tool call",
            "truncated_tool_call",
            False,
        ),
        (incomplete(function_call("c", "Weather_at", "")), "cut off inside a tool", "truncated_tool_call", False),
        (failed("server_error", "It broke."), "answered 500: It broke.", None, True),
        (failed("rate_limit_exceeded", "Slow down."), "answered 429: Slow down.", None, True),
        (failed("invalid_prompt", "Not this."), "answered 400: Not this.", None, False),
        (failed("bio_policy", "Not that."), "answered 400: Not that.", None, False),
    ],
)
async def test_an_answer_that_cannot_be_used_says_why(
    server: FakeOpenAI, told: list[str] | None, answer: Answer, said: str, code: str | None, retryable: bool
) -> None:
    server.turn(answer)
    error = await failure(server, told)
    assert said in error.message
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (document() | {"output": None}, "without any output"),
        ({"object": "response"}, "without any output"),
        (document(status="cancelled"), "ended its answer before it was complete (status cancelled)"),
        (document(status="in_progress"), "(status in_progress)"),
        ({"error": "out of memory"}, "failed before its answer was complete: out of memory"),
        ({"error": {"message": "m", "type": "server_error"}}, "answered 500: m"),
    ],
)
async def test_a_document_that_is_no_response_is_told(server: FakeOpenAI, body: Any, said: str) -> None:
    server.answer(reply(body))
    assert said in (await failure(server)).message


# --- streams ----------------------------------------------------------------------------------------------------------

WHOLE = document(message("Hel"), function_call("c1", "Weather_at"))
EVENTS = events(WHOLE)


@pytest.mark.parametrize(
    "answer",
    [
        stream(EVENTS, size=1),
        stream(EVENTS, size=10_000),
        stream([*EVENTS, "[DONE]"]),
        stream([*EVENTS, {"type": "response.some_news"}]),
        stream([*EVENTS[:2], {"type": "keepalive", "sequence_number": 1}, *EVENTS[2:]]),
        stream([*EVENTS[:-1], EVENTS[-1] | {"response": WHOLE | {"output": []}}]),
        stream([*EVENTS[:-1], EVENTS[-1] | {"response": {**WHOLE, "output": None}}]),
        stream(EVENTS, cut=True),  # all was said
        response(*WHOLE["output"]),  # whole, although a stream was asked for
    ],
)
async def test_a_stream_is_understood_however_it_comes(server: FakeOpenAI, answer: Answer) -> None:
    server.answer(answer)
    told = list[str]()
    reply = await complete(server, ask(), told)
    assert (reply.text, "".join(told)) == ("Hel", "Hel")
    assert [call.id for call in reply.tool_calls] == ["c1"]


@pytest.mark.parametrize(
    "answer",
    [
        stream(EVENTS[:-1]),
        stream(EVENTS[:1]),
        stream([*EVENTS[:-1], "[DONE]"]),
        stream(EVENTS[:4], cut=True),
        stream([*EVENTS[:2], '{"type": "response.comp']),
    ],
)
async def test_a_stream_without_its_end_is_an_error_that_may_pass(server: FakeOpenAI, answer: Answer) -> None:
    server.answer(answer)
    assert (await failure(server, [])).retryable


@pytest.mark.parametrize(
    ("last", "said", "status", "retryable"),
    [
        (error("server_error", "It broke."), "answered 500: It broke.", 500, True),
        (error("rate_limit_exceeded", "Slow down."), "answered 429: Slow down.", 429, True),
        (error("context_length_exceeded", "Too long."), "answered 400: Too long.", 400, False),
        (error("insufficient_quota", "Pay."), "answered 429: Pay; the account behind OPENAI_API_KEY has", 429, False),
        (error(None, "Odd."), "failed before its answer was complete: Odd.", None, True),
        ({"type": "error", "error": {"type": "server_error", "message": "In."}}, "answered 500: In.", 500, True),
        ({"type": "response.odd", "error": {"code": "server_error", "message": "In."}}, "answered 500", 500, True),
    ],
)
async def test_a_failure_in_the_middle_of_a_stream_is_what_it_would_be_before(
    server: FakeOpenAI, last: dict[str, Any], said: str, status: int | None, retryable: bool
) -> None:
    server.answer(stream([*EVENTS[:4], last]))
    error = await failure(server, [])
    assert said in error.message
    assert (error.status, error.retryable) == (status, retryable)


async def test_the_text_comes_as_it_is_made_and_comments_on_the_way_do_not(server: FakeOpenAI) -> None:
    told = list[str]()
    server.turn(response(message("On the way.", phase="commentary"), message("Answer", "msg_2")))
    assert (await complete(server, ask(), told)).text == "Answer"
    assert told == ["Answ", "er"]


async def test_a_server_that_does_not_stream_is_asked_without_from_then_on(server: FakeOpenAI) -> None:
    server.answer(refusal(400, "Your organization must be verified to stream this model.", param="stream"))
    provider, told = opened(server), list[str]()
    for _ in range(2):
        await provider.complete(ask(), told.append)
    await provider.close()
    assert [request.body.get("stream") for request in server.requests] == [True, None, None]
    assert told == ["ok", "ok"]


async def test_cancelling_closes_the_connection_in_the_middle_of_a_stream(server: FakeOpenAI) -> None:
    server.answer(stream(EVENTS[:5], hang=True))
    provider, heard = opened(server), asyncio.Event()
    call = asyncio.create_task(provider.complete(ask(), lambda _: heard.set()))
    async with asyncio.timeout(5):
        await heard.wait()
        call.cancel()
        await server.left.wait()
    with pytest.raises(asyncio.CancelledError):
        await call
    await provider.close()


# --- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "retryable", "advice"),
    [
        (401, "invalid_api_key", False, "check OPENAI_API_KEY"),
        (403, "unsupported_country_region_territory", False, "may not use this model"),
        (404, "model_not_found", False, "check the model's name"),
        (409, None, True, ""),
        (429, "rate_limit_exceeded", True, ""),
        (429, "credit_balance_exhausted", False, "has no credit left"),
        (500, "server_error", True, ""),
        (503, "server_is_overloaded", True, ""),
    ],
)
@pytest.mark.parametrize("told", [None, []], ids=["whole", "streamed"])
async def test_a_refusal_is_told_in_the_services_words_with_what_to_do(
    server: FakeOpenAI, told: list[str] | None, status: int, code: str | None, retryable: bool, advice: str
) -> None:
    server.answer(refusal(status, "The model says no.", code=code))
    error = await failure(server, told)
    assert (error.status, error.retryable, error.detail) == (status, retryable, "The model says no.")
    assert advice in error.message


@pytest.mark.parametrize("ending", ["", "/v1/responses", "/v1/responses/"])
async def test_the_address_may_be_written_out(server: FakeOpenAI, ending: str) -> None:
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.address + ending})
    assert (await provider.complete(ask())).text == "ok"
    await provider.close()

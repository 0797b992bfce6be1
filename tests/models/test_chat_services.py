"""OpenRouter and Together, against servers that refuse what each of them refuses, whole and streamed."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from itertools import pairwise
from typing import Any

import openai as sdk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolSpec, Usage
from halo_runtime.models.chat_services import OPENAI, OPENROUTER, TOGETHER, ChatService
from halo_runtime.models.openai import OpenAILike
from halo_runtime.models.thoughts import Spoken, spoken
from tests.fakes.openai_server import KEY, FakeOpenAI, calls, chunk, completion, document, events, refusal, usage
from tests.fakes.wire import Answer

ALL = (OPENAI, OPENROUTER, TOGETHER)
BOTH = (OPENROUTER, TOGETHER)
HI = (Message("user", "hi"),)
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
SCHEMA = {
    "type": "object", "title": "A", "properties": {"a": {"type": "integer"}}, "required": ["a"],
    "additionalProperties": False,
}  # fmt: skip
MODELS = {"openai": "openai/gpt-4o", "openrouter": "openrouter/maker/model", "together": "together/owner/model"}
named = pytest.mark.parametrize("service", ALL, ids=lambda service: service.prefix)
gateways = pytest.mark.parametrize("service", BOTH, ids=lambda service: service.prefix)


def fake(service: ChatService, **more: Any) -> FakeOpenAI:
    return FakeOpenAI(service.prefix, **more)  # type: ignore[arg-type]


def environment(service: ChatService, server: FakeOpenAI, key: str = KEY) -> dict[str, str]:
    return {service.key_variable: key, service.url_variable: server.url}


def ask(service: ChatService, model: str | None = None, **settings: Any) -> ModelRequest:
    return ModelRequest(model or MODELS[service.prefix], "Bot", "answer", settings.pop("messages", HI), **settings)


async def complete(
    service: ChatService, server: FakeOpenAI, request: ModelRequest, deltas: list[str] | None = None
) -> ModelReply:
    provider = OpenAILike(service, environment(service, server))
    try:
        return await provider.complete(request, None if deltas is None else deltas.append)
    finally:
        await provider.close()


async def both(service: ChatService, turn: Answer, request: ModelRequest | None = None) -> ModelReply:
    """The reply to a turn, which must be the same whole and streamed."""
    request, deltas = request or ask(service, tools=(WEATHER,)), list[str]()
    async with fake(service) as server:
        server.turn(turn, turn)
        whole, streamed = await complete(service, server, request), await complete(service, server, request, deltas)
        assert [asked.body.get("stream", False) for asked in server.requests] == [False, True]
    assert whole == streamed
    assert "".join(deltas) == whole.text
    return whole


async def failure(service: ChatService, answer: Answer, *, streamed: bool = False) -> ModelError:
    async with fake(service) as server:
        server.answer(answer)
        with pytest.raises(ModelError) as caught:
            await complete(service, server, ask(service), [] if streamed else None)
    assert KEY not in f"{caught.value} {caught.value.detail}"
    return caught.value


# --- what is sent -----------------------------------------------------------------------------------------------------


@gateways
async def test_only_the_first_part_of_a_model_id_is_the_services(service: ChatService) -> None:
    async with fake(service) as server:
        await complete(service, server, ask(service, temperature=0.2, top_p=0.9, max_tokens=40))
    assert server.requests[0].body == {
        "model": MODELS[service.prefix].partition("/")[2],
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.2,
        "top_p": 0.9,
        "max_tokens": 40,
    }


async def test_each_service_is_asked_for_a_stream_in_its_way() -> None:
    asked = {}
    for service in ALL:
        async with fake(service) as server:
            await complete(service, server, ask(service), [])
        asked[service.prefix] = server.requests[0].body.keys() - {"model", "messages"}
    assert asked == {"openai": {"stream", "stream_options"}, "openrouter": {"stream"}, "together": {"stream"}}


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        ("openrouter/openai/gpt-5-mini", False),
        ("openrouter/openai/o3", False),
        ("openrouter/openai/gpt-oss-120b", True),
        ("openrouter/openai/gpt-4o", True),
        ("openrouter/anthropic/claude-opus-4.7", False),
        ("openrouter/anthropic/claude-sonnet-5", False),
        ("openrouter/anthropic/claude-sonnet-4.5", True),
        ("openrouter/anthropic/claude-3.7-sonnet", True),
    ],
)
async def test_a_setting_that_openrouter_would_drop_silently_is_left_out_with_a_warning(
    model: str, taken: bool
) -> None:
    async with fake(OPENROUTER) as server:
        reply = await complete(OPENROUTER, server, ask(OPENROUTER, model, temperature=0.2, max_tokens=40))
    assert ("temperature" in server.requests[0].body, not reply.warnings) == (taken, taken)
    assert server.requests[0].body["max_tokens"] == 40


async def test_openrouter_is_to_choose_who_takes_a_schema_and_together_gets_it_without_the_word_strict() -> None:
    bodies = {}
    for service in BOTH:
        async with fake(service) as server:
            await complete(service, server, ask(service, json_schema=SCHEMA))
        bodies[service.prefix] = server.requests[0].body
    assert bodies["openrouter"]["provider"] == {"require_parameters": True}
    assert bodies["openrouter"]["response_format"]["json_schema"] == {"name": "A", "schema": SCHEMA, "strict": True}
    assert bodies["together"]["response_format"]["json_schema"] == {"name": "A", "schema": SCHEMA}
    assert "provider" not in bodies["together"]


async def test_a_schema_that_nobody_takes_is_asked_for_in_words_from_then_on() -> None:
    request = ask(OPENROUTER, json_schema=SCHEMA, messages=(Message("system", "Be brief."), *HI))
    async with fake(OPENROUTER) as server:
        server.answer(refusal(404, "No endpoints found that can handle the requested parameters.", code=404))
        provider = OpenAILike(OPENROUTER, environment(OPENROUTER, server))
        replies = [await provider.complete(request) for _ in range(2)]
        await provider.close()
    assert len(server.requests) == 3
    body = server.requests[2].body
    assert body.keys() == {"model", "messages"}
    assert body["messages"][0]["content"].startswith("Be brief.\n\nYour final answer is nothing but JSON")
    assert [len(reply.warnings) for reply in replies] == [1, 1]


async def test_a_wrong_schema_is_no_reason_to_ask_in_words() -> None:
    wrong = refusal(400, "Invalid schema for response_format 'A': 'x' is not permitted.", code="invalid_json_schema")
    assert (await failure(OPENAI, wrong)).status == 400


@named
async def test_a_setting_that_is_refused_is_left_out_from_then_on(service: ChatService) -> None:
    async with fake(service) as server:
        server.answer(refusal(400, "Unsupported parameter: 'temperature' is not supported with this model."))
        provider = OpenAILike(service, environment(service, server))
        for _ in range(2):
            reply = await provider.complete(ask(service, temperature=0.5))
            assert "does not take temperature" in reply.warnings[0]
        await provider.close()
    assert ["temperature" in asked.body for asked in server.requests] == [True, False, False]


# --- what comes back --------------------------------------------------------------------------------------------------


@named
async def test_a_stream_gives_what_the_whole_answer_gives(service: ChatService) -> None:
    reply = await both(service, completion("Grüße \u2028 und 😀, lang genug."))
    assert (reply.text, reply.stop) == ("Grüße \u2028 und 😀, lang genug.", "end")
    assert reply.usage == Usage(9, 3, cached=0, reasoning=0)


@named
async def test_calls_side_by_side_in_a_stream_keep_their_own_arguments(service: ChatService) -> None:
    reply = await both(service, calls(("a", "Weather_at", '{"city": "Oslo"}'), ("b", "Weather_at", "")))
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [("a", '{"city": "Oslo"}'), ("b", "{}")]
    assert reply.stop == "tool"


@named
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("content", [None, ""])
async def test_nothing_at_all_is_no_answer(service: ChatService, content: str | None, streamed: bool) -> None:
    async with fake(service) as server:
        server.turn(completion(content))
        with pytest.raises(ModelError, match="answered with an empty message") as caught:
            await complete(service, server, ask(service), [] if streamed else None)
    assert caught.value.retryable


@named
@pytest.mark.parametrize(("finish", "code"), [("length", "output_limit"), ("content_filter", "content_filter")])
async def test_a_reply_that_is_not_whole_is_an_error(service: ChatService, finish: str, code: str) -> None:
    assert (await failure(service, completion("half", finish))).code == code


async def test_a_refusal_is_an_error() -> None:
    assert (await failure(OPENAI, document({"refusal": "I cannot do that."}))).detail == "I cannot do that."


async def test_the_cost_that_openrouter_reports_is_the_cost() -> None:
    reported = usage(90, 21, cached=64, reasoning=20) | {"cost": 0.00014, "cost_details": {}, "is_byok": False}
    reply = await both(OPENROUTER, document({"content": "x"}, usage=reported))
    assert (reply.cost, reply.usage) == (Decimal("0.00014"), Usage(90, 21, cached=64, reasoning=20))


async def test_with_a_key_of_ones_own_behind_openrouter_the_makers_price_is_added_to_the_fee() -> None:
    reported = usage(9, 3) | {"cost": 0.0001, "cost_details": {"upstream_inference_cost": 0.002}, "is_byok": True}
    assert (await both(OPENROUTER, document({"content": "x"}, usage=reported))).cost == Decimal("0.0021")


async def test_together_reports_totals_and_an_end_of_its_own() -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    reply = await both(TOGETHER, document({"content": "Hi."}, "eos", counts))
    assert (reply.usage, reply.stop, reply.cost) == (Usage(9, 3), "end", None)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>Hm. {</think>\n\n{}", "{}"),
        ("\n<think></think>so <think>b</think>", "so <think>b</think>"),
        ("<thin air", "<thin air"),
        ("a <think>b</think>", "a <think>b</think>"),
        ("  <", "  <"),
    ],
)
async def test_what_a_model_thinks_aloud_at_together_is_no_part_of_its_answer(content: str, text: str) -> None:
    assert (await both(TOGETHER, completion(content))).text == text


@given(st.text(st.sampled_from("<think>/ a\n"), max_size=30), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=200)
def test_thoughts_are_told_apart_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    for whole in (text, f"<think>{text}", f"<think>{text}</think>{text}"):
        bounds = [0, *sorted(cuts), len(whole)]
        answer = Spoken()
        said = "".join(answer.feed(whole[start:end]) for start, end in pairwise(bounds))
        assert said + answer.end() == spoken(whole)


async def test_thoughts_that_used_up_all_tokens_are_no_answer() -> None:
    assert "raise max_tokens" in (await failure(TOGETHER, completion("<think>Hm", "length"))).message


async def test_the_reasoning_of_a_turn_goes_back_to_openrouter_unchanged() -> None:
    details = [
        {"type": "reasoning.text", "text": "Let me see.", "signature": "sig", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "abc", "format": "f", "index": 1},
    ]
    turn = calls(("a", "Weather_at", "{}"), reasoning_details=details)
    reply = await both(OPENROUTER, turn)
    history = (*HI, Message("assistant", "", reply.tool_calls, opaque=reply.opaque), Message("tool", "4", (), "a"))
    async with fake(OPENROUTER) as server:
        server.turn(turn)
        await complete(OPENROUTER, server, ask(OPENROUTER))
        await complete(OPENROUTER, server, ask(OPENROUTER, messages=history))
        await complete(OPENROUTER, server, ask(OPENROUTER, "openrouter/other/model", messages=history))
    assert server.requests[1].body["messages"][1]["reasoning_details"] == details
    assert "reasoning_details" not in server.requests[2].body["messages"][1]


# --- streams that go wrong --------------------------------------------------------------------------------------------

HALF = chunk({"content": "Hel"})


@named
@pytest.mark.parametrize("stream", [events(HALF, done=False), events(done=False, size=1), events(HALF, "{")])
async def test_a_stream_without_its_end_is_an_error_that_may_pass(service: ChatService, stream: Answer) -> None:
    error = await failure(service, stream, streamed=True)
    assert error.retryable
    assert "stream" in error.message


@named
async def test_a_stream_that_is_cut_is_an_error(service: ChatService) -> None:
    error = await failure(service, events(HALF, done=False, cut=True), streamed=True)
    assert error.retryable
    assert "ended the connection" in error.message


@pytest.mark.parametrize(
    "stream",
    [
        events(chunk({"content": "ok"}, "stop"), done=False),
        events(chunk({"content": "ok"})),
        events(chunk({"content": "ok"}), "[DONE]", chunk({"content": "more"})),
        events(chunk({"content": "o"}), chunk({"content": None}), chunk({"content": "k"}), chunk(choices=[])),
        events(chunk({"content": "ok"}), comments=True),
        events(chunk({"content": "ok"}), chunk(choices=[{"index": 1, "delta": {"content": "no"}}])),
    ],
)
async def test_servers_end_their_streams_in_different_ways(stream: Answer) -> None:
    async with fake(OPENAI) as server:
        server.answer(stream)
        assert (await complete(OPENAI, server, ask(OPENAI), [])).text == "ok"


@pytest.mark.parametrize(
    "fragments",
    [
        [(0, "a", "F", '{"n":'), (0, None, None, "1}"), (0, "b", "F", '{"n":2}')],
        [(None, "a", "F", '{"n":'), (None, "", "", "1}"), (None, "b", "F", '{"n":2}')],
        [(None, "a", "F", ""), (None, "b", "F", '{"n":2}'), (None, "a", None, '{"n":1}')],
        [(0, "a", "F", '{"n":'), (1, "b", "F", '{"n":'), (0, "a", "F", "1}"), (1, None, None, "2}")],
        [(0, "", "F", '{"n":1}'), (0, None, "F", '{"n":2}')],
        [(0, "a", "F", {"n": 1}), (1, "b", "F", {"n": 2})],
    ],
)
async def test_fragments_of_calls_find_together_however_a_server_numbers_them(fragments: list[Any]) -> None:
    pieces = [
        chunk({"tool_calls": [{"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}]})
        for index, id_, name, arguments in fragments
    ]
    async with fake(OPENAI) as server:
        server.answer(events(*pieces, chunk({}, "tool_calls")))
        reply = await complete(OPENAI, server, ask(OPENAI), [])
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"n": 1}, {"n": 2}]
    assert {call.name for call in reply.tool_calls} == {"F"}


@pytest.mark.parametrize(
    ("message", "left_out"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("stream_options: Extra inputs are not permitted", "stream_options"),
        ("Streaming is not supported by this server.", "stream"),
        ("Your organization must be verified to stream this model.", "stream"),
    ],
)
async def test_a_server_that_does_not_stream_is_asked_without_from_then_on(message: str, left_out: str) -> None:
    deltas: list[str] = []
    async with fake(OPENAI) as server:
        server.answer(refusal(400, message))
        provider = OpenAILike(OPENAI, environment(OPENAI, server))
        for _ in range(2):
            assert (await provider.complete(ask(OPENAI), deltas.append)).text == "ok"
        await provider.close()
    assert "".join(deltas) == "okok"
    assert [left_out in asked.body for asked in server.requests] == [True, False, False]


async def test_nothing_is_asked_again_once_text_has_been_handed_on() -> None:
    failed = {"error": {"code": 400, "message": "streaming is not supported"}}
    assert (await failure(OPENROUTER, events(HALF, failed), streamed=True)).status == 400


async def test_a_server_that_answers_whole_although_a_stream_was_asked_for_is_understood() -> None:
    deltas: list[str] = []
    async with fake(OPENAI) as server:
        server.answer(completion("Hello."))
        assert (await complete(OPENAI, server, ask(OPENAI), deltas)).text == "Hello."
    assert deltas == ["Hello."]


# --- failures ---------------------------------------------------------------------------------------------------------


@gateways
@pytest.mark.parametrize(
    ("status", "retryable", "said"),
    [
        (400, False, ""),
        (401, False, "check {key}"),
        (402, False, "account behind {key} has no credit left"),
        (404, False, "check the model's name and {url}"),
        (408, True, ""),
        (413, False, ""),
        (422, False, ""),
        (429, True, ""),
        (500, True, ""),
        (502, True, ""),
        (503, True, ""),
        (529, True, ""),
    ],
)
@pytest.mark.parametrize("under_200", [False, True])
async def test_a_failure_is_the_same_under_its_own_status_and_under_200(
    service: ChatService, status: int, retryable: bool, said: str, under_200: bool
) -> None:
    answer = refusal(status, "the reason", code=status)
    error = await failure(service, Answer(200, answer.body) if under_200 else answer)
    assert (error.status, error.retryable, error.detail) == (status, retryable, "the reason")
    assert said.format(key=service.key_variable, url=service.url_variable) in error.message


async def test_a_failure_in_the_middle_of_a_stream_has_the_status_that_it_names() -> None:
    failed = {"error": {"code": 502, "message": "Provider disconnected"}}
    error = await failure(OPENROUTER, events(HALF, chunk({"content": ""}, "error", **failed)), streamed=True)
    assert (error.status, error.retryable, error.detail) == (502, True, "Provider disconnected")


@pytest.mark.parametrize(
    ("kind", "status", "retryable"), [("server_error", 500, True), ("invalid_request_error", 400, False)]
)
async def test_a_failure_in_a_stream_of_openai_is_told_by_its_kind(kind: str, status: int, retryable: bool) -> None:
    failed = {"error": {"message": "why", "type": kind, "param": None, "code": None}}
    error = await failure(OPENAI, events(HALF, failed, done=False), streamed=True)
    assert (error.status, error.retryable, error.detail) == (status, retryable, "why")


@pytest.mark.parametrize(
    "stream",
    [
        events(HALF, {"object": "error", "message": "out of memory", "type": "x", "code": None}),
        events(HALF, {"error": "out of memory"}),
        Answer(
            pieces=(b'event: error\ndata: {"message": "out of memory"}\n\ndata: [DONE]\n\n',),
            content_type="text/event-stream; charset=utf-8",
        ),
    ],
)
async def test_a_failure_in_a_stream_is_seen_in_whatever_shape_a_server_gives_it(stream: Answer) -> None:
    error = await failure(OPENAI, stream, streamed=True)
    assert error.retryable
    assert "failed before its answer was complete: out of memory" in error.message


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_choice_that_ended_in_an_error_is_no_answer(streamed: bool) -> None:
    answer = events(HALF, chunk({}, "error")) if streamed else completion("Hel", "error")
    error = await failure(OPENROUTER, answer, streamed=streamed)
    assert error.retryable
    assert "failed before its answer was complete" in error.message


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (
            {"provider_name": "Maker", "raw": "the model is loading"},
            "Provider returned error (Maker: the model is load",
        ),
        ({"reasons": ["violence", "self-harm"], "flagged_input": "x"}, "(violence, self-harm)"),
        ({"raw": {"no": "text"}}, "Provider returned error"),
    ],
)
async def test_what_the_maker_behind_openrouter_said_is_told(metadata: dict[str, Any], said: str) -> None:
    assert (
        said
        in (await failure(OPENROUTER, refusal(403, "Provider returned error", code=403, metadata=metadata))).message
    )


@gateways
async def test_cancelling_closes_the_connection_in_the_middle_of_a_stream(service: ChatService) -> None:
    heard = asyncio.Event()
    async with fake(service) as server:
        server.answer(events(chunk({"content": "Hel"}), done=False, hang=True))
        provider = OpenAILike(service, environment(service, server))
        call = asyncio.create_task(provider.complete(ask(service), lambda _: heard.set()))
        async with asyncio.timeout(5):
            await heard.wait()
            call.cancel()
            await server.left.wait()
        with pytest.raises(asyncio.CancelledError):
            await call
        await provider.close()


# --- keys and addresses -----------------------------------------------------------------------------------------------


@gateways
@pytest.mark.parametrize("key", ["", " \n"])
def test_a_missing_key_is_named(service: ChatService, key: str) -> None:
    problem = OpenAILike(service, {service.key_variable: key}).missing()
    assert problem is not None
    assert f"{service.key_variable} is not set" in problem


@gateways
async def test_a_key_is_stripped_and_a_wrong_one_is_never_shown(service: ChatService) -> None:
    wrong = "sk-wrong-0123456789abcdef"
    async with fake(service, refusals_expected=True) as server:
        good = OpenAILike(service, environment(service, server, f" {KEY}\n"))
        assert (await good.complete(ask(service))).text == "ok"
        bad = OpenAILike(service, environment(service, server, wrong))
        with pytest.raises(ModelError, match=f"check {service.key_variable}") as caught:
            await bad.complete(ask(service))
        await good.close()
        await bad.close()
    assert wrong not in f"{caught.value!r} {caught.value.detail} {vars(bad)}"


@pytest.mark.parametrize(
    ("service", "written", "url"),
    [
        (OPENROUTER, "", "https://openrouter.ai/api/v1"),
        (OPENROUTER, "https://openrouter.ai", "https://openrouter.ai/api/v1"),
        (OPENROUTER, "https://openrouter.ai/api/", "https://openrouter.ai/api/v1"),
        (OPENROUTER, "https://eu.openrouter.ai/api/v1/chat/completions", "https://eu.openrouter.ai/api/v1"),
        (OPENROUTER, "https://proxy.example/or", "https://proxy.example/or"),
        (TOGETHER, " ", "https://api.together.ai/v1"),
        (TOGETHER, "https://api.together.xyz", "https://api.together.xyz/v1"),
        (TOGETHER, "https://api.together.xyz/v1/", "https://api.together.xyz/v1"),
        (TOGETHER, "https://proxy.example/together", "https://proxy.example/together/v1"),
    ],
)
def test_an_address_is_completed_as_the_service_has_it(service: ChatService, written: str, url: str) -> None:
    assert service.endpoint({service.url_variable: written}, "").url == url


# --- the fake beside the official client ------------------------------------------------------------------------------


@named
async def test_the_official_client_reads_the_same_from_the_fake(service: ChatService) -> None:
    turn = calls(("a", "Weather_at", '{"city": "Oslo"}'), ("b", "Weather_at", '{"city": "Rome"}'), content="Hm.")
    ours = await both(service, turn)
    question: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with fake(service) as server, sdk.AsyncOpenAI(api_key=KEY, base_url=server.url) as client:
        server.turn(turn, turn)
        whole = await client.chat.completions.create(**question)
        parts = [part async for part in await client.chat.completions.create(**question, stream=True)]
    message = whole.choices[0].message
    assert [call.function.arguments for call in message.tool_calls or ()] == [
        call.arguments for call in ours.tool_calls
    ]
    streamed = [
        fragment.function.arguments
        for part in parts
        for choice in part.choices
        for fragment in choice.delta.tool_calls or ()
        if fragment.index == 0
    ]
    assert "".join(streamed) == ours.tool_calls[0].arguments
    assert "".join(c.delta.content or "" for part in parts for c in part.choices) == message.content == ours.text

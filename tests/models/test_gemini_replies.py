"""Gemini: what comes back, whole, in several exchanges and streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.models.base import ModelReply, Usage
from halo_runtime.models.gemini import Gemini
from halo_runtime.models.pricing import cost
from tests.fakes.gemini_server import KEY, FakeGemini, call, events, failure, streamed, turn, usage
from tests.fakes.wire import Answer, reply
from tests.models.gemini_calls import OLD, WEATHER, ask, complete, failed


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeGemini]:
    async with FakeGemini() as fake:
        yield fake


@pytest_asyncio.fixture
async def gemini(server: FakeGemini) -> AsyncIterator[Gemini]:
    provider = Gemini({"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.address})
    yield provider
    await provider.close()


@pytest.fixture(params=["whole", "streamed"])
def told(request: pytest.FixtureRequest) -> list[str] | None:
    """Where the text of a stream goes; None where no stream is asked for."""
    return [] if request.param == "streamed" else None


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_a_reply_has_text_usage_and_the_model_that_answered(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    text = 'Grüße,\u2028\u0085 \U0001f600 "and\\so on"\n' * 3
    thought = {"text": "Hm.", "thought": True}
    server.turn(turn([thought, {"text": text}], usageMetadata=usage(90, 21, cached=64, thoughts=40)))
    answer = await complete(gemini, ask(), told)
    assert answer == ModelReply(
        text=text,
        usage=Usage(90, 61, cached=64, reasoning=40),
        model_used="gemini-2.5-flash-001",
    )


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({}, Usage()),
        (None, Usage()),
        ({"promptTokenCount": "9", "candidatesTokenCount": -1}, Usage()),
        ({"promptTokenCount": 9}, Usage(9)),
        ({"promptTokenCount": 9, "totalTokenCount": 9}, Usage(9, 0)),
        ({"promptTokenCount": 9, "thoughtsTokenCount": 5, "totalTokenCount": 14}, Usage(9, 5, reasoning=5)),
        ({"promptTokenCount": 9, "toolUsePromptTokenCount": 4, "candidatesTokenCount": 2}, Usage(13, 2)),
    ],
)
async def test_tokens_are_added_up_and_unknown_where_nothing_is_said(
    server: FakeGemini, gemini: Gemini, reported: Any, expected: Usage
) -> None:
    server.turn(turn([{"text": "x"}], usageMetadata=reported))
    assert (await gemini.complete(ask())).usage == expected


@pytest.mark.parametrize("prefix", ["", "google/", "gemini/"])
def test_the_price_counts_cached_tokens_at_their_own_rate_and_thoughts_as_output(prefix: str) -> None:
    """USD per million of gemini-2.5-flash: 0.3 input, 0.03 cached, 2.5 output."""
    tokens = Usage(input=1000, output=100, cached=400, reasoning=60)
    assert (
        cost(prefix + OLD, tokens) == (600 * Decimal("0.3") + 400 * Decimal("0.03") + 100 * Decimal("2.5")) / 1_000_000
    )


@pytest.mark.parametrize(
    ("finish", "stop", "warning"),
    [
        ("STOP", "end", ()),
        ("OTHER", "end", ("the service ended the reply with OTHER",)),
        ("BRAND_NEW", "end", ("the service ended the reply with BRAND_NEW",)),
    ],
)
async def test_a_reply_that_may_not_be_whole_says_so(
    server: FakeGemini, gemini: Gemini, told: list[str] | None, finish: str, stop: str, warning: tuple[str, ...]
) -> None:
    server.turn(turn([{"text": "half a"}], finish))
    answer = await complete(gemini, ask(), told)
    assert (answer.text, answer.stop, answer.warnings) == ("half a", stop, warning)


@pytest.mark.parametrize("parts", [None, [{"text": "half a"}]], ids=["nothing", "half"])
@pytest.mark.parametrize(
    ("finish", "code", "said"),
    [
        ("MAX_TOKENS", "output_limit", "raise max_tokens"),
        ("CONTINUATION", "output_limit", "raise max_tokens"),
        ("SAFETY", "content_filter", "by its content filter: SAFETY: It is not nice."),
        ("RECITATION", "content_filter", "by its content filter: RECITATION: It is not nice."),
    ],
)
async def test_a_reply_that_is_not_whole_is_an_error(
    server: FakeGemini, gemini: Gemini, told: list[str] | None, parts: Any, finish: str, code: str, said: str
) -> None:
    server.turn(turn(parts, finish, finishMessage="It is not nice."))
    error = await failed(gemini, told)
    assert (error.code, error.retryable) == (code, False)
    assert said in error.message


@pytest.mark.parametrize("finish", ["STOP", "MAX_TOKENS", "SAFETY", "BRAND_NEW"])
async def test_calls_are_told_by_their_presence_and_not_by_the_reason_to_finish(
    server: FakeGemini, gemini: Gemini, finish: str
) -> None:
    server.turn(turn([call("Weather_at")], finish))
    assert (await gemini.complete(ask(tools=(WEATHER,)))).stop == "tool"


@pytest.mark.parametrize(
    ("document", "said", "retryable"),
    [
        (turn(None, "MALFORMED_FUNCTION_CALL", finishMessage="bad call: f("), "bad call: f(", True),
        (turn([], "UNEXPECTED_TOOL_CALL"), "UNEXPECTED_TOOL_CALL", True),
        (turn(None, "TOO_MANY_TOOL_CALLS"), "TOO_MANY_TOOL_CALLS", False),
        (turn(None, "MALFORMED_RESPONSE"), "MALFORMED_RESPONSE", True),
        (turn(None, "MAX_TOKENS"), "spent all its tokens before its answer began; raise max_tokens", False),
        (turn([{"text": "hm", "thought": True}], "MAX_TOKENS"), "raise max_tokens", False),
        (turn(None), "empty message (finishReason STOP)", True),
        (turn([{"text": ""}]), "empty message", True),
        (turn(None, "BRAND_NEW"), "empty message (finishReason BRAND_NEW)", True),
        (
            {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage(9, 0)},
            "blocked the prompt (SAFETY)",
            False,
        ),
    ],
)
async def test_an_answer_that_cannot_be_used_says_why(
    server: FakeGemini,
    gemini: Gemini,
    told: list[str] | None,
    document: dict[str, Any],
    said: str,
    retryable: bool,
) -> None:
    server.turn(document)
    error = await failed(gemini, told)
    assert said in error.message
    assert "Gemini (127.0.0.1:" in error.message
    assert error.retryable is retryable


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"candidates": []}, "without any candidate"),
        ({"candidates": [7]}, "without any candidate"),
        ({"usageMetadata": {}}, "without any candidate"),
        ({"candidates": [{"finishReason": 7, "content": {"parts": [None, {"text": 7}]}}]}, "empty message"),
        ({"error": {"code": 503, "message": "overloaded"}}, "answered 503: overloaded"),
        ({"error": {"message": "odd"}}, "answered 500: odd"),
    ],
)
async def test_an_answer_without_what_belongs_in_it_may_be_asked_for_again(
    server: FakeGemini, gemini: Gemini, document: dict[str, Any], said: str
) -> None:
    server.answer(reply(document))
    error = await failed(gemini)
    assert said in error.message
    assert error.retryable


async def test_what_the_service_says_is_made_one_short_line(server: FakeGemini, gemini: Gemini) -> None:
    server.turn(
        turn(None, "MALFORMED_FUNCTION_CALL", finishMessage="line\n" * 10_000), turn([{"text": "x"}], "a\nb" * 999)
    )
    assert len((await failed(gemini)).message) < 700
    (warning,) = (await gemini.complete(ask())).warnings
    assert "\n" not in warning
    assert len(warning) < 700


# --- answers over several exchanges -----------------------------------------------------------------------------------


async def test_an_answer_at_the_limit_of_an_exchange_goes_on_and_every_exchange_is_counted(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    server.turn(
        turn([{"text": "One, "}], "CONTINUATION", continuationToken="t1", usageMetadata=usage(10, 5)),
        turn(None, "CONTINUATION", continuationToken="t2", usageMetadata=usage(10, 0, thoughts=7)),
        turn([{"text": "two."}], usageMetadata=usage(10, 6)),
    )
    answer = await complete(gemini, ask(max_tokens=100_000), told)
    assert (answer.text, answer.stop, answer.warnings) == ("One, two.", "end", ())
    assert answer.usage == Usage(30, 18, cached=None, reasoning=7)
    assert [request.body.get("continuationToken") for request in server.requests] == [None, "t1", "t2"]


async def test_a_token_to_go_on_with_is_not_used_once_the_answer_is_whole(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    server.turn(turn([{"text": "whole"}], "STOP", continuationToken="t"))
    assert (await complete(gemini, ask(), told)).text == "whole"
    assert len(server.requests) == 1


async def test_usage_is_unknown_where_one_exchange_does_not_tell_it(server: FakeGemini, gemini: Gemini) -> None:
    server.turn(turn([{"text": "a"}], "CONTINUATION", continuationToken="t"), turn([{"text": "b"}], usageMetadata=None))
    assert (await gemini.complete(ask())).usage == Usage()


async def test_a_service_that_goes_on_for_ever_is_cut_off(server: FakeGemini, gemini: Gemini) -> None:
    server.turn(*(turn([{"text": "a"}], "CONTINUATION", continuationToken=f"t{n}") for n in range(100)))
    assert (await failed(gemini)).code == "output_limit"
    assert len(server.requests) == 64


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
async def test_a_stream_may_be_cut_anywhere(server: FakeGemini, gemini: Gemini, size: int) -> None:
    whole = turn([{"text": "Grüße \U0001f600 \u2028 \\n"}, call("Weather_at", {"city": "Zürich"})])
    server.answer(events(*streamed(whole), size=size), reply(whole))
    request = ask(tools=(WEATHER,))
    assert await complete(gemini, request, []) == await gemini.complete(request)


async def test_comments_and_fields_of_no_meaning_are_no_part_of_a_stream(server: FakeGemini, gemini: Gemini) -> None:
    data = json.dumps(turn([{"text": "x"}]))
    text = f"\ufeff: hello\n\nevent: any\nid: 1\nretry: 3\ndata:{data}\r\n\r\n:\r\r"
    server.answer(Answer(pieces=(text.encode(),), content_type="text/event-stream; charset=utf-8"))
    assert (await complete(gemini, ask(), [])).text == "x"


async def test_text_is_told_as_it_comes(server: FakeGemini, gemini: Gemini) -> None:
    told: list[str] = []
    server.turn(turn([{"text": "abcdefgh"}, {"text": "ij"}]))
    await complete(gemini, ask(), told)
    assert told == ["abcd", "efgh", "ij"]


async def test_calls_of_one_turn_may_come_in_several_chunks(server: FakeGemini, gemini: Gemini) -> None:
    server.answer(events(turn([call("Weather_at", {"n": 1})], None), turn([call("Weather_at", {"n": 2})], "STOP")))
    assert len((await complete(gemini, ask(tools=(WEATHER,)), [])).tool_calls) == 2


async def test_the_last_usage_of_a_stream_holds(server: FakeGemini, gemini: Gemini) -> None:
    first = turn([{"text": "a"}], None, usageMetadata=usage(9, 1))
    server.answer(events(first, turn([{"text": "b"}], usageMetadata=usage(9, 2)), {"usageMetadata": usage(9, 4)}))
    assert (await complete(gemini, ask(), [])).usage == Usage(9, 4)


@pytest.mark.parametrize(
    "answer",
    [
        events(turn([{"text": "half"}], None)),
        events(turn([{"text": "half"}], None), cut=True),
        Answer(pieces=(b": nothing\n\n",), content_type="text/event-stream"),
    ],
)
async def test_a_stream_without_its_end_is_no_short_answer(server: FakeGemini, gemini: Gemini, answer: Answer) -> None:
    server.answer(answer)
    error = await failed(gemini, [])
    assert error.retryable
    assert "before its answer was complete" in error.message


@pytest.mark.parametrize(
    ("error", "retryable"),
    [(failure(503, "overloaded", "UNAVAILABLE"), True), (failure(400, "too long", "INVALID_ARGUMENT"), False)],
)
async def test_a_failure_after_a_stream_began_is_what_its_code_says(
    server: FakeGemini, gemini: Gemini, error: dict[str, Any], retryable: bool
) -> None:
    server.answer(events(turn([{"text": "half"}], None), error))
    caught = await failed(gemini, [])
    assert (caught.status, caught.retryable) == (error["error"]["code"], retryable)
    assert caught.detail == error["error"]["message"]


@pytest.mark.parametrize("data", [b"data: {broken\n\n", b"data: []\n\n", b"data: [DONE]\n\n"])
async def test_a_stream_of_something_else_is_refused(server: FakeGemini, gemini: Gemini, data: bytes) -> None:
    server.answer(Answer(pieces=(data,), content_type="text/event-stream"))
    assert "no JSON object" in (await failed(gemini, [])).message


async def test_a_whole_answer_where_a_stream_was_asked_for_is_taken(server: FakeGemini, gemini: Gemini) -> None:
    server.answer(reply(turn([{"text": "whole"}])))
    assert (await complete(gemini, ask(), [])).text == "whole"

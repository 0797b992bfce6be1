"""Anthropic's messages: what comes back, whole and streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.errors import ModelError
from halo_runtime.models.anthropic import Anthropic
from halo_runtime.models.base import Usage
from tests.fakes.anthropic_server import (
    EVENT_STREAM,
    FakeAnthropic,
    document,
    error,
    event,
    events,
    message,
    stream,
    text,
    thinking,
    tool_use,
    usage,
)
from tests.fakes.wire import Answer, crumbs, reply
from tests.models.anthropic_calls import WEATHER, answered, ask, both, failed


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeAnthropic]:
    async with FakeAnthropic() as fake:
        yield fake


@pytest_asyncio.fixture
async def anthropic(server: FakeAnthropic) -> AsyncIterator[Anthropic]:
    provider = Anthropic(server.env)
    yield provider
    await provider.close()


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

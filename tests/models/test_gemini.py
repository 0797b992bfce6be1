"""generateContent against a server that refuses what Gemini refuses, whole and streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

import halo_lang
from halo_runtime import Runtime
from halo_runtime.errors import ConfigError, ModelError
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, ToolSpec, Usage
from halo_runtime.models.gemini import Gemini
from halo_runtime.models.pricing import cost
from tests.fakes.gemini_rules import UNSIGNED, signature
from tests.fakes.gemini_server import KEY, FakeGemini, call, events, failure, refusal, streamed, turn, usage
from tests.fakes.wire import Answer, reply

HI = (Message("user", "hi"),)
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
FACTS = {"title": "Facts", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
INSTEAD = "it was asked for in the system instruction instead"
NEW, OLD = "gemini-3.5-flash", "gemini-2.5-flash"


def ask(model: str = f"google/{NEW}", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


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


async def complete(provider: Gemini, request: ModelRequest, told: list[str] | None) -> ModelReply:
    answer = await provider.complete(request, None if told is None else told.append)
    assert told is None or "".join(told) == answer.text
    return answer


async def failed(provider: Gemini, told: list[str] | None = None, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await provider.complete(request or ask(), None if told is None else told.append)
    assert KEY not in f"{caught.value} {caught.value.detail}"
    return caught.value


def body(server: FakeGemini, number: int = -1) -> Any:
    return server.requests[number].body


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_request_holds_the_messages_and_the_settings_that_were_made(server: FakeGemini, gemini: Gemini) -> None:
    messages = (Message("system", "Be brief."), *HI, Message("assistant", "Hello."), Message("user", "again"))
    await gemini.complete(ask(messages=messages, temperature=0.2, top_p=0.9, max_tokens=40))
    assert server.requests[0].path == f"/v1beta/models/{NEW}:generateContent"
    assert body(server) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "Hello."}]},
            {"role": "user", "parts": [{"text": "again"}]},
        ],
        "generationConfig": {"temperature": 0.2, "topP": 0.9, "maxOutputTokens": 40},
    }


async def test_settings_that_were_not_made_are_not_sent(server: FakeGemini, gemini: Gemini) -> None:
    await gemini.complete(ask())
    assert body(server).keys() == {"contents"}


@pytest.mark.parametrize(
    "model", ["google/gemini-x", "gemini/gemini-x", "gemini-x", "google/models/gemini-x", "models/gemini-x"]
)
async def test_the_model_stands_in_the_path_and_nowhere_else(server: FakeGemini, gemini: Gemini, model: str) -> None:
    await gemini.complete(ask(model))
    assert server.requests[0].path == "/v1beta/models/gemini-x:generateContent"
    assert "model" not in body(server)


async def test_a_model_cannot_change_the_address(server: FakeGemini, gemini: Gemini) -> None:
    await gemini.complete(ask("google/a?key=b #:c"))
    assert server.requests[0].path == "/v1beta/models/a%3Fkey%3Db%20%23%3Ac:generateContent"


async def test_a_stream_is_asked_for_as_server_sent_events(server: FakeGemini, gemini: Gemini) -> None:
    await complete(gemini, ask(), [])
    assert server.requests[0].path == f"/v1beta/models/{NEW}:streamGenerateContent?alt=sse"


async def test_blank_turns_are_left_out(server: FakeGemini, gemini: Gemini) -> None:
    messages = (Message("system", " \n"), *HI, Message("assistant", ""), Message("user", "again"))
    await gemini.complete(ask(messages=messages))
    assert [content["parts"][0]["text"] for content in body(server)["contents"]] == ["hi", "again"]
    assert "systemInstruction" not in body(server)


async def test_half_a_surrogate_pair_is_sent_as_a_replacement_character(server: FakeGemini, gemini: Gemini) -> None:
    await gemini.complete(ask(messages=(Message("user", "a\ud83d"),)))
    assert body(server)["contents"][0]["parts"] == [{"text": "a\ufffd"}]


async def test_schemas_of_every_kind_are_sent_as_they_are(server: FakeGemini, gemini: Gemini) -> None:
    zoo = {
        "type": "object",
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "properties": {
            "node": {"$ref": "#/$defs/Node"},
            "kind": {"const": "a"},
            "list": {"type": "array"},
            "maybe": {"type": ["string", "null"]},
            "free": {"type": "object", "additionalProperties": True},
        },
    }
    await gemini.complete(ask(tools=(ToolSpec("T_zoo", "", zoo),)))
    assert body(server)["tools"] == [{"functionDeclarations": [{"name": "T_zoo", "parametersJsonSchema": zoo}]}]


async def test_a_schema_is_asked_for_beside_other_settings(server: FakeGemini, gemini: Gemini) -> None:
    await gemini.complete(ask(json_schema=FACTS, temperature=0.0))
    expected = {"temperature": 0.0, "responseMimeType": "application/json", "responseJsonSchema": FACTS}
    assert body(server)["generationConfig"] == expected


async def test_newer_models_take_a_schema_beside_tools(server: FakeGemini, gemini: Gemini) -> None:
    answer = await gemini.complete(ask(json_schema=FACTS, tools=(WEATHER,)))
    assert body(server)["generationConfig"]["responseJsonSchema"] == FACTS
    assert answer.warnings == ()


@pytest.mark.parametrize("model", [OLD, "gemini-1.5-pro", "gemini-2.0-flash-lite"])
async def test_older_models_are_told_the_schema_in_words_beside_tools_and_a_warning_says_so(
    server: FakeGemini, gemini: Gemini, model: str
) -> None:
    answer = await gemini.complete(ask(model, json_schema=FACTS, tools=(WEATHER,)))
    assert "generationConfig" not in body(server)
    assert json.dumps(FACTS) in body(server)["systemInstruction"]["parts"][0]["text"]
    assert answer.warnings == (f"{model} takes no schema beside tools; {INSTEAD}",)


# --- tools ------------------------------------------------------------------------------------------------------------


def after(request: ModelRequest, answer: ModelReply, *results: str) -> ModelRequest:
    """The request that goes on with the results of the calls of an answer."""
    turns = [Message("tool", text, tool_call_id=c.id) for c, text in zip(answer.tool_calls, results, strict=True)]
    spoken = Message("assistant", answer.text, answer.tool_calls, opaque=answer.opaque)
    return replace(request, messages=(*request.messages, spoken, *turns))


async def test_parallel_calls_go_back_in_one_turn_with_their_results_in_order(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    parts = [call("Weather_at", {"city": "Oslo"}, "f1", NEW), call("Weather_at", {"city": "Rome"}, "f2")]
    server.turn(turn([{"text": "Let me see."}, *parts]))
    request = ask(tools=(WEATHER,))
    answer = await complete(gemini, request, told)
    assert (answer.text, answer.stop) == ("Let me see.", "tool")
    assert answer.tool_calls == (
        ToolCall("f1", "Weather_at", '{"city": "Oslo"}'),
        ToolCall("f2", "Weather_at", '{"city": "Rome"}'),
    )
    assert (await gemini.complete(after(request, answer, "4C", ""))).text == "ok"
    assert body(server)["contents"][1:] == [
        {"role": "model", "parts": [{"text": "Let me see."}, *parts]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "f1", "name": "Weather_at", "response": {"output": "4C"}}},
                {"functionResponse": {"id": "f2", "name": "Weather_at", "response": {"output": ""}}},
            ],
        },
    ]


async def test_every_step_of_a_turn_keeps_its_signatures(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    signed = {"text": "So.", "thoughtSignature": signature(NEW)}
    server.turn(
        turn([call("Weather_at", {"city": "Oslo"}, "f1", NEW)]), turn([signed, call("Weather_at", {}, "f1", NEW)])
    )
    request = ask(tools=(WEATHER,))
    for result in ("4C", "unknown"):
        request = after(request, await gemini.complete(request, None if told is None else told.append), result)
    await gemini.complete(request)
    assert body(server)["contents"][3]["parts"][0] == signed


async def test_a_signature_may_come_by_itself_at_the_end_of_a_stream(server: FakeGemini, gemini: Gemini) -> None:
    late = {"text": "", "thoughtSignature": signature(NEW)}
    server.turn(turn([{"text": "Thinking."}, call("Weather_at", signed_by=NEW), late]))
    request = ask(tools=(WEATHER,))
    await gemini.complete(after(request, await complete(gemini, request, []), "4C"))
    assert body(server)["contents"][1]["parts"][-1] == late


async def test_calls_of_another_model_are_marked_as_unsigned(server: FakeGemini, gemini: Gemini) -> None:
    server.turn(turn([call("Weather_at", {"city": "Oslo"}, "f1", "gemini-3-pro")]))
    request = ask("gemini-3-pro", tools=(WEATHER,))
    follow = after(request, await gemini.complete(request), "4C")
    await gemini.complete(replace(follow, model=NEW))
    assert body(server)["contents"][1]["parts"][0]["thoughtSignature"] in UNSIGNED
    await gemini.complete(replace(follow, model=OLD))
    assert "thoughtSignature" not in body(server)["contents"][1]["parts"][0]


async def test_text_that_a_rule_changed_does_not_come_back_with_the_signatures(
    server: FakeGemini, gemini: Gemini
) -> None:
    server.turn(turn([{"text": "Ask bo@x.org"}, call("Weather_at", {}, "f1", NEW)]))
    request = ask(tools=(WEATHER,))
    answer = await gemini.complete(request)
    assert "bo@x.org" not in json.dumps(answer.opaque)
    await gemini.complete(after(request, replace(answer, text="Ask [EMAIL_1]"), "4C"))
    first, second = body(server)["contents"][1]["parts"]
    assert first == {"text": "Ask [EMAIL_1]"}
    assert second["thoughtSignature"] == signature(NEW, {"name": "Weather_at"})


async def test_calls_without_an_id_or_with_the_same_one_get_distinct_ids(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    calls = [call("Weather_at", {"n": n}, id_) for n, id_ in enumerate([None, "f", "f", "call_3", None])]
    server.turn(turn(calls))
    request = ask(OLD, tools=(WEATHER,))
    answer = await complete(gemini, request, told)
    assert len({c.id for c in answer.tool_calls}) == 5
    await gemini.complete(after(request, answer, *"abcde"))


async def test_arguments_that_are_no_object_go_back_inside_one(server: FakeGemini, gemini: Gemini) -> None:
    calls = (
        ToolCall("a", "Weather_at", "not JSON"),
        ToolCall("b", "Weather_at", ""),
        ToolCall("c", "Weather_at", "[NaN]"),
    )
    results = (Message("tool", "x", tool_call_id=id_) for id_ in "abc")
    await gemini.complete(ask(OLD, messages=(*HI, Message("assistant", "", calls), *results)))
    sent = [part["functionCall"]["args"] for part in body(server)["contents"][1]["parts"]]
    assert sent == [{"arguments": "not JSON"}, {}, {"arguments": "[NaN]"}]


async def test_results_without_a_call_are_left_out(server: FakeGemini, gemini: Gemini) -> None:
    await gemini.complete(ask(messages=(*HI, Message("tool", "x", tool_call_id="gone"), Message("user", "well?"))))
    assert len(body(server)["contents"]) == 2


async def test_names_that_the_service_refuses_are_mapped_there_and_back(server: FakeGemini, gemini: Gemini) -> None:
    tools = tuple(
        ToolSpec(name, "", {"type": "object"}) for name in ("Über_a", "a.b/c", "1st", "_1st", "T" + "x" * 200)
    )
    await gemini.complete(ask(OLD, tools=tools))
    wire = [declared["name"] for declared in body(server)["tools"][0]["functionDeclarations"]]
    server.turn(turn([call(name) for name in (*wire, "unknown")]))
    answer = await gemini.complete(ask(OLD, tools=tools))
    assert [c.name for c in answer.tool_calls] == [*(tool.name for tool in tools), "unknown"]


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


# --- refusals ---------------------------------------------------------------------------------------------------------


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.83s"}


def quota(id_: str) -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": id_, "quotaValue": "20"}],
    }


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "FAILED_PRECONDITION", False), (402, "UNKNOWN", False), (403, "PERMISSION_DENIED", False),
        (404, "NOT_FOUND", False), (408, "UNKNOWN", True), (413, "UNKNOWN", False), (429, "RESOURCE_EXHAUSTED", True),
        (499, "CANCELLED", False), (500, "INTERNAL", True), (502, "UNKNOWN", True), (503, "UNAVAILABLE", True),
        (504, "DEADLINE_EXCEEDED", True),
    ],
)  # fmt: skip
async def test_a_refusal_has_its_status_and_the_services_own_message(
    server: FakeGemini, gemini: Gemini, told: list[str] | None, status: int, kind: str, retryable: bool
) -> None:
    server.answer(refusal(status, "This model is no longer available to new users.", kind))
    error = await failed(gemini, told)
    assert (error.status, error.retryable) == (status, retryable)
    assert error.detail == "This model is no longer available to new users."


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [("36s", 36.0), ("45.83s", 45.83), ("0s", 0.0), ("soon", None), ("-1s", None), ("1e9s", None), (7, None)],
)
async def test_how_long_to_wait_stands_in_the_body(
    server: FakeGemini, gemini: Gemini, delay: Any, seconds: float | None
) -> None:
    server.answer(refusal(429, "slow down", "RESOURCE_EXHAUSTED", quota("PerMinute"), RETRY | {"retryDelay": delay}))
    error = await failed(gemini)
    assert (error.retryable, error.retry_after) == (True, seconds)


@pytest.mark.parametrize("headers", [{"retry-after": "2"}, {"retry-after-ms": "2000"}])
async def test_a_header_says_it_before_the_body(server: FakeGemini, gemini: Gemini, headers: dict[str, str]) -> None:
    server.answer(refusal(429, "slow down", "RESOURCE_EXHAUSTED", RETRY, headers=headers))
    assert (await failed(gemini)).retry_after == 2.0


async def test_a_setting_that_a_model_turns_out_not_to_take_is_left_out_from_then_on(
    server: FakeGemini, gemini: Gemini, told: list[str] | None
) -> None:
    server.answer(refusal(400, "Sampling parameter topP is not supported by this model."))
    left_out = (f"{NEW} does not take top_p; it was left out",)
    assert (await complete(gemini, ask(temperature=0.5, top_p=0.5), told)).warnings == left_out
    assert (await gemini.complete(ask(top_p=0.5))).warnings == left_out
    assert (await gemini.complete(ask())).warnings == ()
    assert [r.body.get("generationConfig", {}).keys() for r in server.requests] == [
        {"temperature", "topP"},
        {"temperature"},
        set(),
        set(),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.5}, "temperature must be in the range [0.0, 2.0]"),
        ({}, "temperature is not supported"),
        ({"temperature": 0.5}, "This region is not supported."),
    ],
)
async def test_another_refusal_is_not_taken_for_that(
    server: FakeGemini, gemini: Gemini, settings: dict[str, float], message: str
) -> None:
    server.answer(refusal(400, message))
    assert (await failed(gemini, request=ask(**settings))).detail == message
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("message", "details"),
    [
        ("quota", [quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), RETRY]),
        ("Quota exceeded for metric: requests, limit: 0, model: gemini-3-pro", [RETRY]),
    ],
)
async def test_a_quota_of_the_day_is_not_waited_for(
    server: FakeGemini, gemini: Gemini, message: str, details: list[Any]
) -> None:
    server.answer(refusal(429, message, "RESOURCE_EXHAUSTED", *details))
    error = await failed(gemini)
    assert not error.retryable
    assert "used up for today" in error.message
    assert "GEMINI_API_KEY" in error.message


@pytest.mark.parametrize("details", [None, {}, [None, 7], [{"violations": 7, "retryDelay": None, "reason": 3}]])
async def test_details_of_any_shape_do_no_harm(server: FakeGemini, gemini: Gemini, details: Any) -> None:
    server.answer(reply({"error": {"code": 429, "message": "no", "details": details}}, 429))
    error = await failed(gemini)
    assert (error.retryable, error.retry_after, error.detail) == (True, None, "no")


async def test_a_full_context_is_told_with_what_to_do(server: FakeGemini, gemini: Gemini) -> None:
    message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    server.answer(refusal(400, message), refusal(400, "max_output_tokens must be positive"))
    error = await failed(gemini)
    assert error.detail == message
    assert "context is full" in (error.hint or "")
    assert (await failed(gemini)).hint is None


async def test_a_stream_that_is_refused_may_have_its_error_in_a_list(server: FakeGemini, gemini: Gemini) -> None:
    server.answer(reply([failure(429, "slow down", "RESOURCE_EXHAUSTED", RETRY)], 429))
    error = await failed(gemini, [])
    assert (error.detail, error.retry_after) == ("slow down", 45.83)


async def test_a_wrong_key_is_named_by_its_variable_and_never_shown() -> None:
    wrong = "AIzaWrong0123456789"
    async with FakeGemini(refusals_expected=True) as server:
        provider = Gemini({"GOOGLE_API_KEY": wrong, "GOOGLE_GEMINI_BASE_URL": server.address})
        error = await failed(provider)
        await provider.close()
    assert (error.status, error.retryable) == (400, False)
    assert "check GOOGLE_API_KEY" in error.message
    assert wrong not in f"{error!r} {error.detail} {provider!r} {vars(provider)}"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(body=b""), "broken JSON (0 bytes)"),
        (Answer(body=b"[]"), "JSON that is no object"),
        (Answer(body=b"\xff{"), "broken JSON"),
        (
            Answer(body=b"<html>", content_type="text/html"),
            "answered text/html instead of JSON; is GOOGLE_GEMINI_BASE_URL",
        ),
    ],
)
async def test_an_answer_of_something_else_is_refused(
    server: FakeGemini, gemini: Gemini, told: list[str] | None, answer: Answer, said: str
) -> None:
    server.answer(answer)
    assert said in (await failed(gemini, told)).message


async def test_an_error_page_of_a_proxy_is_told_by_its_status(server: FakeGemini, gemini: Gemini) -> None:
    server.answer(Answer(502, b"<html>Bad gateway", content_type="text/html"))
    error = await failed(gemini)
    assert (error.status, error.retryable, error.detail) == (502, True, None)


@pytest.mark.parametrize("pieces", [(), (b'data: {"candidates": [{"content"',)])
async def test_cancelling_a_call_closes_its_connection(
    server: FakeGemini, gemini: Gemini, told: list[str] | None, pieces: tuple[bytes, ...]
) -> None:
    server.answer(Answer(pieces=pieces, hang=True, content_type="text/event-stream"))
    task = asyncio.create_task(complete(gemini, ask(), told))
    await server.hanging.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5):
        await server.left.wait()


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [{}, {"GEMINI_API_KEY": ""}, {"GEMINI_API_KEY": " \n", "GOOGLE_API_KEY": ""}])
async def test_a_missing_key_is_named_with_two_ways_to_run_without_one(env: dict[str, str]) -> None:
    provider = Gemini(env)
    problem = provider.missing()
    assert problem is not None
    assert all(text in problem for text in ("GEMINI_API_KEY", "--replies", "--model local/smollm2"))
    assert (await failed(provider)).message == problem


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_either_variable_holds_the_key(server: FakeGemini, variable: str) -> None:
    provider = Gemini({variable: f" {KEY}\n", "GOOGLE_GEMINI_BASE_URL": server.address})
    assert (await provider.complete(ask())).warnings == ()
    await provider.close()


async def test_where_both_are_set_one_is_taken_and_a_warning_says_which(server: FakeGemini) -> None:
    provider = Gemini({"GEMINI_API_KEY": "other", "GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.address})
    answer = await provider.complete(ask())
    await provider.close()
    assert answer.warnings == ("GOOGLE_API_KEY and GEMINI_API_KEY are both set; GOOGLE_API_KEY was used",)


@pytest.mark.parametrize("ending", ["", "/", "/v1beta", "/v1beta/", "/v1beta/models", " \n"])
async def test_the_address_may_end_as_people_write_it(server: FakeGemini, ending: str) -> None:
    provider = Gemini({"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.address + ending})
    assert (await provider.complete(ask())).text == "ok"
    await provider.close()


@pytest.mark.parametrize(("ending", "version"), [("", "v1"), ("/v1", "")])
async def test_another_version_of_the_service_may_be_asked_for(server: FakeGemini, ending: str, version: str) -> None:
    address = {"GOOGLE_GEMINI_BASE_URL": server.address + ending, "GOOGLE_GENAI_API_VERSION": version}
    provider = Gemini({"GEMINI_API_KEY": KEY} | address)
    await provider.complete(ask())
    await provider.close()
    assert server.requests[0].path.startswith("/v1/models/")


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "http://models.example"}, "plain http to another machine"),
        ({"GEMINI_API_KEY": "two words"}, "GEMINI_API_KEY holds white space"),
        (
            {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": "models.example"},
            "GOOGLE_GEMINI_BASE_URL is no plain http",
        ),
    ],
)
def test_what_a_key_must_not_be_sent_to_is_found_before_anything_is_sent(env: dict[str, str], said: str) -> None:
    problem = Gemini(env).missing()
    assert problem is not None
    assert said in problem
    assert KEY not in problem


# --- programs ---------------------------------------------------------------------------------------------------------

PROGRAM = """\
tool Sh : Bash(allow: ["echo"])
schema Answer { city: String, degrees: Integer }
agent Bot [MODEL]
  equips Sh
pipeline Main(text: String) -> Answer:
  text |> Bot.find(context, tools: [Sh], temperature: 0.5)
"""


@pytest.mark.parametrize("model", [NEW, OLD])
@pytest.mark.parametrize("whole", [True, False])
async def test_a_program_runs_with_a_loop_of_tools_and_a_result_by_schema(
    server: FakeGemini, model: str, whole: bool
) -> None:
    signed_by = model if model == NEW else None
    turns = [
        turn(
            [{"text": "Hm."}, call("Sh_run", {"command": "echo Oslo"}, "f1", signed_by), call("Sh_run", {"n": 1}, "f2")]
        ),
        turn([call("Sh_run", {"command": "echo 4"}, "f1", signed_by)]),
        turn([{"text": '{"city": "Oslo", "degrees": 4}'}], usageMetadata=usage(1000, 100)),
    ]
    server.answer(*map(reply, turns if whole else ()))
    server.turn(*turns if not whole else ())
    env = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.address, "PATH": "/usr/bin:/bin"}
    runtime = Runtime(env=env)
    result = await runtime.run(halo_lang.parse(PROGRAM.replace("MODEL", model)), "Main", {"text": "Where?"})
    await runtime.close()
    assert result.raise_for_status().output == {"city": "Oslo", "degrees": 4}
    results = [part["functionResponse"]["response"] for part in body(server, 1)["contents"][-1]["parts"]]
    assert "Oslo" in results[0]["output"]
    assert results[1]["error"].startswith("Error: ")
    assert result.context.meta["tokens"] == {"input": 1018, "output": 106, "total": 1124}
    assert [warning["message"] for warning in result.context.meta["warnings"] if "schema" in warning["message"]] == (
        [] if model == NEW else [f"Bot.find: {OLD} takes no schema beside tools; {INSTEAD}"]
    )


RETRYING = """\
@retry(2, 1h)
agent Bot [google/gemini-2.5-flash]
pipeline Main(text: String) -> String:
  text |> Bot.say()
"""


@pytest.mark.parametrize(
    ("details", "requests", "status"),
    [([RETRY | {"retryDelay": "0s"}], 3, "completed"), ([quota("RequestsPerDay"), RETRY], 1, "failed")],
)
async def test_a_program_waits_as_long_as_it_is_told_and_not_for_tomorrow(
    server: FakeGemini, details: list[Any], requests: int, status: str
) -> None:
    server.answer(*[refusal(429, "slow down", "RESOURCE_EXHAUSTED", *details)] * 2)
    runtime = Runtime(env={"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.address})
    result = await runtime.run(halo_lang.parse(RETRYING), "Main", {"text": "hi"})
    await runtime.close()
    assert (len(server.requests), result.status) == (requests, status)


async def test_a_program_without_a_key_does_not_begin() -> None:
    runtime = Runtime(env={})
    with pytest.raises(ConfigError, match="GEMINI_API_KEY is not set"):
        await runtime.run(halo_lang.parse(RETRYING), "Main", {"text": "hi"})
    await runtime.close()

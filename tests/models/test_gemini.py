"""Gemini: what is sent, and tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from halo_runtime.models.gemini import Gemini
from tests.fakes.gemini_rules import UNSIGNED, signature
from tests.fakes.gemini_server import KEY, FakeGemini, call, turn
from tests.models.gemini_calls import FACTS, HI, INSTEAD, NEW, OLD, WEATHER, ask, body, complete


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

"""Chat completions against a server that refuses what OpenAI refuses; responses are in test_openai_responses.py."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from decimal import Decimal
from email.utils import formatdate
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelRequest, ToolCall, ToolSpec, Usage
from halo_runtime.models.http import Endpoint, JsonService
from halo_runtime.models.openai import OpenAILike, open_openai
from halo_runtime.models.retry import retry_after
from tests.fakes.openai_server import KEY, Answer, FakeOpenAI, calls, completion, document, refusal, usage

HI = (Message("user", "hi"),)
TEXT = {"type": "string"}
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has these fields, all of them and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def ask(model: str = "openai/gpt-4.1-mini", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as fake:
        yield fake


@pytest_asyncio.fixture
async def openai(server: FakeOpenAI) -> AsyncIterator[OpenAILike]:
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url})
    yield provider
    await provider.close()


async def failure(provider: OpenAILike, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await provider.complete(request or ask())
    assert KEY not in f"{caught.value} {caught.value.detail}"
    return caught.value


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_request_holds_the_messages_and_the_settings_that_were_made(
    server: FakeOpenAI, openai: OpenAILike
) -> None:
    messages = (Message("system", "Be brief."), *HI)
    await openai.complete(ask(messages=messages, temperature=0.2, top_p=0.9, max_tokens=40))
    assert server.requests[0].body == {
        "model": "gpt-4.1-mini",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "temperature": 0.2,
        "top_p": 0.9,
        "max_tokens": 40,
    }


async def test_settings_that_were_not_made_are_not_sent(server: FakeOpenAI, openai: OpenAILike) -> None:
    await openai.complete(ask("gpt-4o"))
    assert server.requests[0].body.keys() == {"model", "messages"}
    assert server.requests[0].body["model"] == "gpt-4o"


@pytest.mark.parametrize(
    "model",
    ["o1-mini", "o3", "o4-mini", "gpt-5", "gpt-5-mini", "gpt-5.4-mini", "gpt-5.6-sol", "gpt-6-sol", "gpt-6.1-sol"],
)
async def test_reasoning_families_get_their_own_token_limit_and_no_sampling(
    server: FakeOpenAI, openai: OpenAILike, model: str
) -> None:
    reply = await openai.complete(ask(f"openai/{model}", temperature=0.2, top_p=0.5, max_tokens=40))
    assert server.requests[0].body.keys() == {"model", "messages", "max_completion_tokens"}
    assert reply.warnings == (
        f"{model} does not take temperature; it was left out",
        f"{model} does not take top_p; it was left out",
    )


@pytest.mark.parametrize(
    "model", ["gpt-3.5-turbo", "gpt-4o", "chatgpt-4o-latest", "gpt-oss-20b", "ft:gpt-4o:me::1", "qwen3"]
)
async def test_other_models_take_everything(server: FakeOpenAI, openai: OpenAILike, model: str) -> None:
    reply = await openai.complete(ask(f"openai/{model}", temperature=0.2, max_tokens=40))
    assert server.requests[0].body.keys() == {"model", "messages", "temperature", "max_tokens"}
    assert reply.warnings == ()


async def test_tools_are_offered_as_functions(server: FakeOpenAI, openai: OpenAILike) -> None:
    await openai.complete(ask(tools=(WEATHER,)))
    assert server.requests[0].body["tools"] == [
        {
            "type": "function",
            "function": {"name": "Weather_at", "description": "Weather of a city", "parameters": WEATHER.parameters},
        }
    ]


async def test_a_tool_call_and_its_answer_go_back_in_order(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(calls(("c1", "Weather_at", '{"city": "Oslo"}'), ("c2", "Weather_at", "")))
    reply = await openai.complete(ask(tools=(WEATHER,)))
    assert reply.tool_calls == (
        ToolCall("c1", "Weather_at", '{"city": "Oslo"}'),
        ToolCall("c2", "Weather_at", "{}"),
    )
    assert reply.stop == "tool"
    answers = (Message("tool", "4C", tool_call_id="c1"), Message("tool", "", tool_call_id="c2"))
    turn = (*HI, Message("assistant", reply.text, reply.tool_calls), *answers)
    assert (await openai.complete(ask(messages=turn, tools=(WEATHER,)))).text == "ok"
    assert server.requests[1].body["messages"][1]["content"] is None


async def test_a_conversation_that_was_broken_off_within_its_calls_goes_on(
    server: FakeOpenAI, openai: OpenAILike
) -> None:
    asked = (ToolCall("c1", "Weather_at", "{}"), ToolCall("c2", "Weather_at", "{}"))
    stray = Message("tool", "to nothing", tool_call_id="c0")
    turn = (*HI, stray, Message("assistant", "", asked), Message("tool", "4C", tool_call_id="c1"), *HI)
    await openai.complete(ask(messages=turn, tools=(WEATHER,)))
    roles = [(message["role"], message["content"]) for message in server.requests[0].body["messages"][1:]]
    assert roles == [("assistant", None), ("tool", "4C"), ("tool", "(this call was not finished)"), ("user", "hi")]


async def test_names_that_a_service_refuses_are_mapped_there_and_back(server: FakeOpenAI, openai: OpenAILike) -> None:
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in ("Über_a", "Äber_a", "T." + "x" * 80))
    await openai.complete(ask(tools=tools))
    wire = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    server.answer(calls(*((f"c{n}", name, "{}") for n, name in enumerate(wire)), ("c9", "unknown", "{}")))
    reply = await openai.complete(ask(tools=tools))
    assert [call.name for call in reply.tool_calls] == [*(tool.name for tool in tools), "unknown"]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (closed({"a": TEXT}), True),
        (closed({"a": {"anyOf": [TEXT, {"type": "null"}], "description": "May be left out"}}), True),
        (closed({"a": {"$ref": "#/$defs/A"}}) | {"$defs": {"A": closed({"const": TEXT})}}, True),
        (closed({"a": {}}), False),
        (closed({"a": {"type": "array", "items": {}}}), False),
        (closed({"a": TEXT | {"format": "made-up"}}), False),
        (closed({"a": TEXT}) | {"required": []}, False),
        ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, False),
        (closed({"a": {"type": "object"}}), False),
        (closed({"a": {"anyOf": [TEXT, {"type": "object"}]}}), False),
        ({"type": "array", "items": {}}, False),
    ],
)
async def test_a_schema_is_asked_for_strictly_where_it_keeps_the_rules(
    server: FakeOpenAI, openai: OpenAILike, schema: dict[str, Any], strict: bool
) -> None:
    await openai.complete(ask(json_schema=schema | {"title": "My Schema"}))
    described = server.requests[0].body["response_format"]["json_schema"]
    assert (described["name"], described["strict"]) == ("My_Schema", strict)


async def test_half_a_surrogate_pair_is_sent_as_a_replacement_character(server: FakeOpenAI, openai: OpenAILike) -> None:
    await openai.complete(ask(messages=(Message("user", "a\ud83d"),)))
    assert server.requests[0].body["messages"][0]["content"] == "a\ufffd"


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_a_reply_has_text_usage_and_the_model_that_answered(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(document({"content": "Hi."}, usage=usage(90, 21, cached=64, reasoning=20)))
    reply = await openai.complete(ask())
    assert (reply.text, reply.stop, reply.cost) == ("Hi.", "end", None)
    assert reply.usage == Usage(90, 21, cached=64, reasoning=20)
    assert reply.model_used == "gpt-4.1-mini-2025-04-14"


@pytest.mark.parametrize("reported", [None, "many", {"prompt_tokens": "9", "completion_tokens": -1}, {}])
async def test_usage_that_is_not_reported_is_unknown_and_not_zero(
    server: FakeOpenAI, openai: OpenAILike, reported: Any
) -> None:
    server.answer(document({"content": "x"}, usage=reported))
    assert (await openai.complete(ask())).usage == Usage()


async def test_a_service_that_tells_its_own_cost_is_believed(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(document({"content": "x"}, usage=usage(1, 1) | {"cost": 0.00012}))
    assert (await openai.complete(ask())).cost == Decimal("0.00012")


@pytest.mark.parametrize("finish", ["stop", "tool_calls", None, "eos_token"])
async def test_calls_are_told_by_their_presence_and_not_by_the_reason_to_stop(
    server: FakeOpenAI, openai: OpenAILike, finish: str | None
) -> None:
    wire = {"id": "c", "type": "function", "function": {"name": "Weather_at", "arguments": "{}"}}
    server.answer(document({"tool_calls": [wire]}, finish), document({"content": "x", "tool_calls": []}, finish))
    assert (await openai.complete(ask(tools=(WEATHER,)))).stop == "tool"
    assert (await openai.complete(ask(tools=(WEATHER,)))).stop == "end"


async def test_calls_with_no_id_or_the_same_one_get_distinct_ids(server: FakeOpenAI, openai: OpenAILike) -> None:
    function = {"name": "Weather_at", "arguments": {"city": "Oslo"}}
    wire = [{"id": id_, "type": "function", "function": function} for id_ in ("a", "a", "", None)]
    server.answer(document({"tool_calls": wire}))
    reply = await openai.complete(ask(tools=(WEATHER,)))
    assert len({call.id for call in reply.tool_calls}) == 4
    assert {call.arguments for call in reply.tool_calls} == {'{"city": "Oslo"}'}


async def test_a_refusal_is_an_error_in_the_models_words(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(document({"content": None, "refusal": "I cannot."}))
    with pytest.raises(ModelError, match=r"declined to answer: I cannot\.") as caught:
        await openai.complete(ask())
    assert (caught.value.code, caught.value.detail, caught.value.retryable) == ("refusal", "I cannot.", False)


@pytest.mark.parametrize(
    ("finish", "text", "code"),
    [
        ("length", "half a", "output_limit"),
        ("content_filter", "half", "content_filter"),
        ("content_filter", None, "content_filter"),
    ],
)
async def test_a_reply_that_is_not_whole_is_an_error(
    server: FakeOpenAI, openai: OpenAILike, finish: str, text: str | None, code: str
) -> None:
    server.answer(completion(text, finish))
    with pytest.raises(ModelError) as caught:
        await openai.complete(ask())
    assert caught.value.code == code


async def test_text_in_parts_is_joined_and_halves_of_characters_are_replaced(
    server: FakeOpenAI, openai: OpenAILike
) -> None:
    server.answer(document({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "\ud83d"}]}))
    assert (await openai.complete(ask())).text == "a\ufffd"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (completion(None), "empty message"),
        (completion(""), "empty message"),
        (document({}, choices=5), "without any choice"),
        (completion(None, "length"), "spent all its tokens before its answer began; raise max_tokens"),
        (completion("", "length"), "raise max_tokens"),
        (calls(("c", "Weather_at", '{"city": "/a'), finish="length"), "cut off inside a tool call"),
        (document({}, choices=[]), "without any choice"),
        (document({}, choices=None), "without any choice"),
        (document({}, choices=[{"message": None}]), "without any choice"),
        (
            Answer(body=b'{"error": {"message": "model\\n overloaded"}}'),
            "failed before its answer was complete: model overloaded",
        ),
        (Answer(body=b'{"error": "out of memory"}'), "failed before its answer was complete: out of memory"),
        (Answer(body=b""), "broken JSON (0 bytes)"),
        (Answer(body=b'{"choices": [{"mess'), "broken JSON"),
        (Answer(body=b"[" * 200_000), "broken JSON"),
        (Answer(body=b"[]"), "JSON that is no object"),
        (Answer(body=b"<html>", content_type="text/html"), "answered text/html instead of JSON; is OPENAI_BASE_URL"),
        (Answer(body=b"{}", content_type=None), "something without a type instead of JSON"),
        (Answer(body=b"{}", headers={"content-encoding": "gzip"}), "cannot be unpacked"),
    ],
)
async def test_an_answer_that_cannot_be_used_names_the_host_and_the_reason(
    server: FakeOpenAI, openai: OpenAILike, answer: Answer, said: str
) -> None:
    server.answer(answer)
    error = await failure(openai, ask(tools=(WEATHER,)))
    assert said in error.message
    assert "OpenAI (127.0.0.1:" in error.message


# --- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 524, 529])
async def test_statuses_that_may_pass_are_retryable(server: FakeOpenAI, openai: OpenAILike, status: int) -> None:
    server.answer(refusal(status, "try later"))
    error = await failure(openai)
    assert (error.status, error.retryable, error.detail) == (status, True, "try later")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422])
async def test_statuses_that_will_not_pass_are_not(server: FakeOpenAI, openai: OpenAILike, status: int) -> None:
    server.answer(refusal(status, "no"))
    error = await failure(openai)
    assert (error.status, error.retryable) == (status, False)


@pytest.mark.parametrize("code", ["insufficient_quota", "credit_balance_exhausted", "project_spend_limit_exceeded"])
async def test_no_waiting_helps_against_an_account_without_credit(
    server: FakeOpenAI, openai: OpenAILike, code: str
) -> None:
    server.answer(refusal(429, "You exceeded your quota.", code=code))
    error = await failure(openai)
    assert not error.retryable
    assert "no credit left" in error.message


@pytest.mark.parametrize(("status", "verdict", "retryable"), [(400, "true", True), (503, "false", False)])
async def test_the_services_own_word_on_retrying_wins(
    server: FakeOpenAI, openai: OpenAILike, status: int, verdict: str, retryable: bool
) -> None:
    server.answer(refusal(status, headers={"x-should-retry": verdict}))
    assert (await failure(openai)).retryable is retryable


async def test_how_long_to_wait_is_handed_on(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(refusal(429, headers={"retry-after": "0.5"}))
    assert (await failure(openai)).retry_after == 0.5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250.5", "retry-after": "9"}, 0.2505),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(1090, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(900, usegmt=True)}, 0.0),
        ({"retry-after": "9999"}, 9999.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after_is_read(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=1000.0) == seconds


async def test_a_refused_key_is_named_by_its_variable_and_never_shown() -> None:
    wrong = "sk-wrong-0123456789abcdef"
    async with FakeOpenAI(refusals_expected=True) as server:
        provider = open_openai({"OPENAI_API_KEY": wrong, "OPENAI_BASE_URL": server.url})
        error = await failure(provider)
        await provider.close()
    assert error.status == 401
    assert "check OPENAI_API_KEY" in error.message
    assert wrong not in f"{error!r} {error.detail} {provider!r} {vars(provider)}"


async def test_an_error_page_of_a_proxy_is_told_by_its_status(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(Answer(502, b"<html>Bad gateway", content_type="text/html"))
    error = await failure(openai)
    assert (error.status, error.retryable, error.detail) == (502, True, None)


async def test_a_long_or_many_lined_message_is_made_one_short_line(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(refusal(400, "line\n" * 10_000))
    message = (await failure(openai)).message
    assert len(message) < 700
    assert "\n" not in message


async def test_a_redirect_is_not_followed(server: FakeOpenAI, openai: OpenAILike) -> None:
    async with FakeOpenAI() as elsewhere:
        server.answer(Answer(307, headers={"location": f"{elsewhere.url}/chat/completions"}))
        error = await failure(openai)
        assert "set OPENAI_BASE_URL to the final address" in error.message
        assert elsewhere.requests == []


async def test_an_answer_cut_off_in_the_middle_may_be_tried_again(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(Answer(body=b"x" * 100, cut=True))
    error = await failure(openai)
    assert error.retryable
    assert "ended the connection" in error.message
    assert (await openai.complete(ask())).text == "ok"


async def test_a_port_where_nobody_listens_is_told_with_what_to_look_at() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    provider = open_openai({"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"})
    error = await failure(provider)
    await provider.close()
    assert error.retryable
    assert f"(127.0.0.1:{port}) cannot be reached" in error.message
    assert "is OPENAI_BASE_URL right?" in error.message


def endpoint(server: FakeOpenAI, **limits: Any) -> JsonService:
    return JsonService(Endpoint("Service", server.url, "KEY", "URL", {"authorization": f"Bearer {KEY}"}, **limits))


BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def test_a_server_that_never_answers_is_given_up(server: FakeOpenAI) -> None:
    server.answer(Answer(hang=True))
    service = endpoint(server, total_seconds=0.05)
    with pytest.raises(ModelError, match=r"no complete answer within 0\.05 s") as caught:
        await service.post("/chat/completions", BODY)
    await service.close()
    assert caught.value.retryable


async def test_an_answer_without_end_is_dropped(server: FakeOpenAI) -> None:
    server.answer(Answer(body=b" " * 3_000_000))
    service = endpoint(server, max_bytes=2**20)
    with pytest.raises(ModelError, match="more than 1 MiB"):
        await service.post("/chat/completions", BODY)
    await service.close()


async def test_cancelling_a_call_ends_its_request(server: FakeOpenAI, openai: OpenAILike) -> None:
    server.answer(Answer(hang=True))
    call = asyncio.create_task(openai.complete(ask()))
    await server.hanging.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(5):
        await server.left.wait()


async def test_requests_share_a_connection(server: FakeOpenAI, openai: OpenAILike) -> None:
    for _ in range(3):
        await openai.complete(ask())
    assert server.connections == 1


async def test_requests_side_by_side_get_their_own_answers(server: FakeOpenAI, openai: OpenAILike) -> None:
    replies = await asyncio.gather(*(openai.complete(ask(messages=(Message("user", str(n)),))) for n in range(10)))
    assert [reply.text for reply in replies] == ["ok"] * 10
    assert sorted(r.body["messages"][0]["content"] for r in server.requests) == sorted(map(str, range(10)))


def test_one_provider_serves_one_event_loop_after_another() -> None:
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1"})

    async def use() -> None:
        assert "cannot be reached" in (await failure(provider)).message
        await provider.close()

    asyncio.run(use())
    asyncio.run(use())


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": " \n", "OPENAI_BASE_URL": ""}])
async def test_a_missing_key_is_named_with_two_ways_to_run_without_one(env: dict[str, str]) -> None:
    provider = open_openai(env)
    problem = provider.missing()
    assert problem is not None
    assert all(text in problem for text in ("OPENAI_API_KEY", "--replies", "--model local/smollm2"))
    assert (await failure(provider)).message == problem


@pytest.mark.parametrize("ending", ["", "/v1", "/v1/", "/v1//", "/", "/v1/chat/completions", " \n"])
async def test_the_address_may_end_as_people_write_it(server: FakeOpenAI, ending: str) -> None:
    env = {"OPENAI_API_KEY": f" {KEY}\n", "OPENAI_BASE_URL": server.url.removesuffix("/v1") + ending}
    provider = open_openai(env)
    assert provider.missing() is None
    assert (await provider.complete(ask())).text == "ok"
    await provider.close()


async def test_a_server_on_this_machine_needs_no_key() -> None:
    async with FakeOpenAI(key=None) as server:
        provider = open_openai({"OPENAI_BASE_URL": server.url})
        assert provider.missing() is None
        await provider.complete(ask())
        await provider.close()
        assert "authorization" not in server.requests[0].headers


async def test_a_proxy_is_not_asked_for_this_machine(openai: OpenAILike, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert (await openai.complete(ask())).text == "ok"


async def test_organisation_and_project_travel_in_their_headers(server: FakeOpenAI) -> None:
    account = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}
    provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url} | account)
    await provider.complete(ask())
    await provider.close()
    headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("http://models.example/v1", KEY, "plain http to another machine"),
        ("http://models.example/v1", "", "OPENAI_API_KEY is not set"),
        ("https://models.example/v1", "", "OPENAI_API_KEY is not set"),
        ("http://localhost.models.example/v1", KEY, "plain http to another machine"),
        ("ftp://models.example", KEY, "no plain http or https address"),
        ("models.example/v1", KEY, "no plain http or https address"),
        ("https://user:pass@models.example/v1", KEY, "no plain http or https address"),
        ("https://models.example/v1?key=1", KEY, "no plain http or https address"),
        ("https://", KEY, "no plain http or https address"),
        ("http://[::1", KEY, "no address"),
        ("http://localhost:99999", KEY, "no address"),
        ("https://two words.example", KEY, "OPENAI_BASE_URL holds white space"),
        ("https://models.example/v1\x01", KEY, "or characters that no address has"),
        ("", "sk two words", "OPENAI_API_KEY holds white space"),
        ("", "sk-ü", "OPENAI_API_KEY holds white space or characters"),
    ],
)
def test_what_a_key_must_not_be_sent_to_is_found_before_anything_is_sent(url: str, key: str, said: str) -> None:
    problem = open_openai({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": key}).missing()
    assert problem is not None
    assert said in problem
    assert KEY not in problem


@pytest.mark.parametrize("url", ["http://localhost:8080", "http://127.0.0.1:1/v1", "http://[::1]:8080/v1", ""])
def test_a_key_may_go_to_this_machine_and_to_https(url: str) -> None:
    assert open_openai({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY}).missing() is None


async def test_calls_side_by_side_may_learn_the_same_thing(server: FakeOpenAI, openai: OpenAILike) -> None:
    both_are_there = asyncio.Barrier(2)
    said = refusal(400, "Unsupported value: 'temperature' does not support 0.5 with this model.")
    server.answer(*[replace(said, gate=both_are_there)] * 2)
    replies = await asyncio.gather(*(openai.complete(ask("openai/next", temperature=0.5)) for _ in range(2)))
    assert [reply.text for reply in replies] == ["ok", "ok"]
    assert ["temperature" in request.body for request in server.requests] == [True, True, False, False]


async def test_a_model_that_neither_api_takes_is_an_error() -> None:
    async with FakeOpenAI(responses=False, refusals_expected=True) as server:
        provider = open_openai({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url})
        server.answer(*[refusal(404, "This model is only supported in v1/responses.")] * 3)
        for _ in range(2):
            assert "only supported in v1/responses" in (await failure(provider, ask("openai/next"))).message
        await provider.close()
    paths = [request.path.removeprefix("/v1") for request in server.requests]
    assert paths == ["/chat/completions", "/responses", "/chat/completions", "/chat/completions"]


@pytest.mark.parametrize(
    ("model", "tools", "left_out"),
    [("gpt-4.1", (), []), ("gpt-6-sol", (), ["temperature"]), ("gpt-6-sol", (WEATHER,), ["temperature"])],
)
def test_what_will_be_left_out_is_told_beforehand_without_a_key(
    model: str, tools: tuple[ToolSpec, ...], left_out: list[str]
) -> None:
    told = open_openai({}).forecast(ask(f"openai/{model}", tools=tools, temperature=0.5, max_tokens=64))
    assert list(told) == [f"{model} does not take {name}; it was left out" for name in left_out]

"""Ollama's own chat API against a server that refuses what Ollama refuses, whole and streamed."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import ollama as sdk
import pytest
import pytest_asyncio

import halo_lang
from halo_runtime import Runtime
from halo_runtime.errors import ModelError
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, ToolSpec, Usage
from halo_runtime.models.http import Endpoint, JsonService
from halo_runtime.models.ollama import Ollama, server_address
from tests.fakes.ollama_server import NDJSON, FakeOllama, Turn, calls, refusal, stream, text
from tests.fakes.wire import Answer, reply

KEY = "ollama-0123456789abcdef"
HI = (Message("user", "hi"),)
WEATHER = ToolSpec("Weather_at", "Weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}})
BODY = {"model": "llama3:8b", "messages": [{"role": "user", "content": "hi"}], "options": {"num_ctx": 4096}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def ask(model: str = "ollama/llama3:8b", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOllama]:
    async with FakeOllama() as fake:
        yield fake


@pytest_asyncio.fixture
async def lenient() -> AsyncIterator[FakeOllama]:
    async with FakeOllama(refusals_expected=True) as fake:
        yield fake


async def complete(server: FakeOllama, request: ModelRequest, deltas: list[str] | None = None) -> ModelReply:
    """The reply to one request, streamed where `deltas` are wanted."""
    provider = Ollama({"OLLAMA_HOST": server.host})
    try:
        return await provider.complete(request, None if deltas is None else deltas.append)
    finally:
        await provider.close()


async def both(server: FakeOllama, turn: Turn, request: ModelRequest | None = None) -> ModelReply:
    """The reply to a turn, which must be the same whole and streamed."""
    server.answer(turn.whole, turn.streamed)
    request = request or ask(tools=(WEATHER,))
    deltas: list[str] = []
    whole, streamed = await complete(server, request), await complete(server, request, deltas)
    assert whole == streamed
    assert "".join(deltas) == whole.text
    return whole


async def failure(server: FakeOllama, request: ModelRequest | None = None, *, streaming: bool = False) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await complete(server, request or ask(), [] if streaming else None)
    return caught.value


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_request_says_all_that_ollama_would_choose_by_itself(server: FakeOllama) -> None:
    await complete(server, ask(messages=(Message("system", "Be brief."), *HI)))
    assert server.requests[0].body == {
        "model": "llama3:8b",
        "stream": False,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "options": {"num_ctx": 4096},
    }


async def test_settings_travel_as_options_and_a_schema_as_the_format(server: FakeOllama) -> None:
    await complete(server, ask(temperature=0.2, top_p=0.9, max_tokens=40, json_schema=SCHEMA), [])
    body = server.requests[0].body
    assert body["options"] == {"temperature": 0.2, "top_p": 0.9, "num_predict": 40, "num_ctx": 4096}
    assert (body["format"], body["stream"]) == (SCHEMA, True)


@pytest.mark.parametrize(
    ("prompt", "limit", "context"),
    [
        ("", None, 4096),
        ("x" * 9_000, None, 8192),
        ("x" * 9_000, 6_000, 16384),
        ("語" * 9_000, None, 16384),
        ("x" * 9_000_000, None, 1048576),
    ],
)
async def test_the_context_has_room_for_prompt_and_reply(
    server: FakeOllama, prompt: str, limit: int | None, context: int
) -> None:
    await complete(server, ask(messages=(Message("user", prompt),), max_tokens=limit))
    assert server.requests[0].body["options"]["num_ctx"] == context


async def test_tools_are_offered_as_functions(server: FakeOllama) -> None:
    await complete(server, ask(tools=(WEATHER,)))
    function = {"name": "Weather_at", "description": "Weather of a city", "parameters": WEATHER.parameters}
    assert server.requests[0].body["tools"] == [{"type": "function", "function": function}]


async def test_answers_of_tools_go_back_by_name_and_in_the_order_of_the_calls(server: FakeOllama) -> None:
    asked = ask(tools=(WEATHER, ToolSpec("T.now", "", {"type": "object"})))
    server.answer(calls(("T_now", {}), ("Weather_at", {"city": "Oslo"})).whole)
    turn = await complete(server, asked)
    assert [call.name for call in turn.tool_calls] == ["T.now", "Weather_at"]
    answers = [Message("tool", said, tool_call_id=call.id) for said, call in zip("12", turn.tool_calls, strict=True)]
    history = (*HI, Message("assistant", turn.text, turn.tool_calls, opaque=turn.opaque), *answers)
    await complete(server, ask(messages=history, tools=asked.tools))
    assert server.requests[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"function": {"name": "T_now", "arguments": {}}},
                {"function": {"name": "Weather_at", "arguments": {"city": "Oslo"}}},
            ],
        },
        {"role": "tool", "content": "1", "tool_name": "T_now"},
        {"role": "tool", "content": "2", "tool_name": "Weather_at"},
    ]


@pytest.mark.parametrize("raw", ['{"city": "Os', "[1]", "[" * 100_000])
async def test_arguments_that_another_model_left_broken_are_sent_as_they_are_in_an_object(
    server: FakeOllama, raw: str
) -> None:
    history = (*HI, Message("assistant", "", (ToolCall("c", "f", raw),)), Message("tool", "Error", tool_call_id="c"))
    await complete(server, ask(messages=history))
    sent = server.requests[0].body["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert sent == {"invalid": raw}


async def test_what_a_model_thought_goes_back_with_its_turn(server: FakeOllama) -> None:
    turn = await both(server, Turn(({"thinking": "Hm, "}, {"thinking": "yes."}, {"content": "Yes."})))
    assert (turn.text, turn.opaque) == ("Yes.", {"ollama": {"thinking": "Hm, yes."}})
    other = Message("assistant", "x", opaque={"messages": [1]})
    await complete(server, ask(messages=(*HI, Message("assistant", turn.text, opaque=turn.opaque), other)))
    _, own, foreign = server.requests[-1].body["messages"]
    assert own == {"role": "assistant", "content": "Yes.", "thinking": "Hm, yes."}
    assert "thinking" not in foreign


async def test_half_a_surrogate_pair_is_sent_as_a_replacement_character(server: FakeOllama) -> None:
    await complete(server, ask(messages=(Message("user", "a\ud83d"),)))
    assert server.requests[0].body["messages"][0]["content"] == "a\ufffd"


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_a_reply_has_text_usage_and_the_model_that_answered(server: FakeOllama) -> None:
    answer = await both(
        server, text("H", "é", "\u2028", "😀", '"\n', counts={"prompt_eval_count": 90, "eval_count": 21})
    )
    assert (answer.text, answer.stop, answer.model_used) == ('Hé\u2028😀"\n', "end", "llama3:8b")
    assert (answer.usage, answer.warnings) == (Usage(90, 21), ())


async def test_usage_that_is_not_reported_is_unknown_and_not_zero(server: FakeOllama) -> None:
    assert (await both(server, text("x", counts={"eval_count": 3}))).usage == Usage(None, 3)
    assert (await both(server, text("x", counts={}))).usage == Usage()


async def test_parallel_calls_that_all_carry_the_index_0_are_all_taken(server: FakeOllama) -> None:
    turn = await both(server, calls(("Weather_at", {"city": "Oslo"}), ("Weather_at", {"city": "Rome"}), content="Hm."))
    assert [call.arguments for call in turn.tool_calls] == ['{"city": "Oslo"}', '{"city": "Rome"}']
    assert len({call.id for call in turn.tool_calls}) == 2
    assert (turn.text, turn.stop) == ("Hm.", "tool")


async def test_a_reply_cut_at_its_limit_is_an_error(server: FakeOllama) -> None:
    with pytest.raises(ModelError, match="raise max_tokens") as caught:
        await both(server, text("half a", reason="length"))
    assert caught.value.code == "output_limit"


async def test_a_prompt_that_fills_the_context_is_warned_of(server: FakeOllama) -> None:
    answer = await both(server, text("x", counts={"prompt_eval_count": 4096, "eval_count": 1}))
    assert "may have dropped its beginning" in answer.warnings[0]


async def test_a_last_line_without_its_end_and_lines_after_it_change_nothing(server: FakeOllama) -> None:
    last = text().whole.body.decode()
    server.answer(stream(last + "\r\n\r\n" + "no JSON at all"))
    with pytest.raises(ModelError, match="empty message"):
        await complete(server, ask(), [])
    server.answer(Answer(pieces=(text("x").whole.body,), content_type=NDJSON))
    assert (await complete(server, ask(), [])).text == "x"


async def test_a_server_that_does_not_stream_is_read_all_the_same(server: FakeOllama) -> None:
    deltas: list[str] = []
    server.answer(text("Hello.").whole)
    assert (await complete(server, ask(), deltas)).text == "Hello."
    assert deltas == ["Hello."]


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (text(), "empty message"),
        (text(reason="load"), "empty message"),
        (text(reason="length"), "spent all its tokens before its answer began; raise max_tokens"),
        (Turn(({"thinking": "Hm"},), reason="length"), "raise max_tokens"),
        (text("half", ended=False), "ended its answer before it was complete"),
    ],
)
async def test_a_turn_that_cannot_be_used_is_an_error_in_both_ways(server: FakeOllama, turn: Turn, said: str) -> None:
    server.answer(turn.whole, turn.streamed)
    for streaming in (False, True):
        assert said in (await failure(server, streaming=streaming)).message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (stream({"error": "out of\nmemory"}), "failed: out of memory"),
        (stream(text("a", "b").whole.body.decode()[:50]), "no JSON object"),
        (stream("[1]"), "no JSON object"),
        (stream("[" * 100_000, size=1000), "no JSON object"),
        (Answer(pieces=text("a").streamed.pieces[:9], content_type=NDJSON, cut=True), "connection"),
        (Answer(body=b"<html>", content_type="text/html"), "text/html instead of JSON; is OLLAMA_HOST"),
        (Answer(body=b""), "broken JSON (0 bytes)"),
        (reply({"error": "oh"}), "failed: oh"),
        (reply({}), "before it was complete"),
    ],
)
async def test_a_stream_that_cannot_be_used_names_the_host_and_the_reason(
    server: FakeOllama, answer: Answer, said: str
) -> None:
    server.answer(answer)
    error = await failure(server, streaming=True)
    assert said in error.message
    assert "Ollama (127.0.0.1:" in error.message


async def test_a_stream_that_is_over_is_not_waited_for_although_its_connection_stays_open(server: FakeOllama) -> None:
    server.answer(Answer(pieces=text("Hello.").streamed.pieces, content_type=NDJSON, hang=True))
    async with asyncio.timeout(5):
        assert (await complete(server, ask(), [])).text == "Hello."


async def test_a_stream_without_end_is_dropped(server: FakeOllama) -> None:
    service = JsonService(Endpoint("Service", server.address, "KEY", "URL", max_bytes=2**20))
    server.answer(stream(*["x" * 1000] * 2000, size=2**16))
    with pytest.raises(ModelError, match="more than 1 MiB"):
        await service.stream("/api/chat", BODY | {"stream": True}, lambda _: False, accepts=NDJSON)
    await service.close()


# --- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(("status", "retryable"), [(400, False), (404, False), (429, True), (500, True), (503, True)])
async def test_a_refusal_has_its_status_and_ollamas_own_words(
    server: FakeOllama, status: int, retryable: bool, streaming: bool
) -> None:
    server.answer(refusal(status, "server busy, please try again", headers={"retry-after": "0.5"}))
    error = await failure(server, streaming=streaming)
    assert (error.status, error.retryable, error.retry_after) == (status, retryable, 0.5)
    assert error.detail == "server busy, please try again"


async def test_a_model_that_is_not_there_is_told_with_how_to_get_it(lenient: FakeOllama) -> None:
    error = await failure(lenient, ask("ollama/qwen3"))
    assert (error.status, error.hint) == (404, None)
    assert "model 'qwen3' not found; `ollama list` shows" in error.message
    assert "`ollama pull NAME`" in error.message


async def test_a_local_model_that_is_not_embedded_says_why_ollama_was_asked(lenient: FakeOllama) -> None:
    error = await failure(lenient, ask("local/qwen3"))
    assert error.hint == "no model qwen3 is embedded (local/smollm2 is), so Ollama was asked for it"


async def test_a_model_without_tools_is_told_in_ollamas_words(lenient: FakeOllama) -> None:
    error = await failure(lenient, ask("ollama/gemma", tools=(WEATHER,)))
    assert (error.status, error.retryable) == (400, False)
    assert '"gemma" does not support tools' in error.message


async def test_a_port_where_nobody_listens_is_told_with_how_to_start_ollama() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    provider = Ollama({"OLLAMA_HOST": f":{port}"})
    with pytest.raises(ModelError, match=rf"\(127\.0\.0\.1:{port}\) cannot be reached.*`ollama serve`.*OLLAMA_HOST"):
        await provider.complete(ask())
    await provider.close()


@pytest.mark.parametrize(
    "order", [Answer(hang=True), Answer(pieces=text("a", ended=False).streamed.pieces, hang=True,
                                        content_type=NDJSON)]
)  # fmt: skip
async def test_cancelling_closes_the_connection_before_and_in_the_answer(server: FakeOllama, order: Answer) -> None:
    server.answer(order)
    call = asyncio.create_task(complete(server, ask(), []))
    await server.hanging.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(5):
        await server.left.wait()


async def test_calls_side_by_side_do_not_wait_for_each_other_however_many(server: FakeOllama) -> None:
    many = 120
    everybody_is_there = asyncio.Barrier(many)
    server.answer(*[Answer(body=text("x").whole.body, gate=everybody_is_there)] * many)
    provider = Ollama({"OLLAMA_HOST": server.host})
    async with asyncio.timeout(30):
        replies = await asyncio.gather(*(provider.complete(ask()) for _ in range(many)))
    await provider.close()
    assert {reply.text for reply in replies} == {"x"}


async def test_streams_share_a_connection(server: FakeOllama) -> None:
    provider = Ollama({"OLLAMA_HOST": server.host})
    for _ in range(3):
        await provider.complete(ask(), lambda _: None)
    await provider.close()
    assert server.connections == 1


# --- addresses and keys -----------------------------------------------------------------------------------------------


HOSTS = [
    ("", "http://127.0.0.1:11434"),
    ("1.2.3.4", "http://1.2.3.4:11434"),
    (":56789", "http://127.0.0.1:56789"),
    ("1.2.3.4:56789", "http://1.2.3.4:56789"),
    ("http://1.2.3.4", "http://1.2.3.4:80"),
    ("https://1.2.3.4", "https://1.2.3.4:443"),
    ("https://example.com:56789/path/", "https://example.com:56789/path"),
    ("example.com", "http://example.com:11434"),
    ("example.com:56789/path", "http://example.com:56789/path"),
    ("[2001:db8::1]", "http://[2001:db8::1]:11434"),
    ("[2001:db8::1]:56789/", "http://[2001:db8::1]:56789"),
    ("https://[::1]", "https://[::1]:443"),
]


@pytest.mark.parametrize(("host", "url"), HOSTS)
def test_an_address_means_what_it_means_to_ollamas_own_client(host: str, url: str) -> None:
    assert server_address(host) == url
    with sdk.Client(host=host, trust_env=False) as client:
        assert str(client._client.base_url).rstrip("/") == str(httpx.URL(url))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (" \n", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:5000", "http://127.0.0.1:5000"),
        ("[::]:5000", "http://[::1]:5000"),
        ("::1", "http://[::1]:11434"),
        ('"localhost"', "http://localhost:11434"),
        ("HTTPS://Example.com", "https://example.com:443"),
    ],
)
def test_an_address_that_a_server_listens_on_or_that_is_written_oddly_is_understood(host: str, url: str) -> None:
    assert server_address(host) == url


@pytest.mark.parametrize("path", ["", "/", "/api", "/api/chat", "/api/", " "])
async def test_the_address_may_hold_the_path_of_the_api(server: FakeOllama, path: str) -> None:
    provider = Ollama({"OLLAMA_HOST": f"http://{server.host}{path}"})
    assert (await provider.complete(ask())).text == "ok"
    await provider.close()


@pytest.mark.parametrize(
    "host", ["ftp://h", "h:0", "h:99999", "h:port", "http://[::1", "user:pass@h", "http://h?x=1", "h#x", "two words"]
)
def test_what_is_no_address_is_found_before_anything_is_sent(host: str) -> None:
    assert "write it like 127.0.0.1:11434" in (Ollama({"OLLAMA_HOST": host}).missing() or "")


async def test_a_key_travels_as_a_bearer_token_and_is_never_shown() -> None:
    async with FakeOllama(key=KEY, refusals_expected=True) as server:
        good = Ollama({"OLLAMA_HOST": server.host, "OLLAMA_API_KEY": f" {KEY}\n"})
        assert (await good.complete(ask())).text == "ok"
        await good.close()
        wrong = Ollama({"OLLAMA_HOST": server.host, "OLLAMA_API_KEY": KEY + "x"})
        with pytest.raises(ModelError, match="check OLLAMA_API_KEY") as caught:
            await wrong.complete(ask())
        await wrong.close()
    assert KEY not in f"{caught.value!r} {caught.value.detail} {vars(wrong)}"


@pytest.mark.parametrize(
    ("host", "key", "said"),
    [
        ("http://models.example", KEY, "plain http to another machine"),
        ("models.example", KEY, "plain http to another machine"),
        ("https://ollama.com", "two words", "OLLAMA_API_KEY holds white space"),
    ],
)
def test_where_a_key_must_not_go_is_found_before_anything_is_sent(host: str, key: str, said: str) -> None:
    assert said in (Ollama({"OLLAMA_HOST": host, "OLLAMA_API_KEY": key}).missing() or "")


@pytest.mark.parametrize(("host", "key"), [("https://ollama.com", KEY), ("models.example", ""), ("", KEY), ("", " ")])
def test_a_key_may_go_by_https_and_without_one_anything_goes(host: str, key: str) -> None:
    assert Ollama({"OLLAMA_HOST": host, "OLLAMA_API_KEY": key}).missing() is None


# --- the fake beside Ollama's own client ------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def official(server: FakeOllama) -> AsyncIterator[sdk.AsyncClient]:
    async with sdk.AsyncClient(host=server.host, trust_env=False) as client:
        yield client


async def test_ollamas_own_client_reads_the_same_from_the_fake(server: FakeOllama, official: sdk.AsyncClient) -> None:
    turn = calls(("Weather_at", {"city": "Oslo"}), ("Weather_at", {"city": "Rome"}), content="Hm.")
    ours = await both(server, turn)
    server.answer(turn.whole, turn.streamed)
    question: Any = {
        "model": "llama3:8b",
        "messages": [{"role": "user", "content": "hi"}],
        "options": {"num_ctx": 4096},
    }
    whole = await official.chat(**question)
    parts = [part async for part in await official.chat(**question, stream=True)]
    arguments = [json.loads(call.arguments) for call in ours.tool_calls]
    assert [call.function.arguments for call in whole.message.tool_calls or ()] == arguments
    assert [call.function.arguments for part in parts for call in part.message.tool_calls or ()] == arguments
    assert "".join(part.message.content or "" for part in parts) == whole.message.content == ours.text
    assert (whole.prompt_eval_count, parts[-1].eval_count) == (ours.usage.input, ours.usage.output)


async def test_ollamas_own_client_sees_the_same_failures(lenient: FakeOllama) -> None:
    client = sdk.AsyncClient(host=lenient.host, trust_env=False)
    question: Any = BODY | {"model": "qwen3"}
    with pytest.raises(sdk.ResponseError, match="not found") as caught:
        await client.chat(**question)
    assert caught.value.status_code == 404
    lenient.answer(stream({"error": "out of memory"}))
    with pytest.raises(sdk.ResponseError, match="out of memory"):
        async for _ in await client.chat(**BODY, stream=True):
            pass
    await client.close()


# --- programs ---------------------------------------------------------------------------------------------------------

PROGRAM = """\
tool Sh : Bash(allow: ["echo"])
schema Answer { city: String }
agent Bot [ollama/llama3:8b]
  equips Sh
pipeline Main(text: String) -> Answer:
  text |> Bot.find(context, tools: [Sh])
"""


async def test_a_program_runs_with_a_loop_of_tools_and_a_result_by_schema(server: FakeOllama) -> None:
    asked = calls(("Sh_run", {"command": "echo Oslo"}), ("Sh_run", {"command": "echo Rome"}))
    thought = Turn(({"thinking": "Hm."}, *asked.messages))
    server.answer(thought.streamed, text('{"city": ', '"Oslo"}').streamed)
    runtime = Runtime(env={"OLLAMA_HOST": server.host, "PATH": "/usr/bin:/bin"})
    result = await runtime.run(halo_lang.parse(PROGRAM), "Main", {"text": "Where?"})
    await runtime.close()
    assert result.raise_for_status().output == {"city": "Oslo"}
    turn, first, second = server.requests[1].body["messages"][-3:]
    assert (turn["thinking"], len(turn["tool_calls"])) == ("Hm.", 2)
    assert ("Oslo" in first["content"], "Rome" in second["content"]) == (True, True)
    assert server.requests[1].body["format"]["properties"].keys() == {"city"}

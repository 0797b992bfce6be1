"""Predictions on Replicate: created, watched, streamed and cancelled, against a server that refuses what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import replicate as sdk

import halo_lang
from halo_runtime import Runtime
from halo_runtime.errors import ModelError
from halo_runtime.models import replicate as module
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, ToolSpec, Usage
from halo_runtime.models.replicate import Replicate
from halo_runtime.models.retry import retry_after
from tests.fakes.replicate_server import KEY, VERSION, FakeReplicate, failed, refusal, sse, succeeded
from tests.fakes.wire import Answer, reply

HI = (Message("user", "hi"),)
OUTPUT = ("Hé", "\u2028", "l\nlo ", "😀")
STREAM = (*(("output", piece) for piece in OUTPUT), ("logs", "working"), ("done", "{}"))


def ask(model: str = "replicate/meta/llama", **settings: Any) -> ModelRequest:
    return ModelRequest(model, "Bot", "answer", settings.pop("messages", HI), **settings)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeReplicate]:
    async with FakeReplicate() as fake:
        yield fake


def provider(server: FakeReplicate, **env: str) -> Replicate:
    address = {"REPLICATE_BASE_URL": server.address, "REPLICATE_API_TOKEN": KEY}
    return Replicate(address | {"REPLICATE_POLL_INTERVAL": "0"} | env)


async def complete(server: FakeReplicate, request: ModelRequest | None = None, deltas: list[str] | None = None,
                   **env: str) -> ModelReply:  # fmt: skip
    """The reply to one request, streamed where `deltas` are wanted."""
    service = provider(server, **env)
    try:
        return await service.complete(request or ask(), None if deltas is None else deltas.append)
    finally:
        await service.close()


async def failure(server: FakeReplicate, request: ModelRequest | None = None, **env: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await complete(server, request, **env)
    assert KEY not in f"{caught.value!r} {caught.value.detail}"
    return caught.value


# --- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_request_holds_the_prompt_and_the_settings_that_were_made(server: FakeReplicate) -> None:
    messages = (Message("system", "Be brief."), *HI)
    await complete(server, ask(messages=messages, temperature=0.2, top_p=0.9, max_tokens=40))
    created = server.requests[0]
    assert created.path == "/v1/models/meta/llama/predictions"
    assert created.body == {
        "input": {"prompt": "hi", "system_prompt": "Be brief.", "temperature": 0.2, "top_p": 0.9, "max_tokens": 40},
        "stream": False,
    }
    assert created.headers["cancel-after"] == "10m"


async def test_settings_that_were_not_made_are_not_sent(server: FakeReplicate) -> None:
    await complete(server)
    assert server.requests[0].body["input"] == {"prompt": "hi"}


async def test_several_turns_become_a_conversation_to_go_on_with(server: FakeReplicate) -> None:
    await complete(server, ask(messages=(*HI, Message("assistant", "Hello."), Message("user", "a\ud83d"))))
    assert server.requests[0].body["input"]["prompt"] == "User: hi\n\nAssistant: Hello.\n\nUser: a\ufffd\n\nAssistant:"


async def test_a_version_is_asked_for_where_predictions_of_versions_are(server: FakeReplicate) -> None:
    await complete(server, ask(f"replicate/someone/tuned:{VERSION}"))
    assert (server.requests[0].path, server.requests[0].body["version"]) == ("/v1/predictions", VERSION)


async def test_a_model_that_only_versions_of_can_be_asked_is_looked_up_once(server: FakeReplicate) -> None:
    service = provider(server)
    for _ in range(2):
        assert (await service.complete(ask("replicate/someone/tuned"))).model_used == "someone/tuned"
    await service.close()
    assert [request.path for request in server.sent("create")] == [
        "/v1/models/someone/tuned/predictions",
        "/v1/predictions",
        "/v1/predictions",
    ]
    assert len(server.sent("model")) == 1


async def test_a_schema_is_asked_for_in_the_prompt_with_a_warning(server: FakeReplicate) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    answer = await complete(server, ask(messages=(Message("system", "Be brief."), *HI), json_schema=schema))
    system = server.requests[0].body["input"]["system_prompt"]
    assert system.startswith("Be brief.\n\nAnswer with JSON only")
    assert system.endswith(json.dumps(schema))
    assert answer.warnings == ("Replicate takes no schema; the system prompt asks for its shape",)


async def test_tools_are_refused_before_anything_is_sent(server: FakeReplicate) -> None:
    error = await failure(server, ask(tools=(ToolSpec("f", "", {"type": "object"}),)))
    assert "replicate/meta/llama cannot call tools" in error.message
    assert server.requests == []


async def test_turns_with_tools_of_another_model_are_told_as_text(server: FakeReplicate) -> None:
    called = Message("assistant", "", (ToolCall("c", "f", "{}"),))
    await complete(server, ask(messages=(*HI, called, Message("tool", "4C", tool_call_id="c"))))
    assert server.requests[0].body["input"]["prompt"].endswith("Tool: 4C\n\nAssistant:")


@pytest.mark.parametrize("name", ["llama", "meta/", "/llama", "a/b/c", "meta/llama:", "meta/../x", "meta/llama?x=1"])
async def test_a_name_that_is_none_is_refused_before_anything_is_sent(server: FakeReplicate, name: str) -> None:
    assert "write replicate/OWNER/NAME" in (await failure(server, ask(f"replicate/{name}"))).message
    assert server.requests == []


# --- what comes back --------------------------------------------------------------------------------------------------


async def test_a_reply_is_the_same_whole_and_streamed(server: FakeReplicate) -> None:
    states = ("starting", {"status": "processing", "output": []}, succeeded(*OUTPUT))
    server.predict(*states)
    server.predict(*states, stream=sse(*STREAM))
    deltas: list[str] = []
    whole, streamed = await complete(server), await complete(server, deltas=deltas)
    assert whole == streamed
    assert (whole.text, whole.usage, whole.model_used) == ("".join(OUTPUT), Usage(9, 3), "meta/llama")
    assert "".join(deltas) == whole.text


async def test_without_a_stream_what_looks_find_is_shown_as_it_grows(server: FakeReplicate) -> None:
    growing = ({"status": "processing", "output": list(OUTPUT[:n])} for n in range(4))
    server.predict("starting", *growing, succeeded(*OUTPUT))
    deltas: list[str] = []
    await complete(server, deltas=deltas)
    assert deltas == list(OUTPUT)


async def test_a_look_at_an_output_in_the_middle_of_a_character_shows_it_when_it_is_whole(
    server: FakeReplicate,
) -> None:
    server.predict({"status": "processing", "output": ["x\ud83d"]}, succeeded("x\ud83d", "\ude00y"))
    told: list[str] = []
    assert (await complete(server, ask(), told)).text == "x😀y"
    assert told == ["x", "😀y"]


@pytest.mark.parametrize(
    "stream",
    [
        refusal(500),
        reply({}),
        sse(*STREAM[:2]),
        sse(*STREAM[:2], cut=True),
        sse(*STREAM[:2], ("error", "lost")),
        Answer(body=b"<html>", content_type="text/html"),
        sse(("output", "something else"), ("done", "{}")),
    ],
)
async def test_a_stream_that_breaks_loses_nothing(server: FakeReplicate, stream: Answer) -> None:
    server.predict("starting", "processing", succeeded(*OUTPUT), stream=stream)
    deltas: list[str] = []
    assert (await complete(server, deltas=deltas)).text == "".join(OUTPUT)
    assert "".join(deltas) in ("".join(OUTPUT), "something else")


async def test_a_stream_that_stalls_does_not_keep_the_reply(server: FakeReplicate) -> None:
    server.predict("starting", "processing", succeeded(*OUTPUT), stream=sse(*STREAM[:2], hang=True))
    assert (await complete(server, deltas=[])).text == "".join(OUTPUT)


@pytest.mark.parametrize(
    "address", ["https://evil.example/s", "http://127.0.0.1:1/s", "https://replicate.com.evil.example/s", "http://[", 7]
)
async def test_a_stream_elsewhere_is_not_followed_for_the_token_would_travel(
    server: FakeReplicate, address: Any
) -> None:
    server.stream_at = address
    server.predict("starting", succeeded("x"), stream=sse(*STREAM))
    assert (await complete(server, deltas=[])).text == "x"
    assert server.sent("stream") == []


async def test_output_may_be_one_string_and_tokens_may_not_be_counted(server: FakeReplicate) -> None:
    server.predict({"status": "succeeded", "output": "Hi.", "metrics": {"predict_time": 1.0}})
    answer = await complete(server)
    assert (answer.text, answer.usage, answer.cost, answer.stop) == ("Hi.", Usage(), None, "end")


async def test_a_reply_that_used_all_its_tokens_is_an_error(server: FakeReplicate) -> None:
    server.predict(succeeded("half a"))
    with pytest.raises(ModelError, match="raise max_tokens") as caught:
        await complete(server, ask(max_tokens=3))
    assert (caught.value.code, caught.value.usage) == ("output_limit", Usage(9, 3))


@pytest.mark.parametrize(
    ("state", "said", "retryable"),
    [
        (failed("CUDA error"), "could not complete the prediction: CUDA error", False),
        (failed("Prediction interrupted; please\nretry (code: PA)"), "please retry (code: PA)", True),
        (failed(None), "could not complete the prediction", False),
        (failed(None, "canceled"), "was told by somebody else to cancel", False),
        (failed(None, "aborted"), "gave the prediction up before it began", True),
        ({"status": "succeeded", "output": None}, "no text; is it a language model?", False),
        ({"status": "succeeded", "output": {"url": "https://x"}}, "no text", False),
        ({"status": "succeeded", "output": [1]}, "no text", False),
        (succeeded(), "an empty output", True),
    ],
)
async def test_every_end_but_a_text_is_an_error(
    server: FakeReplicate, state: dict[str, Any], said: str, retryable: bool
) -> None:
    server.predict("starting", state)
    error = await failure(server)
    assert said in error.message
    assert error.retryable is retryable
    assert "Replicate (127.0.0.1:" in error.message


# --- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 402, 404, 422, 500, 502, 503, 504])
async def test_a_creation_that_failed_is_not_to_be_tried_again_for_it_may_have_begun(
    server: FakeReplicate, status: int
) -> None:
    server.order("create", refusal(status, "- input is wrong\n"))
    server.order("model", refusal(status, "- input is wrong\n"))
    error = await failure(server)
    assert (error.status, error.retryable, error.detail) == (status, False, "- input is wrong")


async def test_a_creation_whose_connection_broke_is_not_to_be_tried_again(server: FakeReplicate) -> None:
    server.order("create", Answer(body=b"{}", cut=True))
    assert not (await failure(server)).retryable


async def test_a_server_that_was_not_reached_may_be_tried_again() -> None:
    service = Replicate({"REPLICATE_BASE_URL": "http://127.0.0.1:1", "REPLICATE_API_TOKEN": KEY})
    with pytest.raises(ModelError, match="cannot be reached") as caught:
        await service.complete(ask())
    await service.close()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("detail", "headers", "seconds"),
    [
        ("Request was throttled. Expected available in 1 second.", {}, 1.0),
        ("Your rate limit resets in ~30s.", {}, 30.0),
        ("Request was throttled.", {"retry-after": "2"}, 2.0),
        ("Your rate limit resets in ~30s.", {"ratelimit-remaining": "0", "ratelimit-reset": "7"}, 7.0),
        ("Request was throttled.", {"ratelimit-remaining": "5", "ratelimit-reset": "7"}, None),
        ("Request was throttled.", {}, None),
    ],
)
async def test_how_long_to_wait_is_read_from_headers_and_words(
    server: FakeReplicate, detail: str, headers: dict[str, str], seconds: float | None
) -> None:
    server.order("create", refusal(429, detail, headers=headers))
    error = await failure(server)
    assert (error.status, error.retryable, error.retry_after) == (429, True, seconds)


def test_a_wait_that_is_asked_for_wins_over_a_limit_that_is_used_up() -> None:
    assert retry_after({"retry-after": "1", "ratelimit-remaining": "0", "ratelimit-reset": "9"}) == 1.0


async def test_looks_that_fail_now_and_then_do_not_lose_the_prediction(server: FakeReplicate) -> None:
    server.order("look", refusal(500), refusal(502), Answer(body=b"x", cut=True))
    assert (await complete(server)).text == "ok"
    assert len(server.sent("create")) == 1


async def test_looks_that_keep_failing_end_the_call_and_cancel_the_prediction(server: FakeReplicate) -> None:
    server.predict("starting")
    server.order("look", *[refusal(500)] * 4)
    error = await failure(server)
    assert (error.status, error.retryable) == (500, True)
    assert server.predictions[0].cancelled


async def test_a_prediction_that_never_ends_is_given_up_and_cancelled(
    server: FakeReplicate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOTAL_SECONDS", 0.05)
    server.predict({"status": "processing", "output": ["never"]})
    error = await failure(server)
    assert "did not end within 0.05 s" in error.message
    assert server.predictions[0].cancelled


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(body=b"<html>", content_type="text/html"), "text/html instead of JSON; is REPLICATE_BASE_URL"),
        (Answer(body=b""), "broken JSON (0 bytes)"),
        (Answer(body=b"\xff"), "broken JSON"),
        (reply([]), "no object"),
        (reply({}), "without the id of a prediction"),
        (reply({"id": "../x"}), "without the id of a prediction"),
        (Answer(502, b"<html>Bad gateway", content_type="text/html"), "answered 502"),
    ],
)
async def test_an_answer_that_cannot_be_used_names_the_reason(server: FakeReplicate, answer: Answer, said: str) -> None:
    server.order("create", answer)
    assert said in (await failure(server)).message


async def test_a_model_that_does_not_exist_is_told_by_its_status(server: FakeReplicate) -> None:
    error = await failure(server, ask("replicate/nobody/nothing"))
    assert (error.status, error.detail) == (404, "The requested resource could not be found.")


# --- cancelling -------------------------------------------------------------------------------------------------------


async def cancelled(call: asyncio.Task[ModelReply]) -> None:
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("deltas", [None, []])
async def test_cancelling_a_call_cancels_its_prediction(server: FakeReplicate, deltas: list[str] | None) -> None:
    server.predict("starting", "processing", stream=sse(*STREAM[:2], hang=True))
    server.order("look", Answer(hang=True))
    call = asyncio.create_task(complete(server, deltas=deltas))
    async with asyncio.timeout(5):
        await server.hanging.wait()
        await cancelled(call)
        await server.left.wait()
    assert server.predictions[0].cancelled


async def test_cancelling_while_a_prediction_is_created_cancels_it_once_it_has_an_id(server: FakeReplicate) -> None:
    gate = asyncio.Event()
    server.predict("starting")
    created = server._create
    server._create = lambda request, found: _held(created(request, found), gate)
    call = asyncio.create_task(complete(server))
    await server.hanging.wait()
    call.cancel()
    asyncio.get_running_loop().call_soon(gate.set)
    with pytest.raises(asyncio.CancelledError):
        await call
    assert server.predictions[0].cancelled


def _held(answer: Answer, gate: asyncio.Event) -> Answer:
    return Answer(answer.status, answer.body, gate=gate)


async def test_cancelling_a_call_does_not_wait_for_a_server_that_is_gone(
    server: FakeReplicate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CANCEL_SECONDS", 0.05)
    server.order("create", Answer(hang=True))
    call = asyncio.create_task(complete(server))
    await server.hanging.wait()
    async with asyncio.timeout(2):
        await cancelled(call)


async def test_a_prediction_that_ended_is_not_cancelled(server: FakeReplicate) -> None:
    server.predict(failed("no"))
    await failure(server)
    assert server.sent("cancel") == []


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", " \n"])
async def test_the_address_may_end_as_people_write_it(server: FakeReplicate, ending: str) -> None:
    assert (await complete(server, REPLICATE_BASE_URL=server.address + ending, REPLICATE_API_TOKEN=f" {KEY}\n")).text


async def test_a_wrong_token_is_named_by_its_variable_and_never_shown() -> None:
    wrong = "r8_wrong0123456789"
    async with FakeReplicate(refusals_expected=True) as server:
        error = await failure(server, REPLICATE_API_TOKEN=wrong)
    assert (error.status, error.retryable) == (401, False)
    assert "check REPLICATE_API_TOKEN" in error.message
    assert wrong not in f"{error!r} {error.detail}"


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, "REPLICATE_API_TOKEN is not set; set it, or run without a key: --replies FILE, or --model local/smollm2"),
        ({"REPLICATE_API_TOKEN": " "}, "REPLICATE_API_TOKEN is not set"),
        ({"REPLICATE_API_TOKEN": "two words"}, "REPLICATE_API_TOKEN holds white space"),
        ({"REPLICATE_API_TOKEN": KEY, "REPLICATE_BASE_URL": "http://x.example"}, "plain http to another machine"),
        ({"REPLICATE_API_TOKEN": KEY, "REPLICATE_BASE_URL": "nonsense"}, "REPLICATE_BASE_URL is no plain http"),
    ],
)
async def test_what_is_missing_is_told_before_anything_is_sent(env: dict[str, str], said: str) -> None:
    service = Replicate(env)
    assert said in (service.missing() or "")
    with pytest.raises(ModelError, match=said.split(";")[0]):
        await service.complete(ask())


# --- the fake beside Replicate's own client ---------------------------------------------------------------------------


@pytest_asyncio.fixture
async def official(server: FakeReplicate) -> AsyncIterator[sdk.Client]:
    client = sdk.Client(api_token=KEY, base_url=server.address)
    client.poll_interval = 0
    yield client
    await client._async_client.aclose()


async def test_replicates_own_client_reads_the_same_from_the_fake(server: FakeReplicate, official: sdk.Client) -> None:
    states = ("starting", "processing", succeeded(*OUTPUT))
    server.predict(*states)
    made = await official.models.predictions.async_create(model="meta/llama", input={"prompt": "hi"})
    await made.async_wait()
    server.predict(*states)
    ours = await complete(server)
    assert ("".join(made.output), made.metrics["output_token_count"]) == (ours.text, ours.usage.output)


async def test_replicates_own_client_streams_and_cancels_at_the_fake(
    server: FakeReplicate, official: sdk.Client
) -> None:
    server.predict("starting", stream=sse(("output", "Hé"), ("output", "l\nlo"), ("done", "{}")))
    made = await official.predictions.async_create(version=VERSION, input={"prompt": "hi"}, stream=True)
    assert "".join([str(event) async for event in made.async_stream()]) == "Hél\nlo"
    await made.async_cancel()
    assert (made.status, server.predictions[0].cancelled) == ("canceled", True)


async def test_replicates_own_client_sees_the_same_failures(server: FakeReplicate, official: sdk.Client) -> None:
    server.order("create", refusal(402, "Insufficient credit"))
    with pytest.raises(sdk.exceptions.ReplicateError, match="Insufficient credit"):
        await official.models.predictions.async_create(model="meta/llama", input={"prompt": "hi"})
    server.order("create", refusal(402, "Insufficient credit"))
    assert "Insufficient credit; the account behind REPLICATE_API_TOKEN" in (await failure(server)).message


# --- programs ---------------------------------------------------------------------------------------------------------

PROGRAM = """\
schema Answer { city: String }
agent Bot [replicate/meta/llama]
pipeline Main(text: String) -> Answer:
  text |> Bot.think(context) |> Bot.find(context)
"""


def runtime(server: FakeReplicate) -> Runtime:
    address = {"REPLICATE_BASE_URL": server.address, "REPLICATE_API_TOKEN": KEY}
    return Runtime(env=address | {"REPLICATE_POLL_INTERVAL": "0"})


async def test_an_agents_time_running_out_cancels_its_prediction(server: FakeReplicate) -> None:
    server.predict("starting")
    engine = runtime(server)
    program = PROGRAM.replace("agent Bot", "@timeout(50ms)\nagent Bot")
    result = await engine.run(halo_lang.parse(program), "Main", {"text": "Where?"})
    await engine.close()
    assert "took longer than 0.05 s" in str(result.error)
    assert server.predictions[0].cancelled


async def test_a_program_runs_streamed_and_looked_at_with_a_result_by_schema(server: FakeReplicate) -> None:
    server.predict("starting", succeeded(*OUTPUT), stream=sse(*STREAM))
    server.predict("starting", succeeded('{"city": ', '"Oslo"}'))
    engine = runtime(server)
    result = await engine.run(halo_lang.parse(PROGRAM), "Main", {"text": "Where?"})
    await engine.close()
    assert result.raise_for_status().output == {"city": "Oslo"}
    assert KEY not in json.dumps(result.context.trace)

"""What holds for every model service: the same program, run against each one's strict fake, and the same failures.

How each service says these things on its wire is tested in its own file, proxies and TLS in test_connections.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult, Runtime
from halo_runtime.engine.events import ModelDelta
from halo_runtime.errors import ConfigError, ModelError
from halo_runtime.models.http import Endpoint, JsonService
from tests.fakes import replicate_server
from tests.fakes.services import MADE, READ, SERVICES, Kit, Turn, texts
from tests.fakes.wire import Answer, FakeService

every_service = pytest.mark.parametrize("kit", SERVICES, ids=lambda kit: kit.name)
in_both_ways = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])

PLAIN = """\
agent Bot [%s]
pipeline Main(text: String) -> String:
  text
    |> Bot.say()
"""

RETRIED = "@retry(3, 1ms)\n" + PLAIN

SCHEMA = """\
schema Answer { city: String, degrees: Integer }
agent Bot [%s]
pipeline Main(text: String) -> Answer:
  text |> Bot.find(context)
"""

TOOLS = """\
store Notes : KV("notes.db")
schema Answer { city: String, degrees: Integer }
agent Bot [%s]
  equips Notes
pipeline Main(text: String) -> Answer:
  text |> Bot.find(context, tools: [Notes])
"""

ANSWER = Turn('{"city": "Zürich", "degrees": 4}')
LOOP = (
    Turn(calls=(("Notes_incr", {"key": "a", "by": 40404}), ("Notes_incr", {"key": "b", "by": 17171}))),
    Turn(calls=(("Notes_incr", {"key": "a", "by": 100}),)),
    ANSWER,
)


async def run(program: str, kit: Kit, env: Mapping[str, str]) -> tuple[RunResult, list[str]]:
    """The result, and the texts that observers were told as they came."""
    model = kit.tool_model if program == TOOLS and kit.tool_model else kit.model
    runtime, told = Runtime(env=env), list[str]()
    runtime.subscribe(lambda event: told.append(event.text) if isinstance(event, ModelDelta) else None)
    try:
        result = await runtime.run(halo_lang.parse(program % model), "Main", {"text": "Where?"})
    finally:
        await runtime.close()
    assert kit.key not in str(result.to_json())
    return result, told


# --- programs ---------------------------------------------------------------------------------------------------------


@every_service
@in_both_ways
async def test_a_text_comes_as_it_is_told(kit: Kit, streams: bool) -> None:
    async with kit.start() as server:
        kit.order(server, Turn("Grüße aus Zürich."), streams=streams)
        result, told = await run(PLAIN, kit, kit.env(server))
    assert result.raise_for_status().output == "".join(told) == "Grüße aus Zürich."
    assert len(told) > 1 if streams else len(told) == 1


@pytest.mark.parametrize(
    ("kit", "streams"),
    [(kit, streams) for kit in SERVICES for streams in (True, False) if not (streams and kit.name == "replicate")],
    ids=lambda given: given.name if isinstance(given, Kit) else "streamed" if given else "whole",
)
@pytest.mark.parametrize("before", ["", "a"])
async def test_a_character_that_was_cut_in_two_is_whole_again(kit: Kit, streams: bool, before: str) -> None:
    said = before + "\ud83d\ude00" * 3 + "y\ud83d\ud83d"
    async with kit.start() as server:
        kit.order(server, Turn(said), streams=streams)
        result, told = await run(PLAIN, kit, kit.env(server))
    assert result.raise_for_status().output == "".join(told) == f"{before}😀😀😀y\ufffd\ufffd"


@pytest.mark.parametrize("kit", [kit for kit in SERVICES if kit.name != "replicate"], ids=lambda kit: kit.name)
async def test_a_stream_that_is_no_utf_8_is_an_error(kit: Kit) -> None:
    kind = "application/x-ndjson" if kit.name == "ollama" else "text/event-stream"
    async with kit.start() as server:
        server.answer(Answer(content_type=kind, body=b'data: {"a": "\xff\xfe"}\n\n'))
        error = await failed(kit, kit.env(server))
    assert "streamed bytes that are no UTF-8" in error.message
    assert error.retryable


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that wait for hardly anything that a stream could bring."""
    begin = JsonService.__init__

    def impatiently(self: JsonService, endpoint: Endpoint) -> None:
        begin(self, replace(endpoint, first_seconds=0.3, idle_seconds=0.05))

    monkeypatch.setattr(JsonService, "__init__", impatiently)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kit", [kit for kit in SERVICES if kit.name != "replicate"], ids=lambda kit: kit.name)
@pytest.mark.parametrize(("pieces", "seconds"), [((), "0.3"), ((b"\n",), "0.05")], ids=["at once", "later"])
async def test_a_stream_that_falls_silent_is_given_up(kit: Kit, pieces: tuple[bytes, ...], seconds: str) -> None:
    kind = "application/x-ndjson" if kit.name == "ollama" else "text/event-stream"
    async with kit.start() as server:
        server.answer(Answer(content_type=kind, pieces=pieces, hang=True))
        error = await failed(kit, kit.env(server))
        await server.left.wait()
    assert f"stopped answering: its stream was silent for {seconds} s" in error.message
    assert error.retryable


@pytest.mark.usefixtures("impatient")
async def test_a_prediction_goes_on_whose_stream_falls_silent() -> None:
    [kit] = [kit for kit in SERVICES if kit.name == "replicate"]
    async with replicate_server.FakeReplicate() as server:
        silent = replicate_server.sse(("output", "a"), hang=True)
        server.predict("starting", replicate_server.succeeded("a", "b"), stream=silent)
        result, told = await run(PLAIN, kit, kit.env(server))
    assert result.raise_for_status().output == "".join(told) == "ab"


@every_service
@in_both_ways
async def test_a_result_keeps_to_its_schema(kit: Kit, streams: bool) -> None:
    async with kit.start() as server:
        kit.order(server, ANSWER, streams=streams)
        result, _ = await run(SCHEMA, kit, kit.env(server))
    assert result.raise_for_status().output == {"city": "Zürich", "degrees": 4}
    assert "degrees" in texts(server.requests)[0]


@pytest.mark.parametrize("kit", [kit for kit in SERVICES if kit.tool_model], ids=lambda kit: kit.name)
@in_both_ways
async def test_tools_that_the_model_chooses_run_until_it_answers(kit: Kit, streams: bool) -> None:
    async with kit.start() as server:
        kit.order(server, *LOOP, streams=streams)
        result, _ = await run(TOOLS, kit, kit.env(server))
        last = server.requests[-1]
    assert result.raise_for_status().output == {"city": "Zürich", "degrees": 4}
    meta = result.context.meta
    [call] = meta["calls"]
    assert [tool["result"] for tool in call["tools"]] == [40404, 17171, 40504]
    assert meta["tokens"] == {"input": 3 * READ, "output": 3 * MADE, "total": 3 * (READ + MADE)}
    assert meta["cost"] == (None if kit.cost is None else pytest.approx(kit.cost))
    assert len(server.requests) == 3
    sent = texts([last])[0]
    assert "Notes_incr" in sent
    assert "degrees" in sent
    # Each number but the last was asked for and answered; the answers came in the order of the calls.
    assert [sent.count(number) for number in ("40404", "17171", "40504")] == [2, 2, 1]
    assert sent.rindex("40404") < sent.rindex("17171") < sent.rindex("40504")


async def test_a_service_without_tools_says_so_before_anything_is_sent() -> None:
    [kit] = [kit for kit in SERVICES if kit.tool_model is None]
    async with kit.start() as server:
        result, _ = await run(TOOLS, kit, kit.env(server))
        assert server.requests == []
    assert isinstance(result.error, ModelError)
    assert "cannot call tools: Replicate has no way to; leave `tools:` out for it" in result.error.message


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kit", [kit for kit in SERVICES if kit.name != "ollama"], ids=lambda kit: kit.name)
async def test_a_missing_key_is_named_with_two_ways_to_run_without_one(kit: Kit) -> None:
    with pytest.raises(ConfigError, match=f"{kit.key_variable}.* is not set") as caught:
        await run(PLAIN, kit, kit.more)
    assert all(way in str(caught.value) for way in ("--replies FILE", "--model local/smollm2"))


@every_service
async def test_a_wrong_key_is_named_by_its_variable_and_never_shown(kit: Kit) -> None:
    wrong = "wrong-0123456789abcdef"
    async with kit.start(refusals_expected=True) as server:
        error = await failed(kit, kit.env(server, **{kit.key_variable: wrong}))
    assert error.status == kit.wrong_key
    assert f"check {kit.key_variable}" in error.message
    assert wrong not in f"{error!r} {error.detail}"


@every_service
async def test_a_wrong_address_is_named_by_its_variable(kit: Kit) -> None:
    async with kit.start(refusals_expected=True) as server:
        error = await failed(kit, kit.env(server, **{kit.url_variable: kit.url(server) + "/elsewhere"}))
    assert (error.status, error.retryable) == (404, False)
    assert kit.url_variable in error.message


async def failed(kit: Kit, env: Mapping[str, str]) -> ModelError:
    """The error of a run, which says where in the program it happened."""
    result, _ = await run(PLAIN, kit, env)
    assert isinstance(result.error, ModelError)
    assert result.error.place is not None
    assert (result.error.place.stage, result.error.place.line, result.error.place.column) == ("|> Bot.say", 4, 5)
    return result.error


# --- what comes back --------------------------------------------------------------------------------------------------

PAGE = Answer(body=b"<html>Welcome", content_type="text/html")
OVERLONG = "This model's maximum context length is 8192 tokens, and you asked for 9000."
Send = Callable[[Kit, FakeService], None]


def answer(given: Answer) -> Send:
    return lambda kit, server: server.answer(given)


def refuse(status: int, said: str) -> Send:
    return lambda kit, server: server.answer(kit.refuse(status, said))


@every_service
@pytest.mark.parametrize(
    ("send", "said", "status", "code", "retryable"),
    [
        (answer(PAGE), ("answered text/html instead of JSON", "{url}"), None, None, False),
        (answer(Answer(body=b"")), ("answered with broken JSON (0 bytes)", "{url}"), None, None, False),
        (answer(Answer(body=b'{"a": "\xff\xfe"}')), ("answered with broken JSON", "{url}"), None, None, False),
        (answer(Answer(body=b'["a"]')), ("JSON that is no object", "{url}"), None, None, False),
        (answer(Answer(403, b"<html>", content_type="text/html")), ("answered 403",), 403, None, False),
        (refuse(400, "These are its words."), ("answered 400: These are its words.",), 400, None, False),
        (refuse(402, "Pay first."), ("Pay first; the account behind {key} has no credit left",), 402, None, False),
        (refuse(429, "Not so fast."), ("answered 429: Not so fast.",), 429, None, True),
        (refuse(400, OVERLONG), (OVERLONG,), 400, "context_overflow", False),
        (refuse(413, OVERLONG), (OVERLONG,), 413, "context_overflow", False),
    ],
    ids=["page", "empty", "no UTF-8", "a list", "forbidden page", "400", "402", "429", "too long", "413"],
)
async def test_a_failure_is_told_in_the_services_words_with_what_to_do(
    kit: Kit, send: Send, said: tuple[str, ...], status: int | None, code: str | None, retryable: bool
) -> None:
    async with kit.start() as server:
        send(kit, server)
        error = await failed(kit, kit.env(server))
    for text in said:
        assert text.format(key=kit.key_variable, url=kit.url_variable) in error.message
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert (error.hint is not None) == (code == "context_overflow" or retryable)


@every_service
async def test_what_could_not_be_asked_may_be_asked_again(kit: Kit) -> None:
    async with kit.start() as server:
        server.answer(Answer(body=b"x" * 10, cut=True))
        error = await failed(kit, kit.env(server))
    assert "ended the connection before its answer was complete" in error.message
    # A prediction that was asked for may have begun, and would be paid for twice.
    assert error.retryable is (kit.name != "replicate")


@pytest.mark.parametrize(
    ("program", "sent", "advised"), [("", 1, True), ("@retry(1, 1ms)\n", 2, False)], ids=["never", "again"]
)
@pytest.mark.parametrize("passing", ["500", "429", "cut"])
async def test_a_failure_that_passes_advises_to_try_again_where_the_program_does_not(
    program: str, sent: int, advised: bool, passing: str
) -> None:
    kit = SERVICES[0]
    failure = Answer(body=b"x" * 10, cut=True) if passing == "cut" else kit.refuse(int(passing), "Busy.")
    async with kit.start() as server:
        server.answer(failure, failure)
        result, _ = await run(program + PLAIN, kit, kit.env(server))
        assert len(server.requests) == sent
    assert result.error is not None
    assert ("add @retry(3) to the agent" in (result.error.hint or "")) is advised


def having(end: Any) -> Any:
    return pytest.mark.parametrize("kit", [kit for kit in SERVICES if end in kit.ends], ids=lambda kit: kit.name)


@having("length")
@in_both_ways
async def test_a_limit_that_came_before_the_first_word_is_told(kit: Kit, streams: bool) -> None:
    async with kit.start() as server:
        kit.order(server, Turn(end="length"), streams=streams)
        result, _ = await run(PLAIN, kit, kit.env(server))
    error = result.error
    assert isinstance(error, ModelError)
    assert "before its answer began; raise max_tokens" in error.message
    assert (error.code, error.retryable) == ("output_limit", False)
    # What it used is paid for.
    assert result.context.meta["tokens"] == {"input": READ, "output": MADE, "total": READ + MADE}


@pytest.mark.parametrize(
    ("kit", "turn", "code", "said"),
    [
        pytest.param(kit, turn, code, said, id=f"{kit.name}-{code}-{turn.text or 'nothing'}")
        for end, turn, code, said in (
            ("length", Turn("Half of", end="length"), "output_limit", "limit of its tokens; raise max_tokens"),
            ("filter", Turn("Half of", end="filter"), "content_filter", "stopped its answer by its content filter"),
            ("filter", Turn(end="filter"), "content_filter", "stopped its answer by its content filter"),
            ("refusal", Turn("I cannot.", end="refusal"), "refusal", "declined to answer"),
        )
        for kit in SERVICES
        if end in kit.ends
    ],
)
@in_both_ways
async def test_a_reply_that_is_not_whole_is_an_error_and_paid_for(
    kit: Kit, turn: Turn, code: str, said: str, streams: bool
) -> None:
    async with kit.start() as server:
        kit.order(server, turn, streams=streams)
        result, _ = await run(RETRIED, kit, kit.env(server))
        assert len(server.requests) == 1
    error = result.error
    assert isinstance(error, ModelError)
    assert (error.code, error.retryable, result.output) == (code, False, None)
    assert said in error.message
    assert error.place is not None
    assert error.place.stage == "|> Bot.say"
    assert (error.hint is None) == (code == "output_limit")
    assert result.context.meta["tokens"] == {"input": READ, "output": MADE, "total": READ + MADE}

"""Gemini: refusals, keys and addresses, and whole programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

import halo_lang
from halo_runtime import Runtime
from halo_runtime.errors import ConfigError
from halo_runtime.models.gemini import Gemini
from tests.fakes.gemini_server import KEY, FakeGemini, call, failure, refusal, turn, usage
from tests.fakes.wire import Answer, reply
from tests.models.gemini_calls import INSTEAD, NEW, OLD, ask, body, complete, failed


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

"""Anthropic's messages: refusals, failures, keys and addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.models.anthropic import Anthropic
from tests.fakes.anthropic_server import (
    KEY,
    FakeAnthropic,
    document,
    events,
    failure,
    stream,
    text,
)
from tests.fakes.wire import Answer
from tests.models.anthropic_calls import ask, failed


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeAnthropic]:
    async with FakeAnthropic() as fake:
        yield fake


@pytest_asyncio.fixture
async def anthropic(server: FakeAnthropic) -> AsyncIterator[Anthropic]:
    provider = Anthropic(server.env)
    yield provider
    await provider.close()


# --- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request_error", False),
        (401, "authentication_error", False),
        (402, "billing_error", False),
        (403, "permission_error", False),
        (404, "not_found_error", False),
        (409, "conflict_error", True),
        (413, "request_too_large", False),
        (429, "rate_limit_error", True),
        (500, "api_error", True),
        (504, "timeout_error", True),
        (529, "overloaded_error", True),
    ],
)
async def test_a_refusal_has_the_services_words_and_tells_whether_to_try_again(
    server: FakeAnthropic, anthropic: Anthropic, status: int, kind: str, retryable: bool, streaming: bool
) -> None:
    server.answer(failure(status, kind, "The service's words."))
    problem = await failed(anthropic, streaming=streaming)
    assert (problem.status, problem.retryable, problem.detail) == (status, retryable, "The service's words.")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "code",
    ["enforced_spend_limit_reached", "contract_spend_limit_reached", "linked_organization_spend_limit_reached"],
)
async def test_no_waiting_helps_against_a_limit_of_spending(
    server: FakeAnthropic, anthropic: Anthropic, code: str
) -> None:
    server.answer(failure(429, "rate_limit_error", "limit reached", {"error_code": code}))
    problem = await failed(anthropic)
    assert not problem.retryable
    assert "no credit left" in problem.message


async def test_waiting_helps_against_a_limit_of_growth(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(failure(429, "rate_limit_error", "slower", {"error_code": "ramp_limit_exceeded"}))
    assert (await failed(anthropic)).retryable


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "9999"}, 9999.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
async def test_how_long_to_wait_is_handed_on(
    server: FakeAnthropic, anthropic: Anthropic, headers: dict[str, str], wait: float | None
) -> None:
    server.answer(failure(429, "rate_limit_error", headers=headers))
    assert (await failed(anthropic, streaming=True)).retry_after == wait


@pytest.mark.parametrize(("status", "verdict", "retryable"), [(400, "true", True), (529, "false", False)])
async def test_the_services_own_word_on_retrying_wins(
    server: FakeAnthropic, anthropic: Anthropic, status: int, verdict: str, retryable: bool
) -> None:
    server.answer(failure(status, headers={"x-should-retry": verdict}))
    assert (await failed(anthropic)).retryable is retryable


async def test_a_prompt_that_is_too_long_is_told_with_what_to_do(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(failure(400, said="prompt is too long: 210000 tokens > 200000 maximum"))
    problem = await failed(anthropic)
    assert "210000 tokens" in problem.message
    assert "give the call less to read" in (problem.hint or "")


async def test_an_error_page_of_a_proxy_is_told_by_its_status(server: FakeAnthropic, anthropic: Anthropic) -> None:
    server.answer(Answer(502, b"<html>Bad gateway", content_type="text/html"))
    problem = await failed(anthropic, streaming=True)
    assert (problem.status, problem.retryable, problem.detail) == (502, True, None)


async def test_a_redirect_is_not_followed(server: FakeAnthropic, anthropic: Anthropic) -> None:
    async with FakeAnthropic() as elsewhere:
        server.answer(Answer(307, headers={"location": f"{elsewhere.address}/v1/messages"}))
        assert "set ANTHROPIC_BASE_URL to the final address" in (await failed(anthropic)).message
        assert elsewhere.requests == []


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("begun", [(), events(document(text("ok")))[:4]])
async def test_cancelling_a_call_closes_its_connection(
    server: FakeAnthropic, anthropic: Anthropic, streaming: bool, begun: list[dict[str, Any]]
) -> None:
    server.answer(stream(begun, hang=True) if begun else Answer(hang=True))
    call = asyncio.create_task(anthropic.complete(ask(), [].append if streaming else None))
    await server.hanging.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(5):
        await server.left.wait()


async def test_requests_share_a_connection_streamed_or_not(server: FakeAnthropic, anthropic: Anthropic) -> None:
    for streaming in (False, True, False, True):
        await anthropic.complete(ask(), [].append if streaming else None)
    assert server.connections == 1


def test_one_provider_serves_one_event_loop_after_another() -> None:
    provider = Anthropic({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})

    async def use() -> None:
        assert "cannot be reached" in (await failed(provider)).message
        await provider.close()

    asyncio.run(use())
    asyncio.run(use())


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [{}, {"ANTHROPIC_API_KEY": ""}, {"ANTHROPIC_API_KEY": " \n", "ANTHROPIC_BASE_URL": ""}])
async def test_a_missing_key_is_named_with_two_ways_to_run_without_one(env: dict[str, str]) -> None:
    provider = Anthropic(env)
    problem = provider.missing() or ""
    assert all(said in problem for said in ("ANTHROPIC_API_KEY", "--replies", "--model local/smollm2"))
    assert (await failed(provider)).message == problem


async def test_a_wrong_key_is_named_by_its_variable_and_never_shown() -> None:
    wrong = "sk-ant-wrong-0123456789abcdef"
    async with FakeAnthropic(refusals_expected=True) as server:
        provider = Anthropic(server.env | {"ANTHROPIC_API_KEY": wrong})
        problem = await failed(provider)
        await provider.close()
    assert "check ANTHROPIC_API_KEY" in problem.message
    assert wrong not in f"{problem!r} {problem.detail} {provider!r} {vars(provider)}"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/messages", " \n"])
async def test_the_address_may_end_as_people_write_it(server: FakeAnthropic, ending: str) -> None:
    provider = Anthropic({"ANTHROPIC_API_KEY": f" {KEY}\n", "ANTHROPIC_BASE_URL": server.address + ending})
    assert provider.missing() is None
    assert (await provider.complete(ask())).text == "ok"
    await provider.close()


async def test_a_server_on_this_machine_needs_no_key() -> None:
    async with FakeAnthropic(key=None) as server:
        provider = Anthropic({"ANTHROPIC_BASE_URL": server.address})
        assert (await provider.complete(ask())).text == "ok"
        await provider.close()
        assert "x-api-key" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("http://models.example", KEY, "plain http to another machine"),
        ("https://models.example", "", "ANTHROPIC_API_KEY is not set"),
        ("models.example", KEY, "no plain http or https address"),
        ("", "sk two words", "ANTHROPIC_API_KEY holds white space"),
    ],
)
def test_what_a_key_must_not_be_sent_to_is_found_before_anything_is_sent(url: str, key: str, said: str) -> None:
    assert said in (Anthropic({"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}).missing() or "")

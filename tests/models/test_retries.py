"""Failures of services as runs see them: which are tried again, how often and after how long (reference 0.5)."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult, Runtime
from halo_runtime.errors import ModelError
from tests.fakes import anthropic_server, gemini_server, openai_server
from tests.fakes.services import SERVICES, Kit, Turn
from tests.fakes.wire import Answer, FakeService
from tests.runtime.support import FakeClock

PROGRAM = """\
@retry(%d, 3s)
agent Bot [%s]
%s
pipeline Main(text: String) -> String:
  text |> Bot.say()
"""

KITS = {kit.name: kit for kit in SERVICES}
OPENAI = KITS["openai chat"]


async def run(kit: Kit, server: FakeService, retries: int = 2, limit: str = "") -> tuple[RunResult, list[float]]:
    """The result, and the seconds waited."""
    clock = FakeClock()
    runtime = Runtime(env=kit.env(server), clock=clock)
    try:
        program = halo_lang.parse(PROGRAM % (retries, kit.model, limit))
        return await runtime.run(program, "Main", {"text": "hi"}), clock.slept
    finally:
        await runtime.close()


def busy(headers: dict[str, str] | None = None) -> Answer:
    return openai_server.refusal(429, "slow down", code="rate_limit_exceeded", headers=headers)


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "2"}, 2, 2),
        ({"retry-after": "0.25"}, 0.25, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "60"}, 1.5, 1.5),
        ({"retry-after": "in 90 seconds, as a date"}, 60, 90),
        ({"retry-after": "-1"}, 3, 3),
        ({"retry-after": "soon"}, 3, 3),
        ({}, 3, 3),
    ],
    ids=["seconds", "float", "milliseconds", "date", "negative", "nonsense", "none"],
)
async def test_as_long_is_waited_as_the_service_asks(headers: dict[str, str], least: float, most: float) -> None:
    async with OPENAI.start() as server:
        date = formatdate(time.time() + 90, usegmt=True)
        server.answer(busy({name: date if "date" in value else value for name, value in headers.items()}))
        result, slept = await run(OPENAI, server)
    assert (result.status, len(server.requests), len(slept)) == ("completed", 2, 1)
    assert least <= slept[0] <= most


async def test_as_long_is_waited_as_the_body_of_gemini_asks() -> None:
    kit = KITS["gemini"]
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36.5s"}
    async with kit.start() as server:
        server.answer(gemini_server.refusal(429, "slow down", "RESOURCE_EXHAUSTED", delay))
        kit.order(server, Turn("ok"), streams=True)
        result, slept = await run(kit, server)
    assert (result.status, slept) == ("completed", [36.5])


@pytest.mark.parametrize(
    ("asked", "limit", "said"),
    [("9999", "", "the service asks to wait 9999 s"), ("60", "@timeout(30s)", "the service asks to wait 60 s")],
    ids=["over ten minutes", "over the time of the run"],
)
async def test_a_wait_that_is_too_long_is_told_and_not_begun(asked: str, limit: str, said: str) -> None:
    async with OPENAI.start() as server:
        server.answer(busy({"retry-after": asked}))
        result, slept = await run(OPENAI, server, limit=limit)
    assert (len(server.requests), slept) == (1, [])
    assert isinstance(result.error, ModelError)
    assert result.error.retry_after == float(asked)
    assert said in (result.error.hint or "")


DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("openai chat", openai_server.refusal(429, "no quota", type_="insufficient_quota", code="insufficient_quota")),
        ("gemini", gemini_server.refusal(429, "of today", "RESOURCE_EXHAUSTED", DAY)),
        ("anthropic", anthropic_server.failure(402, said="no credit")),
    ],
)
async def test_no_quota_is_waited_for(name: str, answer: Answer) -> None:
    async with KITS[name].start() as server:
        server.answer(answer)
        result, slept = await run(KITS[name], server)
    assert (result.status, len(server.requests), slept) == ("failed", 1, [])


@pytest.mark.parametrize("kit", [kit for kit in SERVICES if kit.name != "replicate"], ids=lambda kit: kit.name)
@pytest.mark.parametrize("retries", [1, 2, 4])
async def test_there_are_as_many_tries_as_the_program_says_and_none_more(kit: Kit, retries: int) -> None:
    """Nothing below tries again by itself."""
    async with kit.start() as server:
        server.answer(*[kit.refuse(503, "overloaded")] * (retries + 1))
        result, slept = await run(kit, server, retries)
    assert len(server.requests) == retries + 1
    assert slept == [3 * 2**number for number in range(retries)]
    assert result.context.meta["calls"][0]["attempts"] == retries + 1


def begun(text: str, **more: Any) -> Answer:
    return openai_server.events(openai_server.chunk({"content": text}), done=False, **more)


@pytest.mark.parametrize("text", ["", "half a sen"], ids=["before the first word", "in the middle"])
async def test_a_stream_that_broke_is_asked_for_again_and_its_half_is_no_part_of_the_reply(text: str) -> None:
    async with OPENAI.start() as server:
        server.answer(begun(text, cut=True))
        OPENAI.order(server, Turn("whole"), streams=True)
        result, slept = await run(OPENAI, server)
    assert (result.output, slept) == ("whole", [3])
    assert [call["attempts"] for call in result.context.meta["calls"]] == [2]

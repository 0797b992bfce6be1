"""What calls have used and cost: told, estimated, unknown; of replies, failures and calls that were broken off."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import Journal, Price, RunResult, Runtime
from halo_runtime.engine.events import ModelResponded, RunEvent
from halo_runtime.errors import PolicyViolation
from halo_runtime.models import connections
from halo_runtime.store.files import FileRunStore
from tests.fakes import anthropic_server, openai_server
from tests.fakes.services import MADE, READ, SERVICES, Kit, Turn
from tests.fakes.wire import Answer, FakeService, reply

KITS = {kit.name: kit for kit in SERVICES}
OPENAI = KITS["openai chat"]
every_service = pytest.mark.parametrize("kit", SERVICES, ids=lambda kit: kit.name)
in_both_ways = pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])

PROGRAM = """\
%s
@retry(2, 1ms)
agent Bot [%s]
  %s
pipeline Main(text: String) -> String:
  text |> Bot.say("Be brief.")
"""
SENT = len(b"Task: say\n\nInstructions:\nBe brief.\n\nInput:\nhi")
"""Bytes of the prompt."""
GIVEN = -(-SENT // 4)
"""Tokens of the prompt, by the estimate."""


async def play(
    kit: Kit, server: FakeService, *, policy: str = "", model: str | None = None, **options: Any
) -> tuple[RunResult, list[ModelResponded]]:
    """The result, and what was told of each request."""
    rules = (f"policy Limits : {policy}", "requires Limits") if policy else ("", "")
    program = halo_lang.parse(PROGRAM % (rules[0], model or kit.model, rules[1]))
    runtime, told = Runtime(env=kit.env(server), **options), list[ModelResponded]()

    def hear(event: RunEvent) -> None:
        if isinstance(event, ModelResponded):
            told.append(event)

    runtime.subscribe(hear)
    try:
        return await runtime.run(program, "Main", {"text": "hi"}), told
    finally:
        await runtime.close()


def line(result: RunResult) -> dict[str, Any]:
    return result.context.meta["calls"][0]


def tokens(given: int, made: int) -> dict[str, int]:
    return {"input": given, "output": made, "total": given + made}


# --- replies ----------------------------------------------------------------------------------------------------------


@every_service
@in_both_ways
async def test_what_a_service_tells_is_counted_as_it_is(kit: Kit, streams: bool) -> None:
    async with kit.start() as server:
        kit.order(server, Turn("ok"), streams=streams)
        result, told = await play(kit, server)
    assert line(result)["tokens"] == result.context.meta["tokens"] == told[0].tokens == tokens(READ, MADE)
    assert "estimated" not in line(result)
    expected = None if kit.cost is None else kit.cost / 3
    if kit.tool_model in (kit.model, None):  # `kit.cost` is that of turns with tools
        assert line(result)["cost"] == result.context.meta["cost"] == pytest.approx(expected)


def without_usage(text: str, streams: bool) -> Answer:
    whole = openai_server.document({"content": text})
    return openai_server.events(*openai_server.chunks(whole)) if streams else whole


@in_both_ways
async def test_what_a_service_does_not_tell_is_estimated_and_marked(streams: bool) -> None:
    async with OPENAI.start() as server:
        server.answer(without_usage("twelve chars", streams))
        result, told = await play(OPENAI, server)
    assert line(result)["tokens"] == told[0].tokens == tokens(GIVEN, 3)
    assert line(result)["estimated"] is True
    assert Decimal(told[0].cost or 0) == (GIVEN * Decimal("2.5") + 3 * 10) / 1_000_000
    assert told[0].usage["input"] is None  # the service's own words stay as they are


async def test_a_price_that_nobody_knows_is_null_and_not_nothing() -> None:
    async with OPENAI.start() as server:
        OPENAI.order(server, Turn("ok"), streams=True)
        result, told = await play(OPENAI, server, model="openai/our-own")
    assert (line(result)["cost"], result.context.meta["cost"], told[0].cost) == (None, None, None)
    assert line(result)["tokens"] == tokens(READ, MADE)


async def test_a_price_of_ones_own_counts_and_may_be_limited() -> None:
    prices = {"openai/our-own": Price(Decimal(3), Decimal(5))}
    async with OPENAI.start() as server:
        OPENAI.order(server, Turn("ok"), streams=True)
        result, told = await play(OPENAI, server, model="openai/our-own", policy="MaxSpend(1)", prices=prices)
    assert told[0].cost == str((READ * Decimal(3) + MADE * 5) / 1_000_000)
    assert result.context.meta["cost"] == 0.004


async def test_without_a_price_a_limit_of_spending_refuses_and_says_how_to_set_one() -> None:
    async with OPENAI.start() as server:
        result, _ = await play(OPENAI, server, model="openai/our-own", policy="MaxSpend(1)")
    assert isinstance(result.error, PolicyViolation)
    assert '[prices."openai/our-own"] with input = … and output = …' in result.error.message
    assert server.requests == []


async def test_what_a_service_says_that_it_cost_counts_before_every_price() -> None:
    kit = KITS["openrouter"]
    async with kit.start() as server:
        kit.order(server, Turn("ok"), streams=True)
        result, _ = await play(kit, server, prices={kit.model: Price(Decimal(1000), Decimal(1000))})
    assert result.context.meta["cost"] == 0.004


# --- failures ---------------------------------------------------------------------------------------------------------


def chat_in_vain() -> Answer:
    return openai_server.document({"content": ""}, "length", openai_server.usage(READ, MADE, reasoning=MADE))


def anthropic_in_vain() -> Answer:
    whole = anthropic_server.document(stop="max_tokens", usage=anthropic_server.usage(READ, MADE))
    return reply(whole)


@pytest.mark.parametrize(("name", "answer"), [("openai chat", chat_in_vain), ("anthropic", anthropic_in_vain)])
async def test_an_answer_of_no_use_is_paid_for(name: str, answer: Callable[[], Answer]) -> None:
    kit = KITS[name]
    async with kit.start() as server:
        server.answer(answer())
        result, told = await play(kit, server)
    assert result.status == "failed"
    assert line(result)["tokens"] == told[0].tokens == tokens(READ, MADE)
    assert result.context.meta["cost"] > 0
    assert "estimated" not in line(result)


async def test_a_stream_that_broke_counts_for_what_had_come_beside_the_try_that_worked() -> None:
    async with OPENAI.start() as server:
        broken = openai_server.events(openai_server.chunk({"content": "x" * 40}), done=False, cut=True)
        server.answer(broken)
        OPENAI.order(server, Turn("ok"), streams=True)
        result, told = await play(OPENAI, server)
    assert [one.tokens for one in told] == [tokens(GIVEN, 10), tokens(READ, MADE)]
    assert line(result)["tokens"] == tokens(GIVEN + READ, 10 + MADE)
    assert (line(result)["estimated"], line(result)["attempts"]) == (True, 2)
    assert Decimal(told[0].cost or 0) == (GIVEN * Decimal("2.5") + 100) / 1_000_000


@every_service
async def test_a_refusal_costs_nothing(kit: Kit) -> None:
    async with kit.start() as server:
        server.answer(kit.refuse(400, "no"))
        result, told = await play(kit, server)
    assert (line(result)["tokens"], line(result)["cost"], told[0].tokens) == (tokens(0, 0), 0, {})


async def test_a_failed_try_counts_in_budgets_too() -> None:
    async with OPENAI.start() as server:
        server.answer(openai_server.events(openai_server.chunk({"content": "x" * 400}), done=False, cut=True))
        result, _ = await play(OPENAI, server, policy=f"MaxTokens({GIVEN + 100})")
    assert isinstance(result.error, PolicyViolation)
    assert len(server.requests) == 1


async def test_figures_of_failed_tries_are_the_same_when_the_journal_is_replayed() -> None:
    journal = Journal()
    async with OPENAI.start() as server:
        server.answer(openai_server.events(openai_server.chunk({"content": "x" * 40}), done=False, cut=True))
        OPENAI.order(server, Turn("ok"), streams=True)
        runtime = Runtime(env=OPENAI.env(server))
        program = halo_lang.parse(PROGRAM % ("", OPENAI.model, ""))
        first = await runtime.run(program, "Main", {"text": "hi"}, run_id="r", journal=journal)
        again = await runtime.run(program, "Main", {"text": "hi"}, run_id="r", journal=journal.copy())
        await runtime.close()
    assert len(server.requests) == 2
    assert again.context.meta == first.context.meta


# --- cancelling -------------------------------------------------------------------------------------------------------

SPLIT = """\
policy Limits : MaxTokens(%d)
agent Bot [%s]
  requires Limits
pipeline Main(texts: Array) -> Any:
  texts |* each(text in texts, concurrency: 1, onError: "keep") => Bot.say("Be brief.", text)
"""

HANGING = [kit for kit in SERVICES if kit.name != "replicate"]  # it has a prediction to cancel; test_replicate.py


@pytest.mark.parametrize("kit", HANGING, ids=lambda kit: kit.name)
@pytest.mark.parametrize("order", [Answer(hang=True), None], ids=["before an answer", "in the middle of a stream"])
async def test_stopping_a_run_closes_the_connection_within_a_second(kit: Kit, order: Answer | None) -> None:
    kinds = {"ollama": ("application/x-ndjson", b"\n"), "default": ("text/event-stream", b": wait\n\n")}
    content_type, piece = kinds.get(kit.name, kinds["default"])
    async with kit.start() as server:
        server.answer(order or Answer(pieces=(piece,), content_type=content_type, hang=True))
        runtime = Runtime(env=kit.env(server))
        program = halo_lang.parse(PROGRAM % ("", kit.model, ""))
        running = asyncio.create_task(runtime.run(program, "Main", {"text": "hi"}, run_id="r"))
        await server.hanging.wait()
        assert runtime.stop("r")
        async with asyncio.timeout(1):
            await server.left.wait()
        assert (await running).status == "interrupted"
        await runtime.close()


@in_both_ways
async def test_a_call_whose_time_ran_out_settles_with_an_estimate(streams: bool) -> None:
    """The first of two is given up; what is left of the budget is too little for the second."""
    assert connections  # its import is none of the call's time
    async with OPENAI.start() as server:
        piece = b'data: {"choices": [{"index": 0, "delta": {"content": "' + b"x" * 400 + b'"}}]}\n\n'
        told = Answer(pieces=(piece,), content_type="text/event-stream", hang=True)
        server.answer(told if streams else Answer(hang=True))
        runtime = Runtime(env=OPENAI.env(server))
        limit = GIVEN + (105 if streams else 5)  # more than the first alone has used, less than both
        source = SPLIT % (limit, OPENAI.model)
        program = halo_lang.parse(source.replace("agent Bot", "@timeout(500ms)\nagent Bot"))
        result = await runtime.run(program, "Main", {"texts": ["hi", "hi"]})
        await runtime.close()
    assert len(server.requests) == 1
    assert server.left.is_set()
    first, second = result.output
    assert (first["error"]["type"], second["error"]["type"]) == ("TimeoutExceeded", "PolicyViolation")
    assert result.context.meta["tokens"] == tokens(GIVEN, 100 if streams else 0)


# --- another model ----------------------------------------------------------------------------------------------------

TWO_CALLS = """\
@retry(2, 1ms)
agent Bot [%s]
@checkpoint
pipeline Main(text: String) -> String:
  text |> Bot.first() |> Bot.second()
"""


async def test_what_was_paid_stays_paid_where_another_model_takes_over(tmp_path: Path) -> None:
    """One try came to nothing, one reply came, and the run was stopped in the next call."""
    ollama, program = KITS["ollama"], halo_lang.parse(TWO_CALLS % OPENAI.model)
    store = FileRunStore(tmp_path)
    async with OPENAI.start() as server, ollama.start() as other:
        OPENAI.order(server, Turn(""), Turn("First."), streams=False)
        server.answer(Answer(hang=True))
        before = Runtime(env=OPENAI.env(server), store=store)
        running = asyncio.create_task(before.run(program, "Main", {"text": "hi"}, run_id="r"))
        await server.hanging.wait()
        before.stop("r")
        stopped = await running
        await before.close()
        after = Runtime(env=ollama.env(other), store=store, model=ollama.model)
        result = await after.resume("r")
        await after.close()
    first, second = result.context.meta["calls"]
    assert first["attempts"] == 2
    assert first["cost"] == line(stopped)["cost"] == pytest.approx(2 * (READ * 2.5 + MADE * 10) / 1e6)
    assert second["modelUsed"] == "llama3:8b"
    assert result.context.meta["cost"] == stopped.context.meta["cost"]  # Ollama costs nothing


async def test_a_shadow_costs_what_the_model_costs_that_is_asked() -> None:
    shadowed = "agent Twin [openai/gpt-4o]\n@shadow(Twin)\n" + PROGRAM.removeprefix("%s\n@retry(2, 1ms)\n")
    program = halo_lang.parse((shadowed % ("openai/gpt-4o", "")).replace("Bot.say", "Twin.say"))
    costs: list[Any] = []
    for kit in (OPENAI, KITS["ollama"]):
        async with kit.start() as server:
            kit.order(server, Turn("Yes."), Turn("Yes."), streams=False)
            runtime = Runtime(env=kit.env(server), model=kit.model)
            result = await runtime.run(program, "Main", {"text": "hi"})
            await runtime.close()
        costs.append(result.context.meta["shadow"][0]["cost"])
    assert costs == [pytest.approx((READ * 2.5 + MADE * 10) / 1e6), 0]


# --- loops ------------------------------------------------------------------------------------------------------------

TWICE = """\
import asyncio, sys
import halo_lang
from halo_runtime import Runtime
from tests.fakes.services import SERVICES, Turn

kit = next(kit for kit in SERVICES if kit.name == "openai chat")
program = halo_lang.parse({program!r})


async def main():
    async with kit.start() as server:
        kit.order(server, Turn("ok"), Turn("ok"), streams=True)
        runtime = Runtime(env=kit.env(server))
        for _ in range(2):
            result = await runtime.run(program, "Main", {{"text": "hi"}})
            assert result.output == "ok", result.error
        await runtime.close()
        server.answer(*broken())
        result = await runtime.run(program, "Main", {{"text": "hi"}})
        assert result.status == "failed"
        await runtime.close()


def broken():
    from tests.fakes.wire import Answer
    return [Answer(body=b"x", cut=True)] * 3


asyncio.run(main())
asyncio.run(main())
"""


def test_two_event_loops_in_one_process_leave_nothing_behind_and_say_nothing() -> None:
    source = TWICE.format(program=PROGRAM % ("", OPENAI.model, ""))
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")

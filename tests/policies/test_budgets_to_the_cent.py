"""Budgets are exact whatever services say and whatever becomes of calls: one test for each way to get them wrong.

The numbers in the names' comments are those of the list of evasions (13) and of public bug reports (46, 51) that the
rules were written against.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime import RunResult
from halo_runtime.engine.accounts import Account
from halo_runtime.engine.needs import Need, Use, spent_on
from halo_runtime.errors import ModelError, PolicyViolation
from halo_runtime.models.base import Message, ModelReply, ModelRequest, Usage
from halo_runtime.models.pricing import Price, Prices
from halo_runtime.policies.budgets import Budget
from tests.durability.support import Project
from tests.runtime.support import StubModel, StubTool, runtime, stubbed

BOT = "agent Bot [openai/gpt-4o-mini, max_tokens: 1000]\n  requires Guard\n"
TWO = f"{BOT}pipeline Main(x: String) -> Any:\n  x |> Bot.one() |> Bot.two()"
EACH = f'{BOT}pipeline Main(x: Array) -> Any:\n  x |* each(y in x, concurrency: 8, onError: "keep") => Bot.go(y)'
PRICE = Price(Decimal("1"), Decimal("10"), cached=Decimal("0.1"), cache_written=Decimal("1.25"))
"""US dollars for a million tokens."""


def play(rule: str, program: str, inputs: Any, answer: Any, **options: Any) -> tuple[RunResult, StubModel]:
    made, model = stubbed(answer, **options)
    text = f"policy Guard : {rule}\n{program}"
    return asyncio.run(made.run(halo_lang.parse(text), "Main", {"x": inputs})), model


def replying(usage: Usage, text: str = "ok", cost: Decimal | None = None) -> Any:
    async def answer(request: ModelRequest) -> ModelReply:
        for _ in range(3):
            await asyncio.sleep(0)
        return ModelReply(text, usage=usage, cost=cost)

    return answer


def left(result: RunResult, rule: str = "MaxSpend") -> Any:
    return result.context.meta["budget"]["Guard"][rule]["left"]


# --- 13: ways to get past a budget --------------------------------------------------------------------------


def test_two_calls_at_once_that_each_fit_but_together_do_not() -> None:
    # Each may cost $0.0006 for its reply and costs $0.00075.
    result, model = play("MaxSpend(0.001)", EACH, ["a", "b"], replying(Usage(1000, 1000)))
    assert len(model.requests) == 1
    assert [item == "ok" for item in result.output] == [True, False]


async def test_a_call_that_is_aborted_in_the_middle_of_its_answer_settles_with_an_estimate(tmp_path: Path) -> None:
    """Both what was sent and what had come are counted, in the run that goes on too."""
    project = Project(tmp_path)
    heard = asyncio.Event()

    class Hangs(StubModel):
        async def complete(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            on_delta("word " * 100)
            heard.set()
            await asyncio.Event().wait()
            raise AssertionError

    world = project.runtime()
    world._services.replies = None  # pyright: ignore[reportPrivateUsage]
    world.register_model_provider("openai", lambda env: Hangs(replying(Usage())))
    program = halo_lang.parse(f"policy Guard : MaxTokens(9999)\n{TWO}".replace("pipeline", "@checkpoint\npipeline"))
    running = asyncio.ensure_future(world.run(program, "Main", {"x": "t"}, run_id="r", keep=True))
    await heard.wait()
    world.stop("r")
    assert (await running).status == "interrupted"
    (aborted,) = project.store.load("r").aborted
    assert aborted["tokens"] >= 125
    project.replies = {"*": {"reply": "ok", "usage": {"input": 10, "output": 10}}}
    result = await project.runtime().resume("r")
    assert result.context.meta["budget"]["Guard"]["MaxTokens"]["spent"] == aborted["tokens"] + 40


@pytest.mark.parametrize("usage", [Usage(), Usage(input=10), Usage(output=10), Usage(-5, -5), Usage(-1, 10)])
def test_usage_that_is_absent_or_cannot_be_is_estimated_and_marked(usage: Usage) -> None:
    result, _ = play("MaxSpend(1)", TWO, "word " * 400, replying(usage, "word " * 400))
    assert result.status == "completed"
    assert left(result) < 1
    calls = result.context.meta["calls"]
    assert [call.get("estimated") for call in calls] == [True, True]
    assert all(call["cost"] > 0 for call in calls)


def test_cached_tokens_cost_what_they_cost_and_never_more_than_there_are() -> None:
    prices = {"openai/gpt-4o-mini": PRICE}
    for usage, cost in (
        (Usage(1000, 0, cached=900), "0.00019"),
        (Usage(1000, 0, cached=5000), "0.0001"),
        (Usage(1000, 0, cached=-900), "0.001"),
        (Usage(1000, 0, cached=500, cache_written=500), "0.000675"),
    ):
        result, _ = play("MaxSpend(1)", TWO, "t", replying(usage), prices=prices)
        assert Decimal(str(left(result))) == 1 - 2 * Decimal(cost)


@pytest.mark.parametrize("cost", ["NaN", "-0.01", "sNaN", "Infinity", "-Infinity"])
def test_a_cost_that_can_be_none_is_worked_out_from_the_tokens(cost: str) -> None:
    result, _ = play("MaxSpend(1)", TWO, "t", replying(Usage(1000, 1000), cost=Decimal(cost)))
    assert Decimal(str(left(result))) == 1 - 2 * Decimal("0.00075")


def test_the_price_that_holds_is_that_of_the_tier_that_a_call_comes_to() -> None:
    """From 200,000 tokens on, gemini-2.5-pro costs twice as much, for all of them."""
    prices = Prices()
    below, above = (prices.cost("google/gemini-2.5-pro", Usage(tokens, 0)) for tokens in (200_000, 200_001))
    assert below is not None
    assert above is not None
    assert above > below * Decimal("1.9")
    program = TWO.replace("openai/gpt-4o-mini", "google/gemini-2.5-pro")
    made = runtime()
    model = StubModel(replying(Usage(200_001, 0)))
    made.register_model_provider("google", lambda env: model)
    text = halo_lang.parse(f"policy Guard : MaxSpend({below * 2})\n{program}")
    result = asyncio.run(made.run(text, "Main", {"x": "t"}))
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 1


def test_a_free_model_on_this_machine_uses_nothing_up() -> None:
    made = runtime({"*": {"reply": "ok", "usage": {"input": 10**6, "output": 10**6}}})
    program = f"policy Guard : MaxSpend(0)\n{TWO}".replace("openai/gpt-4o-mini", "local/smollm2")
    result = asyncio.run(made.run(halo_lang.parse(program), "Main", {"x": "t"}))
    assert (result.status, left(result)) == ("completed", 0)


def test_ten_thousand_tiny_calls_come_to_the_cent() -> None:
    account = Account("Guard.0", "Guard", "MaxSpend(0.01)", Budget("usd", Decimal("0.01")))
    tiny = Use(calls=1, usd=Decimal("0.000001"))
    need = Need(tiny, tiny, bounded=True)
    for _ in range(10_000):
        assert account.refusal(need, "m") is None
        account.settle(account.reserve(need), tiny)
    assert account.spent == Decimal("0.01")
    assert account.refusal(need, "m") is not None


def test_a_budget_that_is_exactly_the_cost_is_enough_and_a_hair_less_is_not() -> None:
    prices = {"openai/gpt-4o-mini": Price(Decimal(0), Decimal(1))}  # the reply alone costs: $0.001 at most
    exact, _ = play("MaxSpend(0.002)", TWO, "t", replying(Usage(5, 1000)), prices=prices)
    assert (exact.status, left(exact)) == ("completed", 0)
    short, model = play("MaxSpend(0.001999)", TWO, "t", replying(Usage(5, 1000)), prices=prices)
    assert isinstance(short.error, PolicyViolation)
    assert len(model.requests) == 1


@given(
    st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 1000)), min_size=1, max_size=8),
    st.integers(1, 8),
    st.integers(1, 40),
)
def test_what_is_spent_is_the_sum_of_what_the_calls_cost_and_never_above_the_limit(
    usages: list[tuple[int, int]], width: int, mills: int
) -> None:
    """With a worst case that holds (`max_tokens`), however the calls are mixed."""
    limit = Decimal(mills) / 1000
    done: list[Decimal] = []

    async def answer(request: ModelRequest) -> ModelReply:
        mine = usages[len(model.requests) - 1]
        for _ in range(mine[0] % width):
            await asyncio.sleep(0)
        done.append(Decimal(mine[1]) / 100_000)
        return ModelReply("ok", usage=Usage(*mine))

    made, model = stubbed(answer, prices={"openai/gpt-4o-mini": Price(Decimal(0), Decimal(10))})
    program = halo_lang.parse(f"policy Guard : MaxSpend({limit})\n{EACH}")
    result = asyncio.run(made.run(program, "Main", {"x": list(range(len(usages)))}))
    assert sum(done) <= limit
    assert Decimal(str(left(result))) == limit - sum(done)


# --- 46: unknown prices -------------------------------------------------------------------------------------


def test_a_model_without_a_price_is_refused_under_max_spend_and_costs_null_without_it() -> None:
    program = TWO.replace("openai/gpt-4o-mini", "openai/brand-new")
    result, model = play("MaxSpend(1)", program, "t", replying(Usage(10, 10)))
    assert '[prices."openai/brand-new"]' in str(result.error)
    assert not model.requests
    result, _ = play("MaxCalls(9)", program, "t", replying(Usage(10, 10)))
    assert result.context.meta["cost"] is None


# --- 51: limits looked at only after the start --------------------------------------------------------------


def test_a_batch_of_tool_calls_is_counted_as_a_whole_before_any_of_them_begins() -> None:
    """A limit of 6 with 8 calls at once: none begins."""
    tool = StubTool(lambda method, args: "value")
    made = runtime({"Bot": [{"tool_calls": [{"tool": "Box_get", "args": {"key": str(n)}} for n in range(8)]}, "done"]})
    made.register_tool_provider("KV", tool)
    program = 'store Box: KV("b.db")\npolicy Guard : MaxToolCalls(6)\nagent Bot [openai/gpt-4o-mini]\n  equips Box\n'
    program += "  requires Guard\npipeline Main(x: Any) -> Any: x |> Bot.go(tools: [Box])"
    result = asyncio.run(made.run(halo_lang.parse(program), "Main", {"x": "t"}))
    assert isinstance(result.error, PolicyViolation)
    assert tool.calls == []
    assert left(result, "MaxToolCalls") == 6


def test_tokens_are_looked_at_before_they_are_spent() -> None:
    result, model = play("MaxTokens(1004)", TWO, "t", replying(Usage(4, 1000)))
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) <= 1
    assert left(result, "MaxTokens") >= 0


# --- what else counts ---------------------------------------------------------------------------------------


def test_shadows_have_a_figure_of_their_own() -> None:
    program = f"@shadow(Bot)\nagent Other [openai/gpt-4o-mini]\n  requires Guard\n{TWO}"
    result, model = play("MaxSpend(0.0014)", program, "t", replying(Usage(1000, 1000)))
    assert result.status == "completed"
    assert len(model.requests) == 4
    assert Decimal(str(left(result))) == 0
    assert [line["cost"] for line in result.context.meta["shadow"]] == [0.00075, 0.00075]


def test_failed_tries_that_used_something_count() -> None:
    program = f"@retry(1, 1ms)\n{BOT}pipeline Main(x: Any) -> Any: x |> Bot.go()"
    replies = iter([Usage(1000, 1000), Usage(1000, 1000)])

    async def answer(request: ModelRequest) -> ModelReply:
        usage = next(replies)
        if len(model.requests) == 1:
            error = ModelError("cut off", retryable=True)
            error.usage = usage
            raise error
        return ModelReply("ok", usage=usage)

    made, model = stubbed(answer)
    result = asyncio.run(made.run(halo_lang.parse(f"policy Guard : MaxSpend(1)\n{program}"), "Main", {"x": "t"}))
    assert Decimal(str(left(result))) == 1 - 2 * Decimal("0.00075")


def test_a_judge_counts_in_the_budgets_of_the_call_that_it_judges() -> None:
    rule = 'Block(Topic: "sport", model: "openai/gpt-4o-mini") & MaxCalls(2)'
    program = f"{BOT}pipeline Main(x: Any) -> Any: x |> Bot.go()"
    result, model = play(rule, program, "t", replying(Usage(10, 10), '{"found": false}'))
    assert isinstance(result.error, PolicyViolation)
    assert [request.agent for request in model.requests] == ["Guard", "Bot"]  # the answer finds no judge any more


def test_whoever_estimates_counts_characters_that_are_longer_in_bytes_for_more() -> None:
    def tokens(text: str) -> int:
        request = ModelRequest("m", "A", "b", (Message("user", text),))
        return spent_on(request, ModelReply(""), lambda usage: None).tokens

    assert tokens("漢字漢字") > tokens("kanj")


# --- conditions ---------------------------------------------------------------------------------------------


def test_what_is_left_can_be_read_in_conditions_and_texts() -> None:
    program = f"""{BOT}pipeline Main(x: String) -> Any:
  x
    |> Bot.one()
    |? {{ (context.meta.budget.Guard.MaxCalls.left < 3) => Bot.short(), else => Bot.long() }}
    |? (context.meta.budget.Guard.MaxCalls.spent == 2)
    |> System.Value("{{{{context.meta.budget.Guard.MaxCalls.limit}}}} at most")
"""
    text = f"policy Guard : MaxCalls(3)\n{program}"
    assert halo_lang.check(halo_lang.parse(text)).diagnostics == ()
    result, _ = play("MaxCalls(3)", program, "t", replying(Usage(10, 10)))
    assert result.output == "3 at most"
    assert list(result.context.data["Bot"]) == ["one", "short"]


def test_arms_see_what_was_used_before_their_block() -> None:
    """So a condition decides the same however fast the arms are, and again when the run goes on."""
    program = f"""{BOT}pipeline Fast(x: Any) -> Any: x |> Bot.one() |> System.Value(context.meta.budget.Guard.MaxCalls)
pipeline Slow(x: Any) -> Any: x |> Bot.a() |> Bot.b() |> System.Value(context.meta.budget.Guard.MaxCalls)
pipeline Main(x: Any) -> Any: x |* {{ Fast(x) as fast, Slow(x) as slow }} as both
"""
    result, _ = play("MaxCalls(9)", program, "t", replying(Usage(10, 10)))
    assert [result.output[name]["spent"] for name in ("fast", "slow")] == [0, 0]
    assert left(result, "MaxCalls") == 6


def test_without_budgets_there_is_nothing_to_read() -> None:
    result, _ = play("MaxLength(99)", TWO, "t", replying(Usage(10, 10)))
    assert result.context.meta["budget"] == {}

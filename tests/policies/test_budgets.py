"""Budgets: what is counted, when a call is refused, and that nothing makes a run begin more calls than it may."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime import RunResult
from halo_runtime.engine.budgets import Ledger
from halo_runtime.engine.guards import BoundRule
from halo_runtime.engine.needs import Need, Use
from halo_runtime.errors import ConfigError, ModelError, PolicyViolation, ToolError
from halo_runtime.models.base import ModelReply, ModelRequest, Usage
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import PolicyCall
from halo_runtime.policies.budgets import Budget
from tests.runtime.support import StubModel, StubTool, run, runtime, stubbed

BOT = "agent Bot [openai/gpt-4o-mini]\n  requires Guard\n"
EACH = f"{BOT}pipeline Main(xs: Array) -> Any:\n  xs |* each(x in xs, concurrency: 8{{}}) => Bot.answer(x)"
TWO = f"{BOT}pipeline Main(x: String) -> Any:\n  x |> Bot.one() |> Bot.two()"
CALL = PolicyCall("Bot", "answer", "openai/gpt-4o-mini")
NOBODY: Any = SimpleNamespace(standing_still=nullcontext)
"""A frame whose run has nobody to ask."""


def policy(*rules: str) -> str:
    return f"policy Guard : {' & '.join(rules)}\n"


def violations(result: RunResult) -> list[tuple[str, str, str]]:
    found = result.context.meta["violations"]
    return [(one["rule"], one["point"], f"{one['agent']}.{one['method']}") for one in found]


def answering(text: str, inputs: dict[str, Any], answer: Any, **options: Any) -> tuple[RunResult, StubModel]:
    made, model = stubbed(answer)
    return asyncio.run(made.run(halo_lang.parse(text), "Main", inputs, **options)), model


async def slowly(request: ModelRequest) -> str:
    await asyncio.sleep(0)
    return "ok"


def using(given: int | None, made: int | None) -> Any:
    """A model whose replies use so many tokens."""

    async def answer(request: ModelRequest) -> ModelReply:
        await asyncio.sleep(0)
        return ModelReply("ok", usage=Usage(given, made))

    return answer


# --- counting calls -----------------------------------------------------------------------------------------


def test_calls_side_by_side_cannot_overshoot() -> None:
    result, model = answering(policy("MaxCalls(3)") + EACH.format(""), {"xs": list(range(8))}, slowly)
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 3


def test_items_over_the_limit_fail_alone_where_each_keeps_errors() -> None:
    program = policy("MaxCalls(3)") + EACH.format(', onError: "keep"')
    result, model = answering(program, {"xs": list(range(8))}, slowly)
    refused = [item["error"]["type"] for item in result.output if item != "ok"]
    assert refused == ["PolicyViolation"] * 5
    assert len(model.requests) == 3


def test_what_breaks_a_budget_is_a_violation_at_the_input_under_the_rule_as_written() -> None:
    result = run(policy("MaxCalls( 1 )") + TWO, {"x": "t"}, {"Bot.one": "first"})
    assert violations(result) == [("MaxCalls( 1 )", "input", "Bot.two")]
    assert str(result.error) == "Bot.two was blocked by policy Guard, rule MaxCalls( 1 ): 1 of 1 calls used up"
    assert result.context.meta["calls"][1]["attempts"] == 0


def test_retries_count() -> None:
    program = policy("MaxCalls(2)") + "@retry(3, 1ms)\n" + BOT + "pipeline Main(x: Any) -> Any: x |> Bot.go()"

    async def fails(request: ModelRequest) -> str:
        raise ModelError("busy", retryable=True, status=503)

    result, model = answering(program, {"x": "t"}, fails)
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 2


def test_corrections_count() -> None:
    program = policy('Match("^yes$")', "MaxCalls(2)") + "@correct(5)\n" + BOT
    result, model = answering(f"{program}pipeline Main(x: Any) -> Any: x |> Bot.go()", {"x": "t"}, slowly)
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 2


def test_shadows_do_not_count() -> None:
    program = policy("MaxCalls(1)") + BOT + "@shadow(Bot)\nagent Other [openai/gpt-4o-mini]\n  requires Guard\n"
    replies = {"Bot": "real", "Other": "beside"}
    result = run(f"{program}pipeline Main(x: Any) -> Any: x |> Bot.go()", {"x": "t"}, replies)
    assert result.output == "real"
    assert result.context.meta["shadow"][0]["output"] == "beside"


def test_nested_pipelines_and_all_agents_of_a_policy_share_its_budget() -> None:
    other = "agent Other [openai/gpt-4o-mini]\n  requires Guard\npipeline Inner(x: Any) -> Any: x |> Other.go()\n"
    program = (
        policy("MaxCalls(2)") + BOT + other + "pipeline Main(x: Any) -> Any: x |> Inner(x) |> Bot.go() |> Inner(x)"
    )
    result = run(program, {"x": "t"}, {"*": "ok"})
    assert violations(result) == [("MaxCalls(2)", "input", "Other.go")]


def test_each_run_has_budgets_of_its_own() -> None:
    made, _ = stubbed(slowly)
    program = halo_lang.parse(policy("MaxCalls(2)") + TWO)

    async def twice() -> list[RunResult]:
        return [await made.run(program, "Main", {"x": "t"}) for _ in range(2)]

    assert [result.status for result in asyncio.run(twice())] == ["completed", "completed"]


# --- tools --------------------------------------------------------------------------------------------------

TOOLS = """store Box: KV("box.db")
agent Bot [openai/gpt-4o-mini]
  equips Box
  requires Guard
pipeline Main(x: Any) -> Any: x |> Bot.go(tools: [Box])
"""


def with_tools(rule: str, turns: list[Any]) -> tuple[RunResult, StubTool]:
    tool = StubTool(lambda method, args: "value")
    made = runtime({"Bot": turns})
    made.register_tool_provider("KV", tool)
    return asyncio.run(made.run(halo_lang.parse(policy(rule) + TOOLS), "Main", {"x": "t"})), tool


def get(*keys: str) -> dict[str, Any]:
    return {"tool_calls": [{"tool": "Box_get", "args": {"key": key}} for key in keys]}


def test_tool_calls_that_an_agent_chooses_count_those_of_one_turn_too() -> None:
    result, tool = with_tools("MaxToolCalls(2)", [get("a"), get("b", "c"), "done"])
    assert isinstance(result.error, PolicyViolation)
    assert len(tool.calls) <= 2
    assert violations(result)[0] == ("MaxToolCalls(2)", "input", "Bot.go")


def test_tool_calls_within_the_limit_are_made() -> None:
    result, tool = with_tools("MaxToolCalls(3)", [get("a"), get("b", "c"), "done"])
    assert result.output == "done"
    assert len(tool.calls) == 3


def test_a_tool_that_runs_before_the_prompt_counts_and_so_do_its_retries() -> None:
    def fails(method: str, args: dict[str, Any]) -> Any:
        raise ToolError("busy", retryable=True, status=503)

    tool = StubTool(fails)
    made = runtime({"Bot": "done"})
    made.register_tool_provider("KV", tool)
    program = policy("MaxToolCalls(2)") + "@retry(5, 1ms)\n" + TOOLS.partition("\n")[2]
    program = f'store Box: KV("box.db")\n{program}'.replace("Bot.go(tools: [Box])", 'Bot.get(tool: Box, key: "k")')
    result = asyncio.run(made.run(halo_lang.parse(program), "Main", {"x": "t"}))
    assert isinstance(result.error, PolicyViolation)
    assert len(tool.calls) == 2


# --- tokens and money ---------------------------------------------------------------------------------------


def test_tokens_are_those_that_the_service_tells() -> None:
    result, model = answering(policy("MaxTokens(150)") + TWO, {"x": "t"}, using(100, 50))
    assert len(model.requests) == 1
    assert "150 of 150 tokens used up" in str(result.error)


def test_tokens_that_the_service_does_not_tell_are_estimated_and_not_nothing() -> None:
    program = policy("MaxTokens(300)") + TWO
    result, model = answering(program, {"x": "a long text " * 100}, using(None, None))
    assert isinstance(result.error, PolicyViolation)
    assert not model.requests


def test_a_budget_that_is_spent_exactly_is_kept() -> None:
    # 1000 tokens in at $0.15 and 1000 out at $0.60 a million
    result, _ = answering(policy("MaxSpend(0.0016)") + TWO, {"x": "t"}, using(1000, 1000))
    assert result.status == "completed"
    assert Decimal(str(result.context.meta["cost"])) == Decimal("0.0015")


def test_money_is_counted_in_decimals() -> None:
    result, model = answering(policy("MaxSpend(0.00075)") + TWO, {"x": "t"}, using(1000, 1000))
    assert len(model.requests) == 1
    assert "$0.00075 of $0.00075 used up" in str(result.error)


def test_where_max_tokens_is_set_the_worst_case_must_fit() -> None:
    bot = BOT.replace("[openai/gpt-4o-mini]", "[openai/gpt-4o-mini, max_tokens: 2000]")
    program = policy("MaxSpend(0.001)") + bot + "pipeline Main(x: Any) -> Any: x |> Bot.go()"
    result, model = answering(program, {"x": "t"}, using(10, 10))
    assert isinstance(result.error, PolicyViolation)
    assert not model.requests


def test_calls_that_may_not_all_fit_wait_for_each_other_and_are_not_refused() -> None:
    at_once = 0
    most = 0

    async def answer(request: ModelRequest) -> ModelReply:
        nonlocal at_once, most
        at_once, most = at_once + 1, max(most, at_once + 1)
        await asyncio.sleep(0)
        at_once -= 1
        return ModelReply("ok", usage=Usage(10, 10))

    program = policy("MaxTokens(5000)") + EACH.format("")
    result, _ = answering(program, {"xs": list(range(8))}, answer)
    assert result.status == "completed"
    assert most == 1


def test_without_a_known_price_spending_is_refused_and_nothing_is_sent() -> None:
    program = (policy("MaxSpend(1)") + TWO).replace("gpt-4o-mini", "our-own")
    result, model = answering(program, {"x": "t"}, slowly)
    assert "no price of openai/our-own is known; use a model with a known price" in str(result.error)
    assert not model.requests


def test_models_on_this_machine_cost_nothing() -> None:
    program = (policy("MaxSpend(0)") + TWO).replace("openai/gpt-4o-mini", "ollama/any")
    assert run(program, {"x": "t"}, {"*": {"reply": "ok", "usage": {"input": 9, "output": 9}}}).status == "completed"


@pytest.mark.parametrize("cost", ["NaN", "-1", "Infinity"])
def test_a_cost_that_can_be_none_is_not_taken_from_the_service(cost: str) -> None:
    async def answer(request: ModelRequest) -> ModelReply:
        return ModelReply("ok", usage=Usage(1000, 1000), cost=Decimal(cost))

    _, model = answering(policy("MaxSpend(0.0007)") + TWO, {"x": "t"}, answer)
    assert len(model.requests) == 1


def test_a_call_that_is_broken_off_counts_for_what_was_sent() -> None:
    bot = "@retry(1, 1ms)\n@timeout(1ms)\n" + BOT
    program = policy("MaxTokens(120)") + bot + "pipeline Main(x: Any) -> Any: x |> Bot.go()"

    async def never(request: ModelRequest) -> str:
        await asyncio.sleep(60)
        return "late"

    result, model = answering(program, {"x": "word " * 60}, never)
    assert isinstance(result.error, PolicyViolation)
    assert len(model.requests) == 1


def test_a_run_has_a_limit_of_its_own_over_all_its_agents() -> None:
    program = TWO.replace("  requires Guard\n", "")
    result, model = answering(program, {"x": "t"}, using(1000, 1000), max_spend=Decimal("0.00075"))
    assert len(model.requests) == 1
    assert violations(result) == [("MaxSpend(0.00075)", "input", "Bot.two")]


# --- refused before the run ---------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [-1, "3", True, None, float("nan"), float("inf"), 1.5])
def test_a_limit_that_is_none_is_refused_before_the_run(limit: object) -> None:
    with pytest.raises(ConfigError, match="MaxCalls takes a"):
        rule_factory("MaxCalls")({"n": limit})


# --- any interleaving ---------------------------------------------------------------------------------------


def ledger_of(budget: Budget) -> Ledger:
    return Ledger("Main", {"Guard": (BoundRule("Guard", "Max", budget),)}, lambda agent: ("Guard",))


@st.composite
def plans(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Calls: at which turn each begins, how many it takes, what it may use at most, and what it does use."""
    numbers = st.integers(0, 6)
    rows = draw(st.lists(st.tuples(numbers, numbers, st.integers(1, 9), numbers), min_size=1, max_size=12))
    return [(begin, turns, most, min(used, most)) for begin, turns, most, used in rows]


@given(plans(), st.integers(1, 20), st.sampled_from(["calls", "tokens"]))
def test_in_any_order_no_more_is_used_than_the_limit_and_the_count_is_exact(
    rows: list[tuple[int, int, int, int]], limit: int, unit: Any
) -> None:
    ledger = ledger_of(Budget(unit, Decimal(limit)))
    used: list[Use] = []

    async def call(begin: int, turns: int, most: int, uses: int) -> None:
        for _ in range(begin):
            await asyncio.sleep(0)
        need = Need(Use(1, 0, 0), Use(1, 0, most), bounded=True)
        try:
            async with ledger.book(NOBODY, CALL, lambda: need, lambda charge: None) as booking:
                for _ in range(turns):
                    await asyncio.sleep(0)
                used.append(Use(1, 0, uses))
                booking.settle(used[-1])
        except PolicyViolation:
            return

    async def everything() -> None:
        await asyncio.gather(*(call(*row) for row in rows))

    asyncio.run(asyncio.wait_for(everything(), 10))
    total = sum(use.of(unit) or 0 for use in used)
    assert total <= limit
    assert ledger.spent("Bot") == {"Max": total}
    if unit == "calls":
        assert total == min(limit, len(rows))


@given(st.integers(0, 12), st.integers(1, 12), st.integers(1, 12), st.integers(0, 3))
def test_a_run_makes_as_many_calls_as_it_may_whatever_fails(items: int, limit: int, width: int, failing: int) -> None:
    program = policy(f"MaxCalls({limit})") + "@retry(1, 1ms)\n" + EACH.format(', onError: "keep"')

    async def answer(request: ModelRequest) -> str:
        for _ in range(len(model.requests) % width):
            await asyncio.sleep(0)
        if failing and len(model.requests) % (failing + 1) == 0:
            raise ModelError("busy", retryable=True, status=503)
        return "ok"

    made, model = stubbed(answer)
    asyncio.run(made.run(halo_lang.parse(program), "Main", {"xs": list(range(items))}))
    assert min(items, limit) <= len(model.requests) <= limit

"""Budgets that ask: at the limit nothing begins, what runs ends, and one question stands for all that wait (spec 6)."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime import PAUSE, Interrupt, RunResult
from halo_runtime.errors import ConfigError, ModelError, PolicyViolation, SignalError
from halo_runtime.models.base import ModelReply, ModelRequest, Usage
from halo_runtime.policies import rule_factory
from halo_runtime.raising import added, dollars, shown
from tests.runtime.support import StubTool, runtime, stubbed

ASKS = 'onLimit: "ask"'
BOT = "agent Bot [openai/gpt-4o-mini, max_tokens: 1000]\n  requires Guard\n"
TWO = f"{BOT}pipeline Main(x: String) -> Any:\n  x |> Bot.one() |> Bot.two()"
EACH = f"{BOT}pipeline Main(xs: Array) -> Any:\n  xs |* each(x in xs, concurrency: 8{{}}) => Bot.answer(x)"


def policy(*rules: str) -> str:
    return f"policy Guard : {' & '.join(rules)}\n"


async def using(request: ModelRequest) -> ModelReply:
    """A reply that costs $0.00075."""
    await asyncio.sleep(0)
    return ModelReply("ok", usage=Usage(1000, 1000))


class Play:
    """A run whose limits are raised by `answers`, one after another; those that come on top are left open."""

    def __init__(
        self, program: str, inputs: dict[str, Any], *answers: Any, answer: Any = using, **options: Any
    ) -> None:
        self.asked: list[Interrupt] = []
        self.world, self.model = stubbed(answer)
        self._answers = iter(answers)
        self.world.on_interrupt(self._answer)
        self.result = asyncio.run(self.world.run(halo_lang.parse(program), "Main", inputs, **options))

    async def _answer(self, question: Interrupt) -> Any:
        self.asked.append(question)
        return next(self._answers, PAUSE)

    def signal(self, value: Any) -> RunResult:
        self.result = asyncio.run(self.world.signal(self.result.run_id, value))
        return self.result

    @property
    def requests(self) -> int:
        return len(self.model.requests)


# --- the question -------------------------------------------------------------------------------------------


def test_at_the_limit_the_run_pauses_with_what_is_used_and_what_the_next_call_costs_at_most() -> None:
    play = Play(policy(f"MaxSpend(0.001, {ASKS})") + TWO, {"x": "t"})
    (question,) = play.result.interrupts
    assert (play.result.status, question.kind, question.stage) == ("paused", "limit", "|> Bot.two")
    assert question.message == (
        "Policy Guard: $0.00075 of $0.001 are used; Bot.two may cost $0.000601 more; add how much?"
    )
    assert question.choices == ({"add": 0.001}, "stop")
    assert question.to_json()["budget"] == {
        "policy": "Guard", "rule": f"MaxSpend(0.001, {ASKS})", "unit": "usd",
        "limit": 0.001, "spent": 0.00075, "next": pytest.approx(0.00060075),
    }  # fmt: skip
    assert play.requests == 1
    assert [call["attempts"] for call in play.result.context.meta["calls"]] == [1, 0]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (f"MaxCalls(1, {ASKS})", "1 of 1 calls are used; Bot.two needs 1 call more; add how many?"),
        (f"MaxTokens(2010, {ASKS})", "2000 of 2010 tokens are used; Bot.two may need 1005 tokens more; add how many?"),
    ],
)
def test_every_budget_asks_in_its_own_unit(rule: str, says: str) -> None:
    (question,) = Play(policy(rule) + TWO, {"x": "t"}).result.interrupts
    assert says in question.message


def test_the_runs_own_limit_asks_too() -> None:
    program = TWO.replace("  requires Guard\n", "")
    play = Play(program, {"x": "t"}, {"add": 0.5}, max_spend=Decimal("0.001"), on_limit="ask")
    assert play.result.status == "completed"
    assert play.asked[0].message.startswith("This run: $0.00075 of $0.001 are used")


def test_a_limit_that_says_nothing_fails_as_before() -> None:
    assert isinstance(Play(policy("MaxCalls(1)") + TWO, {"x": "t"}).result.error, PolicyViolation)


def test_what_happens_at_a_limit_is_one_of_two() -> None:
    with pytest.raises(ConfigError, match='onLimit is "fail" or "ask"'):
        rule_factory("MaxCalls")({"n": 1, "onLimit": "pause"})


def test_a_price_that_nobody_knows_is_refused_and_not_asked_about() -> None:
    program = (policy(f"MaxSpend(1, {ASKS})") + TWO).replace("gpt-4o-mini", "our-own")
    play = Play(program, {"x": "t"}, {"add": 5})
    assert "no price of openai/our-own is known" in str(play.result.error)
    assert (play.requests, play.asked) == (0, [])


def test_where_another_limit_refuses_nobody_is_asked_in_vain() -> None:
    play = Play(policy(f"MaxCalls(1, {ASKS})", "MaxSpend(0.001)") + TWO, {"x": "t"}, {"add": 5})
    assert isinstance(play.result.error, PolicyViolation)
    assert play.asked == []


def test_a_call_that_costs_nothing_is_never_too_dear() -> None:
    program = policy(f"MaxSpend(0, {ASKS})") + TWO.replace("openai/gpt-4o-mini", "ollama/any")
    made = runtime({"*": {"reply": "ok", "usage": {"input": 9, "output": 9}}})
    assert asyncio.run(made.run(halo_lang.parse(program), "Main", {"x": "t"})).status == "completed"


# --- the answer ---------------------------------------------------------------------------------------------


def test_what_is_added_lets_the_run_go_on_and_nothing_is_forgotten() -> None:
    play = Play(policy(f"MaxSpend(0.001, {ASKS})") + TWO, {"x": "t"})
    result = play.signal({"add": 0.0005})
    assert (result.status, play.requests) == ("completed", 2)
    assert result.context.meta["cost"] == pytest.approx(0.0015)
    assert result.context.meta["budget"]["Guard"]["MaxSpend"] == {"limit": 0.0015, "spent": 0.0015, "left": 0}


def test_what_is_not_enough_asks_again_under_another_id() -> None:
    play = Play(policy(f"MaxSpend(0.001, {ASKS})") + TWO, {"x": "t"})
    first = play.result.interrupts[0]
    (second,) = play.signal({"add": 0.0001}).interrupts
    assert second.id != first.id
    assert "$0.00075 of $0.0011 are used" in second.message
    assert play.signal({"add": 1}).status == "completed"


def test_stop_ends_the_run_with_a_violation_of_the_rule_as_written() -> None:
    play = Play(policy(f"MaxCalls( 1, {ASKS})") + TWO, {"x": "t"})
    result = play.signal("stop")
    assert isinstance(result.error, PolicyViolation)
    assert str(result.error).endswith(f"rule MaxCalls( 1, {ASKS}): 1 of 1 calls used up; it was not raised")
    assert [one["rule"] for one in result.context.meta["violations"]] == [f"MaxCalls( 1, {ASKS})"]
    assert play.requests == 1


WRONG: list[Any] = [
    "add", "Stop", 0.5, None, True, [], {}, {"add": 0}, {"add": -1}, {"add": "1"}, {"add": True}, {"add": None},
    {"add": 1, "also": 2}, {"add": 10**400}, {"add": float("nan")},
]  # fmt: skip


@pytest.mark.parametrize("value", WRONG[:-2])
def test_any_other_answer_is_refused_and_the_question_stays(value: Any) -> None:
    play = Play(policy(f"MaxCalls(1, {ASKS})") + TWO, {"x": "t"})
    with pytest.raises(SignalError, match=r'is answered \{"add": 10\} with an amount of your own, or "stop"'):
        play.signal(value)
    assert play.signal({"add": 1}).status == "completed"


@pytest.mark.parametrize("value", WRONG[:4])
def test_a_handler_that_gives_another_answer_allows_no_more(value: Any) -> None:
    play = Play(policy(f"MaxCalls(1, {ASKS})") + TWO, {"x": "t"}, value)
    assert isinstance(play.result.error, PolicyViolation)
    assert len(play.asked) == 1


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("unit", ["usd", "calls"])
def test_an_amount_is_a_number_above_nothing(value: Any, unit: Any) -> None:
    assert added(unit, value) is None


@pytest.mark.parametrize(("unit", "value", "amount"), [("usd", 0.1, "0.1"), ("usd", 2, "2"), ("calls", 3.0, "3.0")])
def test_an_amount_is_the_number_as_written(unit: Any, value: Any, amount: str) -> None:
    assert added(unit, {"add": value}) == Decimal(amount)


def test_what_is_counted_is_added_in_whole_numbers() -> None:
    assert added("tokens", {"add": 0.5}) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [("1", "$1.00"), ("0.98", "$0.98"), ("0.5", "$0.50"), ("0.00075", "$0.00075"), ("100", "$100.00"), ("0", "$0.00")],
)
def test_money_has_two_decimals_at_least(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text


def test_an_estimate_is_rounded_up() -> None:
    assert shown(Decimal("0.00060001"), "usd", estimate=True) == "$0.000601"


# --- several at once ----------------------------------------------------------------------------------------


def test_all_that_wait_at_a_limit_are_one_question() -> None:
    play = Play(policy(f"MaxCalls(3, {ASKS})") + EACH.format(""), {"xs": list(range(500))})
    assert (play.result.status, len(play.result.interrupts), play.requests) == ("paused", 1, 3)
    (question,) = play.result.interrupts
    assert "3 of 3 calls are used" in question.message
    assert play.signal({"add": 497}).status == "completed"
    assert play.requests == 500


def test_a_handler_is_asked_once_for_all_that_wait() -> None:
    play = Play(policy(f"MaxCalls(3, {ASKS})") + EACH.format(""), {"xs": list(range(8))}, {"add": 2}, {"add": 3})
    assert play.result.output == ["ok"] * 8
    assert [question.budget and question.budget["limit"] for question in play.asked] == [3, 5]


def test_what_runs_ends_before_anybody_is_asked_so_that_what_is_used_is_known() -> None:
    """Two calls that each fit but together do not: the second waits for the first, then asks."""
    ended: list[str] = []

    async def slowly(request: ModelRequest) -> ModelReply:
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append("reply")
        return ModelReply("ok", usage=Usage(1000, 1000))

    play = Play(policy(f"MaxSpend(0.0008, {ASKS})") + EACH.format(""), {"xs": [1, 2]}, answer=slowly)
    (question,) = play.result.interrupts
    assert ended == ["reply"]
    assert "$0.00075 of $0.0008 are used" in question.message


def test_no_call_that_would_still_fit_begins_while_somebody_is_asked() -> None:
    small = "agent Small [openai/gpt-4o-mini, max_tokens: 1]\n  requires Guard\n"
    program = f"{policy(f'MaxSpend(0.001, {ASKS})')}{BOT}{small}"
    program += "pipeline Big(x: Any) -> Any: x |> Bot.first() |> Bot.big()\n"
    program += 'pipeline Little(x: Any) -> Any: x |! yield("?") |> Small.go()\n'
    program += "pipeline Main(x: Any) -> Any: x |* { Big(x) as big, Little(x) as little }\n"
    world, model = stubbed(using)
    asked = asyncio.Event()

    async def handler(question: Interrupt) -> Any:
        if question.kind == "yield":
            await asked.wait()
            return "go"
        asked.set()
        for _ in range(50):
            await asyncio.sleep(0)
        assert [request.agent for request in model.requests] == ["Bot"]
        return {"add": 1}

    world.on_interrupt(handler)
    result = asyncio.run(world.run(halo_lang.parse(program), "Main", {"x": "t"}))
    assert (result.status, len(model.requests)) == ("completed", 3)


def test_after_stop_items_that_keep_errors_fail_alone_and_nobody_is_asked_again() -> None:
    program = policy(f"MaxCalls(2, {ASKS})") + EACH.format(', onError: "keep"')
    play = Play(program, {"xs": list(range(6))}, "stop")
    assert [item == "ok" for item in play.result.output] == [True, True, False, False, False, False]
    assert len(play.asked) == 1


def test_retries_and_corrections_come_to_the_limit_as_other_calls_do() -> None:
    head = policy('Match("^yes$")', f"MaxCalls(1, {ASKS})") + "@retry(3, 1ms)\n@correct(3)\n" + BOT
    replies = iter([ModelError("busy", retryable=True, status=503), "no", "yes"])

    async def answer(request: ModelRequest) -> str:
        reply = next(replies)
        if isinstance(reply, ModelError):
            raise reply
        return reply

    play = Play(f"{head}pipeline Main(x: Any) -> Any: x |> Bot.go()", {"x": "t"}, answer=answer)
    assert play.signal({"add": 1}).status == "paused"
    result = play.signal({"add": 1})
    assert (result.output, play.requests) == ("yes", 3)
    assert result.context.meta["calls"][0]["attempts"] == 3


def test_nested_pipelines_come_to_the_same_limit() -> None:
    program = policy(f"MaxCalls(1, {ASKS})") + BOT + "pipeline Inner(x: Any) -> Any: x |> Bot.go() |> Bot.on()\n"
    play = Play(f"{program}pipeline Main(x: Any) -> Any: x |* {{ Inner(x) as a, Inner(x) as b }}", {"x": "t"})
    assert len(play.result.interrupts) == 1
    assert play.signal({"add": 3}).status == "completed"


def test_a_time_limit_stands_still_while_somebody_is_asked() -> None:
    program = policy(f"MaxCalls(1, {ASKS})") + BOT + "@timeout(50ms)\npipeline Part(x: Any) -> Any: x |> Bot.go()\n"
    program += "pipeline Main(x: Any) -> Any: x |* { Part(x) as a, Part(x) as b, Part(x) as c }"
    world, _ = stubbed(using)

    async def late(question: Interrupt) -> Any:
        await asyncio.sleep(0.12)  # longer than the pipelines may take
        return {"add": 5}

    world.on_interrupt(late)
    assert asyncio.run(world.run(halo_lang.parse(program), "Main", {"x": "t"})).status == "completed"


def test_a_failure_elsewhere_ends_the_run_while_somebody_is_asked() -> None:
    program = policy(f"MaxCalls(1, {ASKS})") + BOT + "pipeline Late(x: Any) -> Any: x |> Bot.one() |> Bot.two()\n"
    program += 'pipeline Fails(x: Any) -> Any: x |! yield("?") |> System.Fail("no")\n'
    program += "pipeline Main(x: Any) -> Any: x |* { Fails(x) as b, Late(x) as a }"
    world, _ = stubbed(using)
    asked = asyncio.Event()

    async def handler(question: Interrupt) -> Any:
        if question.kind == "limit":
            asked.set()
            await asyncio.Event().wait()
        await asked.wait()
        return "go on"

    world.on_interrupt(handler)
    running = world.run(halo_lang.parse(program), "Main", {"x": "t"})
    result = asyncio.run(asyncio.wait_for(running, 5))
    assert type(result.error).__name__ == "ProgramFailure"


def test_a_run_can_be_stopped_while_somebody_is_asked() -> None:
    world, _ = stubbed(using)
    seen: list[str] = []

    async def scenario() -> None:
        open_now = asyncio.Event()

        async def never(question: Interrupt) -> Any:
            seen.append(question.id)
            open_now.set()
            await asyncio.Event().wait()

        world.on_interrupt(never)
        program = halo_lang.parse(policy(f"MaxCalls(1, {ASKS})") + TWO)
        running = asyncio.ensure_future(world.run(program, "Main", {"x": "t"}, run_id="r"))
        await open_now.wait()
        assert world.stop("r")
        assert (await running).status == "interrupted"

    asyncio.run(scenario())
    assert len(seen) == 1


# --- tools --------------------------------------------------------------------------------------------------

TOOLS = """store Box: KV("box.db")
agent Bot [openai/gpt-4o-mini]
  equips Box
  requires Guard
pipeline Main(x: Any) -> Any: x |> Bot.go(tools: [Box])
"""


@pytest.mark.parametrize("method", ["get", "incr"])
def test_the_tool_calls_of_a_turn_are_asked_about_together_and_none_is_in_doubt(method: str) -> None:
    tool = StubTool(lambda method, args: "value")
    calls = [{"tool": f"Box_{method}", "args": {"key": key}} for key in "abc"]
    made = runtime({"Bot": [{"tool_calls": calls}, "done"]})
    made.register_tool_provider("KV", tool)
    program = halo_lang.parse(policy(f"MaxToolCalls(2, {ASKS})") + TOOLS)
    paused = asyncio.run(made.run(program, "Main", {"x": "t"}))
    (question,) = paused.interrupts
    assert "0 of 2 tool calls are used; Bot.go needs 3 tool calls more" in question.message
    assert tool.calls == []
    result = asyncio.run(made.signal(paused.run_id, {"add": 1}))
    assert (result.output, len(tool.calls)) == ("done", 3)


# --- any interleaving ---------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(1, 4), st.lists(st.integers(1, 4), max_size=6), st.booleans(), st.integers(1, 8))
def test_whatever_is_added_no_more_calls_begin_than_were_allowed(
    items: int, limit: int, raises: list[int], pausing: bool, width: int
) -> None:
    """By a handler that answers at once, or by pauses: the same calls, no question twice."""

    async def answer(request: ModelRequest) -> ModelReply:
        for _ in range(len(model.requests) % width):
            await asyncio.sleep(0)
        return ModelReply("ok", usage=Usage(10, 10))

    world, model = stubbed(answer)
    answers = iter([{"add": amount} for amount in raises])
    asked: list[str] = []

    async def handler(question: Interrupt) -> Any:
        asked.append(question.id)
        return next(answers, PAUSE)

    async def scenario() -> RunResult:
        result = await world.run(program, "Main", {"xs": list(range(items))})
        while pausing and result.status == "paused":
            asked.append(result.interrupts[0].id)
            more = next(answers, None)
            if more is None:
                break
            result = await world.signal(result.run_id, more)
        return result

    if not pausing:
        world.on_interrupt(handler)
    program = halo_lang.parse(policy(f"MaxCalls({limit}, {ASKS})") + EACH.format(""))
    result = asyncio.run(scenario())
    allowed = limit + sum(raises)
    assert len(model.requests) == min(items, allowed)
    assert result.status == ("completed" if items <= allowed else "paused")
    assert len(set(asked)) == len(asked)

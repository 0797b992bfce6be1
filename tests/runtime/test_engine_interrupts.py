"""Questions to people and awaited events: handlers, pauses, answers by id (spec 2.6, 12.2)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import halo_lang
from halo_runtime import PAUSE, Interrupt, Journal, RunResult, Runtime, verify_trace
from halo_runtime.errors import AlreadyAnswered, AmbiguousSignal, SignalError, UnknownInterrupt, UnknownRun
from tests.runtime.support import FakeClock, StubTool, run, runtime

AGENTS = "agent A [openai/gpt-4o-mini]\n"


def asking(*answers: Any, replies: dict[str, Any] | None = None) -> tuple[Runtime, list[Interrupt]]:
    """A Runtime whose handler gives these answers in turn, and what it was asked."""
    asked: list[Interrupt] = []

    async def handler(interrupt: Interrupt) -> Any:
        asked.append(interrupt)
        return answers[len(asked) - 1]

    world = runtime(replies or {})
    world.on_interrupt(handler)
    return world, asked


def pipeline(stages: str) -> halo_lang.Program:
    return halo_lang.parse(f"{AGENTS}pipeline Main(x: Any) -> Result:\n  {stages}")


async def paused(stages: str, x: Any = 1, **options: Any) -> tuple[Runtime, RunResult]:
    """A run that nobody answers."""
    world = runtime({}, **options)
    result = await world.run(pipeline(stages), "Main", {"x": x}, run_id="run")
    assert result.status == "paused"
    return world, result


# --- handlers -----------------------------------------------------------------------------------------------


async def test_a_handler_answers_at_once_and_the_answer_flows_on() -> None:
    world, asked = asking("yes")
    result = await world.run(
        pipeline('x |! yield("Deploy {{x}}?") as ok |> System.Value("{{ok}} {{current}}")'), "Main", {"x": 7}
    )
    assert (result.status, result.output, result.context.data["ok"]) == ("completed", "yes yes", "yes")
    assert asked[0].message == "Deploy 7?"


async def test_a_question_tells_all_that_a_person_needs() -> None:
    world, asked = asking("yes")
    stages = """x |! yield("Go?", channel: "ops", timeout: 2h, attachments: ["a text", x]) as ok
      |? { (ok == "yes") => System.Value(1), (ok == "no" || ok == 3) => System.Value(2),
           (x == "other") => System.Value(3) }"""
    await world.run(pipeline(stages), "Main", {"x": {"k": 1}}, run_id="r")
    assert asked[0].to_json() == {
        "id": asked[0].id,
        "kind": "yield",
        "message": "Go?",
        "channel": "ops",
        "attachments": [
            {"kind": "text", "text": "a text", "name": None},
            {"kind": "text", "text": '{"k":1}', "name": None},
        ],
        "choices": ["yes", "no", 3],
        "event": None,
        "stage": "|! yield",
        "askedAt": "2026-01-02T03:04:05.000Z",
        "expiresAt": "2026-01-02T05:04:05.000Z",
    }
    assert (asked[0].run_id, asked[0].binding) == ("r", "ok")


@pytest.mark.parametrize("answer", [False, True, 0, 1.5, "", "false", None, [], {}, {"a": [None]}])
async def test_every_json_value_is_an_answer(answer: Any) -> None:
    world, _ = asking(answer)
    handled = await world.run(pipeline('x |! yield("?") as a'), "Main", {"x": 1})
    other, result = await paused('x |! yield("?") as a')
    signalled = await other.signal(result.run_id, answer)
    for ended in (handled, signalled):
        assert (ended.status, ended.output, ended.context.data["a"]) == ("completed", answer, answer)


async def test_a_failing_handler_fails_the_run_at_its_stage() -> None:
    world = runtime({})

    async def broken(interrupt: Interrupt) -> Any:
        raise ValueError("no terminal")

    world.on_interrupt(broken)
    result = await world.run(pipeline('x |! yield("?")'), "Main", {"x": 1})
    assert type(result.error).__name__ == "RunError"
    assert "ValueError: no terminal" in str(result.error)
    assert result.error is not None
    assert result.error.place is not None


@pytest.mark.parametrize("handler", [None, PAUSE])
async def test_without_an_answer_the_run_pauses_with_its_question_listed(handler: Any) -> None:
    world, _ = asking(handler)
    if handler is None:
        world = runtime({})
    result = await world.run(pipeline('x |> System.Value(2) |! yield("Go?") |> System.Value(3)'), "Main", {"x": 1})
    assert (result.status, result.output, result.error) == ("paused", None, None)
    assert [interrupt.message for interrupt in result.interrupts] == ["Go?"]
    assert result.context.data["Value"] == 2


# --- answers by id ------------------------------------------------------------------------------------------

THREE = """x |* { Ask("a") as a, Ask("b") as b, Ask("c") as c }"""


async def three() -> tuple[Runtime, RunResult, dict[str, str]]:
    """A run with three open questions, and their ids by message."""
    world = runtime({})
    text = f'pipeline Ask(v: Any) -> Result: v |! yield("{{{{v}}}}?")\npipeline Main(x: Any) -> Result: {THREE}'
    result = await world.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="run")
    return world, result, {interrupt.message: interrupt.id for interrupt in result.interrupts}


async def test_several_open_questions_are_answered_by_id_in_any_order() -> None:
    world, _, ids = await three()
    second = await world.signal("run", "B", interrupt=ids["b?"])
    assert [interrupt.id for interrupt in second.interrupts] == [ids["a?"], ids["c?"]]
    third = await world.signal("run", "C", interrupt=ids["c?"])
    assert (third.status, [interrupt.id for interrupt in third.interrupts]) == ("paused", [ids["a?"]])
    ended = await world.signal("run", "A")
    assert (ended.status, ended.output) == ("completed", {"a": "A", "b": "B", "c": "C"})


async def test_an_answer_that_could_be_for_several_questions_is_refused_and_changes_nothing() -> None:
    world, result, ids = await three()
    with pytest.raises(AmbiguousSignal) as refused:
        await world.signal("run", "yes")
    assert all(identifier in str(refused.value) for identifier in ids.values())
    again = await world.signal("run", "A", interrupt=ids["a?"])
    assert again.interrupts == tuple(question for question in result.interrupts if question.id != ids["a?"])


async def test_an_answer_for_an_unknown_question_names_those_that_are_open() -> None:
    world, _, ids = await three()
    with pytest.raises(UnknownInterrupt) as refused:
        await world.signal("run", "yes", interrupt="ask-made-up")
    assert "ask-made-up" in str(refused.value)
    assert ids["b?"] in str(refused.value)


async def test_a_second_answer_to_a_question_is_refused_as_such() -> None:
    world, _, ids = await three()
    await world.signal("run", "A", interrupt=ids["a?"])
    with pytest.raises(AlreadyAnswered):
        await world.signal("run", "other", interrupt=ids["a?"])
    await world.signal("run", "B", interrupt=ids["b?"])
    assert (await world.signal("run", "C", interrupt=ids["c?"])).output == {"a": "A", "b": "B", "c": "C"}


async def test_an_answer_to_a_run_that_is_not_paused_is_refused() -> None:
    world = runtime({})
    with pytest.raises(UnknownRun, match="nobody"):
        await world.signal("nobody", "yes")


async def test_ids_are_distinct_and_the_same_after_every_answer() -> None:
    stages = 'x |* each(n in x) => System.Value(n) |! yield("one") |! yield("two")'
    world, first = await paused(stages, [1, 2])
    second = await world.signal("run", "1")
    ids = {first.interrupts[0].id, second.interrupts[0].id}
    assert len(ids) == 2
    _, again = await paused(stages, [1, 2])
    assert again.interrupts[0].id == first.interrupts[0].id
    _, *others = (await three())[1].interrupts
    assert not ids & {interrupt.id for interrupt in others}


async def test_the_same_question_of_another_run_has_another_id() -> None:
    world = runtime({})
    ids = {
        (await world.run(pipeline('x |! yield("?")'), "Main", {"x": 1}, run_id=name)).interrupts[0].id for name in "ab"
    }
    assert len(ids) == 2


async def test_every_round_of_a_loop_asks_anew_and_takes_its_own_answer() -> None:
    world = runtime({"A": "draft"})
    stages = 'x |> A.write("{{context.data.answer}}") |! yield("good?") as answer |<> loop(A, "answer != \'ok\'")'
    result = await world.run(pipeline(stages), "Main", {"x": 1}, run_id="run")
    ids = [result.interrupts[0].id]
    for answer in ("no", "still no"):
        result = await world.signal("run", answer)
        ids.append(result.interrupts[0].id)
    ended = await world.signal("run", "ok")
    assert (ended.status, len(set(ids))) == ("completed", 3)
    instructions = [call["messages"][0]["content"].splitlines()[-1] for call in ended.context.meta["calls"]]
    assert instructions == ["{{context.data.answer}}", "no", "still no"]


async def test_two_questions_of_a_nested_pipeline_take_two_answers_and_its_work_is_done_once() -> None:
    tool = StubTool(lambda method, args: "stored")
    world = runtime({})
    world.register_tool_provider("KV", tool)
    text = """store Memory : KV("m")
    pipeline Inner() -> Result: |> Memory.set("k", "v") |! yield("one") as one |! yield("two") as two
      |> System.Value("{{one}} {{two}}")
    pipeline Main() -> Result: |> Inner()"""
    first = await world.run(halo_lang.parse(text), "Main", run_id="run")
    assert len(first.interrupts) == 1
    second = await world.signal("run", "1")
    assert (second.status, second.interrupts[0].message) == ("paused", "two")
    assert (await world.signal("run", "2")).output == "1 2"
    assert len(tool.calls) == 1


async def test_a_resumed_run_does_no_effect_twice_and_pays_for_none_twice() -> None:
    world = runtime({"A": [{"reply": "a", "usage": {"input": 10, "output": 5}}, "b"]})
    first = await world.run(pipeline('x |> A.go() |! yield("?") |> A.go()'), "Main", {"x": 1}, run_id="run")
    ended = await world.signal("run", "yes")
    assert ended.output == "b"
    assert ended.context.meta["cost"] == first.context.meta["cost"]
    assert [call["reply"] for call in ended.context.meta["calls"]] == ["a", "b"]


@pytest.mark.parametrize("answer", [{1, 2}, object(), float("nan")])
async def test_an_answer_that_is_no_json_value_is_refused_and_changes_nothing(answer: Any) -> None:
    world, _ = asking(answer)
    result = await world.run(pipeline('x |! yield("?")'), "Main", {"x": 1})
    assert (result.status, type(result.error).__name__) == ("failed", "RunError")
    other, _ = await paused('x |! yield("?")')
    with pytest.raises(SignalError, match="no JSON value"):
        await other.signal("run", answer)
    assert (await other.signal("run", "yes")).output == "yes"


# --- directives and time ------------------------------------------------------------------------------------


async def test_no_directive_takes_a_pause_for_a_failure() -> None:
    text = """@retry(3) @correct(2) @timeout(1h)
    pipeline Inner(v: Any) -> Result: v |! yield("once?")
    @retry(3) @correct(2) @timeout(1h)
    pipeline Main(x: Any) -> Result: x |> Inner(x)"""
    world, asked = asking(PAUSE)
    result = await world.run(halo_lang.parse(text), "Main", {"x": 1})
    assert (result.status, len(asked), len(result.interrupts)) == ("paused", 1, 1)


async def test_time_in_which_people_are_asked_is_not_run_time() -> None:
    world = runtime({})

    async def slowly(interrupt: Interrupt) -> Any:
        await asyncio.sleep(0.03)
        return "yes"

    world.on_interrupt(slowly)
    text = '@timeout(15ms)\npipeline Main() -> Result: |! yield("?") |> System.Value("done")'
    result = await world.run(halo_lang.parse(text), "Main", timeout=0.015)
    assert (result.status, result.output) == ("completed", "done")


async def test_a_question_that_nobody_answers_in_time_expires_and_fails_the_run() -> None:
    world = runtime({})

    async def never(interrupt: Interrupt) -> Any:
        await asyncio.Event().wait()

    world.on_interrupt(never)
    result = await world.run(pipeline('x |! yield("Go?", timeout: 5ms)'), "Main", {"x": 1})
    assert type(result.error).__name__ == "InterruptExpired"
    assert "Go?" in str(result.error)


async def test_an_answer_after_the_expiry_is_not_taken_and_the_run_fails() -> None:
    clock = FakeClock()
    world, _ = await paused('x |! yield("Go?", timeout: 1h) |> System.Value("went on")', clock=clock)
    clock.moment += timedelta(hours=1, seconds=1)
    result = await world.signal("run", "yes")
    assert (result.status, type(result.error).__name__) == ("failed", "InterruptExpired")


async def test_a_question_keeps_its_deadline_while_others_are_answered() -> None:
    clock = FakeClock()
    world = runtime({}, clock=clock)
    text = """pipeline Soon() -> Result: |! yield("soon", timeout: 1h)
    pipeline Late() -> Result: |! yield("late", timeout: 3h)
    pipeline Main() -> Result: |* { Soon(), Late() }"""
    first = await world.run(halo_lang.parse(text), "Main", run_id="run")
    ids = {interrupt.message: interrupt.id for interrupt in first.interrupts}
    clock.moment += timedelta(minutes=30)
    second = await world.signal("run", "yes", interrupt=ids["soon"])
    assert second.interrupts[0].to_json() == first.interrupts[1].to_json()
    clock.moment += timedelta(hours=3)
    assert type((await world.signal("run", "yes")).error).__name__ == "InterruptExpired"


# --- listen -------------------------------------------------------------------------------------------------


async def test_a_payload_flows_on_and_is_stored_under_source_and_event() -> None:
    world = runtime({})
    stages = "x |> A.go() ~> listen(UI.Button_Click) as click |> System.Value(context.data.UI.Button_Click.id)"
    world = runtime({"A": "a"})
    first = await world.run(pipeline(stages), "Main", {"x": 1}, run_id="run")
    (question,) = first.interrupts
    assert (question.kind, question.event) == ("listen", "UI.Button_Click")
    ended = await world.signal("run", {"id": 5})
    assert (ended.output, ended.context.data["click"]) == (5, {"id": 5})


async def test_events_have_a_handler_of_their_own() -> None:
    world, asked = asking("human")
    events: list[Interrupt] = []

    async def bring(interrupt: Interrupt) -> Any:
        events.append(interrupt)
        return {"event": interrupt.event}

    world.on_listen(bring)
    result = await world.run(pipeline('x |! yield("?") ~> listen(UI.Click)'), "Main", {"x": 1})
    assert result.output == {"event": "UI.Click"}
    assert (len(asked), len(events)) == (1, 1)


# --- endings ------------------------------------------------------------------------------------------------


def test_questions_of_a_run_that_failed_or_halted_are_listed_nowhere() -> None:
    ask = 'pipeline Ask() -> Result: |! yield("?")\n'
    failed = run(ask + 'pipeline Main() -> Result: |* { Ask(), System.Fail("x") }')
    halted = run(ask + "pipeline Stop() -> Result: 1 |? (false)\npipeline Main() -> Result: |* { Ask(), Stop() }")
    assert (failed.interrupts, halted.interrupts) == ((), ())


async def test_a_paused_runs_trace_is_open_and_its_journal_holds_no_answer() -> None:
    journal = Journal()
    result = await runtime({}).run(pipeline('x |! yield("?")'), "Main", {"x": 1}, journal=journal)
    assert str(verify_trace(result.context.trace)) == "open"
    assert [record.kind for record in journal] == ["clock"]

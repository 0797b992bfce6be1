"""Questions that outlive their process: each gets its own answer, once, and nothing before it is done again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import PAUSE, Interrupt, RunResult, Runtime
from halo_runtime.engine.events import RunEvent
from halo_runtime.errors import (
    AlreadyAnswered,
    AmbiguousSignal,
    InterruptExpired,
    RunRefused,
    UnknownInterrupt,
    UnknownRun,
)
from halo_runtime.store.verification import verify_journal
from tests.durability.support import AGENTS, STORE, Project, figures, keys
from tests.runtime.support import FakeClock, StubTool

THREE = (
    STORE
    + """
pipeline Main(x: Any) -> Any:
  x
    |* { Ask("one") as one, Ask("two") as two, Ask("three") as three } as all
    |> Deeds.incr("join")
    |> System.Value(all)
pipeline Ask(name: String) -> Any:
  name
    |> Deeds.incr("before {{name}}")
    |! yield("Is {{name}} right?") as answer
    |> System.Value("{{name}} {{answer}}")
"""
)
EACH = (
    STORE
    + """
pipeline Main(xs: Array) -> Any:
  xs |* each(x in xs, concurrency: 2) => Ask(x)
pipeline Ask(x: Any) -> Any:
  x
    |> Deeds.incr("before {{x.id}}")
    |! yield("Ship {{x.id}}?", attachments: [x]) as answer
"""
)
IN_TURN = (
    AGENTS
    + STORE
    + """
pipeline Main(x: Any) -> Any:
  x |> Deeds.incr("outer") |> Two(x) as both
@retry(3)
pipeline Two(v: Any) -> Any:
  v
    |> Deeds.incr("inner")
    |> A.draft()
    |! yield("First?") as first
    |! yield("Second?") as second
    |> System.Value("{{first}} {{second}}")
"""
)


def single(stages: str) -> str:
    return f"{AGENTS}{STORE}pipeline Main(x: Any) -> Any:\n  x {stages}"


def by_message(result: RunResult) -> dict[str, str]:
    return {question.message: question.id for question in result.interrupts}


@pytest.mark.parametrize("order", list(permutations(["one", "two", "three"])))
async def test_each_arm_gets_its_own_answer_in_whatever_order_they_come(order: tuple[str, ...], tmp_path: Path) -> None:
    project = Project(tmp_path)
    result = await project.run(THREE, {"x": 1})
    ids = by_message(result)
    for done, name in enumerate(order):
        assert len(result.interrupts) == 3 - done
        assert "join" not in keys(project.deeds)
        result = await project.runtime().signal(result.run_id, f"yes {name}", interrupt=ids[f"Is {name} right?"])
    assert result.output == {name: f"{name} yes {name}" for name in ("one", "two", "three")}
    assert sorted(keys(project.deeds)) == ["before one", "before three", "before two", "join"]


async def test_questions_have_ids_of_their_own_that_stay_the_same(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(EACH, {"xs": [{"id": n} for n in range(4)]})
    again = await project.runtime().resume(first.run_id)
    assert again.interrupts == first.interrupts
    assert len({question.id for question in first.interrupts}) == 4
    shown = project.store.open_interrupts(FakeClock().moment)
    assert [one["id"] for one in shown] == [question.id for question in first.interrupts]


async def test_answering_one_item_leaves_the_questions_of_the_others_as_they_were(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(EACH, {"xs": [{"id": n, "text": "é"} for n in range(4)]})
    project.clock.moment += timedelta(hours=1)
    second = await project.runtime().signal(first.run_id, "yes", interrupt=first.interrupts[1].id)
    left = [question.to_json() for question in first.interrupts if question is not first.interrupts[1]]
    assert [question.to_json() for question in second.interrupts] == left
    assert sorted(keys(project.deeds)) == [f"before {n}" for n in range(4)]


async def test_one_answer_without_a_name_for_two_questions_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(THREE, {"x": 1})
    with pytest.raises(AmbiguousSignal) as refused:
        await project.runtime().signal(first.run_id, "yes")
    for question in first.interrupts:
        assert f"{question.id} ({question.message})" in str(refused.value)
    assert project.store.load(first.run_id).interrupts == first.interrupts
    assert len(keys(project.deeds)) == 3


async def test_an_answer_to_a_question_that_is_not_there_is_refused_and_recorded(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(single('|! yield("Sure?")'), {"x": 1})
    with pytest.raises(UnknownInterrupt, match=rf"ask-000.*open are: {first.interrupts[0].id} \(Sure\?\)"):
        await project.runtime().signal(first.run_id, "yes", interrupt="ask-000", by="eve", how="api")
    refused = project.lines(first.run_id)[-1]
    assert (refused["t"], refused["interrupt"], refused["value"], refused["by"]) == ("refused", "ask-000", "yes", "eve")
    assert project.store.load(first.run_id).status == "paused"
    assert (await project.runtime().signal(first.run_id, "yes")).status == "completed"


async def test_a_second_answer_to_a_question_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(THREE, {"x": 1})
    question = first.interrupts[0].id
    second = await project.runtime().signal(first.run_id, "first", interrupt=question)
    with pytest.raises(AlreadyAnswered, match="already answered"):
        await project.runtime().signal(first.run_id, "second", interrupt=question)
    done = await project.answer_all(second, lambda _: "x", lambda _: 0)
    assert done.output["one"] == "one first"
    with pytest.raises(RunRefused, match="is completed; continue it as a new run"):
        await project.runtime().signal(first.run_id, "third", interrupt=question)
    assert str(verify_journal(project.store, first.run_id)) == "valid"


async def test_questions_one_after_the_other_are_asked_one_after_the_other(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.draft": {"reply": "d", "usage": {"input": 1000, "output": 1000}}})
    first = await project.run(IN_TURN, {"x": 1})
    assert list(by_message(first)) == ["First?"]
    second = await project.runtime().signal(first.run_id, "yes")
    assert list(by_message(second)) == ["Second?"]
    third = await project.runtime().signal(first.run_id, "no")
    assert third.output == "yes no"
    assert keys(project.deeds) == ["outer", "inner"]
    costs = [result.context.meta["cost"] for result in (first, second, third)]
    assert costs[0] > 0
    assert costs == [costs[0]] * 3
    assert [call["attempts"] for call in third.context.meta["calls"]] == [1]


async def test_every_round_of_a_loop_asks_anew_and_gets_its_own_answer(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": {"replies": ["r"], "repeat": True}})
    text = single('|> A.go() |! yield("Round?") as answer |<> loop(A, "answer != 3", max: 5) as rounds')
    result = await project.run(text, {"x": 1})
    ids: list[str] = []
    for answer in (1, 2, 3):
        [question] = result.interrupts
        ids.append(question.id)
        result = await project.runtime().signal(result.run_id, answer)
    assert (result.status, result.context.data["rounds"], len(set(ids))) == ("completed", 2, 3)
    given = [line["result"] for line in project.lines(result.run_id) if line.get("kind") == "human"]
    assert given == [1, 2, 3]


@pytest.mark.parametrize("answer", [False, 0, "", None, [], {}])
async def test_every_value_is_an_answer_and_its_question_does_not_come_back(answer: Any, tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(single('|! yield("Sure?") as said |> System.Value([said])'), {"x": 1})
    assert (await project.runtime().signal(first.run_id, answer)).output == [answer]


@pytest.mark.parametrize("directives", ["@retry(3, 1ms)", "@timeout(1s)", "@retry(2, 1ms)\n@timeout(1s)"])
async def test_no_directive_takes_a_pause_for_an_error(directives: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    text = f"{directives}\npipeline Main(x: Any) -> Any:\n  x |> Inner(x)\n"
    inner = f'{directives}\npipeline Inner(v: Any) -> Any:\n  v |! yield("Sure?")'
    result = await project.run(text + inner, {"x": 1})
    assert [question.message for question in result.interrupts] == ["Sure?"]
    project.clock.moment += timedelta(days=3)
    result = await project.runtime().signal(result.run_id, "yes")
    assert (result.status, result.output) == ("completed", "yes")
    assert len([line for line in project.lines(result.run_id) if line.get("kind") == "human"]) == 1


async def test_a_nested_question_is_one_question_everywhere(tmp_path: Path) -> None:
    project = Project(tmp_path)
    text = (
        single("|> Inner(x)")
        + '\npipeline Inner(v: Any) -> Any:\n  v |> Deep(v)\npipeline Deep(v: Any) -> Any:\n  v |! yield("Sure?")'
    )
    result = await project.run(text, {"x": 1})
    assert len(result.interrupts) == len(project.store.open_interrupts(FakeClock().moment)) == 1
    assert project.store.runs(FakeClock().moment)[0]["interrupts"] == 1
    assert len(project.store.load(result.run_id).to_json()["interrupts"]) == 1


async def test_an_answer_decides_the_third_branch(tmp_path: Path) -> None:
    project = Project(tmp_path)
    arms = "".join(f'(said == "{name}") => Deeds.incr("{name}"), ' for name in ("a", "b", "c"))
    result = await project.run(single(f'|! yield("Which?") as said |? {{ {arms} else => System.Value(0) }}'), {"x": 1})
    assert result.interrupts[0].choices == ("a", "b", "c")
    result = await project.runtime().signal(result.run_id, "c")
    assert (result.output, keys(project.deeds)) == ("did c", ["c"])


async def test_what_a_run_gives_after_an_answer_is_what_its_journal_shows(tmp_path: Path) -> None:
    project = Project(tmp_path)
    result = await project.run(single('|! yield("Sure?") as said |> System.Value("said {{said}}")'), {"x": 1})
    result = await project.runtime().signal(result.run_id, "yes")
    assert project.store.load(result.run_id).to_json() == result.to_json()


async def test_a_question_whose_time_is_over_fails_the_run_and_nobody_is_its_actor(tmp_path: Path) -> None:
    project = Project(tmp_path)
    result = await project.run(single('|! yield("Sure?", timeout: 1h) |> Deeds.incr("after")'), {"x": 1})
    project.clock.moment += timedelta(hours=1)
    late = await project.runtime().signal(result.run_id, "yes", by="ada")
    assert (late.status, type(late.error), keys(project.deeds)) == ("failed", InterruptExpired, [])
    [answer] = [line for line in project.lines(result.run_id) if line.get("kind") == "human"]
    assert (answer["outcome"], answer["answer"]["by"], answer["answer"]["how"]) == ("failed", None, "expired")
    [refused] = [line for line in project.lines(result.run_id) if line["t"] == "refused"]
    assert (refused["value"], refused["by"], "was not answered by" in refused["reason"]) == ("yes", "ada", True)
    with pytest.raises(RunRefused, match="InterruptExpired"):
        await project.runtime().signal(result.run_id, "yes", by="ada")
    assert project.lines(result.run_id)[-1]["t"] == "refused"


async def test_a_deadline_stands_though_the_run_goes_on_in_between_and_the_clock_is_set_back(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(single('|! yield("Sure?", timeout: 1h)'), {"x": 1})
    project.clock.moment -= timedelta(days=2)
    again = await project.runtime().resume(first.run_id)
    assert again.interrupts[0].expires_at == first.interrupts[0].expires_at == "2026-01-02T04:04:05.000Z"
    project.clock.moment += timedelta(days=3)
    late = await project.runtime().resume(first.run_id)
    assert (late.status, type(late.error)) == ("failed", InterruptExpired)


async def test_a_run_goes_on_with_its_clock_set_back(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(
        f'{AGENTS}@checkpoint\n@timeout(1m)\npipeline Main(x: Any) -> Any:\n  x |! yield("?")', {"x": 1}
    )
    project.clock.moment -= timedelta(days=400)
    result = await project.runtime().signal(first.run_id, "yes")
    assert (result.status, str(verify_journal(project.store, first.run_id))) == ("completed", "valid")


async def test_two_guarded_stages_ask_two_questions(tmp_path: Path) -> None:
    project = Project(tmp_path)
    text = single(
        '|! yield("One?") as a |? (a == "yes") => Deeds.incr("one")'
        ' |! yield("Two?") as b |? (b == "yes") => Deeds.incr("two")'
    )
    result = await project.run(text, {"x": 1})
    result = await project.runtime().signal(result.run_id, "yes")
    assert (list(by_message(result)), keys(project.deeds)) == (["Two?"], ["one"])


async def test_two_answers_at_the_same_time_are_both_taken(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(THREE, {"x": 1})
    one, two, three = (question.id for question in first.interrupts)
    runtimes = [project.runtime(), project.runtime()]
    results = [
        await runtime.signal(first.run_id, "yes", interrupt=question)
        for runtime, question in zip(runtimes, (one, two), strict=True)
    ]
    assert [len(result.interrupts) for result in results] == [2, 1]
    assert (await runtimes[0].signal(first.run_id, "yes", interrupt=three)).status == "completed"


async def test_answers_left_for_a_run_at_work_are_taken_in_order_when_it_asks(tmp_path: Path) -> None:
    project = Project(tmp_path, {"B.go": {"replies": ["r"], "repeat": True}})

    def at_work(method: str, args: dict[str, Any]) -> str:
        for answer in (1, 2, 3):
            project.runtime().post("r", answer)
        return "done"

    project.deeds = StubTool(at_work)
    text = single('|> Deeds.incr("k") |> B.go() |! yield("More?") as more |<> loop(B, "more != 2", max: 3)')
    result = await project.run(text, {"x": 1}, run_id="r")
    assert (result.status, result.output) == ("completed", 2)
    assert list(project.store.mail("r")) == []
    refused = [(line["value"], line["reason"]) for line in project.lines("r") if line["t"] == "refused"]
    assert refused == [(3, "the run has ended")]


async def test_a_second_answer_that_was_left_is_refused_and_recorded(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(THREE, {"x": 1})
    question = first.interrupts[0].id
    for answer in ("first", "second"):
        project.runtime().post(first.run_id, answer, interrupt=question, by="ada")
    second = await project.runtime().resume(first.run_id)
    assert len(second.interrupts) == 2
    assert list(project.store.mail(first.run_id)) == []
    [refused] = [line for line in project.lines(first.run_id) if line["t"] == "refused"]
    assert (refused["value"], refused["by"], refused["interrupt"]) == ("second", "ada", question)
    assert "already answered" in refused["reason"]
    done = await project.answer_all(second, lambda _: "x", lambda _: 0)
    assert done.output["one"] == "one first"


@pytest.mark.parametrize("kept", [True, False])
async def test_an_answer_that_was_left_comes_before_one_that_is_sent_later(kept: bool, tmp_path: Path) -> None:
    project = Project(tmp_path)
    runtime = project.runtime() if kept else project.runtime_without_store()
    first = await runtime.run(halo_lang.parse(single('|! yield("Sure?")')), "Main", {"x": 1})
    question = first.interrupts[0].id
    runtime.post(first.run_id, "left", interrupt=question, by="ada")
    for interrupt in (question, None):
        with pytest.raises(AlreadyAnswered, match="already answered: ada left an answer"):
            await runtime.signal(first.run_id, "sent", interrupt=interrupt, by="eve")
    done = await runtime.resume(first.run_id)
    assert (done.status, done.output) == ("completed", "left")
    if kept:
        refused = [(line["value"], line["by"]) for line in project.lines(first.run_id) if line["t"] == "refused"]
        assert refused == [("sent", "eve")] * 2


async def test_an_answer_left_for_one_question_keeps_nobody_from_answering_another(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(THREE, {"x": 1})
    one, two, three = (question.id for question in first.interrupts)
    project.runtime().post(first.run_id, "left", interrupt=one)
    rest = await project.runtime().signal(first.run_id, "sent", interrupt=two)
    assert [question.id for question in rest.interrupts] == [three]


async def test_what_was_left_for_a_run_that_broke_off_comes_before_what_is_sent_later(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(single('|! yield("Sure?")'), {"x": 1})
    project.runtime().post(first.run_id, "left", interrupt=first.interrupts[0].id)
    project.cut(first.run_id, lambda line: line["t"] != "status")
    with pytest.raises(AlreadyAnswered):
        await project.runtime().signal(first.run_id, "sent", interrupt=first.interrupts[0].id)
    assert (await project.runtime().resume(first.run_id)).output == "left"


async def test_an_answer_that_comes_while_a_sibling_is_still_at_work_is_taken(tmp_path: Path) -> None:
    project = Project(tmp_path, {"B.go": {"replies": ["r"], "repeat": True}})
    asked = asyncio.Event()

    async def at_work(method: str, args: dict[str, Any]) -> str:
        await asked.wait()
        project.runtime().post("r", 2)
        return "slow"

    project.deeds = StubTool(at_work)
    text = single('|* { Deeds.incr("k") as slow, Asking(x) as asked }') + (
        '\npipeline Asking(v: Any) -> Any:\n  v |> B.go() |! yield("More?") as more |<> loop(B, "more != 2", max: 3)'
    )
    runtime = project.runtime()
    loop = asyncio.get_running_loop()  # observers have a thread of their own

    def watch(event: RunEvent) -> None:
        if event.type == "interrupt_opened":
            loop.call_soon_threadsafe(asked.set)

    runtime.subscribe(watch)
    result = await runtime.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="r", keep=True)
    assert (result.status, result.output) == ("completed", {"slow": "slow", "asked": 2})


async def test_nothing_can_be_left_for_a_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnknownRun):
        Project(tmp_path).runtime().post("r", "yes")
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - a look at one folder


async def test_a_run_paused_and_answered_is_the_run_with_somebody_there(tmp_path: Path) -> None:
    paused = Project(tmp_path / "a")
    result = await paused.run(THREE, {"x": 1})
    result = await paused.answer_all(result, lambda question: question.message, lambda count: count - 1)
    there = Project(tmp_path / "b")
    runtime = there.runtime()

    async def answer(question: Any) -> Any:
        return question.message

    runtime.on_interrupt(answer)
    handled = await runtime.run(halo_lang.parse(THREE), "Main", {"x": 1})
    assert figures(result) == figures(handled)


@dataclass
class AtWork:
    """A run at work, called `r`, whose questions somebody looks at until `decided`."""

    runtime: Runtime
    result: asyncio.Task[RunResult]
    decided: asyncio.Event


async def at_its_questions(project: Project, text: str, count: int) -> AtWork:
    """A run that has put so many questions to somebody."""
    runtime, seen, ready, decided = project.runtime(), count, asyncio.Event(), asyncio.Event()

    async def think(question: Interrupt) -> Any:
        nonlocal seen
        seen -= 1
        if not seen:
            ready.set()
        await decided.wait()
        return runtime.left_for(question) or PAUSE

    runtime.on_interrupt(think)
    running = runtime.run(halo_lang.parse(text), "Main", {"x": 1}, run_id="r", keep=True)
    at_work = AtWork(runtime, asyncio.create_task(running), decided)
    await ready.wait()
    return at_work


async def test_an_answer_without_a_name_to_a_run_at_work_that_asks_several_things_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    at_work = await at_its_questions(project, THREE, 3)
    questions = project.store.load("r").questions
    assert len(questions) == 3
    with pytest.raises(AmbiguousSignal, match="name one: " + "; ".join(f"{one.id} .*" for one in questions)):
        project.runtime().post("r", "yes")
    for question in questions:
        project.runtime().post("r", question.message, interrupt=question.id)
    at_work.decided.set()
    assert (await at_work.result).status == "completed"
    answers = {line["result"] for line in project.lines("r") if line.get("kind") == "human"}
    assert answers == {question.message for question in questions}


async def test_an_answer_without_a_name_to_a_run_at_work_is_for_its_only_question(tmp_path: Path) -> None:
    project = Project(tmp_path)
    at_work = await at_its_questions(project, single('|! yield("Sure?")'), 1)
    project.runtime().post("r", "yes")
    at_work.decided.set()
    assert (await at_work.result).output == "yes"


async def test_the_questions_of_a_run_that_was_stopped_stay_in_the_inbox(tmp_path: Path) -> None:
    project = Project(tmp_path)
    at_work = await at_its_questions(project, THREE, 3)
    at_work.runtime.stop("r")
    assert (await at_work.result).status == "interrupted"
    now = project.clock.now()
    assert [line["interrupts"] for line in project.store.runs(now)] == [3]
    one, *others = project.store.open_interrupts(now)
    rest = await project.runtime().signal("r", "yes", interrupt=one["id"])
    assert {question.id for question in rest.interrupts} == {question["id"] for question in others}


# --- runs that broke off at a question ----------------------------------------------------------------------------


async def broken_off(project: Project, stages: str) -> str:
    """A run whose process died while its questions were open."""
    result = await project.run(single(stages), {"x": 1})
    project.cut(result.run_id, lambda line: line["t"] != "status")
    project.deeds.calls.clear()
    assert project.store.load(result.run_id).status == "interrupted"
    return result.run_id


async def test_a_run_that_broke_off_at_a_question_takes_the_answer_to_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    run_id = await broken_off(project, '|> Deeds.incr("before") |! yield("Sure?") |> Deeds.incr("after")')
    asked: list[str] = []

    async def person(question: Interrupt) -> str:
        asked.append(question.message)
        return "no"

    runtime = project.runtime()
    runtime.on_interrupt(person)
    result = await runtime.signal(run_id, "yes", by="ada")
    assert (result.status, keys(project.deeds), asked) == ("completed", ["after"], [])
    [answer] = [line["answer"] for line in project.lines(run_id) if line.get("kind") == "human"]
    assert answer["by"] == "ada"


async def test_a_run_that_broke_off_before_its_question_comes_to_it_and_refuses_an_answer_to_another(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    run_id = await broken_off(project, '|! yield("Sure?") |> Deeds.incr("after")')
    project.cut(run_id, lambda line: line["t"] == "run")
    with pytest.raises(UnknownInterrupt, match=r"open are: .*Sure"):
        await project.runtime().signal(run_id, "yes", interrupt="ask-0")
    assert project.store.load(run_id).status == "paused"
    assert (await project.runtime().signal(run_id, "yes")).status == "completed"


async def test_an_answer_to_a_run_that_broke_off_and_asks_nothing_more_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    run_id = await broken_off(project, '|> Deeds.incr("one")')
    with pytest.raises(RunRefused, match="is completed"):
        await project.runtime().signal(run_id, "yes")
    assert keys(project.deeds) == []
    assert project.lines(run_id)[-1]["t"] == "refused"


async def test_the_questions_of_a_run_that_broke_off_are_in_the_inbox_until_they_are_answered(tmp_path: Path) -> None:
    project = Project(tmp_path)
    nested = '\npipeline Ask(v: Any) -> Any:\n  v |! yield("Is {{v}} right?", timeout: 1h)'
    result = await project.run(f"{single('|* each(i in x) => Ask(i)')}{nested}", {"x": ["a", "b"]})
    project.cut(result.run_id, lambda line: line["t"] != "status")
    now = project.clock.now()
    [line] = project.store.runs(now)
    assert (line["status"], line["interrupts"]) == ("interrupted", 2)
    listed = project.store.open_interrupts(now)
    assert [one["message"] for one in listed] == ["Is a right?", "Is b right?"]
    assert [one["id"] for one in listed] == [question.id for question in result.interrupts]
    assert project.store.open_interrupts(now + timedelta(hours=1)) == []
    await project.runtime().signal(result.run_id, "yes", interrupt=listed[1]["id"])
    assert [one["message"] for one in project.store.open_interrupts(now)] == ["Is a right?"]

"""Effects of which nobody knows whether they happened, and events that come early, late or out of turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import Cassette, RunResult
from halo_runtime.errors import RunRefused, SignalError, ToolError
from tests.durability.support import AGENTS, STORE, Project, keys

DEED = f"""{AGENTS}{STORE}
@checkpoint
@retry(3, 1ms)
pipeline Main(x: Any) -> Any:
  x |> Deeds.incr("first") |> Deeds.incr("second") as done |> System.Value("done: {{{{done}}}}")
"""
LISTENS = (
    "pipeline Main(x: Any) -> Any:\n  x\n    ~> listen(UI.Click) as one\n    ~> listen(UI.Click) as two\n"
    "    ~> listen(UI.Click) as three\n    |> System.Value([one, two, three])"
)
ASKS_THEN_LISTENS = 'pipeline Main(x: Any) -> Any:\n  x |! yield("Sure?") ~> listen(UI.Click) as click'


async def killed_inside_the_second(tmp_path: Path) -> Project:
    """A run whose process died when the second call had begun."""
    project = Project(tmp_path)
    await project.run(DEED, {"x": 1}, run_id="r")
    project.cut("r", lambda line: line.get("path") != "Main/1/tool" or line["t"] == "begun")
    project.deeds.calls.clear()
    return project


# --- in doubt -----------------------------------------------------------------------------------------------------


async def test_a_call_in_doubt_is_asked_about_and_not_done(tmp_path: Path) -> None:
    project = await killed_inside_the_second(tmp_path)
    result = await project.runtime().resume("r")
    [question] = result.interrupts
    assert (question.kind, question.choices) == ("in_doubt", ("retry", "fail"))
    assert "Deeds.incr had begun when the run broke off" in question.message
    assert json.loads(question.attachments[0]["text"]) == {"key": "second", "by": 1}
    assert keys(project.deeds) == []
    again = await project.runtime().resume("r")
    assert again.interrupts == result.interrupts


@pytest.mark.parametrize(
    ("answer", "status", "output", "done"),
    [
        ("retry", "completed", "done: did second", ["second"]),
        ({"skip": 7}, "completed", "done: 7", []),
        ({"skip": None}, "completed", "done: null", []),
        ("fail", "failed", None, []),
    ],
)
async def test_a_person_says_what_became_of_a_call_in_doubt(
    answer: Any, status: str, output: Any, done: list[str], tmp_path: Path
) -> None:
    project = await killed_inside_the_second(tmp_path)
    await project.runtime().resume("r")
    result = await project.runtime().signal("r", answer)
    assert (result.status, result.output, keys(project.deeds)) == (status, output, done)
    if status == "failed":
        assert isinstance(result.error, ToolError)
        assert "was given up" in str(result.error)


@pytest.mark.parametrize("answer", ["retry", {"skip": 7}, "fail"], ids=["retry", "skip", "fail"])
async def test_what_became_of_a_call_in_doubt_is_in_the_cassette(answer: Any, tmp_path: Path) -> None:
    project = await killed_inside_the_second(tmp_path)
    await project.runtime().resume("r")
    tape = tmp_path / "tape.jsonl"
    recording = project.runtime(Cassette.record(tape))
    result = await recording.signal("r", answer)
    await recording.close()
    project.deeds.calls.clear()
    again = await project.runtime(Cassette.replay(tape)).run(halo_lang.parse(DEED), "Main", {"x": 1})
    assert (again.status, again.output) == (result.status, result.output)
    assert str(again.error) == str(result.error)
    assert project.deeds.calls == []


@pytest.mark.parametrize("answer", ["yes", None, {}, True, ["retry"]])
async def test_a_call_in_doubt_takes_no_other_answer(answer: Any, tmp_path: Path) -> None:
    project = await killed_inside_the_second(tmp_path)
    paused = await project.runtime().resume("r")
    with pytest.raises(SignalError, match='is answered "retry", "fail" or'):
        await project.runtime().signal("r", answer)
    with pytest.raises(SignalError):
        project.runtime().post("r", answer)
    assert project.store.load("r").interrupts == paused.interrupts
    assert keys(project.deeds) == []


async def test_a_call_that_is_in_doubt_twice_is_asked_about_twice(tmp_path: Path) -> None:
    project = await killed_inside_the_second(tmp_path)
    first = await project.runtime().resume("r")
    await project.runtime().signal("r", "retry")
    project.cut("r", lambda line: line["t"] == "begun" or not str(line.get("path")).endswith("/again"))
    second = await project.runtime().resume("r")
    assert second.interrupts[0].id != first.interrupts[0].id
    assert (await project.runtime().signal("r", {"skip": 1})).output == "done: 1"
    assert keys(project.deeds) == ["second"]


async def test_a_fork_asks_about_the_call_in_doubt_too(tmp_path: Path) -> None:
    project = await killed_inside_the_second(tmp_path)
    result = await project.fork(DEED, "r")
    assert [question.kind for question in result.interrupts] == ["in_doubt"]
    assert (await project.runtime().signal(result.run_id, "retry")).output == "done: did second"
    assert keys(project.deeds) == ["second"]


@pytest.mark.parametrize("call", ['Deeds.get("k")', 'Deeds.set("k", 1)', 'A.say("k")'])
async def test_what_may_happen_twice_is_done_again_without_a_question(call: str, tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.say": {"replies": ["said"], "repeat": True}})
    text = f"{AGENTS}{STORE}@checkpoint\npipeline Main(x: Any) -> Any:\n  x |> {call}"
    done = await project.run(text, {"x": 1}, run_id="r")
    project.cut("r", lambda line: line["t"] == "run")
    again = await project.runtime().resume("r")
    assert (again.status, again.output) == ("completed", done.output)


# --- events -------------------------------------------------------------------------------------------------------


async def test_an_event_before_the_run_listens_is_kept_for_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(ASKS_THEN_LISTENS, {"x": 1})
    early = await project.runtime().signal(first.run_id, {"at": 1}, event="UI.Click", by="ada")
    assert (early.status, [question.message for question in early.interrupts]) == ("paused", ["Sure?"])
    done = await project.runtime().signal(first.run_id, "yes")
    assert (done.status, done.output, done.context.data["UI"]["Click"]) == ("completed", {"at": 1}, {"at": 1})
    [event] = [line for line in project.lines(first.run_id) if line.get("kind") == "event"]
    assert event["answer"]["by"] == "ada"
    assert list(project.store.mail(first.run_id)) == []


async def test_events_are_taken_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(LISTENS.replace("  x\n", "  x ~> listen(UI.Go)\n"), {"x": 1})
    for number in (1, 2, 3):
        await project.runtime().signal(first.run_id, number, event="UI.Click")
    done = await project.runtime().signal(first.run_id, 0, event="UI.Go")
    assert done.output == [1, 2, 3]


@pytest.mark.parametrize("kept", [True, False])
async def test_an_event_that_was_left_comes_before_one_that_is_sent_later(kept: bool, tmp_path: Path) -> None:
    project = Project(tmp_path)
    runtime = project.runtime() if kept else project.runtime_without_store()
    first = await runtime.run(halo_lang.parse(LISTENS), "Main", {"x": 1})
    runtime.post(first.run_id, 1, event="UI.Click")
    await runtime.signal(first.run_id, 2, event="UI.Click")
    done = await runtime.signal(first.run_id, 3, event="UI.Click")
    assert done.output == [1, 2, 3]


async def test_an_event_is_taken_once_though_a_kill_came_before_its_deletion(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(LISTENS, {"x": 1}, keep=True)
    box = project.store.mail(first.run_id)
    project.runtime().post(first.run_id, 1, event="UI.Click")
    [message] = list(box)
    await project.runtime().resume(first.run_id)
    assert list(box) == []
    box.post(message)  # as if it had not been deleted
    again = await project.runtime().resume(first.run_id)
    assert (again.status, again.context.data["one"]) == ("paused", 1)
    assert "two" not in again.context.data
    assert list(box) == []


async def test_an_event_answers_no_question_and_an_answer_is_no_event(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = await project.run(ASKS_THEN_LISTENS, {"x": 1})
    await project.runtime().signal(first.run_id, "click", event="UI.Click")
    await project.runtime().signal(first.run_id, "other", event="UI.Other")
    assert project.store.load(first.run_id).interrupts == first.interrupts


async def test_a_fork_has_the_events_that_nobody_has_taken_yet_and_those_that_were(tmp_path: Path) -> None:
    project = Project(tmp_path)
    old = await project.run(LISTENS, {"x": 1})
    await project.runtime().signal(old.run_id, "taken", event="UI.Click")
    before = project.bytes_of(old.run_id)
    await project.runtime().signal(old.run_id, "early", event="UI.Other")
    new: RunResult = await project.fork(LISTENS.replace("three])", "three, 1])"), old.run_id)
    assert new.context.data["one"] == "taken"
    assert [message.value for message in project.store.mail(new.run_id)] == ["early"]
    new = await project.runtime().signal(new.run_id, "own", event="UI.Click")
    assert new.context.data["two"] == "own"
    assert project.bytes_of(old.run_id).startswith(before)
    assert len(project.store.load(old.run_id).interrupts) == 1


@pytest.mark.parametrize("reuse", [True, False])
async def test_going_back_before_an_event_waits_anew_or_takes_it_again(reuse: bool, tmp_path: Path) -> None:
    project = Project(tmp_path)
    text = "pipeline Main(x: Any) -> Any:\n  x |> System.Value(1) ~> listen(UI.Click) as click"
    old = await project.run(text, {"x": 1})
    old = await project.runtime().signal(old.run_id, "bad", event="UI.Click")
    new = await project.fork(text, old.run_id, at=1, reuse_answers=reuse)
    assert new.status == ("completed" if reuse else "paused")
    if not reuse:
        assert new.interrupts[0].former == "bad"
        assert (await project.runtime().signal(new.run_id, "good", event="UI.Click")).output == "good"


async def test_no_event_reaches_a_run_that_has_ended(tmp_path: Path) -> None:
    project = Project(tmp_path)
    done = await project.run("pipeline Main(x: Any) -> Any:\n  x |> System.Value(1)", {"x": 1})
    with pytest.raises(RunRefused):
        await project.runtime().signal(done.run_id, 1, event="UI.Click")
    with pytest.raises(RunRefused):
        project.runtime().post(done.run_id, 1, event="UI.Click")
    assert list(project.store.mail(done.run_id)) == []

"""The inbox, looking back at kept runs, and going on with them, driven by keys."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

import halo_lang
from halo_runtime import RunResult, Runtime, ScriptedModel
from halo_runtime.engine.clock import SystemClock
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.locks import Lock
from halo_tui.models.questions import Question
from halo_tui.screens import workbench
from halo_tui.screens.continuing import Continue
from halo_tui.screens.question import Ask
from halo_tui.widgets.bars import Tabs
from halo_tui.widgets.panes import Inbox, Runs, Stages

OpenBench = Callable[..., AbstractAsyncContextManager]  # type: ignore[type-arg] - of a Bench, see conftest

WORK = """agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> Bot.draft("Draft: {{text}}") as draft
    |! yield("Send {{draft}}?", attachments: [draft]) as decision
    |? (context.data.decision == "yes")
    |> Bot.send("Send it") as sent
"""
REPLIES = {"Bot.draft": ["first", "second", "third"], "Bot.send": ["sent", "sent again", "sent once more"]}
EACH = """pipeline Main(items: List) -> Result:
  items
    |* each(item in items, concurrency: 3) => Ask(item) as all

pipeline Ask(item: String) -> Result:
  item |! yield("Take {{item}}?") as taken
"""


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "LOOK_FROM", 0.001)
    monkeypatch.setattr("halo_tui.screens.keeping.LOOK_EVERY", 0.02)


class AnHourAgo(SystemClock):
    """The clock of a process that has worked an hour ago."""

    def now(self) -> datetime:
        return super().now() - timedelta(hours=1)


class Elsewhere:
    """Other processes that work on the runs of the same folder."""

    def __init__(self, folder: Path) -> None:
        self.store = FileRunStore(folder / ".halo")
        self.clock: SystemClock = SystemClock()

    def runtime(self) -> Runtime:
        return Runtime(env={}, replies=ScriptedModel(REPLIES), store=self.store, clock=self.clock)

    async def run(self, program: str = WORK, **inputs: Any) -> RunResult:
        text = halo_lang.Source(program, "main.halo")
        options = {"replies": REPLIES, "model": None, "envFile": None}
        return await self.runtime().run(
            halo_lang.parse(text), "Main", inputs or {"text": "hello"}, keep=True, options=options
        )

    async def answer(self, run_id: str, value: Any, interrupt: str | None = None) -> RunResult:
        return await self.runtime().signal(run_id, value, interrupt=interrupt)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path)


def listed(b: Any) -> set[str]:
    """The ids of the questions in the inbox."""
    return {question.id for question, _ in b.screen.query_one(Inbox).items}


async def open_inbox(b: Any, count: int = 1) -> None:
    await b.until(lambda: len(listed(b)) == count)
    await b.press("alt+5")


async def open_run(b: Any, number: int = 0) -> None:
    """Look back at the run in a row of the list."""
    await b.until(lambda: len(b.screen.query_one(Runs).items) > number)
    await b.press("alt+6", *["down"] * number, "enter")
    await b.until(lambda: b.screen.replay)


# --- the inbox ----------------------------------------------------------------------------------------------


async def test_the_inbox_lists_the_questions_of_runs_that_other_processes_have_paused(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run()
    async with bench(WORK, REPLIES, size=(160, 40)) as b:
        await open_inbox(b)
        for text in ("Send first?", "yes", "1 attachment", "Main", paused.run_id):
            assert text in b.text()
        assert [tabs.waiting for tabs in b.screen.query(Tabs)] == [1, 1]
        assert " Inbox 1 " in b.text()


async def test_an_answer_in_the_inbox_goes_on_with_the_run_here_and_shows_it(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run()
    async with bench(WORK, REPLIES) as b:
        await open_inbox(b)
        await b.press("enter")
        await b.until_open(Ask)
        assert paused.run_id in b.text()
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert (b.screen.session.view.run_id, b.screen.session.view.output) == (paused.run_id, "sent")
        await b.until(lambda: not b.screen.query_one(Inbox).items)
    answers = [entry.answer for entry in elsewhere.store.load(paused.run_id).records if entry.kind == "human"]
    assert [answer["how"] for answer in answers if answer] == ["workbench"]


async def test_a_question_that_comes_while_the_workbench_is_open_rings_and_is_listed(
    bench: OpenBench, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(WORK, REPLIES) as b:
        rung: list[bool] = []
        monkeypatch.setattr(b.app, "bell", lambda: rung.append(True))
        await b.until(lambda: b.screen.keeping._known is not None)
        await elsewhere.run()
        await open_inbox(b)
        assert rung == [True]


async def test_a_question_answered_elsewhere_goes_from_the_inbox(bench: OpenBench, elsewhere: Elsewhere) -> None:
    paused = await elsewhere.run()
    async with bench(WORK, REPLIES) as b:
        await open_inbox(b)
        await elsewhere.answer(paused.run_id, "yes")
        await b.until_shown("No question is open.")


async def test_an_answer_that_another_process_was_faster_with_is_refused_and_nothing_is_lost(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run(EACH, items=["a", "b"])
    async with bench(WORK, REPLIES, size=(140, 40)) as b:
        await open_inbox(b, 2)
        await b.press("enter")
        await b.until_open(Ask)
        first = b.app.screen.question
        await elsewhere.answer(paused.run_id, "theirs", first.id)
        await b.press(*"mine", "enter")
        await b.until_shown("already answered")
        assert b.screen.session.view.status == "idle"
        await b.until(lambda: len(listed(b)) == 1)
        result = await elsewhere.answer(paused.run_id, "second")
        assert set(result.output) == {"theirs", "second"}


async def test_an_answer_to_a_run_that_another_process_is_at_work_on_is_refused_and_kept_in_the_form(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run()
    async with bench(WORK, REPLIES) as b:
        await open_inbox(b)
        lock = Lock.take(elsewhere.store.folder / f"{paused.run_id}.jsonl")
        await b.press("enter")
        await b.until_open(Ask)
        await b.press(*"maybe", "enter")
        await b.until_shown("is at work on the run")
        lock.release()
        await b.press("alt+5", "enter")
        await b.until_open(Ask)
        assert b.app.screen.query_one(Input).value == "maybe"


async def test_an_answer_after_its_time_fails_the_run_and_says_so(bench: OpenBench, elsewhere: Elsewhere) -> None:
    elsewhere.clock = AnHourAgo()
    paused = await elsewhere.run(
        'pipeline Main(text: String) -> Result:\n  text |! yield("Now?", timeout: 1m) as said\n'
    )
    async with bench(WORK, REPLIES) as b:
        b.screen.running.ask(Question(paused.interrupts[0], "Main"))
        await b.until_open(Ask)
        assert "expired" in b.text()
        await b.press(*"yes", "enter")
        await b.until_shown("InterruptExpired")
    assert elsewhere.store.load(paused.run_id).status == "failed"


async def test_the_time_that_is_left_is_counted_down(bench: OpenBench, elsewhere: Elsewhere) -> None:
    await elsewhere.run('pipeline Main(text: String) -> Result:\n  text |! yield("Now?", timeout: 3d) as said\n')
    async with bench(WORK, REPLIES) as b:
        await open_inbox(b)
        assert "expires in 2d23h" in b.text()
        await b.until_shown("asked 1s ago")
        await b.press("enter")
        await b.until_shown("expires in 2d23h")


async def test_answering_one_of_several_leaves_the_others_open(bench: OpenBench, elsewhere: Elsewhere) -> None:
    paused = await elsewhere.run(EACH, items=["a", "b", "c"])
    async with bench(WORK, REPLIES) as b:
        await open_inbox(b, 3)
        await b.press("down", "down", "enter")
        await b.until_open(Ask)
        await b.press(*"second", "enter")
        await b.until(lambda: b.screen.session.view.status == "paused")
        await b.until(lambda: len(listed(b)) == 2)
        assert not isinstance(b.app.screen, Ask)
    assert len(elsewhere.store.load(paused.run_id).interrupts) == 2


async def test_the_run_on_the_screen_is_shown_as_another_process_has_completed_it(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    async with bench(WORK, REPLIES, inputs={"text": "hi"}, run=True) as b:
        await b.until_open(Ask)
        b.app.screen.query_one("#later").press()
        await b.until(lambda: b.screen.session.view.status == "paused")
        await elsewhere.answer(b.screen.session.view.run_id, "yes")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.output == "sent"
        assert b.screen.session.questions == ()


async def test_an_answer_left_by_another_process_reaches_the_run_that_waits_here(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    async with bench(WORK, REPLIES, inputs={"text": "hi"}, run=True) as b:
        await b.until_open(Ask)
        await b.press("escape")
        (question,) = b.screen.session.questions
        elsewhere.runtime().post(question.run_id, "yes", interrupt=question.id)
        await b.until_shown("✓ completed")


async def test_a_run_that_goes_on_here_is_answered_before_those_of_the_inbox(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    await elsewhere.run()
    async with bench(WORK, REPLIES, inputs={"text": "hi"}, run=True) as b:
        await b.until_open(Ask)
        await b.press("escape")
        await open_inbox(b, 2)
        await b.press("end", "enter")
        await b.until_shown("A run is going on here")


async def test_quitting_while_a_question_is_open_keeps_the_run_and_the_question(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    async with bench(WORK, REPLIES, inputs={"text": "hi"}, run=True) as b:
        await b.until_open(Ask)
        await b.press("escape", "ctrl+q")
        await b.until_shown("it is stopped and kept")
        await b.press("enter")
        await b.until(lambda: b.app._exit)
    (question,) = elsewhere.store.open_interrupts(datetime.now(UTC))
    result = await elsewhere.answer(question["runId"], "yes")
    assert (result.status, result.output) == ("completed", "sent")


# --- looking back -------------------------------------------------------------------------------------------


async def test_runs_are_told_apart_by_status_age_and_input(bench: OpenBench, elsewhere: Elsewhere) -> None:
    await elsewhere.run(text="about cats")
    paused = await elsewhere.run(text="about dogs")
    await elsewhere.answer(paused.run_id, "yes")
    async with bench(WORK, REPLIES, size=(160, 40)) as b:
        await b.until(lambda: len(b.screen.query_one(Runs).items) == 2)
        await b.press("alt+6")
        lines = [line for line in b.text().splitlines() if "text=about" in line]
        assert all(part in lines[0] for part in ("✓ Main", "text=about dogs"))
        assert all(part in lines[1] for part in ("⏸ Main", "text=about cats", "1 question"))


async def test_a_run_is_looked_back_at_stage_by_stage(bench: OpenBench, elsewhere: Elsewhere) -> None:
    paused = await elsewhere.run()
    await elsewhere.answer(paused.run_id, "yes")
    async with bench(WORK, REPLIES, size=(140, 40)) as b:
        await open_run(b)
        stages = b.screen.query_one(Stages)
        assert [row.label for _, row in stages.items] == [
            "Main starts",
            "|> Bot.draft",
            "|! yield",
            '|? (context.data.decision == "yes")',
            "|> Bot.send",
            "completed",
        ]
        await b.press("home", "down")
        await b.until(lambda: b.screen.replay.position == 1)
        assert b.screen.shown.data["draft"] == "first"
        assert "decision" not in b.screen.shown.data
        assert b.screen.editor.cursor_location[0] == 4
        assert "draft ●" in b.text()
        await b.press("alt+right", "alt+3")
        assert "after entry 2 of 4" in b.text()
        assert b.screen.editor._gutter[5].look == "running"


async def test_closing_the_look_back_shows_the_run_made_here_again(bench: OpenBench, elsewhere: Elsewhere) -> None:
    await elsewhere.run()
    async with bench(WORK, REPLIES) as b:
        await b.press("down", "end")
        before = b.screen.editor.cursor_location
        await open_run(b)
        await b.press("alt+0")
        await b.until(lambda: not b.screen.replay)
        await b.until_shown("its stages appear here")
        assert b.screen.editor.cursor_location == before


async def test_what_concerns_a_run_looked_back_at_is_in_the_palette_while_there_is_one(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    await elsewhere.run()
    titles = {"Stage before", "Stage after", "Continue the run from here", "Close the run looked back at"}
    async with bench(WORK, REPLIES) as b:
        assert not titles & {command.title for command in b.app.get_system_commands(b.screen)}
        await open_run(b)
        assert titles <= {command.title for command in b.app.get_system_commands(b.screen)}


async def test_the_program_of_a_run_is_shown_beside_it_where_the_editor_has_another(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    await elsewhere.run()
    async with bench("// another\n" + WORK, REPLIES) as b:
        await open_run(b)
        await b.press("alt+1", "x", "backspace", "delete", "enter")
        assert "// another" not in b.text()
        assert b.screen.shown_editor.text == WORK
        assert b.screen.document.text == "// another\n" + WORK
        await b.press("alt+0")
        await b.until_shown("// another")
        assert not b.screen.document.dirty


async def test_a_damaged_run_is_listed_and_shown_as_far_as_it_is_whole(bench: OpenBench, elsewhere: Elsewhere) -> None:
    paused = await elsewhere.run()
    await elsewhere.answer(paused.run_id, "yes")
    path = elsewhere.store.folder / f"{paused.run_id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([*lines[:-3], lines[-3].replace(b"completed", b"kompleted").replace(b"sent", b"cent"), *lines[-2:]])
    )
    async with bench(WORK, REPLIES, size=(140, 40)) as b:
        await b.until_shown("No problems")
        await open_run(b)
        assert "damaged" in b.text()
        await b.press("alt+3")
        await b.until_shown("the journal is damaged")
        await b.press("alt+2", "home", "down")
        assert b.screen.shown.data["draft"] == "first"


async def test_what_is_no_journal_at_all_is_told_and_opens_nothing(bench: OpenBench, elsewhere: Elsewhere) -> None:
    paused = await elsewhere.run()
    (elsewhere.store.folder / f"{paused.run_id}.jsonl").write_bytes(b"[b]\x1b[31m\n")
    async with bench(WORK, REPLIES) as b:
        await b.until(lambda: b.screen.query_one(Runs).items)
        await b.press("alt+6", "enter")
        await b.until_shown("no journal of a run")
        assert b.screen.replay is None


async def test_a_run_starts_anew_from_the_look_back(bench: OpenBench, elsewhere: Elsewhere) -> None:
    await elsewhere.run()
    async with bench(WORK, REPLIES, inputs={"text": "hi"}) as b:
        await open_run(b)
        await b.press("f5", "enter")
        await b.until_open(Ask)
        assert b.screen.replay is None


# --- going on -----------------------------------------------------------------------------------------------


async def test_continuing_shows_first_what_is_reused_and_then_makes_a_new_run_with_its_marks(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run()
    await elsewhere.answer(paused.run_id, "yes")
    async with bench(WORK.replace("Send it", "Send it now"), REPLIES, size=(140, 40)) as b:
        await open_run(b)
        await b.press("home", "down", "down", "down", "ctrl+r")
        await b.until_open(Continue)
        for text in ("✓ reused", "~ edited after use", "3 of 4 stages reused"):
            assert text in b.text()
        assert len(elsewhere.store.runs(datetime.now(UTC))) == 1
        await b.press("enter")
        await b.until_shown("✓ completed")
        view = b.screen.session.view
        assert (view.run_id != paused.run_id, view.output) == (True, "sent")
        await b.press("alt+2")
        assert [row.reused for _, row in b.screen.query_one(Stages).items] == [True, True, True, False]
        assert "reused" in b.text()
        await b.until(lambda: len(b.screen.query_one(Runs).items) == 2)
        assert b.screen.query_one(Runs).items[0].origin == f"{paused.run_id}@3"


async def test_an_interrupted_run_goes_on_as_it_is(bench: OpenBench, elsewhere: Elsewhere) -> None:
    paused = await elsewhere.run()
    path = elsewhere.store.folder / f"{paused.run_id}.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))  # killed before it could pause
    async with bench(WORK, REPLIES) as b:
        await open_run(b)
        await b.press("ctrl+r")
        await b.until_open(Continue)
        b.app.screen.query_one("#resume").press()
        await b.until_open(Ask)
        await b.press("enter")
        await b.until_shown("✓ completed")
        assert b.screen.session.view.run_id == paused.run_id


async def test_a_program_with_errors_makes_no_new_run(bench: OpenBench, elsewhere: Elsewhere) -> None:
    await elsewhere.run()
    async with bench(WORK + "pipeline", REPLIES) as b:
        await open_run(b)
        await b.press("ctrl+r")
        await b.until_open(Continue)
        assert "The program has errors" in b.text()
        assert not b.app.screen.query("#fork")


async def test_a_run_of_a_pipeline_that_the_program_has_not_is_refused_in_the_form(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    await elsewhere.run()
    async with bench(WORK.replace("pipeline Main", "pipeline Other"), REPLIES) as b:
        await open_run(b)
        await b.press("ctrl+r")
        await b.until_open(Continue)
        assert "has no pipeline Main" in b.text()


async def test_a_completed_run_that_would_come_out_the_same_is_shown_as_it_is(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run()
    await elsewhere.answer(paused.run_id, "yes")
    async with bench(WORK, REPLIES) as b:
        await open_run(b)
        await b.press("ctrl+r")
        await b.until_open(Continue)
        await b.press("enter")
        await b.until_shown("Nothing differs")
        assert b.screen.session.view.run_id == paused.run_id


async def test_a_kill_in_the_middle_of_answering_leaves_the_question_open_or_answered(
    bench: OpenBench, elsewhere: Elsewhere
) -> None:
    paused = await elsewhere.run()
    path = elsewhere.store.folder / f"{paused.run_id}.jsonl"
    before = path.read_bytes()
    await elsewhere.answer(paused.run_id, "yes")
    answered = path.read_bytes()[len(before) :].splitlines(keepends=True)
    path.write_bytes(before + answered[0] + answered[1][:20])  # the answer is in it, half of the next line too
    async with bench(WORK, REPLIES) as b:
        await open_run(b)
        assert b.screen.shown.status == "interrupted"
        assert not b.screen.query_one(Inbox).items
        await b.press("ctrl+r")
        await b.until_open(Continue)
        b.app.screen.query_one("#resume").press()
        await b.until_shown("✓ completed")
    path.write_bytes(before + answered[0][:20])  # it is not
    async with bench(WORK, REPLIES) as b:
        await open_inbox(b)
        assert "Send first?" in b.text()


# --- everywhere ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(20, 6), (40, 12), (80, 24), (200, 50)])
async def test_every_pane_of_kept_runs_draws_at_every_size(
    bench: OpenBench, elsewhere: Elsewhere, size: tuple[int, int]
) -> None:
    await elsewhere.run(text="[b]\x1b[31m" + "long " * 100)
    async with bench("//\n" + WORK, REPLIES, size=size) as b:
        await open_inbox(b)
        await b.press("enter")
        await b.until_open(Ask)
        await b.press("escape")
        await open_run(b)
        await b.press("alt+left", "alt+left", "alt+right", "alt+3", "alt+4", "alt+5", "alt+6", "alt+1", "ctrl+r")
        await b.until_open(Continue)
        await b.press("escape", "alt+0")
        assert "\x1b" not in b.text()
        assert b.app.is_running

"""Runs driven by the workbench's session, without a screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import halo_lang
from halo_runtime.cli.settings import user_name
from halo_runtime.errors import RunRefused, UnknownRun
from halo_runtime.extras import is_installed
from halo_runtime.store.files import FileRunStore
from halo_tui.models.launch import EMBEDDED_MODEL, Launch, choose_launch
from halo_tui.models.project import Project
from halo_tui.models.session import Session

ASKING = 'pipeline Main() -> Result:\n  "x" |! yield("Go?") as go |> System.Value(go)\n'


class Watched(Session):
    """A session that one can wait for."""

    def __init__(self, root: Path) -> None:
        self._change = asyncio.Event()
        super().__init__(self._change.set, Project(lambda: FileRunStore(root)))

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                await self._change.wait()
                self._change.clear()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of kept runs."""
    return tmp_path / ".halo"


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    path = tmp_path / "replies.json"
    path.write_text(json.dumps({"Bot": "hi"}))
    return Launch(replies=path)


async def test_a_run_ends_with_its_output_data_and_stages(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    program = halo_lang.parse(
        'agent Bot [openai/gpt-4o-mini]\npipeline Main() -> Result:\n  "x" |> Bot.say() as said\n'
    )
    await session.run(program, "Main", {}, launch)
    await session.until(lambda: list(session.view.rows()))
    assert (session.view.status, session.view.output) == ("completed", "hi")
    assert session.view.data == {"Bot": {"say": "hi"}, "say": "hi", "said": "hi"}
    await session.close()


async def test_a_question_is_answered_while_the_engine_waits(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    running = asyncio.ensure_future(session.run(halo_lang.parse(ASKING), "Main", {}, launch))
    await session.until(lambda: session.questions)
    (question,) = session.questions
    assert question.message == "Go?"
    assert session.answer(question.interrupt.id, False)
    assert not session.answer(question.interrupt.id, True)
    await running
    assert (session.view.status, session.view.output, session.questions) == ("completed", False, ())


async def test_a_question_left_open_pauses_the_run_and_is_answered_later(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    running = asyncio.ensure_future(session.run(halo_lang.parse(ASKING), "Main", {}, launch))
    await session.until(lambda: session.questions)
    (question,) = session.questions
    session.leave_open(question.interrupt.id)
    await running
    assert session.view.status == "paused"
    assert [open_one.interrupt.id for open_one in session.questions] == [question.interrupt.id]
    await session.answer_kept(session.view.run_id, question.id, "yes")
    assert (session.view.status, session.view.output, session.questions) == ("completed", "yes", ())


async def test_a_missing_argument_fails_the_run_with_the_reason(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    program = halo_lang.parse("pipeline Main(a: String) -> Result:\n  a |> System.Value(a)\n")
    await session.run(program, "Main", {}, launch)
    assert session.view.error is not None
    assert session.view.error["type"] == "InputError"


async def test_replies_that_cannot_be_read_fail_the_run(tmp_path: Path, runs: Path) -> None:
    session = Watched(runs)
    await session.run(halo_lang.parse(ASKING), "Main", {}, Launch(replies=tmp_path / "none.json"))
    assert session.view.status == "failed"


async def test_a_cancelled_run_is_shown_as_interrupted(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    running = asyncio.ensure_future(session.run(halo_lang.parse(ASKING), "Main", {}, launch))
    await session.until(lambda: session.questions)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (session.view.status, session.questions) == ("interrupted", ())


async def test_closing_stops_a_run_and_keeps_it(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    program = halo_lang.parse(
        'pipeline Main() -> Result:\n  "x" |> System.Value("kept") as first |> System.Sleep(1h)\n'
    )
    running = asyncio.ensure_future(session.run(program, "Main", {}, launch))
    await session.until(lambda: len(list(session.view.rows())) == 2)
    await session.close()
    await running
    (line,) = FileRunStore(runs).runs(datetime.now(UTC))
    assert (line["status"], line["stages"]) == ("interrupted", 1)


@pytest.fixture
def no_folder(runs: Path) -> None:
    """Where the runs should be kept there is a file."""
    runs.write_text("no folder")


@pytest.mark.usefixtures("no_folder")
async def test_a_run_that_cannot_be_kept_runs_all_the_same_and_says_so(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    await session.run(halo_lang.parse('pipeline Main() -> Result:\n  "x" |> System.Value("y")\n'), "Main", {}, launch)
    assert (session.view.status, session.view.output) == ("completed", "y")
    assert [text.partition(":")[0] for text in session.view.warnings] == ["the run is not kept"]


async def test_closing_leaves_questions_open(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    running = asyncio.ensure_future(session.run(halo_lang.parse(ASKING), "Main", {}, launch))
    await session.until(lambda: session.questions)
    await session.close()
    await running
    (question,) = FileRunStore(runs).open_interrupts(datetime.now(UTC))
    assert question["message"] == "Go?"


async def test_answers_are_kept_with_who_gave_them_and_how(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    running = asyncio.ensure_future(session.run(halo_lang.parse(ASKING), "Main", {}, launch))
    await session.until(lambda: session.questions)
    session.answer(session.questions[0].id, "yes")
    await running
    stored = FileRunStore(runs).load(session.view.run_id)
    (answer,) = [entry.answer for entry in stored.records if entry.kind == "human"]
    assert answer is not None
    assert (answer["by"], answer["how"]) == (user_name(), "workbench")
    assert datetime.fromisoformat(answer["at"]) <= datetime.now(UTC)


async def test_what_is_refused_leaves_the_screen_as_it_was(launch: Launch, runs: Path) -> None:
    session = Watched(runs)
    await session.run(halo_lang.parse(ASKING.replace("|! yield", "|> System.Value")), "Main", {}, launch)
    shown = session.view
    with pytest.raises(RunRefused):
        await session.answer_kept(shown.run_id, "ask-1", "yes")
    with pytest.raises(UnknownRun):
        await session.go_on("nothing")
    assert session.view is shown
    assert shown.status == "completed"


def test_what_was_asked_for_comes_before_what_lies_beside_the_program(tmp_path: Path) -> None:
    program = tmp_path / "main.halo"
    (tmp_path / "main.replies.json").touch()
    given = tmp_path / "other.json"
    assert choose_launch(program, replies=given, model=None) == Launch(replies=given)
    assert choose_launch(program, replies=None, model="local/x") == Launch(model="local/x")


@pytest.mark.parametrize("name", ["main.replies.json", "replies.json"])
def test_replies_beside_the_program_are_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    found = choose_launch(tmp_path / "main.halo", replies=None, model=None)
    assert (found.replies, found.description) == (tmp_path / name, f"on the replies in {name}")


def test_without_replies_the_embedded_model_answers_where_it_is_installed(tmp_path: Path) -> None:
    expected = EMBEDDED_MODEL if is_installed("local") else None
    assert choose_launch(tmp_path / "main.halo", replies=None, model=None) == Launch(model=expected)

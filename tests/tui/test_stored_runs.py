"""Kept runs as the screen shows them, without a screen."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import halo_lang
from halo_runtime import RunResult, Runtime, ScriptedModel
from halo_runtime.json_types import JsonObject
from halo_runtime.preflight import Preflight, StageVerdict
from halo_runtime.store.files import FileRunStore
from halo_tui.models.launch import Launch
from halo_tui.models.lines import Line, ago, clock
from halo_tui.models.output import output_sections
from halo_tui.models.plan import plan_text
from halo_tui.models.project import MAX_LISTED, Project, run_line
from halo_tui.models.session import reused_paths
from halo_tui.models.stored import Replay

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORK = """agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> Bot.draft("Draft: {{text}}") as draft
    |> Polish(draft) as polished
    |! yield("Send {{polished}}?") as decision
    |? (context.data.decision == "yes")

pipeline Polish(text: String) -> Result:
  text |> Bot.polish("Polish: {{text}}") as better
"""
REPLIES: JsonObject = {"Bot.draft": "rough", "Bot.polish": {"reply": "smooth", "usage": {"input": 7, "output": 3}}}


@pytest.fixture
def store(tmp_path: Path) -> FileRunStore:
    return FileRunStore(tmp_path / ".halo")


def runtime(store: FileRunStore) -> Runtime:
    return Runtime(env={}, replies=ScriptedModel(REPLIES), store=store)


async def run(store: FileRunStore, *answers: str) -> RunResult:
    result = await runtime(store).run(halo_lang.parse(WORK), "Main", {"text": "hi"}, keep=True)
    for value in answers:
        result = await runtime(store).signal(result.run_id, value)
    return result


def said(lines: Iterable[tuple[str, str]] | Line) -> str:
    return "".join(text for text, _ in lines)


async def test_a_timeline_has_the_start_every_stage_in_the_order_of_the_trace_and_how_the_run_stands(
    store: FileRunStore,
) -> None:
    replay = Replay.open(store, (await run(store, "yes")).run_id)
    assert [(depth, row.label, row.source_line) for depth, row in replay.rows] == [
        (0, "Main starts", 0),
        (0, "|> Bot.draft", 5),
        (1, "|> Bot.polish", 11),
        (0, "|> Polish", 6),
        (0, "|! yield", 7),
        (0, '|? (context.data.decision == "yes")', 8),
        (0, "completed", 8),
    ]
    assert replay.rows[2][1].note.startswith("10 tokens")


async def test_the_state_follows_the_entry_that_is_looked_at(store: FileRunStore) -> None:
    replay = Replay.open(store, (await run(store, "yes")).run_id)
    assert replay.view.status == "completed"
    replay.go(1)
    assert (replay.view.data, replay.view.current) == ({"Bot": {"draft": "rough"}, "draft": "rough"}, "rough")
    assert replay.changed == {("data", "Bot", "draft"), ("data", "draft")}
    replay.go(2)
    assert replay.view.input == {"text": "rough"}  # the nested pipeline's own
    replay.go(0)
    assert (replay.view.data, replay.changed, replay.marked_line) == ({}, frozenset(), 0)


async def test_positions_end_at_the_first_and_the_last(store: FileRunStore) -> None:
    replay = Replay.open(store, (await run(store)).run_id)
    assert not replay.go(99)
    assert (replay.position, replay.entry) == (replay.last, None)
    assert replay.go(-5)
    assert (replay.position, replay.entry) == (0, 0)


async def test_a_paused_run_stands_at_its_questions_and_can_be_gone_on_with(store: FileRunStore) -> None:
    replay = Replay.open(store, (await run(store)).run_id)
    assert said(replay.rows[-1][1].line(0, 0.0)) == "⏸ paused  1 open question"
    assert replay.goes_on
    assert not Replay.open(store, (await run(store, "yes")).run_id).goes_on


async def test_a_halted_run_shows_the_gate_at_which_it_ended(store: FileRunStore) -> None:
    replay = Replay.open(store, (await run(store, "no")).run_id)
    assert [row.state for _, row in replay.rows[-3:]] == ["completed", "halted", "halted"]


async def test_a_failed_run_stands_at_the_line_and_the_reason_of_its_failure(store: FileRunStore) -> None:
    program = 'pipeline Main() -> Result:\n  1\n    |> System.Fail("no [/way]")\n'
    result = await runtime(store).run(halo_lang.parse(program), keep=True)
    end = Replay.open(store, result.run_id).rows[-1][1]
    assert (end.state, end.source_line, end.note) == ("failed", 3, "ProgramFailure: no [/way]")


@pytest.mark.parametrize("line", range(1, 7))
async def test_a_damaged_journal_is_shown_up_to_its_first_bad_line(store: FileRunStore, line: int) -> None:
    result = await run(store, "yes")
    path = store.folder / f"{result.run_id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    intact = sum(json.loads(one)["t"] == "stage" for one in lines[:line])
    path.write_bytes(b"".join([*lines[:line], lines[line].replace(b'"', b"'", 1), *lines[line + 1 :]]))
    replay = Replay.open(store, result.run_id)
    assert (replay.last, replay.goes_on) == (intact + 1, False)
    assert f"line {line + 1}" in said(run for section in output_sections(replay.view) for run in section.runs())
    for position in range(replay.last + 1):
        replay.go(position)
        assert replay.view.run_id == result.run_id


async def test_the_project_lists_runs_and_questions(store: FileRunStore) -> None:
    done, paused = await run(store, "yes"), await run(store)
    kept = Project(lambda: store).look(datetime.now(UTC))
    assert [line.run_id for line in kept.runs] == [paused.run_id, done.run_id]
    assert [(one.id, one.pipeline, one.message) for one in kept.questions] == [
        (paused.interrupts[0].id, "Main", "Send smooth?")
    ]
    assert not kept.at_work


def test_a_project_without_runs_has_none_and_makes_no_folder(tmp_path: Path) -> None:
    project = Project(lambda: FileRunStore(tmp_path / ".halo"))
    assert project.look(NOW).runs == ()
    assert list(tmp_path.iterdir()) == []


def listed(**fields: object) -> str:
    document = {"runId": "r", "status": "completed", "pipeline": "Main", "updatedAt": "2026-03-01T11:57:00Z"}
    rest = {"interrupts": 0, "parent": None, "forkedAt": None, "inputPreview": "text=hi"}
    return said(run_line({**document, **rest, **fields}).line(NOW))


def test_a_row_of_the_list_says_status_age_questions_input_and_origin() -> None:
    assert listed() == "✓ Main  3m ago  text=hi"
    assert listed(status="paused", interrupts=2) == "⏸ Main  3m ago  2 questions  text=hi"
    assert listed(parent="old", forkedAt=4) == "✓ Main  3m ago  text=hi  ↳ old@4"
    assert listed(status="damaged", pipeline=None, updatedAt=None, problem="[b]\x1b") == "! r  [b]\\x1b"


def test_what_is_too_much_to_list_is_counted(monkeypatch: pytest.MonkeyPatch, store: FileRunStore) -> None:
    line = {"runId": "r", "status": "failed", "pipeline": "Main", "updatedAt": None, "interrupts": 0}
    line |= {"parent": None, "forkedAt": None, "inputPreview": ""}
    monkeypatch.setattr(store, "runs", lambda _: [line] * (MAX_LISTED + 7))
    *_, last = Project(lambda: store).look(NOW).runs
    assert (last.run_id, last.pipeline) == ("", "7 older runs")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "just now"), (42, "42s ago"), (300, "5m ago"), (7200, "2h ago"), (200_000, "2d ago"), (-5, "just now")],
)
def test_an_age_is_told_in_one_unit(seconds: int, text: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize(("seconds", "text"), [(5.9, "5s"), (125, "2m05s"), (3720, "1h02m"), (273_600, "3d04h")])
def test_time_left_is_counted_as_a_clock_does(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_plan_says_what_is_reused_why_the_rest_is_not_and_what_it_costs() -> None:
    stages = (
        StageVerdict(1, "|> Bot.draft", 5, "reused", "nothing changed", 0.25),
        StageVerdict(2, "|> Bot.send", 6, "edited after use", "the prompt changed", 0.5),
        StageVerdict(None, "|! yield", None, "question orphaned", "it is asked no more", 0.0),
    )
    text = said(plan_text(Preflight(stages, 0.25, None)))
    for part in ("✓ reused", "line 5  $0.25", "~ edited after use", "the prompt changed", "! question orphaned"):
        assert part in text
    assert "1 of 3 stages reused  saved $0.25 · paid again an unknown sum" in text


def test_stages_that_are_gone_shift_no_mark() -> None:
    stages = (
        StageVerdict(1, "|> A.old", None, "gone", "", 0.0),
        StageVerdict(2, "|> A.kept", 5, "reused", "", 0.0),
        StageVerdict(3, "|> A.new", 6, "new", "", 0.0),
    )
    assert reused_paths("Main", Preflight(stages, 0.0, 0.0)) == {"Main/0"}


def test_a_run_is_gone_on_with_as_it_was_started(tmp_path: Path) -> None:
    path = tmp_path / "replies.json"
    path.write_text(json.dumps(REPLIES))
    kept = Launch(replies=path).to_keep()
    assert kept == {"replies": REPLIES, "model": None, "envFile": None}
    again = Launch.kept(kept)
    assert (again.script, again.to_keep(), again.description) == (REPLIES, kept, "on its replies")
    assert Launch.kept({}) == Launch()

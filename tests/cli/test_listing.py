"""`halo runs`, `diff` and `prune`: the kept runs of a project (spec 3.3)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.cli.comparing import changes
from halo_runtime.cli.main import main
from halo_runtime.cli.output import money
from halo_runtime.cli.project import run_store
from halo_runtime.json_types import Json
from tests.cli.kept import kept_run, project, run_at_work, told

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project(tmp_path)


# --- runs -------------------------------------------------------------------------------------------------------


def test_runs_of_one_pipeline_are_told_apart(capsys: Captured) -> None:
    waiting = kept_run("flowers")
    done = kept_run("[bold]\x1b[2J and more", "--answer", "verdict=no")
    capsys.readouterr()
    assert main(["runs"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{waiting}  paused       Main  1 stage  ")
    assert first.endswith(" ago  $0.0002  1 question  text=flowers")
    assert second.startswith(f"{done}  completed    Main  3 stages  ")
    assert second.endswith(" ago  $0.0002  text=[bold]\\x1b[2J and more")


def test_the_status_has_a_colour_of_its_own(capsys: Captured) -> None:
    kept_run("flowers")
    capsys.readouterr()
    main(["runs", "--color", "always"])
    assert "\x1b[1;33mpaused     \x1b[0m" in capsys.readouterr().out
    main(["runs", "--color", "auto"])


def test_runs_are_filtered_and_limited(capsys: Captured) -> None:
    waiting, done = kept_run("a"), kept_run("b", "--answer", "verdict=no")
    assert [one["runId"] for one in told(capsys, "runs")["runs"]] == [done, waiting]
    assert [one["runId"] for one in told(capsys, "runs", "--status", "paused")["runs"]] == [waiting]
    assert told(capsys, "runs", "--pipeline", "Other")["runs"] == []
    assert [one["runId"] for one in told(capsys, "runs", "--limit", "1")["runs"]] == [done]


def test_a_damaged_journal_is_listed_as_such_and_hides_no_other(capsys: Captured) -> None:
    damaged, good = kept_run("a"), kept_run("b")
    path = Path(f".halo/checkpoints/{damaged}.jsonl")
    path.write_bytes(path.read_bytes().replace(b"a draft", b"A draft", 1))
    assert {one["runId"]: one["status"] for one in told(capsys, "runs")["runs"]} == {damaged: "damaged", good: "paused"}
    assert [one["runId"] for one in told(capsys, "inbox")["interrupts"]] == [good]


# --- inbox ------------------------------------------------------------------------------------------------------


def test_the_inbox_says_that_an_answer_was_left(capsys: Captured) -> None:
    run_id = kept_run("a")
    capsys.readouterr()
    assert main(["inbox"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("--answer VALUE")
    assert main(["signal", run_id, "no", "--no-run", "--by", "ada\x1b"]) == 0
    capsys.readouterr()
    assert main(["inbox"]) == 0
    *_, said, command = capsys.readouterr().out.splitlines()
    assert said.startswith("  ada\\x1b left an answer ")
    assert command == f"  halo resume {run_id}"
    [question] = told(capsys, "inbox")["interrupts"]
    assert question["left"]["by"] == "ada\x1b"


def test_the_inbox_shows_the_beginning_of_what_is_attached(capsys: Captured) -> None:
    Path("a.halo").write_text('pipeline Main(x: Any) -> Any:\n  x |! yield("Send?", attachments: [x])\n')
    main(["run", "a.halo", "-i", "x=a draft", "--no-input"])
    capsys.readouterr()
    assert main(["inbox"]) == 0
    assert "  attachment: a draft" in capsys.readouterr().out.splitlines()


# --- diff -------------------------------------------------------------------------------------------------------


def test_two_runs_side_by_side(capsys: Captured) -> None:
    sent, not_sent = kept_run("a", "--answer", "verdict=yes"), kept_run("a", "--answer", "verdict=no")
    document = told(capsys, "diff", sent, not_sent)
    assert document["same"] is False
    assert [(row["mark"], row["stage"]) for row in document["route"]][:2] == [
        ("same", "|> Bot.draft"),
        ("differs", "|! yield"),
    ]
    values = {one["path"]: (one.get("left"), one.get("right")) for one in document["values"]}
    assert values["data.verdict"] == ("yes", "no")
    assert values["output"] == ("sent", "not sent")
    assert [one["path"] for one in document["calls"]] == ["2"]
    assert (document["left"]["calls"], document["right"]["calls"]) == (2, 1)
    assert document["left"]["cost"] == document["right"]["cost"] == pytest.approx(0.00021)


def test_a_run_and_itself_are_the_same(capsys: Captured) -> None:
    run_id = kept_run("a")
    assert told(capsys, "diff", run_id, run_id)["same"] is True
    main(["diff", run_id, run_id])
    assert capsys.readouterr().out.splitlines()[-1] == "the runs are the same"


def test_two_entries_of_one_run_are_compared(capsys: Captured) -> None:
    run_id = kept_run("a", "--answer", "verdict=no")
    document = told(capsys, "diff", f"{run_id}@1", f"{run_id}@2")
    assert [row["mark"] for row in document["route"]] == ["same", "right"]
    assert [one["path"] for one in document["values"]] == ["data.verdict", "current"]


def test_people_see_what_differs_with_its_sides(capsys: Captured) -> None:
    sent, not_sent = kept_run("a", "--answer", "verdict=yes"), kept_run("a", "--answer", "verdict=no")
    capsys.readouterr()
    assert main(["diff", sent, not_sent]) == 0
    out = capsys.readouterr().out
    assert f"- {sent}  Main  completed  2 calls, 1100 tokens, cost $0.0002\n" in out
    assert "  data.verdict\n    - yes\n    + no\n" in out
    assert "calls\n  2 Bot.send\n    - sent\n    + (nothing)\n" in out


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]}, ["b.1"]),
        ({"a": 1}, {"b": 1}, ["a", "b"]),
        ([1], [1, 2], ["1"]),
        (1, True, [""]),
        (1, 1.0, [""]),
        ({"a": None}, {}, ["a"]),
        ({"a": {"b": {}}}, {"a": {"b": {}}}, []),
    ],
)
def test_values_differ_at_their_innermost_places(left: Json, right: Json, expected: list[str]) -> None:
    assert [change.path for change in changes(left, right)] == expected


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab.", max_size=2)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
)


@given(VALUES, VALUES)
def test_values_have_no_difference_exactly_when_they_are_the_same_json(left: Json, right: Json) -> None:
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert (list(changes(left, right)) == []) is same


@given(VALUES, VALUES)
def test_a_difference_is_the_same_from_both_sides(left: Json, right: Json) -> None:
    there = {(one.path, repr(one.left), repr(one.right)) for one in changes(left, right)}
    assert {(one.path, repr(one.right), repr(one.left)) for one in changes(right, left)} == there


# --- prune ------------------------------------------------------------------------------------------------------


def test_only_old_runs_that_wait_for_nobody_are_deleted(capsys: Captured) -> None:
    waiting, done = kept_run("a"), kept_run("b", "--answer", "verdict=no")
    assert told(capsys, "prune", "--older", "1h") == {"removed": [], "dryRun": False}
    assert told(capsys, "prune", "--older", "1ms", "--dry-run") == {"removed": [done], "dryRun": True}
    assert told(capsys, "prune", "--older", "1ms") == {"removed": [done], "dryRun": False}
    assert [one["runId"] for one in told(capsys, "runs")["runs"]] == [waiting]
    assert told(capsys, "prune", "--older", "1ms", "--status", "paused")["removed"] == [waiting]
    assert told(capsys, "runs")["runs"] == []


def test_a_run_that_broke_off_at_its_question_is_deleted_only_when_asked_for(capsys: Captured) -> None:
    run_id = kept_run("a")
    journal = Path(f".halo/checkpoints/{run_id}.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    assert told(capsys, "prune", "--older", "1ms")["removed"] == []
    assert told(capsys, "prune", "--older", "1ms", "--status", "interrupted")["removed"] == [run_id]


def test_people_are_told_what_is_deleted(capsys: Captured) -> None:
    done = kept_run("b", "--answer", "verdict=no")
    capsys.readouterr()
    main(["prune", "--older", "1ms"])
    line, total = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{done}  completed ")
    assert total == "1 run deleted"


def test_a_run_at_work_stays(capsys: Captured) -> None:
    with run_at_work() as (_, run_id):
        assert told(capsys, "prune", "--older", "1ms")["removed"] == []
        assert [one["runId"] for one in told(capsys, "runs", "--status", "running")["runs"]] == [run_id]


def test_a_run_that_broke_off_is_as_old_as_its_journal(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        process.kill()
        process.wait()
    assert told(capsys, "prune", "--older", "1h")["removed"] == []
    path = run_store().folder / f"{run_id}.jsonl"
    two_hours_ago = path.stat().st_mtime - 7200
    os.utime(path, (two_hours_ago, two_hours_ago))
    assert told(capsys, "prune", "--older", "1h")["removed"] == [run_id]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--older", "30"], "--older 30: no duration"),
        (["--older", "1d", "--status", "pausd"], "--status pausd: no runs are deleted by that"),
        (["--older", "1d", "--status", "running"], "--status running: no runs are deleted by that"),
        ([], "Missing option '--older'"),
    ],
)
def test_what_is_no_choice_of_runs_is_refused(arguments: list[str], message: str, capsys: Captured) -> None:
    assert message in told(capsys, "prune", *arguments, code=2)["error"]["message"]


# --- amounts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "text"),
    [(None, "unknown"), (0, "$0.0000"), (0.00021, "$0.0002"), (0.0000045, "$0.0000045"), (12.5, "$12.5000")],
)
def test_an_amount_is_never_rounded_to_nothing(cost: float | None, text: str) -> None:
    assert money(cost) == text

"""`halo crashtest`: a run killed at every boundary comes out as the one that nobody killed (spec 11.3)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.crashtest import matrix
from halo_runtime.crashtest.matrix import Undisturbed
from halo_runtime.crashtest.moments import BOUNDARIES, Moment
from halo_runtime.json_types import JsonObject

Captured = pytest.CaptureFixture[str]

PROGRAM = """agent Bot [openai/gpt-4o-mini]

tool Shell : Bash()

pipeline Main(text: String) -> Result:
  text
    |> Bot.draft("Draft.") as draft
    |> Shell.run("echo x >> log; wc -l < log") as lines
    |! yield("Send {{draft}}?") as ok
    |> System.Value("{{draft}}, {{lines.stdout}}, {{ok}}")
"""
REPLIES = {"Bot.draft": {"reply": "a draft", "usage": {"input": 1000, "output": 100}}}
CRASHTEST = ["crashtest", "p.halo", "-i", "text=x", "--replies", "r.json"]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.halo").write_text(PROGRAM)
    Path("r.json").write_text(json.dumps(REPLIES))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> JsonObject:
    """What it says of the program, whose question is answered."""
    folder = tmp_path_factory.mktemp("crashtest")
    (folder / "p.halo").write_text(PROGRAM)
    (folder / "r.json").write_text(json.dumps(REPLIES))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sys.stdout", out := io.StringIO())
        assert main([*CRASHTEST, "--answer", "ok=yes", "--json"]) == 0
    assert not (folder / "log").exists(), "tools work on a copy"
    assert not (folder / ".halo").exists()
    return json.loads(out.getvalue())


def test_every_boundary_of_an_effect_and_a_stage_is_tried(report: JsonObject) -> None:
    tried = [(one["boundary"], one["path"]) for one in report["boundaries"]]
    assert {boundary for boundary, _ in tried} == set(BOUNDARIES.values())
    assert [boundary for boundary, path in tried if path == "Main/1/tool"] == [
        "before the effect",
        "after the effect, before its record",
        "after the record",
    ]
    assert [path for boundary, path in tried if boundary == "after the stage"] == [f"Main/{n}" for n in range(4)]


def test_all_boundaries_hold_and_each_run_comes_out_the_same(report: JsonObject) -> None:
    assert report["holds"] is True
    outcomes = [one["outcome"] for one in report["boundaries"]]
    right = {name: value for name, value in report["undisturbed"].items() if name != "effects"}
    assert right["output"] == "a draft, 1\n, yes"
    assert right["chain"] == "valid"
    assert outcomes == [right] * len(outcomes)


def test_only_what_left_no_record_is_done_again(report: JsonObject) -> None:
    again = {one["boundary"] for one in report["boundaries"] if one["again"]}
    assert again == {"after the effect, before its record"}
    assert all(one["problems"] == [] for one in report["boundaries"])


def test_a_tool_call_without_a_record_is_asked_about_and_not_repeated(report: JsonObject) -> None:
    doubtful = [one for one in report["boundaries"] if one["inDoubt"]]
    assert [one["boundary"] for one in doubtful] == ["before the effect", "after the effect, before its record"]
    assert all(one["inDoubt"] == ["Main/1/tool"] and one["again"] == [] for one in doubtful)


def test_people_get_a_table_and_a_sum(capsys: Captured) -> None:
    Path("echo.halo").write_text("pipeline Main(text: String) -> Result: text |> System.Value(text)\n")
    assert main(["crashtest", "echo.halo", "-i", "text=x"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["killed", "at", "effects", "cost", "holds"]
    assert lines[1].split() == ["1", "after", "the", "stage", "Main/0", "0", "of", "0", "$0.0000", "yes"]
    assert lines[-1] == (
        "3 boundaries, all hold: each run ended as the one that nobody killed (completed, 0 effects, $0.0000)"
    )


def test_a_budget_that_leaves_no_room_for_a_repeated_call_does_not_hold(capsys: Captured) -> None:
    Path("p.halo").write_text(
        "policy Budget : MaxCalls(1)\n\nagent Bot [openai/gpt-4o-mini]\n  requires Budget\n\n"
        "pipeline Main(text: String) -> Result: text |> Bot.draft()\n"
    )
    assert main(CRASHTEST) == 1
    out = capsys.readouterr().out
    assert '2: the error differs: "PolicyViolation", not null\n' in out
    assert out.endswith("2 of 6 boundaries do not hold (undisturbed: completed, 1 effect, $0.0002)\n")


def test_a_budget_that_asks_is_raised_so_that_a_run_is_tried_behind_it_too(capsys: Captured) -> None:
    Path("p.halo").write_text(
        'policy Budget : MaxCalls(1, onLimit: "ask")\n\nagent Bot [openai/gpt-4o-mini]\n  requires Budget\n\n'
        "pipeline Main(text: String) -> Result: text |> Bot.draft() |> Bot.draft()\n"
    )
    assert main(CRASHTEST) == 0
    assert "boundaries, all hold: each run ended as the one that nobody killed (completed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("agent Bot [openai/o3-mini]\n\npipeline Main(text: String) -> Result: text |> Bot.go()\n", "--replies FILE"),
        (
            'tool Shell : Bash()\n\npipeline Main(text: String) -> Result: text |> Shell.run("date +%N")\n',
            "two runs that nobody killed are not the same: ",
        ),
        ("pipeline Main(a: String) -> Result: a\n", "unknown argument text"),
        ("pipeline Main(text: String) -> Result: text |> Nothing.go()\n", "HL203"),
    ],
)
def test_what_cannot_be_tried_is_refused(program: str, message: str, capsys: Captured) -> None:
    Path("p.halo").write_text(program)
    assert main([*CRASHTEST[:4]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


RIGHT: JsonObject = {
    "status": "completed", "output": "ok", "error": None, "interrupts": [], "data": {}, "cost": 0, "calls": 1,
    "head": "h", "chain": "valid",
}  # fmt: skip


def judged(before: list[Moment], after: list[Moment], **changed: object) -> tuple[str, ...]:
    undisturbed = Undisturbed(RIGHT, (), {})
    return matrix.judged(1, tuple(before), tuple(after), {**RIGHT, **changed}, undisturbed).problems


def test_what_was_recorded_and_is_done_again_does_not_hold() -> None:
    done, recorded = Moment("done", "Main/0/try1", "model"), Moment("recorded", "Main/0/try1", "model")
    assert judged([done, recorded], [done, recorded]) == ("Main/0/try1 was recorded, and done again",)
    assert judged([done], [done, recorded]) == ()


def test_a_request_that_was_under_way_has_been_paid_for() -> None:
    request, recorded = Moment("request", "Bot.go"), Moment("recorded", "Main/0/try1", "model")
    assert judged([request], [], cost=1) == ()
    assert judged([request], [], cost=-1) == ("the cost differs: -1, not 0",)
    assert judged([request, recorded], [], cost=1) == ("the cost differs: 1, not 0",)


def test_another_outcome_does_not_hold() -> None:
    assert judged([Moment("end", "")], [], output="no") == ('the output differs: "no", not "ok"',)
    assert judged([Moment("end", "")], [], head="g", cost=1) == (
        "the cost differs: 1, not 0",
        'the hash chain differs: "g", not "h"',
    )


EXAMPLES = {
    "code_fix_loop": [],
    "incident": ["--answer", "recovery=10:02 UTC", "--answer", "approval=yes"],
    "invoices": ["ReadInbox"],
    "label_each": [],
    "localise": ["LocaliseAll"],
    "minutes": [],
    "research": [],
    "restock": [],
    "review_with_approval": ["--answer", "decision=publish"],
    "support_triage": [],
    "tour": ["Tour", "--answer", "answer=yes", "--answer", "printer=LP-1"],
}


def test_all_examples_are_tried(root: Path) -> None:
    assert {path.stem for path in (root / "examples").glob("*.halo")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_survives_a_crash_anywhere(name: str, root: Path, capsys: Captured) -> None:
    files = {ending: str(root / "examples" / f"{name}.{ending}") for ending in ("halo", "input.json", "replies.json")}
    settings = ["--input-json", files["input.json"], "--replies", files["replies.json"]]
    assert main(["crashtest", files["halo"], *EXAMPLES[name], *settings, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["holds"] is True
    assert report["undisturbed"]["status"] == "completed"

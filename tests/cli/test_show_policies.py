"""What `halo show`, `halo run` and their JSON tell of the decisions of policies (spec 6, 8.1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

PROGRAM = """
policy House : Redact(Email) & Block("phoenix") & Audit(MaxLength(3))

@checkpoint
pipeline Main(text: String) -> Result:
  text
    |> Clerk.read()
    |> Clerk.answer()

agent Clerk [openai/gpt-4o-mini]
  requires House
"""
TEXT = "text=ann@example.com"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main.halo").write_text(PROGRAM)
    Path("replies.json").write_text(json.dumps({"Clerk.read": "ann@example.com asks", "Clerk.answer": "a phoenix"}))


def run(*options: str) -> None:
    assert main(["run", "main.halo", "-i", TEXT, "--replies", "replies.json", *options]) == 1


def test_show_lists_what_was_stopped_and_changed_and_how_often(capsys: Captured) -> None:
    run("--json")
    run_id = json.loads(capsys.readouterr().out)["runId"]
    assert main(["show", run_id]) == 0
    shown = capsys.readouterr().out
    decided = [line for line in shown.splitlines() if line.startswith("policy ")]
    assert decided == [
        "policy House: Redact(Email) redact at input of Clerk.read",
        "policy House: Redact(Email) redact at output of Clerk.read",
        "policy House: Audit(MaxLength(3)) audit at output of Clerk.read",
        'policy House: Block("phoenix") block at output of Clerk.answer',
        "policy House: Audit(MaxLength(3)) audit at output of Clerk.answer",
    ]


def test_violations_have_the_shape_that_programs_read(capsys: Captured) -> None:
    run("--json")
    ran = json.loads(capsys.readouterr().out)
    main(["show", ran["runId"], "--json"])
    shown = json.loads(capsys.readouterr().out)
    violations = ran["context"]["meta"]["violations"]
    assert violations == shown["context"]["meta"]["violations"]
    assert all(list(line) == ["policy", "rule", "point", "action", "agent", "method"] for line in violations)


def test_progress_tells_of_what_was_stopped_and_changed_and_of_nothing_else(capsys: Captured) -> None:
    run()
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("policy ")]
    assert told[0] == "policy House: Redact(Email) redact at input"
    assert len(told) == 5
    assert not any("allow" in line for line in told)


def test_replies_that_a_run_goes_on_with_are_those_that_it_was_started_with(capsys: Captured) -> None:
    program = PROGRAM.replace("|> Clerk.answer()", '|! yield("Go on?") |> Clerk.answer()')
    Path("main.halo").write_text(program.replace(' & Block("phoenix") & Audit(MaxLength(3))', ""))
    Path("replies.json").write_text(json.dumps({"Clerk.read": "fine", "Clerk.answer": "Ask zoe@example.com."}))
    main(["run", "main.halo", "-i", TEXT, "--replies", "replies.json", "--no-input", "--quiet"])
    capsys.readouterr()
    (journal,) = Path(".halo/checkpoints").glob("*.jsonl")
    assert "zoe@example.com" not in journal.read_text()
    assert main(["resume", journal.stem, "--answer", "yes", "--quiet"]) == 0
    assert capsys.readouterr().out == "Ask [EMAIL_2].\n"

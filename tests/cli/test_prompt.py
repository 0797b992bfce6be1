"""`halo prompt`: the request of an agent call on paper (spec 2.5)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

PROGRAM = """schema Facts { title: String }
tool Sh: Bash(allow: ["git"])
agent Writer [openai/gpt-4o-mini, temp: 0.5]
  system "Be brief. Reply in JSON."
  equips Sh
agent Idle [openai/gpt-4o-mini]

pipeline Main(topic: String, n: Number) -> Facts:
  topic
    |> Writer.outline("About {{topic}}, {{n}} times.")
    |> Writer.run("Title.", tool: Sh, command: "git log", tools: auto)

pipeline Other(topic: Object) -> Result:
  topic |> Writer.outline("Again.")
"""
OUTLINE = """Writer.outline  p.halo:10:8  pipeline Main
model     openai/gpt-4o-mini
settings  temperature 0.5
reply     JSON is asked for

── system ──
Be brief. Reply in JSON.

── user ──
Task: outline

Instructions:
About cats, {{n}} times.

note: {{n}} is not there yet: an argument of Main; give it with -i n=VALUE
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("p.halo").write_text(PROGRAM)


def document(capsys: Captured, *arguments: str) -> Any:
    assert main(["prompt", "p.halo", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_a_call_is_shown_whole_without_a_key(capsys: Captured) -> None:
    assert main(["prompt", "p.halo", "Writer.outline", "--line", "10", "-i", "topic=cats"]) == 0
    assert capsys.readouterr() == (OUTLINE, "")


def test_values_do_not_act_on_a_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    given = ["-i", "topic=cats\x1b[2J\x1b]0;owned\x07", "--line", "10"]
    assert main(["prompt", "p.halo", "Writer.outline", *given]) == 0
    out = capsys.readouterr().out
    assert "About cats\\x1b[2J\\x1b]0;owned\\x07, {{n}} times." in out
    assert set(re.findall("\x1b.[0-9;]*.?", out)) == {"\x1b[1m", "\x1b[2m", "\x1b[1;36m", "\x1b[0m"}


def test_every_call_of_a_method_is_shown_with_its_place(capsys: Captured) -> None:
    calls = document(capsys, "Writer.outline")["calls"]
    assert [(call["pipeline"], call["line"]) for call in calls] == [("Main", 10), ("Other", 14)]


def test_an_agent_alone_stands_for_all_its_calls(capsys: Captured) -> None:
    assert [call["method"] for call in document(capsys, "Writer")["calls"]] == ["outline", "run", "outline"]


def test_values_are_read_by_the_labels_of_each_pipeline(capsys: Captured) -> None:
    calls = document(capsys, "Writer.outline", "-i", 'topic={"a": 1}', "-i", "n=3")["calls"]
    assert calls[0]["messages"][1]["content"].endswith('About {"a": 1}, 3 times.')
    assert calls[1]["messages"][1]["content"].endswith('Input:\n{"a":1}')


@pytest.mark.parametrize(
    "given",
    [
        ["--data", '{"Writer": {"outline": "a plan"}, "Sh": {"run": "commits"}}'],
        ["--data", "@data.json"],
        ["-i", "outline=a plan", "-i", "Sh.run=commits"],
        ["--data", '{"outline": "another"}', "-i", "outline=a plan", "-i", "Sh.run=commits"],
        ["-i", "current=a plan", "--data", '{"Sh": {"run": "commits"}}'],
    ],
)
def test_results_of_earlier_stages_and_of_the_tool_can_be_given(given: list[str], capsys: Captured) -> None:
    Path("data.json").write_text('{"outline": "a plan", "Sh": {"run": "commits"}}')
    (call,) = document(capsys, "Writer.run", *given)["calls"]
    assert call["messages"][1]["content"].endswith(
        "Parameters:\n- command: git log\n\nInput:\na plan\n\nTool result (Sh.run):\ncommits"
    )
    assert call["unknown"] == []
    assert call["firstTool"] == {"tool": "Sh", "method": "run", "args": {"command": "git log"}, "problem": None}


def test_functions_and_the_schema_are_shown(capsys: Captured) -> None:
    assert main(["prompt", "p.halo", "Writer.run"]) == 0
    out = capsys.readouterr().out
    assert "\nbefore it Sh.run(command: git log)\n" in out
    assert '\n── function Sh_run ──\nRun a command.\n{\n  "type": "object",' in out
    assert '\n── reply schema ──\n{\n  "title": "Facts",' in out


def test_another_model_may_be_tried(capsys: Captured) -> None:
    (call,) = document(capsys, "Writer.run", "--model", "anthropic/claude-opus-5-1")["calls"]
    assert call["model"] == "anthropic/claude-opus-5-1"
    assert call["warnings"] == ["claude-opus-5-1 does not take temperature; it was left out"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["Wirter.run"], "p.halo has no agent Wirter", "did you mean Writer?"),
        (["Sh.run"], "p.halo has no agent Sh", "there is Idle, Writer"),
        (["Writer.outlin"], "no pipeline of p.halo calls Writer.outlin", "did you mean Writer.outline?"),
        (["Idle.go"], "no pipeline of p.halo calls Idle.go", None),
        (["Writer.run", "--line", "3"], "p.halo does not call Writer.run at line 3", "it does at 11"),
        (["Writer.run", "-i", "topc=x"], "Writer.run reads no value topc", "did you mean topic?"),
        (["Writer.run", "--data", '{"x": 1}'], "Writer.run reads no value x", None),
        (["Writer.run", "--data", "{"], "--data: no JSON", None),
        (["Writer.run", "--data", "[]"], "--data: a JSON object with results by name is needed, not a List", None),
        (["Writer.run", "-i", "n=x"], "n takes a Number, and 'x' is no JSON", None),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], message: str, hint: str | None, capsys: Captured
) -> None:
    assert main(["prompt", "p.halo", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert hint is None or f"hint: {hint}" in captured.err


def test_a_program_with_errors_is_told_as_check_tells_it(capsys: Captured) -> None:
    Path("p.halo").write_text("pipeline Main( -> Result: 1")
    assert main(["prompt", "p.halo", "A.go"]) == 2
    assert "error HL" in capsys.readouterr().err
    assert main(["prompt", "p.halo", "A.go", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"] > 0


def test_no_secret_is_shown(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret")
    for form in ([], ["--json"]):
        assert main(["prompt", "p.halo", "Writer.outline", "-i", "topic=sk-very-secret", "--line", "10", *form]) == 0
        out = capsys.readouterr().out
        assert "sk-very-secret" not in out
        assert "[REDACTED]" in out

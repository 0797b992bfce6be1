"""`halo run`: what goes where, and the exit codes (spec 08, 12.6)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

PROGRAM = """agent Bot [openai/gpt-4o-mini]

pipeline Talk(text: String, n: Number) -> Result:
  text
    |> System.Print("printed {{text}}")
    |> Bot.answer("Answer.") as reply
    |? (n > 1)
    |! yield("Send {{reply}}?") as verdict
    |? {
         (verdict == "yes") => System.Value(reply),
         else => System.Fail("refused: {{verdict}}"),
       }

pipeline Echo(value: Any) -> Result:
  value
"""
TALK = ["run", "p.halo", "Talk", "-i", "text=hi", "-i", "n=2", "--replies", "r.json"]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.halo").write_text(PROGRAM)
    Path("r.json").write_text('{"Bot": "hello"}')


def test_the_output_alone_is_on_stdout_and_the_story_on_stderr(capsys: Captured) -> None:
    assert main([*TALK, "--answer", "verdict=yes"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "hello\n"
    lines = captured.err.splitlines()
    assert lines[:3] == ["line 5: |> System.Print", "printed hi", "line 6: |> Bot.answer"]
    assert lines[-1].startswith("completed: 1 call")


def test_quiet_leaves_the_output_alone(capsys: Captured) -> None:
    assert main([*TALK, "--answer", "verdict=yes", "--quiet"]) == 0
    assert capsys.readouterr() == ("hello\n", "")


def test_a_closed_gate_gives_the_flowing_value_and_its_own_code(capsys: Captured) -> None:
    assert main([*TALK, "-i", "n=1"]) == 3
    captured = capsys.readouterr()
    assert captured.out == "hello\n"
    assert "line 7: the gate did not pass\n" in captured.err


def test_a_pause_lists_what_is_open_and_how_to_answer(capsys: Captured) -> None:
    assert main([*TALK, "--quiet"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    run_id = next(Path(".halo/checkpoints").glob("*.jsonl")).stem
    assert captured.err.splitlines() == [
        "paused at:",
        "  |! yield asks: Send hello?",
        "    the program checks for: yes",
        f"    halo resume {run_id} --answer VALUE",
    ]


def test_a_failure_is_a_block_with_line_and_caret(capsys: Captured) -> None:
    assert main([*TALK, "--answer", "verdict=[/no] \x1b[2J", "--quiet"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0].startswith("p.halo:9:5: error ProgramFailure: refused: [/no] \\x1b[2J")
    assert lines[1:4] == ["  |", "9 |     |? {", "  |     ^^"]


def test_json_is_the_whole_result_and_keeps_what_a_failed_run_has_done(capsys: Captured) -> None:
    assert main([*TALK, "--answer", "verdict=no", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"runId", "status", "output", "error", "interrupts", "context"}
    assert (document["status"], document["error"]["type"], document["error"]["line"]) == ("failed", "ProgramFailure", 9)
    assert document["context"]["data"]["reply"] == "hello"


def test_events_are_json_lines_and_nothing_else_is_on_stderr(capsys: Captured) -> None:
    assert main([*TALK, "--events"]) == 4
    types = [json.loads(line)["type"] for line in capsys.readouterr().err.splitlines()]
    assert types[0] == "run_started"
    assert types[-1] == "run_finished"
    assert {"printed", "model_responded", "interrupt_opened"} <= set(types)


def test_an_answer_that_nothing_asked_for_is_told_of(capsys: Captured) -> None:
    main([*TALK, "--answer", "verdict=yes", "--answer", "verdict=no"])
    assert "note: nothing asked for the answer verdict\n" in capsys.readouterr().err


def test_arguments_come_from_stdin_too(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO('{"value": "é"}'.encode())))
    assert main(["run", "p.halo", "Echo", "--input-json", "-"]) == 0
    assert capsys.readouterr().out == "é\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.halo"], "nowhere.halo: no such file"),
        (["."], ".: is a directory"),
        (["empty.halo"], "empty.halo: there is no pipeline to run"),
        (["p.halo"], "p.halo has 2 pipelines: Talk, Echo"),
        (["p.halo", "Ecko"], "did you mean Echo?"),
        (["p.halo", "Talk", "-i", "text=x"], "p.halo:3:10: error InputError: missing argument n"),
        (["p.halo", "Echo", "-i", "value=1", "-i", "valeu=1"], "unknown argument valeu"),
        (["p.halo", "Talk", "-i", "n=x"], "p.halo:3:29: error InputError: n takes a Number"),
        (["p.halo", "Echo", "-i", "value=@gone.txt"], "gone.txt: no such file"),
        (["p.halo", "Echo", "-i", "value=@binary"], "binary: no UTF-8 text (byte 1)"),
        (["p.halo", "Echo", "--input-json", "p.halo"], "--input-json: no JSON"),
        (["p.halo", "Echo", "-i", "value=1", "--timeout", "5"], "--timeout 5: no duration"),
        (["p.halo", "Echo", "-i", "value=1", "--max-spend", "NaN"], "--max-spend NaN: no amount of US dollars"),
        (["p.halo", "Echo", "-i", "value=1", "--max-spend", "-1"], "--max-spend -1: no amount of US dollars"),
        (["p.halo", "Talk", "-i", "text=x", "-i", "n=2"], "OPENAI_API_KEY"),
        ([*TALK[1:-1], "binary"], "binary"),
        ([*TALK[1:], "--answer", "verdit=yes"], "did you mean verdict?"),
        ([*TALK[1:], "--env-file", "p.halo"], "p.halo:1: no variable"),
        ([*TALK[1:-2], "--model", "nowhere/x"], "nowhere/x"),
        (["bad.halo"], "bad.halo:1:42: error HL203"),
        (["binary"], "binary:1:2: error HL101"),
    ],
)
def test_what_cannot_start_is_one_block_and_code_2(arguments: list[str], message: str, capsys: Captured) -> None:
    Path("empty.halo").touch()
    Path("binary").write_bytes(b"{\xff")
    Path("bad.halo").write_text("pipeline Main(x: String) -> Result: x |> Missing.go()\n")
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["nowhere.halo"], "UsageError"),
        (["p.halo", "Talk"], "InputError"),
        (["p.halo", "Talk", "-i", "text=x", "-i", "n=2"], "ConfigError"),
    ],
)
def test_with_json_a_refusal_is_one_error_object(arguments: list[str], kind: str, capsys: Captured) -> None:
    assert main(["run", *arguments, "--json"]) == 2
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert set(error) == {"type", "message", "stage", "file", "line", "column"}
    assert error["type"] == kind
    assert captured.err == ""


def test_with_json_a_program_with_errors_has_the_shape_of_check(capsys: Captured) -> None:
    Path("bad.halo").write_text("pipeline Main(x: String) -> Result: x |> Missing.go()\n")
    main(["run", "bad.halo", "--json"])
    ran = capsys.readouterr().out
    main(["check", "bad.halo", "--json"])
    assert json.loads(ran) == json.loads(capsys.readouterr().out)


def test_a_key_from_the_env_file_is_read_and_never_shown(capsys: Captured) -> None:
    Path("my.env").write_text("REST_TOKEN=sk-very-secret-value\n")
    Path("t.halo").write_text(
        "tool Api : REST(Env.REST_TOKEN)\n\npipeline Main(x: String) -> Result: x |> System.Print(x)\n"
    )
    assert main(["run", "t.halo", "-i", "x=sk-very-secret-value", "--env-file", "my.env", "--json"]) == 0
    captured = capsys.readouterr()
    assert "very-secret" not in captured.out + captured.err


def test_max_spend_limits_all_agents_of_the_run_and_stays_with_it(capsys: Captured) -> None:
    Path("r.json").write_text('{"Bot": {"reply": "hello", "usage": {"input": 1000, "output": 1000}}}')
    assert main([*TALK, "--max-spend", "0.00074", "--no-input"]) == 4  # one call may come out above the limit
    run_id = next(Path(".halo/checkpoints").glob("*.jsonl")).stem
    assert json.loads(Path(f".halo/checkpoints/{run_id}.jsonl").read_text().splitlines()[0])["maxSpend"] == "0.00074"
    assert main([*TALK, "--max-spend", "0"]) == 1
    assert "rule MaxSpend(0)" in capsys.readouterr().err

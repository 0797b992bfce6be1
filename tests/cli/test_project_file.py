"""halo.toml as commands follow it: prices, names for models, usual replies, where runs are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

PROGRAM = """policy Limits : MaxSpend(1)
agent Bot [openai/our-own]
  requires Limits
@checkpoint
pipeline Main(text: String) -> Result:
  text |> Bot.answer()
"""
PRICE = '[prices."openai/our-own"]\ninput = 3\noutput = 5\n'
RUN = ["run", "p.halo", "-i", "text=hi"]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "programs").mkdir()
    monkeypatch.chdir(tmp_path / "programs")
    Path("p.halo").write_text(PROGRAM)
    Path("r.json").write_text(json.dumps({"*": {"reply": "hello", "usage": {"input": 1000, "output": 200}}}))


def project(text: str) -> None:
    Path("../halo.toml").write_text(text)


def result(capsys: Captured, *arguments: str, code: int = 0) -> dict[str, Any]:
    assert main([*RUN, *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_model_that_only_the_file_has_a_price_for_can_be_limited(capsys: Captured) -> None:
    project(PRICE)
    meta = result(capsys, "--replies", "r.json")["context"]["meta"]
    assert meta["cost"] == meta["calls"][0]["cost"] == 0.004
    assert main(["check", "p.halo"]) == 0
    assert "HL511" not in capsys.readouterr().out


def test_without_its_price_it_is_refused_and_the_lines_to_write_are_told(capsys: Captured) -> None:
    assert main([*RUN, "--replies", "r.json"]) == 1
    assert '[prices."openai/our-own"] with input = … and output = …' in capsys.readouterr().err
    main(["check", "p.halo"])
    assert "HL511" in capsys.readouterr().out


def test_a_name_for_a_model_is_understood_where_a_model_is_named(capsys: Captured) -> None:
    project(PRICE + '[models]\nfast = "anthropic/claude-haiku-4-5"\n')
    assert main([*RUN, "--model", "fast"]) == 2
    assert "anthropic/claude-haiku-4-5: ANTHROPIC_API_KEY is not set" in capsys.readouterr().err
    assert main(["prompt", "p.halo", "Bot", "-i", "text=hi", "--model", "fast", "--json"]) == 0
    assert "anthropic/claude-haiku-4-5" in capsys.readouterr().out


def test_the_usual_replies_answer_where_nothing_else_is_said(capsys: Captured) -> None:
    project('replies = "programs/r.json"\n' + PRICE)
    assert result(capsys)["output"] == "hello"
    assert main([*RUN, "--model", "openai/gpt-4o-mini"]) == 2  # a flag wins
    assert "OPENAI_API_KEY is not set" in capsys.readouterr().err


def test_the_environment_wins_over_the_file(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    project('replies = "missing.json"\n' + PRICE)
    monkeypatch.setenv("HALO_REPLIES", "r.json")
    monkeypatch.setenv("HALO_STORE", "elsewhere")
    assert result(capsys)["output"] == "hello"
    assert list(Path("elsewhere/checkpoints").glob("*.jsonl"))


def test_runs_are_kept_where_the_file_says_and_found_there(capsys: Captured) -> None:
    project('replies = "programs/r.json"\nstore = "kept/runs"\n' + PRICE)
    run_id = result(capsys)["runId"]
    assert list(Path("../kept/runs/checkpoints").glob("*.jsonl"))
    assert not Path("../.halo").exists()
    main(["runs", "--json"])
    assert [run["runId"] for run in json.loads(capsys.readouterr().out)["runs"]] == [run_id]


def test_a_mistake_in_the_file_is_told_before_anything_runs(capsys: Captured) -> None:
    project('[models]\nfast = "gpt"\n')
    assert main([*RUN, "--replies", "r.json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "halo.toml:2: `fast` must name a model with its service" in captured.err
    error = result(capsys, code=2)["error"]
    assert error["type"] == "ConfigError"

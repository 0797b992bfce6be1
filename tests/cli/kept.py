"""Kept runs for tests of the commands that look after them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.json_types import JsonObject

HALO = [sys.executable, "-m", "halo_runtime.cli.main"]

PROGRAM = """agent Bot [openai/gpt-4o-mini]

@checkpoint
pipeline Main(text: String) -> Result:
  text
    |> Bot.draft("Draft.") as draft
    |! yield("Send {{draft}}?") as verdict
    |? {
         (verdict == "yes") => Bot.send("Send."),
         else => System.Value("not sent"),
       }
"""
REPLIES = {"Bot.draft": {"reply": "a draft", "usage": {"input": 1000, "output": 100}}, "Bot.send": "sent"}
SLOW = {"Bot.draft": {"reply": "late", "delay": "1h"}}


def project(folder: Path) -> None:
    """A program with its replies, and replies that never come."""
    (folder / "p.halo").write_text(PROGRAM)
    (folder / "q.halo").write_text(PROGRAM.replace("@checkpoint\n", ""))
    (folder / "r.json").write_text(json.dumps(REPLIES))
    (folder / "slow.json").write_text(json.dumps(SLOW))


def kept_run(text: str, *options: str) -> str:
    """Run the program, to its question where no option answers it; the run's id."""
    main(["run", "p.halo", "-i", f"text={text}", "--replies", "r.json", "--quiet", "--no-input", *options])
    return max(path.stem for path in Path(".halo/checkpoints").glob("*.jsonl"))


@contextmanager
def run_at_work(file: str = "p.halo") -> Generator[tuple[subprocess.Popen[str], str]]:
    """A process that waits for a reply that never comes, and its run's id."""
    arguments = ["run", file, "-i", "text=x", "--replies", "slow.json", "--events"]
    process = subprocess.Popen([*HALO, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        event = json.loads(process.stderr.readline())
        while event["type"] != "model_requested":
            event = json.loads(process.stderr.readline())
        yield process, event["runId"]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        process.stdout.close()


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> JsonObject:
    """The JSON object that a command prints."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)

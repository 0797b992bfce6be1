"""Processes that die or are stopped at any moment: their runs end as if nothing had happened (see kill_loop.py)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime import RunResult
from halo_runtime.engine.events import RunEvent
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.verification import verify_journal
from tests.durability import kill_loop, victim

ROOT = Path(__file__).resolve().parents[2]
HALO = [sys.executable, "-m", "halo_runtime.cli.main"]
EVERY = int(os.environ.get("STOP_EVERY", "16"))
"""The run is stopped at every so many of its events."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str], int]:
    """What comes of the run that nobody disturbs: its outcome, its deeds, and how many events it has."""
    folder = tmp_path_factory.mktemp("undisturbed")
    result, events = asyncio.run(stopped_at(folder, 1_000_000))
    ended = asyncio.run(victim.to_the_end(folder, result))
    return kill_loop.outcome(ended.to_json()), victim.deeds(folder), events


def without_figures(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome but for what was paid."""
    calls = [call[:-1] for call in outcome["calls"]]
    return {name: value for name, value in outcome.items() if name not in ("cost", "tokens")} | {"calls": calls}


async def stopped_at(folder: Path, number: int) -> tuple[RunResult, int]:
    """The run stopped at one of its events, and how many it had; questions are left open."""
    runtime, loop, count = victim.runtime(folder), asyncio.get_running_loop(), 0

    def watch(event: RunEvent) -> None:
        nonlocal count
        count += 1
        if count == number:
            loop.call_soon_threadsafe(runtime.stop, victim.RUN)

    runtime.subscribe(watch)
    program = halo_lang.parse(victim.PROGRAM)
    return await runtime.run(program, "Main", victim.INPUTS, run_id=victim.RUN), count


def test_a_run_stopped_at_any_event_goes_on_as_if_it_had_not_been(
    undisturbed: tuple[dict[str, Any], list[str], int], tmp_path: Path
) -> None:
    expected, deeds, events = undisturbed
    assert events > 50
    for number in range(1, events, EVERY):
        folder = tmp_path / str(number)
        folder.mkdir()
        result, _ = asyncio.run(stopped_at(folder, number))
        assert result.status in ("interrupted", "paused")
        ended = kill_loop.outcome(asyncio.run(victim.go_on(folder)))
        assert without_figures(ended) == without_figures(expected), number
        # A request that is broken off has been paid for, so it counts by an estimate; nothing else is paid twice.
        assert ended["tokens"]["total"] >= expected["tokens"]["total"], number
        assert ended["tokens"]["output"] == expected["tokens"]["output"], number
        assert sorted(victim.deeds(folder)) == sorted(deeds), number


def test_a_stopped_run_continued_as_a_new_one_does_nothing_twice(
    undisturbed: tuple[dict[str, Any], list[str], int], tmp_path: Path
) -> None:
    expected, deeds, events = undisturbed
    for number in range(5, events, 2 * EVERY):
        folder = tmp_path / str(number)
        folder.mkdir()
        asyncio.run(stopped_at(folder, number))
        ended = asyncio.run(victim.fork(folder))
        assert {name: ended[name] for name in ("status", "output")} == {
            "status": "completed",
            "output": expected["output"],
        }
        assert ended["context"]["trace"] == expected["trace"]
        assert sorted(victim.deeds(folder)) == sorted(deeds), number


def test_a_run_killed_at_random_moments_ends_as_undisturbed(tmp_path: Path) -> None:
    tally = kill_loop.loop(kills=6, per_run=3, seed=int.from_bytes(os.urandom(2)), base=tmp_path)
    assert tally.kills == 6


# --- with the command itself --------------------------------------------------------------------------------------

PROGRAM = """
tool Shell: Bash(allow: ["*"])
@checkpoint
pipeline Main(x: String) -> Any:
  x
    |> Shell.run("echo one >> deeds")
    |> Shell.run("echo two >> deeds; echo ready >> deeds; while [ ! -e go ]; do sleep 0.02; done; echo end")
    |* { Ask("left") as left, Ask("right") as right } as both
    |> Shell.run("echo three >> deeds; sleep 0.3")
    |> System.Value(both)
pipeline Ask(side: String) -> Any:
  side |! yield("Is {{side}} right?")
"""


def halo(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [*HALO, *arguments, "--json"]
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, error = process.communicate(timeout=60)
    assert out, error
    return json.loads(out)


def deeds(folder: Path) -> list[str]:
    path = folder / "deeds"
    return path.read_text().split() if path.exists() else []


def until_ready(folder: Path, process: subprocess.Popen[str]) -> None:
    while "ready" not in deeds(folder):
        assert process.poll() is None, process.communicate()
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


def paused_run(folder: Path) -> tuple[str, dict[str, str]]:
    """A run of the program that waits for two answers: its id, and the questions' by side."""
    (folder / "main.halo").write_text(PROGRAM)
    (folder / "go").write_text("")
    process = halo(folder, "run", "main.halo", "Main", "-i", "x=1", "--no-input")
    result = said(process)
    assert process.returncode == 4
    return result["runId"], {one["message"].split()[1]: one["id"] for one in result["interrupts"]}


def test_a_run_killed_while_it_hangs_goes_on_there(tmp_path: Path) -> None:
    (tmp_path / "main.halo").write_text(PROGRAM)
    process = halo(tmp_path, "run", "main.halo", "Main", "-i", "x=1")
    until_ready(tmp_path, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (tmp_path / "go").write_text("")
    store = FileRunStore(tmp_path / ".halo")
    [run_id] = [path.stem for path in store.folder.glob("*.jsonl")]
    assert store.load(run_id).status == "interrupted"
    result = said(halo(tmp_path, "resume", run_id, "--no-input"))
    assert [one["kind"] for one in result["interrupts"]] == ["in_doubt"]
    result = said(halo(tmp_path, "resume", run_id, "--answer", "retry", "--no-input"))
    assert len(result["interrupts"]) == 2
    assert deeds(tmp_path) == ["one", "two", "ready", "two", "ready"]


def test_a_run_stopped_with_ctrl_c_can_be_continued(tmp_path: Path) -> None:
    (tmp_path / "main.halo").write_text(PROGRAM)
    process = halo(tmp_path, "run", "main.halo", "Main", "-i", "x=1")
    until_ready(tmp_path, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    (tmp_path / "go").write_text("")
    store = FileRunStore(tmp_path / ".halo")
    [run_id] = [path.stem for path in store.folder.glob("*.jsonl")]
    assert store.load(run_id).status == "interrupted"
    assert str(verify_journal(store, run_id)) == "open"
    assert list(store.live) == []


def test_answers_sent_to_a_run_at_work_in_another_process_reach_it(tmp_path: Path) -> None:
    (tmp_path / "main.halo").write_text(PROGRAM)
    process = halo(tmp_path, "run", "main.halo", "Main", "-i", "x=1", "--no-input")
    until_ready(tmp_path, process)
    [run_id] = [path.stem for path in (tmp_path / ".halo" / "checkpoints").glob("*.jsonl")]
    for answer in ("first", "second"):
        said(halo(tmp_path, "signal", run_id, answer, "--no-run"))
    (tmp_path / "go").write_text("")
    result = said(process)
    assert (process.returncode, result["output"]) == (0, {"left": "first", "right": "second"})


def test_two_answers_sent_at_the_same_time_both_count(tmp_path: Path) -> None:
    run_id, ids = paused_run(tmp_path)
    processes = [
        halo(tmp_path, "signal", run_id, f"yes {side}", "--interrupt", ids[side]) for side in ("left", "right")
    ]
    for process in processes:
        said(process)
    shown = FileRunStore(tmp_path / ".halo").load(run_id).to_json()
    assert (shown["status"], shown["output"]) == ("completed", {"left": "yes left", "right": "yes right"})
    assert deeds(tmp_path) == ["one", "two", "ready", "three"]


def test_of_two_processes_that_go_on_with_a_run_one_does(tmp_path: Path) -> None:
    run_id, ids = paused_run(tmp_path)
    said(halo(tmp_path, "signal", run_id, "yes", "--interrupt", ids["left"]))
    said(halo(tmp_path, "signal", run_id, "yes", "--interrupt", ids["right"], "--no-run"))
    processes = [halo(tmp_path, "resume", run_id, "--no-input") for _ in range(3)]
    results = [said(process) for process in processes]
    assert deeds(tmp_path) == ["one", "two", "ready", "three"]
    completed = [result for result in results if result.get("status") == "completed"]
    refused = [result["error"]["type"] for result in results if "runId" not in result]
    assert len(completed) == 1
    assert set(refused) <= {"RunBusy", "RunRefused"}

"""Kill a run at random moments, over and over, and see that it ends as if nothing had happened.

    python -m tests.durability.kill_loop --kills 200 [--seed 1]

Each run of `victim.py` is killed with SIGKILL after a random time, gone on with in a new process, killed again, until
it ends. Then its output, its trace, its cost and the deeds of its tool are held against those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from halo_runtime.store.files import FileRunStore
from halo_runtime.store.verification import verify_journal
from tests.durability import victim

ROOT = Path(__file__).resolve().parents[2]
VICTIM = [sys.executable, "-m", "tests.durability.victim"]


@dataclass
class Tally:
    """What happened."""

    kills: int = 0
    runs: int = 0
    where: Counter[str] = field(default_factory=Counter[str])


def outcome(document: dict[str, Any]) -> dict[str, Any]:
    """What must be equal, whatever happened on the way."""
    context = document["context"]
    calls = [(call["agent"], call["method"], call["reply"], call["tokens"]) for call in context["meta"]["calls"]]
    names = ("status", "output", "error")
    return {
        **{name: document[name] for name in names},
        "data": context["data"],
        "trace": context["trace"],
        "cost": context["meta"]["cost"],
        "tokens": context["meta"]["tokens"],
        "calls": calls,
    }


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """A process that is about to work on the run in `folder`."""
    command = [*VICTIM, str(folder), *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None, "a pipe"
    process.stdout.readline()
    return process


def finish(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What a process prints that is left alone. Raises RuntimeError where it fails."""
    out, error = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(error.decode())
    return json.loads(out)


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a process after a time; False where it had ended by itself."""
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def last_line(folder: Path) -> str:
    """The kind of the last line of the run's journal."""
    path = folder / ".halo" / "checkpoints" / f"{victim.RUN}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return "nothing"
    if not data.endswith(b"\n"):
        return "half a line"
    return str(json.loads(data.splitlines()[-1])["t"])


def disturbed(
    folder: Path, kills: int, span: tuple[float, float], chance: random.Random, tally: Tally
) -> dict[str, Any]:
    """The run killed up to `kills` times, each at a moment between `span`, then left alone: its result."""
    for _ in range(kills):
        process = start(folder)
        if not kill_after(process, chance.uniform(*span)):
            return finish(process)
        tally.kills += 1
        tally.where[last_line(folder)] += 1
    return finish(start(folder))


def check(folder: Path, result: dict[str, Any], expected: dict[str, Any], deeds: list[str]) -> None:
    """Raises AssertionError where anything is otherwise than undisturbed."""
    assert outcome(result) == expected, f"{folder}: the run came out otherwise"
    assert sorted(victim.deeds(folder)) == sorted(deeds), f"{folder}: {victim.deeds(folder)}"
    verdict = verify_journal(FileRunStore(folder / ".halo"), victim.RUN)
    assert str(verdict) == "valid", f"{folder}: {verdict}"


def loop(kills: int, per_run: int, seed: int, base: Path) -> Tally:
    """Kill until there were `kills`; `base` is a folder for the runs."""
    chance, tally = random.Random(seed), Tally()
    process = start(base / "undisturbed")
    began = time.monotonic()
    expected, whole = outcome(finish(process)), time.monotonic() - began
    deeds = victim.deeds(base / "undisturbed")
    while tally.kills < kills:
        folder = base / f"run{tally.runs}"
        result = disturbed(folder, min(per_run, kills - tally.kills), (0.0, whole / 2), chance, tally)
        check(folder, result, expected, deeds)
        tally.runs += 1
        shutil.rmtree(folder)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--per-run", type=int, default=8, help="how often one run is killed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        tally = loop(options.kills, options.per_run, options.seed, Path(base))
    places = ", ".join(f"{kind} {count}" for kind, count in tally.where.most_common())
    print(f"{tally.kills} kills of {tally.runs} runs, all as undisturbed; the last line then was: {places}")


if __name__ == "__main__":
    main()

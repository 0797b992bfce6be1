"""How long `halo runs` and `halo inbox` take over many kept runs, each a new process.

The runs are made by a Runtime with a store, as any program would; a part of them waits at a question.

    python benchmarks/runs_listing.py [--runs 10000] [--rounds 5] [--halo path/to/halo]

Prints one JSON object, which is kept in results/ too: milliseconds with the index as it is, and once with the index
deleted, as after a copy of the journals alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from record import machine, save, versions

import halo_lang
from halo_runtime import Runtime
from halo_runtime.store.files import FileRunStore

RESULTS = Path(__file__).with_name("results") / "runs_listing.json"

PROGRAM = """pipeline Main(text: String, n: Number) -> Result:
  text
    |> System.Value("{{text}} {{n}}") as value
    |? (n > 0)
    |! yield("Send {{value}}?") as verdict
"""
WAITING = 100
"""One run in so many waits at its question; the others end at their gate."""


async def fill(root: Path, count: int) -> None:
    """Keep `count` runs."""
    runtime = Runtime(env={}, store=FileRunStore(root, flush=False))
    program = halo_lang.check(halo_lang.parse(PROGRAM))
    for number in range(count):
        inputs = {"text": f"run {number}", "n": int(number % WAITING == 0)}
        await runtime.run(program, inputs=inputs, keep=True)


def once(command: list[str], folder: Path) -> float:
    """Milliseconds that a command takes as a process."""
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def measure(command: list[str], folder: Path, rounds: int) -> dict[str, float]:
    """The median and the extremes of several rounds, in milliseconds."""
    times = [once(command, folder) for _ in range(rounds)]
    figures = {"median": statistics.median(times), "min": min(times), "max": max(times)}
    return {name: round(value, 1) for name, value in figures.items()}


def report(halo: str, runs: int, rounds: int) -> dict[str, Any]:
    """Build the runs and measure."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        began = time.perf_counter()
        asyncio.run(fill(folder / ".halo", runs))
        made = time.perf_counter() - began
        figures: dict[str, Any] = {
            "runs": measure([halo, "runs"], folder, rounds),
            "runs --json": measure([halo, "runs", "--json"], folder, rounds),
            "runs --limit 20": measure([halo, "runs", "--limit", "20"], folder, rounds),
            "inbox": measure([halo, "inbox"], folder, rounds),
        }
        (folder / ".halo" / "index.db").unlink()
        figures["runs, index made anew"] = round(once([halo, "runs"], folder), 1)
    return {
        "benchmark": "runs_listing",
        **machine(),
        "versions": versions(),
        "kept_runs": runs,
        "milliseconds_to_make_one": round(made / runs * 1000, 2),
        "milliseconds": figures,
    }


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--halo", default="halo")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    halo = shutil.which(options.halo)
    if halo is None:
        parser.error("no halo command on PATH; name it: --halo path/to/halo")
    found = report(str(Path(halo).absolute()), options.runs, options.rounds)
    save(RESULTS, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

"""What starting things costs beside doing it bare, in one run: commands, programs in sandboxes; and reads of a store.

- `Bash.run("true")` beside asyncio's own subprocess, of `true` and of `bash -c true`, each with its output taken in;
- `Code.run("1 + 1")` in Monty and in bubblewrap, beside a bare `python -I -S -c`; the first call of a tool apart;
- `KV.get` of a store of 1,000 entries, one after another.

    python benchmarks/tools_code.py [--calls 20] [--rounds 10] [--gets 5000]

Ways take turns, in another order each round. Writes results/tools_code.json and prints tables. The aims (issue 7): Bash
under 5 ms over a bare subprocess, 20,000 gets a second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from record import machine, save, table, versions

from halo_runtime.templates import WrittenText
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig, ToolProvider

RESULTS = Path(__file__).parent / "results" / "tools_code.json"
ENV = {"PATH": os.environ["PATH"]}
TRUE, SUM = {"command": WrittenText(("true",))}, {"code": WrittenText(("1 + 1",))}

Call = Callable[[], Awaitable[Any]]


def bare(*argv: str) -> Call:
    """A subprocess as one writes it with asyncio."""

    async def call() -> None:
        process = await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=ENV)
        await process.communicate()
        assert process.returncode == 0

    return call


def opened(provider: str, folder: Path, **settings: Any) -> ToolProvider:
    return tool_factory(provider)(ToolConfig("Tool", provider, settings, folder, ENV))


def again(tool: ToolProvider, args: dict[str, Any]) -> Call:
    return lambda: tool.call("run", args)


def anew(folder: Path, **settings: Any) -> Call:
    """A tool that is opened, called once and closed."""

    async def call() -> None:
        tool = opened("Code", folder, **settings)
        try:
            assert (await tool.call("run", SUM))["result"] == 2
        finally:
            await tool.close()

    return call


async def milliseconds(call: Call, calls: int) -> float:
    """A call by the clock, the median of `calls`."""
    took: list[float] = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


async def measure_starts(folder: Path, calls: int, rounds: int) -> dict[str, dict[str, float]]:
    """Of each way the median of the rounds, and the best."""
    monty, confined = opened("Code", folder), opened("Code", folder, sandbox="bubblewrap")
    ways: dict[str, Call] = {
        "bare true": bare("true"),
        "bare bash -c true": bare("bash", "-c", "true"),
        "Bash": again(opened("Bash", folder), TRUE),
        "bare python -I -S": bare(sys.executable, "-I", "-S", "-c", "1 + 1"),
        "Code, Monty": again(monty, SUM),
        "Code, Monty, first call": anew(folder),
    }
    if shutil.which("bwrap"):
        ways["Bash, sandbox: true"] = again(opened("Bash", folder, sandbox=True), TRUE)
        ways["Code, bubblewrap"] = again(confined, SUM)
    found: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for call in ways.values():
            await call()
        for number in range(rounds):
            for name in list(ways)[:: 1 if number % 2 else -1]:
                found[name].append(await milliseconds(ways[name], calls))
    finally:
        await monty.close()
        await confined.close()
    return {name: {"median": round(statistics.median(t), 2), "best": round(min(t), 2)} for name, t in found.items()}


async def measure_gets(folder: Path, gets: int, rounds: int) -> dict[str, float]:
    """Reads a second, by the clock and by the processor."""
    store = tool_factory("KV")(ToolConfig("Kept", "KV", {"path": str(folder / "kept.db")}, folder))
    try:
        for number in range(1000):
            await store.call("set", {"key": f"key {number}", "value": {"number": number}})
        clock: list[float] = []
        processor: list[float] = []
        for _ in range(rounds):
            began, worked = time.perf_counter(), time.process_time()
            for number in range(gets):
                await store.call("get", {"key": f"key {number % 1000}"})
            clock.append(gets / (time.perf_counter() - began))
            processor.append(gets / (time.process_time() - worked))
    finally:
        await store.close()
    return {"clock": round(statistics.median(clock)), "best": round(max(clock)), "processor": round(max(processor))}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--gets", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        starts = asyncio.run(measure_starts(Path(folder), options.calls, options.rounds))
        gets = asyncio.run(measure_gets(Path(folder), options.gets, options.rounds))
    print(
        table(
            ["a call", "median", "best"],
            [[n, f"{t['median']:.2f} ms", f"{t['best']:.2f} ms"] for n, t in starts.items()],
        )
    )
    over = {kind: round(starts["Bash"][kind] - starts["bare true"][kind], 2) for kind in ("median", "best")}
    print(f"\nBash over a bare `true`: {over['median']} ms (best rounds {over['best']} ms; aim: under 5)")
    print(f"KV.get: {gets['clock']:,}/s, best round {gets['best']:,}/s (aim: 20,000)")
    document = {**machine(), "versions": versions("pydantic-monty"), **vars(options)}
    load = round(os.getloadavg()[0], 1)
    save(
        RESULTS, {**document, "load": load, "milliseconds": starts, "bash_over_bare_ms": over, "kv_gets_a_second": gets}
    )


if __name__ == "__main__":
    main()

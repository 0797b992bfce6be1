"""What a kept run costs: time and bytes a stage as runs grow, LangGraph's SQLite saver beside it, and going on again.

Each engine runs a linear program of trivial steps that are all kept on disk: Halo under `@checkpoint`, with and without
flushing each stage to the disk, LangGraph with its SQLite saver (`durability="sync"`). Then a run that stopped behind
its last stage is resumed in a new Runtime, a few times. Processor time where the disk is not waited for.

    python benchmarks/journal.py [--stages 100,1000,10000,100000] [--others 1000]

Prints a table and writes results/journal.json. LangGraph is left out where it is not installed, and above --others
stages, where its file grows with their square.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from record import machine, save, table, versions

from halo_lang import Analysis, check, parse
from halo_runtime import Runtime
from halo_runtime.store.files import FileRunStore

RESULTS = Path(__file__).with_name("results") / "journal.json"
FLUSHED_AT_MOST = 1_000
"""Stages above which flushing each would only measure the disk for minutes."""
RESUMED = 5
"""Rounds of going on: what else the machine does meanwhile shall not count."""
MANY = 10_000
"""Stages above which one round takes long enough."""


def linear(stages: int, end: str = "") -> Analysis:
    """A `@checkpoint` program of as many stages, each with a value of its own."""
    body = "\n".join(f'    |> System.Value("v{number}")' for number in range(stages))
    return check(parse(f"@checkpoint\npipeline Main(text: String) -> Result:\n  text\n{body}\n{end}"))


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def halo(stages: int, *, flush: bool) -> dict[str, float]:
    """A kept run of Halo."""
    program = linear(stages)
    with tempfile.TemporaryDirectory() as folder:
        runtime = Runtime(env={}, store=FileRunStore(folder, flush=flush))

        def run() -> None:
            assert asyncio.run(runtime.run(program, "Main", {"text": "a"})).status == "completed"

        return _per_stage(timed(run), size(Path(folder)), stages)


def langgraph(stages: int) -> dict[str, float]:
    """The same in LangGraph, with its SQLite saver."""
    os.environ["LANGSMITH_TRACING"] = "false"
    import sqlite3
    from typing import TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        x: str

    graph, previous = StateGraph(State), START
    for number in range(stages):
        name = f"n{number}"
        graph.add_node(name, lambda state, number=number: {"x": f"v{number}"})
        graph.add_edge(previous, name)
        previous = name
    graph.add_edge(previous, END)
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "checkpoints.db", check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
        compiled = graph.compile(checkpointer=saver)
        settings = {"recursion_limit": stages + 10, "configurable": {"thread_id": "t"}}

        def run() -> None:
            assert compiled.invoke({"x": "a"}, settings, durability="sync")["x"] == f"v{stages - 1}"

        taken = timed(run)
        connection.close()
        return _per_stage(taken, size(Path(folder)), stages)


def resume(stages: int) -> dict[str, float]:
    """Going on with a run that asks a question behind its last stage, in a new Runtime; the best of some rounds."""
    rounds = RESUMED if stages <= MANY else 1
    return min((_resume(stages, number) for number in range(rounds)), key=lambda taken: taken["processor"])


def _resume(stages: int, number: int) -> dict[str, float]:
    program = linear(stages, end=f'    |! yield("Go on {number}?")\n')  # another text, so nothing is known of it yet
    with tempfile.TemporaryDirectory() as folder:
        store = FileRunStore(folder, flush=False)
        paused = asyncio.run(Runtime(env={}, store=store).run(program, "Main", {"text": "a"}))
        assert paused.status == "paused"

        gc.collect()

        def go_on() -> None:
            runtime = Runtime(env={}, store=FileRunStore(folder, flush=False))
            assert asyncio.run(runtime.signal(paused.run_id, "yes")).output == "yes"

        return timed(go_on)


def _per_stage(taken: dict[str, float], size_in_bytes: int, stages: int) -> dict[str, float]:
    return {
        "microseconds": taken["clock"] / stages * 1e6,
        "processor_microseconds": taken["processor"] / stages * 1e6,
        "bytes": size_in_bytes / stages,
    }


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stages", default="100,1000,10000,100000")
    parser.add_argument("--others", type=int, default=1_000)
    options = parser.parse_args()
    halo(100, flush=False)  # what is imported once is no stage's cost
    found = find_spec("langgraph") is not None
    rows: list[dict[str, Any]] = []
    for stages in map(int, options.stages.split(",")):
        row: dict[str, Any] = {"stages": stages, "halo": halo(stages, flush=False)}
        row["halo_flushed"] = halo(stages, flush=True) if stages <= FLUSHED_AT_MOST else None
        row["langgraph"] = langgraph(stages) if found and stages <= options.others else None
        row["resume_seconds"] = resume(stages)
        rows.append(row)
        print(f"{stages} stages measured", flush=True)
    used = ("langgraph", "langgraph-checkpoint-sqlite") if found else ()
    load = [round(load) for load in os.getloadavg()]
    save(RESULTS, {**machine(), "load": load, "versions": versions(*used), "runs": rows})
    print(_shown(rows))


def _shown(rows: list[dict[str, Any]]) -> str:
    heads = ["stages", "Halo", "on disk", "Halo, flushed", "LangGraph", "on disk", "resume"]
    return table(heads, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    def cost(engine: str, measure: str = "processor_microseconds") -> str:
        return "" if row[engine] is None else f"{row[engine][measure]:.0f} µs/stage"

    def disk(engine: str) -> str:
        return "" if row[engine] is None else f"{row[engine]['bytes']:,.0f} B/stage"

    resumed = f"{row['resume_seconds']['processor']:.2f} s"
    return [
        f"{row['stages']:,}", cost("halo"), disk("halo"), cost("halo_flushed", "microseconds"), cost("langgraph"),
        disk("langgraph"), resumed,
    ]  # fmt: skip


if __name__ == "__main__":
    main()

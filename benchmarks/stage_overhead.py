"""What one trivial stage costs: Halo beside burr, pydantic-graph and LangGraph, in one process run.

Each engine runs a linear program of trivial steps that hand a value on, with nothing kept on disk. Halo computes its
hash chain meanwhile. The engines take turns, in another order each round; the median over the rounds counts.

    python benchmarks/stage_overhead.py [--stages 1000] [--rounds 7]

Prints one JSON object: microseconds a stage, per engine. An engine that is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

Run: TypeAlias = Callable[[], None]
"""Runs a prepared program once; raises when the result is wrong."""

Prepare: TypeAlias = Callable[[], Run]
"""Gives a program that is ready to run; called for each round, before the clock starts."""


def halo(stages: int) -> Prepare:
    from halo_lang import parse
    from halo_runtime import Runtime

    lines = "\n".join('    |> System.Value("x")' for _ in range(stages))
    program = parse(f"pipeline Main(text: String) -> Result:\n  text\n{lines}\n")
    runtime = Runtime(env={})

    def run() -> None:
        result = asyncio.run(runtime.run(program, "Main", {"text": "a"}))
        assert result.status == "completed"
        assert result.output == "x"
        assert len(result.context.trace) == stages + 2  # the start, the stages, the end

    return lambda: run


def langgraph(stages: int) -> Prepare:
    os.environ["LANGSMITH_TRACING"] = "false"
    from typing import TypedDict

    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        x: str

    graph = StateGraph(State)
    previous = START
    for index in range(stages):
        graph.add_node(f"n{index}", lambda _: {"x": "x"})
        graph.add_edge(previous, f"n{index}")
        previous = f"n{index}"
    graph.add_edge(previous, END)
    compiled = graph.compile()

    def run() -> None:
        assert compiled.invoke({"x": "a"}, {"recursion_limit": stages + 10}) == {"x": "x"}

    return lambda: run


def pydantic_graph(stages: int) -> Prepare:
    from pydantic_graph import GraphBuilder, StepContext

    builder: Any = GraphBuilder(output_type=str)

    def step(index: int) -> Any:
        async def body(_: StepContext[None, None, Any]) -> str:
            return "x"

        return builder.step(body, node_id=f"n{index}")

    steps = [step(index) for index in range(stages)]
    builder.add(builder.edge_from(builder.start_node).to(steps[0]))
    for before, after in pairwise(steps):
        builder.add(builder.edge_from(before).to(after))
    builder.add(builder.edge_from(steps[-1]).to(builder.end_node))
    graph = builder.build()

    def run() -> None:
        assert asyncio.run(graph.run()) == "x"

    return lambda: run


def burr(stages: int) -> Prepare:
    from burr.core import ApplicationBuilder, State, action

    @action(reads=["x"], writes=["x"])
    def body(state: State) -> State:
        return state.update(x="x")

    names = [f"n{index}" for index in range(stages)]

    def prepare() -> Run:  # an application runs once only
        application = (
            ApplicationBuilder()
            .with_actions(**dict.fromkeys(names, body))
            .with_transitions(*pairwise(names))
            .with_state(x="a")
            .with_entrypoint(names[0])
            .build()
        )

        def run() -> None:
            _, _, state = application.run(halt_after=[names[-1]])
            assert state["x"] == "x"

        return run

    return prepare


ENGINES: dict[str, tuple[str, Callable[[int], Prepare]]] = {
    "halo": ("halo-workbench", halo),
    "burr": ("apache-burr", burr),
    "pydantic-graph": ("pydantic-graph", pydantic_graph),
    "langgraph": ("langgraph", langgraph),
}
"""Name → distribution and preparation."""


def measure(engines: dict[str, Prepare], stages: int, rounds: int) -> dict[str, list[float]]:
    """Microseconds a stage, per engine and round. A first round warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    names = list(engines)
    for number in range(rounds + 1):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            run = engines[name]()
            gc.collect()
            start = time.perf_counter()
            run()
            elapsed = time.perf_counter() - start
            if number:
                times[name].append(elapsed / stages * 1e6)
    return times


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--stages", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=7)
    arguments = options.parse_args()
    engines: dict[str, Prepare] = {}
    missing: dict[str, str] = {}
    for name, (_, prepare) in ENGINES.items():
        try:
            engines[name] = prepare(arguments.stages)
        except ImportError as error:
            missing[name] = str(error)
    times = measure(engines, arguments.stages, arguments.rounds)
    report = {
        "benchmark": "stage_overhead",
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "stages": arguments.stages,
        "rounds": arguments.rounds,
        "microseconds_per_stage": {
            name: {
                "version": importlib.metadata.version(ENGINES[name][0]),
                "median": round(statistics.median(values), 1),
                "min": round(min(values), 1),
                "max": round(max(values), 1),
            }
            for name, values in times.items()
        },
        "not_installed": missing,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()

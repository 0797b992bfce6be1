"""Searching a `VectorStore` of 100,000 × 256 vectors, beside sqlite-vec through apsw on the same vectors in one run.

Halo is measured from the provider's call to its result, the query's embedding included, and the index alone; the
first search, which reads the file, by itself. Both must find the same ten.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

import apsw
import numpy as np
import sqlite_vec
from record import machine, save, table, versions

from halo_runtime.tools.threads import Stop
from halo_runtime.tools.vectors.embedders import OfflineEmbedder
from halo_runtime.tools.vectors.entries import Entry
from halo_runtime.tools.vectors.index import Index, Wanted
from halo_runtime.tools.vectors.matrix import Vectors, unit
from halo_runtime.tools.vectors.provider import Settings, VectorStore

ROWS: Final = 100_000
DIMENSION: Final = 256
K: Final = 10
ROUNDS: Final = 60
BATCH: Final = 10_000
RESULT: Final = Path(__file__).parent / "results" / "tools_vectors.json"


async def main() -> None:
    """Measure, print, keep."""
    chance = np.random.default_rng(7)
    rows = unit(chance.standard_normal((ROWS, DIMENSION), dtype=np.float32))
    queries = unit(chance.standard_normal((ROUNDS, DIMENSION), dtype=np.float32))
    with TemporaryDirectory() as folder:
        halo = await _halo(Path(folder), rows, queries)
        theirs = _sqlite_vec(Path(folder), rows, queries)
    assert halo.pop("found") == theirs.pop("found"), "both find the same"
    figures = {"halo": halo, "sqlite-vec": theirs}
    report = {**machine(), "versions": versions("apsw", "numpy", "sqlite-vec", "wordllama"), "figures": figures}
    save(RESULT, report)
    print(json.dumps(report, indent=2))
    names = list(dict.fromkeys([*halo, *theirs]))
    cells = [[name, *(f"{part[name]:,.2f}" if name in part else "" for part in (halo, theirs))] for name in names]
    print(table(["milliseconds", "Halo", "sqlite-vec"], cells))


async def _halo(folder: Path, rows: Vectors, queries: Vectors) -> dict[str, Any]:
    path = folder / "halo.db"
    index = Index(path, "docs", OfflineEmbedder.model, path.name)
    begun = perf_counter()
    for start in range(0, ROWS, BATCH):
        part = rows[start : start + BATCH]
        index.put([Entry(str(start + n), f"text {start + n}", {}) for n in range(len(part))], part)
    added = perf_counter() - begun
    begun = perf_counter()
    index.search(Wanted(queries[0], K, None, {}), Stop())
    first = perf_counter() - begun

    def search(query: Vectors) -> list[str]:
        return [found.entry.id for found in index.search(Wanted(query, K, None, {}), Stop())]

    alone, found = _timed([lambda query=query: search(query) for query in queries])
    index.close()
    embedder = OfflineEmbedder("Docs")
    store = VectorStore("Docs", Settings(path, path.name, "docs", k=K), folder, lambda: embedder)
    await store.call("search", {"query": "the first one reads the file"})
    whole = await _timed_calls([lambda n=n: store.call("search", {"query": f"question {n}"}) for n in range(ROUNDS)])
    await store.close()
    return {
        "add all": added * 1000, "first search": first * 1000, **alone,
        "search through the provider": whole, "found": found,
    }  # fmt: skip


def _sqlite_vec(folder: Path, rows: Vectors, queries: Vectors) -> dict[str, Any]:
    database = apsw.Connection(str(folder / "vec.db"))
    database.enable_load_extension(True)
    database.load_extension(sqlite_vec.loadable_path())
    database.execute(f"CREATE VIRTUAL TABLE v USING vec0(e float[{DIMENSION}] distance_metric=cosine)")
    begun = perf_counter()
    for start in range(0, ROWS, BATCH):
        with database:
            part = rows[start : start + BATCH]
            database.executemany(
                "INSERT INTO v(rowid, e) VALUES (?, ?)", [(start + n, r.tobytes()) for n, r in enumerate(part)]
            )
    added = perf_counter() - begun

    def search(query: Vectors) -> list[str]:
        found = database.execute(
            "SELECT rowid FROM v WHERE e MATCH ? AND k = ? ORDER BY distance", (query.tobytes(), K)
        )
        return [str(row[0]) for row in found]

    begun = perf_counter()
    search(queries[0])
    first = perf_counter() - begun
    alone, found = _timed([lambda query=query: search(query) for query in queries])
    database.close()
    return {
        "add all": added * 1000, "first search": first * 1000, **alone,
        "found": found,
    }  # fmt: skip


def _timed(works: list[Callable[[], list[str]]]) -> tuple[dict[str, float], list[list[str]]]:
    """Milliseconds of a search: median and least by the clock, mean by the processor; and what was found."""
    times: list[float] = []
    found: list[list[str]] = []
    begun_processor = process_time()
    for work in works:
        begun = perf_counter()
        found.append(work())
        times.append(perf_counter() - begun)
    processor = (process_time() - begun_processor) / len(works)
    figures = {"search": median(times), "search, least": min(times), "search, processor": processor}
    return {name: seconds * 1000 for name, seconds in figures.items()}, found


async def _timed_calls(works: list[Callable[[], Awaitable[Any]]]) -> float:
    times: list[float] = []
    for work in works:
        begun = perf_counter()
        await work()
        times.append(perf_counter() - begun)
    return median(times) * 1000


if __name__ == "__main__":
    asyncio.run(main())

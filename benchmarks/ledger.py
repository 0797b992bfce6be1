"""What the loop ledger costs as it grows: logging, writers beside each other, a report, a page of `halo_trace`.

A ledger of 50 agents is filled with random events of all kinds to each size. At each: calls of `log`, the disk flushed
for every one, and in turns with them as many bytes written and flushed with nothing else, which no ledger can beat; a
report on all agents and on one; pages of events, filtered and along links. Then eight processes log at once.

    python benchmarks/ledger.py [--sizes 1000,10000,100000,1000000] [--folder DIR]

Prints a table and writes results/ledger.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from record import machine, save, table, versions

from halo_runtime.ledger import Ledger, Query

RESULTS = Path(__file__).with_name("results") / "ledger.json"
AGENTS = 50
CALLS = 200
ROUNDS = 5
WRITERS = 8
WRITER = Path(__file__).resolve().parents[1] / "tests" / "ledger" / "writer.py"
FLUSHED_BYTES = 48_000
"""About what one event adds to SQLite's log."""
KINDS = ("observe", "remember", "recall", "act", "revise", "outcome")


class Stream:
    """Random events, each linked to some of its agent's last forty; the same ones each time."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self._own: list[list[int]] = [[] for _ in range(AGENTS)]
        self._acts: list[list[int]] = [[] for _ in range(AGENTS)]
        self.length = 0

    def next(self) -> dict[str, Any]:
        """The fields of one more event."""
        choose = self._random
        agent = choose.randrange(AGENTS)
        own, acts = self._own[agent], self._acts[agent]
        kind = choose.choice(KINDS if acts else KINDS[:-1])
        fields: dict[str, Any] = {
            "kind": kind,
            "summary": f"step {self.length + 1} of what an agent does all day",
            "agent": f"agent {agent}",
            "session": f"session {len(own) // 20}",
            "uses": [f"e{number}" for number in sorted(set(choose.choices(own[-40:], k=2)))] if own else [],
        }
        if kind == "outcome":
            fields["about"] = f"e{choose.choice(acts[-40:])}"
        if kind == "act":
            fields |= {"trigger": choose.choice(["self", "request"]), "form": "execution"}
        if kind == "revise":
            fields |= {"target": "a rule", "made_by": "agent", "governance": "bounded"}
        self.length += 1
        own.append(self.length)
        if kind == "act":
            acts.append(self.length)
        return fields

    def lines(self, until: int) -> Iterator[str]:
        """As an import takes them; ids start at e1 in each import, so links go only to events of the same one."""
        while self.length < until:
            fields = self.next()
            yield json.dumps({"id": f"e{self.length}", **fields})


def milliseconds(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """The median of some rounds."""
    found: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) * 1000)
    return median(found)


def logging(ledger: Ledger, stream: Stream, folder: Path) -> dict[str, float]:
    """Milliseconds of a call, and of what the disk alone takes for as many bytes, in turns: disks have their moods."""
    calls: list[float] = []
    alone: list[float] = []
    processor = 0.0
    with (folder / "flushed").open("wb", buffering=0) as file:
        file.write(bytes(4 << 20))
        for turn in range(CALLS):
            fields = stream.next()
            before = time.thread_time()
            calls.append(milliseconds(lambda fields=fields: ledger.log(**fields), 1))
            processor += time.thread_time() - before
            file.seek(turn % 80 * FLUSHED_BYTES)
            alone.append(milliseconds(lambda: (file.write(bytes(FLUSHED_BYTES)), os.fdatasync(file.fileno())), 1))
    return {"log_ms": median(calls), "log_processor_ms": processor / CALLS * 1000, "disk_alone_ms": median(alone)}


def pages(size: int, last: str) -> tuple[Query, ...]:
    """Pages of all sorts of a ledger of that size."""
    return (
        Query(),
        Query(agent="agent 7", kind="act", after=f"e{size // 2}"),
        Query(agent="agent 7", session="session 3"),
        Query(module="M", after=f"e{size // 2}"),
        Query(ancestors_of=last),
        Query(descendants_of="e1"),
    )


def measured(size: int, folder: Path) -> dict[str, Any]:
    """One size."""
    path = folder / f"{size}.db"
    stream = Stream()
    with Ledger.open(path) as ledger:
        start = time.perf_counter()
        stored = ledger.take(stream.lines(size)).stored
        filled = time.perf_counter() - start
        assert stored == size, stored
        logged = logging(ledger, stream, folder)
        last = ledger.head()
        assert last is not None
        return {
            "events": size,
            "bytes_an_event": round(path.stat().st_size / size),
            "import_us_an_event": filled / size * 1e6,
            **logged,
            "report_ms": milliseconds(ledger.report),
            "report_of_one_ms": milliseconds(lambda: ledger.report("agent 7")),
            "page_ms": max(milliseconds(partial(ledger.events, query)) for query in pages(size, last["id"])),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def together(folder: Path, count: int = 500) -> dict[str, float]:
    """Eight processes that log at once. What counts is from the first tenth of the events to the last."""
    path = folder / "together.db"
    Ledger.open(path).close()
    root = Path(__file__).resolve().parents[1]
    writers = [
        subprocess.Popen(
            [sys.executable, str(WRITER), str(path), f"agent {number}", str(count)], stdout=subprocess.DEVNULL, cwd=root
        )
        for number in range(WRITERS)
    ]
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    with Ledger.open(path) as ledger:
        found = ledger.verify()
        times = [datetime.fromisoformat(event.time) for event, _ in ledger.export()]
    assert (found.valid, found.events) == (True, WRITERS * count), found
    tenth = len(times) // 10
    seconds = (times[-tenth] - times[tenth]).total_seconds()
    return {"writers": WRITERS, "events": len(times), "events_a_second": (len(times) - 2 * tenth) / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--folder", type=Path, help="where the ledgers are made, on the disk that is to be measured")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        sizes = [measured(int(size), Path(folder)) for size in chosen.sizes.split(",")]
        writers = together(Path(folder))
    heads = [
        "events",
        "bytes each",
        "log",
        "processor",
        "disk alone",
        "report",
        "of one agent",
        "slowest page",
        "memory",
    ]
    rows = [
        [
            f"{one['events']:,}",
            f"{one['bytes_an_event']}",
            *(f"{one[name]:.2f} ms" for name in ("log_ms", "log_processor_ms", "disk_alone_ms")),
            *(f"{one[name]:.1f} ms" for name in ("report_ms", "report_of_one_ms", "page_ms")),
            f"{one['peak_mb']:.0f} MB",
        ]
        for one in sizes
    ]
    print(table(heads, rows))
    print(f"{writers['writers']} processes at once: {writers['events_a_second']:.0f} events a second")
    save(RESULTS, {**machine(), "versions": versions(), "sizes": sizes, "writers": writers})


if __name__ == "__main__":
    main()

"""The language server as an editor feels it: `halo lsp` as a process, a real client, one program of growing size.

    python benchmarks/server.py [--lines 100,1000,10000] [--out FILE]

Prints a table and writes JSON. "Compute" is the processor time that the server's threads take, read from Linux; the
rest of a round trip is the server's waiting for more keystrokes (the delay, for diagnostics alone), pipes, and the
client's own work.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from language import program
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from record import machine, save, table, versions

from halo_lang.server.session import DELAY

Figures: TypeAlias = dict[str, float]
Step: TypeAlias = Callable[[], Awaitable[object]]

ROUNDS = 30
DOCUMENT = types.TextDocumentIdentifier("untitled:program.halo")


class Client(LanguageClient):
    """Types into one document and waits for what is said about it."""

    def __init__(self) -> None:
        super().__init__("benchmark", "1")
        self._told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self._version = 0

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def told(params: types.PublishDiagnosticsParams) -> None:
            self._told.put_nowait(params)

    async def open(self, text: str) -> None:
        """Open the document; done when its diagnostics are there."""
        item = types.TextDocumentItem(DOCUMENT.uri, "halo", self._version, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await self._told.get()

    async def type(self, place: types.Position, text: str = "x") -> None:
        """One keystroke; done when the diagnostics of the new text are there."""
        self._version += 1
        identifier = types.VersionedTextDocumentIdentifier(self._version, DOCUMENT.uri)
        edit = types.TextDocumentContentChangePartial(types.Range(place, place), text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [edit]))
        while (await self._told.get()).version != self._version:
            pass

    @property
    def compute(self) -> float:
        """Milliseconds of processor time that the server has used so far."""
        assert self._server is not None
        tasks = Path(f"/proc/{self._server.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6

    async def measure(self, name: str, step: Step, rounds: int = ROUNDS) -> Figures:
        """Milliseconds of a step: its round trip and the server's compute, medians over some rounds."""
        trips: list[float] = []
        computes: list[float] = []
        for _ in range(rounds):
            before, start = self.compute, perf_counter()
            await step()
            trips.append((perf_counter() - start) * 1000)
            computes.append(self.compute - before)
        return {
            f"{name}_ms": round(statistics.median(trips), 2),
            f"{name}_compute_ms": round(statistics.median(computes), 2),
            f"{name}_compute_max_ms": round(max(computes), 2),
        }


def behind(text: str, part: str) -> types.Position:
    """The position behind a part of the text, in its middle."""
    before = text[: text.index(part, len(text) // 2) + len(part)]
    return types.Position(before.count("\n"), len(before.rpartition("\n")[2]))


async def figures(lines: int) -> Figures:
    """Everything about a program of that size."""
    text = program(lines)
    client = Client()
    start = perf_counter()
    await client.start_io(sys.executable, "-m", "halo_runtime.cli.main", "lsp")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    started = (perf_counter() - start) * 1000
    client.initialized(types.InitializedParams())
    found = {"lines": text.count("\n"), "start_ms": round(started, 1)}
    found |= await client.measure("open", lambda: client.open(text), rounds=1)
    found |= await requests(client, text)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return found


async def requests(client: Client, text: str) -> Figures:
    """What an editor asks while one types."""
    inside, tool, path = behind(text, "Be short"), behind(text, "equips "), behind(text, "draft: context.data.")
    steps: dict[str, Step] = {
        "keystroke": lambda: client.type(inside),
        "complete_name": lambda: client.text_document_completion_async(types.CompletionParams(DOCUMENT, tool)),
        "complete_path": lambda: client.text_document_completion_async(types.CompletionParams(DOCUMENT, path)),
        "hover": lambda: client.text_document_hover_async(types.HoverParams(DOCUMENT, tool)),
    }
    found: Figures = {}
    for name, step in steps.items():
        found |= await client.measure(name, step)
    return found


ROWS = {
    "start to the first answer": "start_ms",
    "a document opened → diagnostics": "open_ms",
    "keystroke → diagnostics, round trip": "keystroke_ms",
    "keystroke → diagnostics, compute": "keystroke_compute_ms",
    "completion of a name, round trip": "complete_name_ms",
    "completion of a name, compute": "complete_name_compute_ms",
    "completion of `context.data.`, round trip": "complete_path_ms",
    "completion of `context.data.`, compute": "complete_path_compute_ms",
    "hover, round trip": "hover_ms",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", default="100,1000,10000")
    options.add_argument("--out", type=Path, default=Path(__file__).parent / "results/server.json")
    chosen = options.parse_args(arguments)
    columns = [asyncio.run(figures(int(lines))) for lines in chosen.lines.split(",")]
    heads = ["milliseconds", *(f"{column['lines']:,.0f} lines" for column in columns)]
    print(table(heads, [[name, *(f"{column[key]:,}" for column in columns)] for name, key in ROWS.items()]))
    report = {"benchmark": "server", **machine(), "versions": versions("pygls", "lsprotocol"), "delay_ms": DELAY * 1000}
    save(chosen.out, {**report, "sizes": columns})


if __name__ == "__main__":
    main()

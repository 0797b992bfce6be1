"""How soon a key shows in the workbench while a run streams: `halo edit` in a pseudo-terminal, a local fast model.

A local server streams 1,000 tokens a second to the program that the workbench runs. Meanwhile letters are typed into
the editor, each one that stands nowhere else, and the time is taken from the key to the letter in what the program
writes to the terminal. Before and after that the same is done without a run, for comparison.

    python benchmarks/workbench_streaming.py [--keys 120] [--size 120x40] [--panes stages,output,data,call]

Prints a table and writes JSON. Milliseconds, by the clock, and beside that the processor time that all threads of the
workbench used meanwhile, which a busy machine changes little. The aim: no key above 50.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from record import machine, save, table, versions
from streaming import Server

RESULTS = Path(__file__).with_name("results") / "workbench_streaming.json"

TOKENS: Final = 1_000_000
LETTERS: Final = [
    chr(code) for code in (*range(0x100, 0x180), *range(0x391, 0x3CA), *range(0x410, 0x450)) if code != 0x3A2
]
"""Letters that stand nowhere on the screen, each for one key."""

AIM_MS: Final = 50.0
STRIDE: Final = 7.0
"""Milliseconds by which the pauses between two keys differ, so that keys meet every phase of a repaint."""

PANES: Final = {"stages": b"\x1b2", "output": b"\x1b3", "data": b"\x1b4", "call": b"\x1b7"}
"""Pane of the run → the keys that bring it to the front."""
TO_THE_EDITOR: Final = b"\x1b1"

MODEL: Final = "openai/gpt-4o-mini"
PROGRAM = """\
agent Bot [openai/gpt-4o-mini]

pipeline Main() -> Result:
  |> Bot.answer()

// {filling}
"""


def serve() -> None:
    """Stream to whoever asks; the address goes to stdout."""

    async def main() -> None:
        server = Server()
        server.tokens, server.pause = TOKENS, 0.001
        await server.start()
        print(server.url, flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


@contextmanager
def server() -> Generator[str]:
    command = [sys.executable, __file__, "--serve"]  # which complains of each client that is killed
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


class Terminal:
    """A program in a pseudo-terminal, and what it has written."""

    def __init__(self, command: list[str], size: tuple[int, int], env: dict[str, str]) -> None:
        self.written = bytearray()
        self.process, self._end = pty.fork()
        if self.process == 0:
            os.execvpe(command[0], command, env)
        columns, rows = size
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys: bytes) -> None:
        os.write(self._end, keys)

    def read_for(self, seconds: float) -> int:
        """Take what the program writes for so long; the number of bytes."""
        begun, before = time.perf_counter(), len(self.written)
        while (left := begun + seconds - time.perf_counter()) > 0:
            self._read(left)
        return len(self.written) - before

    def until(self, text: str, seconds: float = 10) -> float:
        """Milliseconds until the program writes a text. Raises TimeoutError."""
        begun, start, sought = time.perf_counter(), len(self.written), text.encode()
        while self.written.find(sought, max(0, start - len(sought))) < 0:
            left = begun + seconds - time.perf_counter()
            if left <= 0:
                raise TimeoutError(f"{text!r} was not written within {seconds:g} s")
            self._read(left)
        return (time.perf_counter() - begun) * 1000

    def _read(self, seconds: float) -> None:
        if select.select([self._end], [], [], seconds)[0]:
            self.written += os.read(self._end, 1 << 20)

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._end)


def typed(terminal: Terminal, letters: Iterator[str], keys: int) -> list[tuple[float, float]]:
    """Milliseconds from each key to its letter, by the clock and of processor time; one key every 120 ms or so."""
    found: list[tuple[float, float]] = []
    for number in range(keys):
        terminal.read_for((80 + number * STRIDE % 80) / 1000)
        letter = next(letters)
        begun = computed_ms(terminal.process)
        terminal.send(letter.encode())
        taken = terminal.until(letter)
        found.append((taken, computed_ms(terminal.process) - begun))
    return found


def computed_ms(process: int) -> float:
    """Milliseconds of processor time that the threads of a process have used."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


def measure(url: str, size: tuple[int, int], keys: int, pane: str | None) -> dict[str, Any]:
    """The times of one workbench, with a pane of a streaming run in front, or without a run."""
    env = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "TERM": "xterm-256color"}
    env |= {"COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "main.halo"
        file.write_text(PROGRAM.format(filling="to be written"), "utf-8")
        halo = str(Path(sys.executable).with_name("halo"))
        terminal = Terminal([halo, "edit", str(file), *(["--run", "--model", MODEL] if pane else [])], size, env)
        try:
            terminal.until("main.halo", 30)
            terminal.read_for(2)
            if pane is not None:
                terminal.until(" word")
                terminal.send(PANES[pane])
                terminal.read_for(0.5)
                terminal.send(TO_THE_EDITOR)
                terminal.read_for(0.5)
            terminal.send(b"\x1b[1;5F")  # ctrl+end
            terminal.read_for(0.5)
            letters = iter(LETTERS)
            typed(terminal, letters, 5)
            begun, clock = computed_ms(terminal.process), time.perf_counter()
            times = typed(terminal, letters, keys)
            cpu = (computed_ms(terminal.process) - begun) / (time.perf_counter() - clock) / 1000
            written = terminal.read_for(1)
        finally:
            terminal.close()
    return {
        "pane": pane,
        **_spread("clock", [clock for clock, _ in times]),
        **_spread("processor", [computed for _, computed in times]),
        "above_aim": sum(taken > AIM_MS for taken, _ in times),
        "cpu_percent": round(cpu * 100),
        "bytes_a_second": written,
    }


def _spread(name: str, times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    figures = {"median": statistics.median(times), "p95": ordered[int(len(ordered) * 0.95)], "max": ordered[-1]}
    return {f"{name}_{kind}_ms": round(figure, 1) for kind, figure in figures.items()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keys", type=int, default=120)
    options.add_argument("--size", default="120x40")
    options.add_argument("--panes", default=",".join(PANES))
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.serve:
        serve()
        return
    columns, rows = (int(part) for part in arguments.size.split("x"))
    with server() as url:
        found = [
            measure(url, (columns, rows), arguments.keys, pane) for pane in (None, *arguments.panes.split(","), None)
        ]
    report = {"benchmark": "workbench_streaming", **machine(), "versions": versions("textual"), "size": arguments.size}
    save(RESULTS, report | {"tokens_a_second": 1000, "keys": arguments.keys, "ways": found})
    heads = ("pane in front", "clock: median", "p95", "max", "processor: median", "p95", "max", "of a core", "written")
    names = [f"{name}_{kind}_ms" for name in ("clock", "processor") for kind in ("median", "p95", "max")]
    lines = [
        [
            one["pane"] or "no run",
            *(f"{one[name]:.1f} ms" for name in names),
            f"{one['cpu_percent']} %",
            f"{one['bytes_a_second'] / 1024:.0f} KB/s",
        ]
        for one in found
    ]
    print(table(heads, lines))


if __name__ == "__main__":
    main()

"""What streaming costs: processor time a token, in Halo with nobody, a terminal or a pipe listening, and in the SDK.

A local server streams chat completions, one event a token: paced as a fast model is, with a write of its own for each
token, or all at once. Each client is a process of its own; what the same process takes for one token, the least of some
rounds, is taken off, so that starting does not count.

    python benchmarks/streaming.py [--tokens 10000] [--rounds 3] [--clients nobody,terminal,events,openai]

Prints a table and writes JSON. Microseconds of processor time (user and system) a token: 100 are 10 % of one core at
1,000 tokens a second, which is the aim.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import statistics
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from record import machine, save, table, versions

RESULTS = Path(__file__).with_name("results") / "streaming.json"

PROGRAM = "agent Bot [openai/gpt-4o-mini]\n\npipeline Main() -> Result:\n  |> Bot.answer()\n"
PACES = {"1,000 a second": 0.001, "at once": 0.0}
"""Name → seconds between two tokens."""

ROUNDS_OF_ONE = 5

Command: TypeAlias = Callable[[Path], list[str]]


# --- the server -----------------------------------------------------------------------------------------------------


class Server:
    """Streams `tokens` tokens with `pause` seconds between them to whoever asks."""

    def __init__(self) -> None:
        self.tokens = 1
        self.pause = 0.0
        self.url = ""

    async def start(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        loop = asyncio.get_running_loop()
        due = loop.time()
        for number in range(self.tokens):
            writer.write(_part(_chunk({"content": f" word{number % 100}"})))
            due += self.pause
            if self.pause and due > loop.time():
                await asyncio.sleep(due - loop.time())
            elif number % 100 == 0:
                await writer.drain()
        usage = {"prompt_tokens": 9, "completion_tokens": self.tokens, "total_tokens": self.tokens + 9}
        writer.write(_part(_chunk({}, "stop")))
        writer.write(_part(_chunk({}) | {"choices": [], "usage": usage}) + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()
        writer.close()


def _chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    usual = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1764000000, "service_tier": "default"}
    return usual | {"model": "gpt-4o-mini-2024-07-18", "system_fingerprint": "fp_x", "choices": [choice], "usage": None}


def _part(document: dict[str, Any]) -> bytes:
    return _chunked(f"data: {json.dumps(document)}\n\n".encode())


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


# --- the clients ----------------------------------------------------------------------------------------------------


def nobody() -> None:
    """Halo as a library, without observers."""
    import halo_lang
    from halo_runtime import Runtime

    result = asyncio.run(Runtime(env=dict(os.environ)).run(halo_lang.parse(PROGRAM), "Main", {}))
    assert result.output.endswith(f" word{(int(sys.argv[2]) - 1) % 100}"), result.error


def openai() -> None:
    """OpenAI's SDK, asynchronous, putting the text together."""
    from openai import AsyncOpenAI

    async def ask() -> str:
        async with AsyncOpenAI() as client:
            stream = await client.chat.completions.create(
                model="gpt-4o-mini", messages=[{"role": "user", "content": "hi"}], stream=True,
                stream_options={"include_usage": True},
            )  # fmt: skip
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    assert asyncio.run(ask()).endswith(f" word{(int(sys.argv[2]) - 1) % 100}")


def _halo(*options: str) -> Command:
    return lambda folder: [str(Path(sys.executable).with_name("halo")), "run", str(folder / "main.halo"), *options]


def _self(name: str) -> Command:
    return lambda _: [sys.executable, __file__, f"--be={name}"]


CLIENTS: dict[str, tuple[str, Command, bool]] = {
    "nobody": ("Halo, nobody listens", _self("nobody"), False),
    "terminal": ("`halo run` on a terminal", _halo(), True),
    "events": ("`halo run --events`", _halo("--events"), False),
    "openai": ("openai SDK", _self("openai"), False),
}
"""Name → what it is, its command, whether its stderr is a terminal."""


async def cost(server: Server, client: str, folder: Path, tokens: int, pause: float) -> float:
    """Seconds of processor time of a client that reads so many tokens."""
    server.tokens, server.pause = tokens, pause
    _, command, on_terminal = CLIENTS[client]
    arguments = command(folder) + ([str(tokens)] if "--be=" in command(folder)[-1] else [])
    environment = os.environ | {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-benchmark-0123", "TERM": "xterm"}
    reading, writing = pty.openpty() if on_terminal else os.pipe()
    null = os.open(os.devnull, os.O_WRONLY)
    actions = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, writing, 2)]
    process = os.posix_spawn(arguments[0], arguments, environment, file_actions=actions)  # noqa: ASYNC221 - at once
    os.close(writing)
    os.close(null)
    draining = asyncio.create_task(asyncio.to_thread(_drain, reading))
    _, status, usage = await asyncio.to_thread(os.wait4, process, 0)
    said = await draining
    if status:
        sys.exit(f"{client} failed: {said[-2000:].decode()}")
    return usage.ru_utime + usage.ru_stime


def _drain(reading: int) -> bytes:
    """Read until the other end is closed; the last of it."""
    last = b""
    try:
        while part := os.read(reading, 65536):
            last = part
    except OSError:  # what Linux says at the end of a terminal
        pass
    os.close(reading)
    return last


async def measure(clients: list[str], tokens: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Microseconds a token: client → pace → rounds. The clients take turns."""
    server = Server()
    await server.start()
    found: dict[str, dict[str, list[float]]] = {client: {pace: [] for pace in PACES} for client in clients}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "main.halo").write_text(PROGRAM)
        starts: dict[str, float] = {}
        for client in clients * ROUNDS_OF_ONE:
            start = await cost(server, client, folder, 1, 0.0)
            starts[client] = min(start, starts.get(client, start))
        for _ in range(rounds):
            for client in clients:
                for pace, pause in PACES.items():
                    whole = await cost(server, client, folder, tokens, pause)
                    found[client][pace].append((whole - starts[client]) / tokens * 1e6)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    clients = [name for name in options.clients.split(",") if name != "openai" or find_spec("openai")]
    found = asyncio.run(measure(clients, options.tokens, options.rounds))
    rows = [
        (CLIENTS[client][0], *(f"{statistics.median(paces[pace]):.0f} ({min(paces[pace]):.0f}) µs" for pace in PACES))
        for client, paces in found.items()
    ]
    print(table(("processor time a token: median (least)", *PACES), rows))
    figures = {
        client: {pace: {"median": round(statistics.median(times), 1), "min": round(min(times), 1),
                        "max": round(max(times), 1)} for pace, times in paces.items()}
        for client, paces in found.items()
    }  # fmt: skip
    load = round(os.getloadavg()[0], 1)
    compared = versions(*(["openai"] if "openai" in clients else []), "httpx")
    report = {"benchmark": "streaming", **machine(), "load": load, "versions": compared, "tokens": options.tokens,
              "rounds": options.rounds, "microseconds_per_token": figures}  # fmt: skip
    save(options.out, report)


if __name__ == "__main__":
    be = {"--be=nobody": nobody, "--be=openai": openai}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    main() if be is None else be()

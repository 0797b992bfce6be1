"""What a call of an MCP tool costs beside the official SDK's own client, on the same servers in one run.

Over stdio and over HTTP, one call after another in one session: the SDK's `Client.call_tool`, and Halo's provider.

    python benchmarks/tools_mcp.py [--calls 20] [--rounds 20]

The servers are processes of their own, made with the SDK. Clients take turns, in another order each round. The clock
has the server's time in it, the processor's is the client's alone. Writes results/tools_mcp.json and prints a table.
The goal is under 1.5 × the SDK (issue 7).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from record import machine, save, table, versions

from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.mcp.provider import Server, open_mcp

RESULTS = Path(__file__).parent / "results" / "tools_mcp.json"

Call = Callable[[], Awaitable[Any]]


def serve(transport: str) -> None:
    """A server with one tool; over HTTP its port goes to stdout."""
    server = MCPServer("bench", log_level="ERROR")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    if transport == "stdio":
        server.run("stdio")
        return
    import socket

    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as plug:
        print(plug.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([plug])


async def clients(stack: AsyncExitStack, folder: Path, port: int) -> dict[str, dict[str, Call]]:
    """By transport, a call of each client in a session that is open."""
    url, argv = f"http://127.0.0.1:{port}/mcp", [__file__, "--serve", "stdio"]
    command = StdioServerParameters(command=sys.executable, args=argv)
    found: dict[str, dict[str, Call]] = {}
    for transport, target in (("stdio", command), ("http", url)):
        sdk = await stack.enter_async_context(Client(target))
        await sdk.list_tools()
        own = (
            {"server": url, "allowHosts": ["127.0.0.1"]} if target is url else {"server": sys.executable, "args": argv}
        )
        halo: Server = open_mcp(ToolConfig(transport, "MCP", own, folder, {"PATH": os.environ["PATH"]}))
        stack.push_async_callback(halo.close)
        found[transport] = {
            "mcp SDK": lambda sdk=sdk: sdk.call_tool("add", {"a": 1, "b": 2}),
            "Halo": lambda halo=halo: halo.call("add", {"a": 1, "b": 2}),
        }
    return found


async def milliseconds_a_call(call: Call, calls: int) -> tuple[float, float]:
    """By the clock, and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        await call()
    return (time.perf_counter() - clock) / calls * 1000, (time.process_time() - processor) / calls * 1000


async def measure(calls: int, rounds: int, port: int) -> dict[str, dict[str, dict[str, float]]]:
    """Milliseconds a call, the medians of the rounds, by transport and client."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            report: dict[str, dict[str, dict[str, float]]] = {}
            for transport, own in (await clients(stack, Path(folder), port)).items():
                taken: dict[str, list[tuple[float, float]]] = {name: [] for name in own}
                for call in own.values():
                    await milliseconds_a_call(call, calls)
                for number in range(rounds):
                    for name in sorted(own, reverse=number % 2 == 1):
                        taken[name].append(await milliseconds_a_call(own[name], calls))
                report[transport] = {name: medians(times) for name, times in taken.items()}
            return report


def medians(times: list[tuple[float, float]]) -> dict[str, float]:
    clock, processor = zip(*times, strict=True)
    return {"clock": round(statistics.median(clock), 3), "processor": round(statistics.median(processor), 3)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--serve", choices=("stdio", "http"))
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    process = subprocess.Popen([sys.executable, __file__, "--serve", "http"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = asyncio.run(measure(options.calls, options.rounds, int(process.stdout.readline())))
    finally:
        process.terminate()
        process.wait()
    rows = [
        [f"{transport}, {kind}", f"{sdk[kind]:.2f} ms", f"{halo[kind]:.2f} ms", f"{halo[kind] / sdk[kind]:.2f}"]
        for transport, times in found.items()
        for sdk, halo in [(times["mcp SDK"], times["Halo"])]
        for kind in ("clock", "processor")
    ]
    print(table(["a call over", "mcp SDK", "Halo", "Halo / SDK"], rows))
    document = {**machine(), "versions": versions("mcp"), "calls": options.calls, "rounds": options.rounds}
    save(RESULTS, {**document, "load": round(os.getloadavg()[0], 1), "milliseconds_a_call": found})


if __name__ == "__main__":
    main()

"""Servers that tests of the MCP client start: by command, and over HTTP in a thread of the test's process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn

from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.mcp.provider import Server, open_mcp
from tests.conftest import ROOT

FAKES = ROOT / "tests" / "fakes"
SDK, WIRE = str(FAKES / "mcp_server.py"), str(FAKES / "mcp_wire.py")


def by_command(folder: Path, script: str, *args: str, env: dict[str, str] | None = None, **settings: Any) -> Server:
    """A declared server that is a command; what happens in it is written to `log` in `folder`."""
    whole = {"server": sys.executable, "args": [script, *args], **settings}
    variables = {"PATH": os.environ["PATH"], "MCP_LOG": str(folder / "log"), **(env or {})}
    return open_mcp(ToolConfig("Demo", "MCP", whole, folder, variables))


def at_address(folder: Path, url: str, **settings: Any) -> Server:
    """A declared server that has an address."""
    return open_mcp(ToolConfig("Demo", "MCP", {"server": url, "allowHosts": ["127.0.0.1"], **settings}, folder))


@asynccontextmanager
async def wire(folder: Path, *args: str, **settings: Any) -> AsyncIterator[Server]:
    """The server that speaks by hand, closed at the end."""
    server = by_command(folder, WIRE, *args, **settings)
    try:
        yield server
    finally:
        await server.close()


def logged(folder: Path) -> list[Any]:
    """What the server that speaks by hand was sent."""
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def is_alive(process: int) -> bool:
    """Whether a process runs, as /proc has it."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@contextlib.contextmanager
def over_http(app: Any) -> Iterator[str]:
    """An ASGI application on a free port of loopback; its address."""
    plug = socket.socket()
    plug.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", ws="none", timeout_graceful_shutdown=1))
    started = threading.Event()

    async def startup(sockets: Any = None) -> None:
        await type(server).startup(server, sockets)
        started.set()

    server.startup = startup
    thread = threading.Thread(target=server.run, args=([plug],), daemon=True)
    thread.start()
    try:
        assert started.wait(30), "the server started"
        yield f"http://127.0.0.1:{plug.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        plug.close()

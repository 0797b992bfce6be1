"""What tests of browsers share: a site on loopback, tools, and which processes are there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.browser.provider import PageTool, open_browser
from tests.fakes.wire import Answer, FakeService, Received

ENV = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LANG": "C.UTF-8"}


class Site(FakeService):
    """Pages by their path; a path that has none is answered with 404. `busy` is set when `/busy` is asked for."""

    json_only = False

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, Answer] = {}
        self.busy = asyncio.Event()

    def usual(self, request: Received) -> Answer:
        if request.path == "/busy":
            self.busy.set()
        return self.pages.get(request.path, html("<title>Nothing</title>nothing here", 404))

    def show(self, body: str, path: str = "/", **more: Any) -> str:
        """Put a page there; its address."""
        self.pages[path] = html(body, **more)
        return f"{self.address}{path}"

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for, but for the icon that browsers look for by themselves."""
        return [request.path for request in self.requests if request.path != "/favicon.ico"]

    def clear(self) -> None:
        """Forget all pages and requests."""
        self.pages.clear()
        self.requests.clear()
        self.hanging.clear()
        self.busy.clear()
        self.left.clear()
        self.connections = 0


def html(body: str, status: int = 200, **more: Any) -> Answer:
    more.setdefault("content_type", "text/html; charset=utf-8")
    return Answer(status, body.encode(), **more)


def browser(folder: Path, *allow: str, timeout: str = "20s", name: str = "Web", **more: Any) -> PageTool:
    """A tool with a browser of its own."""
    settings = {"headless": True, "allowHosts": [*allow], "timeout": timeout}
    return open_browser(ToolConfig(name, "Browser", settings, folder, ENV), **more)


def descendants(of: int) -> dict[int, str]:
    """The processes that come from a process, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state not in "ZX":
                parents[int(entry.name)] = int(parent)
    found: dict[int, str] = {}
    pending = [of]
    while pending:
        parent = pending.pop()
        for process in [one for one, its in parents.items() if its == parent]:
            found[process] = command_line(process)
            pending.append(process)
    return found


def command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def left_of(processes: Iterable[int], seconds: float = 10.0) -> list[str]:
    """Those that are still there after a while."""
    deadline = time.monotonic() + seconds
    pending = [*processes]
    while pending and time.monotonic() < deadline:
        pending = [process for process in pending if is_alive(process)]
        time.sleep(0.01)
    return [command_line(process) for process in pending]

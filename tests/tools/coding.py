"""What tests of `Code` share: a tool for each sandbox, and the processes that it has."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.json_types import Json, JsonObject
from halo_runtime.templates import WrittenText
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig, ToolProvider

SANDBOXES = ["monty", pytest.param("bubblewrap", marks=pytest.mark.bubblewrap)]

_STATE, _PARENT, _USER_TICKS = 0, 1, 11
"""Places in what `/proc/…/stat` says after a process's name."""


@asynccontextmanager
async def code(sandbox: str, **settings: Json) -> AsyncGenerator[ToolProvider]:
    """A tool that is closed at the end."""
    config = ToolConfig("Calc", "Code", {"sandbox": sandbox, **settings}, Path("/nowhere"), {})
    tool = tool_factory("Code")(config)
    try:
        yield tool
    finally:
        await tool.close()


async def run(tool: ToolProvider, text: str, **args: Json) -> JsonObject:
    """Run what an agent chose."""
    return await tool.call("run", {"code": text, **args})


async def written(tool: ToolProvider, text: str, *values: str) -> JsonObject:
    """Run what a program says, `@` for each value."""
    return await tool.call("run", {"code": WrittenText(tuple(text.split("@")), values)})


_others: set[int] = set()


def pass_over_others() -> None:
    """Leave out of `descendants` from now on those that there are: servers that other tests share."""
    _others.clear()
    _others.update(descendants())


def descendants() -> dict[int, list[bytes]]:
    """This process's living children and theirs, each with what the system says of it."""
    table: dict[int, list[bytes]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if stat[_STATE] not in (b"Z", b"X"):
                table[int(entry.name)] = stat
    found: dict[int, list[bytes]] = {}
    parents = {os.getpid()}
    while parents:
        born = {
            number: stat for number, stat in table.items() if int(stat[_PARENT]) in parents and number not in _others
        }
        found |= born
        parents = set(born)
    return found


async def until_busy() -> None:
    """Wait for a program to have used some of the processor."""
    before = {number: int(stat[_USER_TICKS]) for number, stat in descendants().items()}
    async with asyncio.timeout(20):
        while all(int(stat[_USER_TICKS]) < before.get(number, 0) + 10 for number, stat in descendants().items()):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.005)


async def until_gone() -> None:
    """Wait until nothing is left; what was killed takes a moment to go."""
    async with asyncio.timeout(5):
        while descendants():  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.005)


def environment(process: int) -> bytes:
    """The variables that a process was started with."""
    return Path(f"/proc/{process}/environ").read_bytes()


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def failure(result: dict[str, Any]) -> tuple[str, int | None]:
    """The exception's name and line; the message must say something or be Python's own empty one."""
    assert result["error"] is not None, result
    return result["error"]["type"], result["error"]["line"]

"""Which processes may be a command's, by the numbers that the system gives out in turn."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from halo_runtime.tools.shell import processes
from halo_runtime.tools.shell.processes import end_all, forks_so_far
from tests.tools.test_bash import NAP, commands_left


def told(monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """What the files in `/proc` say from now on, by their names; `None` for the others is what they say."""
    read = processes._read  # pyright: ignore[reportPrivateUsage]

    def instead(path: str) -> bytes:
        said = files.get(Path(path).name)
        return read(path) if said is None or path.endswith("self/stat") else said.encode()

    monkeypatch.setattr(processes, "_read", instead)


async def one_after_the_other(mark: str) -> tuple[Process, Process]:
    """A process that goes on, and one with a higher number, both with the mark and in a group of their own."""
    env = {"PATH": os.environ["PATH"], processes.MARK: mark}
    while True:
        first = await asyncio.create_subprocess_exec(*NAP.split(), env=env, start_new_session=True)
        second = await asyncio.create_subprocess_exec("true", env=env, start_new_session=True)
        if first.pid < second.pid:
            return first, second
        first.kill()  # the system's numbers have just begun anew
        await asyncio.gather(first.wait(), second.wait())


@pytest.mark.parametrize(
    ("highest", "is_searched"),
    [(1 << 30, False), (1, True)],
    ids=["numbers in turn", "numbers may have begun anew"],
)
async def test_a_process_below_its_command_is_looked_for_where_numbers_may_have_begun_anew(
    monkeypatch: pytest.MonkeyPatch, highest: int, is_searched: bool
) -> None:
    forks, mark = forks_so_far(), "f" * 32
    escaped, command = await one_after_the_other(mark)
    told(monkeypatch, pid_max=str(highest), loadavg="1 1 1 1/200 1")
    try:
        await end_all(mark, command, 2.0, forks)
        assert (commands_left() == []) is is_searched
    finally:
        if escaped.returncode is None and not is_searched:
            escaped.kill()
        await escaped.wait()


async def test_without_the_count_of_forks_all_are_looked_at() -> None:
    mark = "e" * 32
    escaped, command = await one_after_the_other(mark)
    await end_all(mark, command, 2.0)
    assert commands_left() == []
    await escaped.wait()


async def test_forks_are_counted() -> None:
    before = forks_so_far()
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    after = forks_so_far()
    assert before is not None
    assert after is not None
    assert after > before

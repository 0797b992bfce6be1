"""Processes that end: a command with all that it started, in bounded time and with bounded output (reference 2.12).

Nothing that a command started outlives it, whether it ended by itself, ran out of time or was cancelled. Its processes
are found by their process group and, on Linux, by a mark in their environment, which `setsid` and a double fork keep.
Where this process is killed itself, its guard ends them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from halo_lang.records import record
from halo_runtime.tools.excerpt import KEPT_BYTES, Excerpt
from halo_runtime.tools.shell.guard import GUARD, MARK

GRACE_SECONDS: Final = 2.0
"""How long processes may take to end after SIGTERM before they are killed."""

_STATE, _GROUP, _STARTED = 0, 2, 19
"""Places in what `_stat` gives."""
_POLL_SECONDS: Final = 0.01
_DRAIN_SECONDS: Final = 1.0


@record
class Finished:
    """How a command ended. `exit_code` is negative where a signal ended it: -15 for SIGTERM."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool


async def run_process(
    argv: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    timeout: float,
    grace: float = GRACE_SECONDS,
    stdin: int = asyncio.subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    kept: tuple[int, int] = (KEPT_BYTES, KEPT_BYTES),
) -> Finished:
    """Run a command with only the variables in `env`; times are in seconds.

    `stdin` is a file that it reads from, `pass_fds` are further ones that it finds open. Of output and
    errors so many bytes are `kept`, half of them from the start and half from the end.

    Cancelling ends all its processes before it is passed on. Raises OSError where the command cannot be started.
    """
    mark, forks = secrets.token_hex(16), forks_so_far()
    timed_out = False
    process: asyncio.subprocess.Process | None = None
    async with _Stream.opened(kept[0]) as out, _Stream.opened(kept[1]) as errors:
        with GUARD.over(mark) as runs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *argv, stdin=stdin, stdout=out.end, stderr=errors.end, cwd=folder, env={**env, MARK: mark},
                    start_new_session=True, pass_fds=pass_fds,
                )  # fmt: skip
                runs(process.pid)
                out.close_end()
                errors.close_end()
                timed_out = not await ends_within(process, timeout)
            finally:
                await whatever_happens(end_all(mark, process, grace, forks))
        # What outran the mark and the group may still hold a pipe, so its end is not waited for without limit.
        await asyncio.wait([out.at_end, errors.at_end], timeout=_DRAIN_SECONDS)
    assert process is not None, "it was started"
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    return Finished(code, out.text(), errors.text(), timed_out)


async def ends_within(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether a process has ended, at the latest after so many seconds."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        return bool((await asyncio.wait([waiting], timeout=seconds))[0])
    finally:
        waiting.cancel()


async def end_all(
    mark: str, process: asyncio.subprocess.Process | None, grace: float, forks: int | None = None
) -> None:
    """Ask all processes of a command to end, kill those that do not, and take leave of the first one.

    `forks` is what `forks_so_far` said before it was started; with it most processes need not be looked at.
    """
    command = _Command(mark, None if process is None else process.pid, forks)
    for number in (signal.SIGTERM, signal.SIGKILL):
        if await _gone_after(number, command, grace):
            break
    if process is not None:
        await ends_within(process, grace)


@record
class _Command:
    """A command as its processes are known by: their mark, their group, and how many forks there were before them."""

    mark: str
    group: int | None
    forks: int | None


async def _gone_after(number: signal.Signals, command: _Command, grace: float) -> bool:
    """Send a signal to all that is there, and to what comes up meanwhile; whether all were gone in time."""
    told: set[int] = set()
    deadline = asyncio.get_running_loop().time() + grace
    while alive := _alive(command):
        # The group comes first, as the shell should hear of it before it sees its children end.
        for target in sorted(alive - told):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(target, number)
        told |= alive
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _alive(command: _Command) -> set[int]:
    """What is left of a command, as `os.kill` takes it: its group as a negative number, and who has left the group."""
    table, group = _process_table(command), command.group
    if table is None:
        return {-group} if group is not None and _has_members(group) else set()
    members = {-own for _, own in table if own == group}
    return members | {process for process, own in table if own != group and _has_mark(process, command.mark)}


def _process_table(command: _Command) -> list[tuple[int, int]] | None:
    """Each process of this machine that may be the command's, and its group; None where it is no Linux."""
    try:
        own = _stat("self")
        processes = [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - half the time
    except OSError:
        return None
    lowest = _lowest_number(command)
    table: list[tuple[int, int]] = []
    for process in processes:
        if process < lowest:
            continue
        with suppress(OSError):
            stat = _stat(process)
            # The dead that wait for their parents to look do not count, nor do those that are older than this process.
            if stat[_STATE] not in (b"Z", b"X") and int(stat[_STARTED]) >= int(own[_STARTED]):
                table.append((process, int(stat[_GROUP])))
    return table


def _lowest_number(command: _Command) -> int:
    """The lowest number that a process of the command can have.

    Linux gives numbers out in turn, passing over those that are taken, and begins anew at the highest one. So where
    there were not enough forks to have come that far, all of the command's have the number of its first one or more.
    """
    if command.group is None or command.forks is None:
        return 0
    try:
        highest = int(_read("/proc/sys/kernel/pid_max"))
        taken = int(_read("/proc/loadavg").split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0
    forks = forks_so_far()
    is_in_turn = forks is not None and command.group + (forks - command.forks) + taken < highest
    return command.group if is_in_turn else 0


def forks_so_far() -> int | None:
    """How many processes and threads this machine has started since it started itself; None where nothing tells."""
    with suppress(OSError, ValueError):
        return int(_read("/proc/stat").rpartition(b"\nprocesses ")[2].split(maxsplit=1)[0])
    return None


def _stat(process: int | str) -> list[bytes]:
    """What the system says of a process, without its number and name; the name may hold anything, a `)` too."""
    return _read(f"/proc/{process}/stat").rpartition(b")")[2].split()


def _has_mark(process: int, mark: str) -> bool:
    with suppress(OSError):
        return f"{MARK}={mark}".encode() in _read(f"/proc/{process}/environ")
    return False


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a Path for each process costs more than reading it
        return file.read()


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def whatever_happens(work: Awaitable[None]) -> None:
    """Do `work` to its end even when cancelled meanwhile; the cancellation is passed on after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


class _Stream(asyncio.Protocol):
    """Reads what a command writes, and goes on reading what it does not keep.

    A pipe of our own instead of asyncio's: a process that got hold of asyncio's could keep it waiting for ever.
    """

    def __init__(self, kept: int) -> None:
        self.end = -1
        self.at_end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kept = Excerpt(kept)

    @classmethod
    @asynccontextmanager
    async def opened(cls, kept: int) -> AsyncGenerator[_Stream]:
        """A new pipe, of which so many bytes are kept; `end` is what the command writes to."""
        reading, writing = os.pipe()
        transport, stream = await asyncio.get_running_loop().connect_read_pipe(
            lambda: cls(kept), os.fdopen(reading, "rb", 0)
        )
        stream.end = writing
        try:
            yield stream
        finally:
            stream.close_end()
            transport.close()

    def data_received(self, data: bytes) -> None:
        self._kept.add(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.at_end.done():
            self.at_end.set_result(None)

    def close_end(self) -> None:
        """Close the command's end here, so that the pipe ends when the command's processes do."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1

    def text(self) -> str:
        """What was written, what is not UTF-8 replaced, with a mark where the middle is left out."""
        return self._kept.text()

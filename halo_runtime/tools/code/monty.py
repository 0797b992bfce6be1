"""Programs in Monty, an interpreter of a part of Python that has no way out to files, network and processes.

Each program has a worker process of its own, which ends with it. What is not built into Monty cannot be imported, and
what it asks of the system is refused, as nothing is granted (`mount`, `os`, `external_lookup` of pydantic_monty).
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from halo_runtime.errors import ToolError
from halo_runtime.json_types import JsonObject
from halo_runtime.tools.code.base import MAX_MESSAGE, Ended, Limits, Problem, checked, out_of_time
from halo_runtime.tools.excerpt import Excerpt

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, MontyRuntimeError, MontySyntaxError, OSPolicy

MAX_DEPTH: Final = 500
"""Calls inside calls."""
MAX_SLEEPS: Final = 10_000

_PATIENT: Final[OSPolicy] = {"sleep_system_max": math.inf}
"""Sleeps are not cut short unseen; they end with the time of the program."""
_GRACE_SECONDS: Final = 0.5
_TEXT_OF_PROGRAM: Final = ("<python-input-", "main.py")

# Workers say on the terminal when they run out of memory, and would find the open files of this process's limits.
_WORKER: Final = """#!/bin/sh
ulimit -c 0; ulimit -f 0; ulimit -n 32; ulimit -v {kilobytes}
exec {monty} "$@" 2>/dev/null
"""
_ADDRESS_SPACE: Final = 1 << 30
"""What a worker reserves beside the memory of its program, in bytes; it uses little of that."""


class Monty:
    """A pool of workers, opened at the first program."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._opening = asyncio.Lock()
        self._pool: AsyncMonty | None = None
        self._folder: str | None = None

    async def run(self, code: str, inputs: JsonObject) -> Ended:
        """Run a program. Raises ToolError where no worker can be started."""
        from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError, ResourceLimits

        pool = await self._opened()
        printed = Excerpt()
        seconds = self._limits.seconds
        limits: ResourceLimits = {
            "max_feed_duration_secs": seconds,
            "max_total_sleep_secs": seconds,
            "max_memory": self._limits.memory,
            "max_recursion_depth": MAX_DEPTH,
            "max_suspensions": MAX_SLEEPS,
        }
        try:
            async with pool.checkout(limits=limits, os_policy=_PATIENT) as session:
                # Monty counts the time in which a program sleeps apart, so the clock is watched here, too.
                async with asyncio.timeout(seconds + _GRACE_SECONDS):
                    value = await session.feed_run(
                        code, inputs=inputs, print_callback=lambda _, text: printed.add(text.encode(errors="replace"))
                    )
        except TimeoutError:
            return Ended(None, printed.text(), out_of_time(seconds))
        except MontyCrashedError as error:
            died = Problem("SystemError", f"the program's process died (exit status {error.exit_status})")
            return Ended(None, printed.text(), out_of_time(seconds) if error.timed_out else died)
        except (MontyRuntimeError, MontySyntaxError) as error:
            return Ended(None, printed.text(), _problem(error, seconds))
        return checked(value, printed.text())

    async def close(self) -> None:
        """End all workers."""
        pool, self._pool = self._pool, None
        folder, self._folder = self._folder, None
        if pool is not None:
            await pool.__aexit__(None, None, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    async def _opened(self) -> AsyncMonty:
        async with self._opening:
            if self._pool is None:
                from pydantic_monty import AsyncMonty

                try:
                    # A worker that has run one program is not given another: nothing is left of the one before.
                    pool = AsyncMonty(binary_path=self._worker(), max_checkouts_per_worker=1)
                    self._pool = await pool.__aenter__()
                except (OSError, RuntimeError) as error:
                    raise ToolError(f"Monty cannot be started: {error}") from None
            return self._pool

    def _worker(self) -> str:
        """The command that starts a worker. Raises ToolError, OSError."""
        search = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
        monty = shutil.which("monty", path=search)
        if monty is None:
            raise ToolError("Monty's worker (the command monty) is not there; install pydantic-monty anew")
        kilobytes = (self._limits.memory + _ADDRESS_SPACE) // 1024
        self._folder = self._folder or tempfile.mkdtemp(prefix="halo-code-")
        path = Path(self._folder, "worker")
        path.write_text(_WORKER.format(kilobytes=kilobytes, monty=quote(monty)))
        path.chmod(0o700)
        return str(path)


def _problem(error: MontyRuntimeError | MontySyntaxError, seconds: float) -> Problem:
    """What stopped a program, with the line of its own text that was reached last."""
    raised, frames = error.exception(), error.traceback()
    if isinstance(raised, TimeoutError) and not frames:
        return out_of_time(seconds)
    lines = [frame.line for frame in frames if frame.filename.startswith(_TEXT_OF_PROGRAM)]
    return Problem(type(raised).__name__, error.display("msg")[:MAX_MESSAGE], lines[-1] if lines else None)

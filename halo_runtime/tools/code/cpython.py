"""Programs in CPython inside bubblewrap: no network, no files, one process, bounds on all that it can take.

Of the machine a program sees Python, the system's libraries and the packages that were installed with Halo, all of it
read-only. A filter of system calls (`seccomp`) keeps it from starting processes and from making sockets.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import halo_lang
import halo_runtime
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.code.base import MAX_MESSAGE, MAX_RESULT, Ended, Limits, Problem, checked, out_of_time
from halo_runtime.tools.code.seccomp import filter_for
from halo_runtime.tools.excerpt import KEPT_BYTES
from halo_runtime.tools.shell.bubblewrap import SEALED, Bubblewrap
from halo_runtime.tools.shell.processes import Finished, run_process

REPORT_BYTES: Final = 8_000_000
"""What a report can have at most, which is a result of the largest size, twice escaped."""

_MARK: Final = 100
"""What the mark of a cut has at most, in characters."""
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_DEVICES: Final = ("/dev/null", "/dev/urandom")
_VARIABLES: Final = {
    "HOME": "/", "LANG": "C.UTF-8",
    # Libraries that calculate start a thread for each core, and each thread reserves memory.
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
}  # fmt: skip


_CHILD: Final = "import sys; sys.path += {path!r}; from halo_runtime.tools.code.child import main; main()"
"""What the process does: packages are found without `site`, whose files with the ending `.pth` may run anything."""


class CPython:
    """Starts a process for each program. Linux only, with bubblewrap. `search` is the PATH that bubblewrap is on."""

    def __init__(self, limits: Limits, search: str | None = None) -> None:
        self._limits = limits
        self._filter = filter_for(platform.machine()) if sys.platform == "linux" else None
        self._python = (os.path.realpath(sys.executable), "-I", "-S", "-B", "-X", "utf8", "-c")
        self._packages = _packages()
        self._sandbox = Bubblewrap(_confinement(self._python[0], self._packages), (*self._python, "pass"), search)

    async def run(self, code: str, inputs: JsonObject) -> Ended:
        """Run a program. Raises ToolError where there can be no sandbox."""
        limits = self._limits
        request = {"code": code, "inputs": inputs, "memory": limits.memory, "seconds": limits.seconds}
        child = (*self._python, _CHILD.format(path=[*dict.fromkeys(map(str, self._packages.values()))]))
        argv = await self._sandbox.around(child, lambda trial: self._start(trial, b""))
        finished = await self._start(argv, json.dumps(request).encode())
        if finished.timed_out:
            return Ended(None, finished.stdout, out_of_time(limits.seconds))
        return _ended(finished)

    async def close(self) -> None:
        """Nothing to free: no process outlives its call."""

    async def _start(self, argv: tuple[str, ...], given: bytes) -> Finished:
        """Run what stands in bubblewrap, with the filter of system calls and an input."""
        if self._filter is None:
            raise ToolError("the sandbox of CPython needs Linux on x86-64 or ARM64")
        try:
            with _file(given) as stdin, _file(self._filter) as rules:
                return await run_process(
                    (argv[0], "--seccomp", str(rules), *argv[1:]), folder=Path("/"), env={},
                    timeout=self._limits.seconds, stdin=stdin, pass_fds=(rules,), kept=(KEPT_BYTES, REPORT_BYTES),
                )  # fmt: skip
        except OSError as error:
            raise ToolError(f"the sandbox cannot be started: {error.strerror}") from None


def _packages() -> dict[Path, Path]:
    """What the process may import from beside Python's own modules: folder to show → folder to look in."""
    installed = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    own = [Path(module.__file__ or "").parent for module in (halo_lang, halo_runtime)]
    return {folder: folder for folder in installed} | {folder: folder.parent for folder in own}


def _confinement(python: str, packages: dict[Path, Path]) -> tuple[str, ...]:
    """bubblewrap's arguments: what is not named here is not there."""
    libraries = [str(Path(sys.base_prefix, name)) for name in ("lib", "lib64")]
    shown = (*_LIBRARIES, *libraries, python, *map(str, packages))
    return (
        *SEALED, "--clearenv", *(word for name, value in _VARIABLES.items() for word in ("--setenv", name, value)),
        *(word for path in dict.fromkeys(shown) for word in ("--ro-bind-try", path, path)),
        *(word for path in _DEVICES for word in ("--dev-bind", path, path)),
        "--chdir", "/", "--remount-ro", "/",
    )  # fmt: skip


@contextmanager
def _file(content: bytes) -> Generator[int]:
    """A file in memory, open at its start."""
    descriptor = os.memfd_create("halo")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _ended(finished: Finished) -> Ended:
    """What a report says. Its program could have written it itself, so nothing in it is taken for granted."""
    try:
        report: Json = json.loads(finished.stderr)
        problem = report["problem"]
        if problem is None:
            return checked(report["result"], finished.stdout, MAX_RESULT + _MARK)
        line = problem["line"] if isinstance(problem["line"], int) else None
        told = Problem(str(problem["type"])[:MAX_MESSAGE], str(problem["message"])[:MAX_MESSAGE], line)
        return Ended(None, finished.stdout, told)
    except (ValueError, LookupError, TypeError, RecursionError):
        said = f"the program's process ended (exit code {finished.exit_code}) before its result was there"
        return Ended(None, finished.stdout, Problem("SystemExit" if finished.exit_code == 0 else "SystemError", said))

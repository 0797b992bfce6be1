"""Who is at work: a small record for every run while it lives, also for one that is not kept (spec 3.3)."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.store.atomic import write_atomically


@record
class Process:
    """A process that cannot be mistaken for another: pids come again, start times in one boot do not."""

    pid: int
    started: int
    """Clock ticks since the boot."""
    boot: str
    host: str

    @classmethod
    def current(cls) -> Process:
        """This one."""
        return cls(os.getpid(), _started(os.getpid()) or 0, _boot(), socket.gethostname())

    @property
    def is_here(self) -> bool:
        """Whether it ran, or runs, in this boot of this machine."""
        return self.boot == _boot() and self.host == socket.gethostname()

    @property
    def lives(self) -> bool:
        """Whether it is still there; one of another machine is taken to be."""
        if self.host != socket.gethostname():
            return True
        return self.boot == _boot() and _started(self.pid) == self.started


@record
class Live:
    """A run at work: who does it, what, since when (ISO 8601 UTC). `unreadable` names a record that is none.

    `within`: the process is more than this run, and is not to be ended with it.
    """

    run_id: str
    process: Process | None
    pipeline: str = ""
    file: str = ""
    started_at: str = ""
    within: str | None = None
    unreadable: str | None = None


class LiveRuns:
    """The records in `folder`. `within` is what this process is, where it is more than its runs."""

    def __init__(self, folder: Path, within: str | None = None) -> None:
        self._folder = folder
        self._within = within

    def enter(self, run_id: str, pipeline: str, file: str, started_at: str) -> None:
        """Tell that this process is at work on a run. Where nothing can be written nobody is told."""
        me = Process.current()
        document: JsonObject = {"runId": run_id, "pid": me.pid, "started": me.started, "boot": me.boot}
        document |= {"host": me.host, "pipeline": pipeline, "file": file, "startedAt": started_at}
        document["within"] = self._within
        try:
            write_atomically(self._path(run_id), json.dumps(document).encode())
        except OSError:
            return

    def leave(self, run_id: str) -> None:
        """Tell that it has stopped. A record that cannot be deleted is that of a process which is gone soon."""
        with suppress(OSError):
            self._path(run_id).unlink()

    def find(self, run_id: str) -> Live | None:
        """Who is at work on a run; None where nobody is."""
        found = _read(self._path(run_id))
        return found if found.process is not None and found.process.lives else None

    def __iter__(self) -> Iterator[Live]:
        """Every record, those of processes that are gone and unreadable ones too, in the order of their ids."""
        try:
            paths = sorted(path for path in self._folder.iterdir() if path.suffix == ".json" and path.name[0] != ".")
        except OSError:
            return
        for path in paths:
            yield _read(path)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"


def _read(path: Path) -> Live:
    try:
        kept = json.loads(path.read_text())
        process = Process(int(kept["pid"]), int(kept["started"]), str(kept["boot"]), str(kept["host"]))
        texts = [str(kept[name]) for name in ("pipeline", "file", "startedAt")]
        return Live(path.stem, process, *texts, within=kept.get("within"))
    except (OSError, ValueError, KeyError, TypeError) as failure:
        return Live(path.stem, None, unreadable=f"{path}: {type(failure).__name__}: {failure}")


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """When a process began, as the system counts; None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _exists(pid)
    state, *fields = text.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[18])


def _exists(pid: int) -> int | None:
    """Where there is no /proc: a process is known by its pid alone."""
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0

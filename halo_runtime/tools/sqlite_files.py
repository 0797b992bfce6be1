"""What stores in SQLite files share: waiting for locks without blocking the run, and errors that say what to do."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from halo_runtime.errors import ToolError

LOCK_SECONDS: Final = 5.0
"""How long a call waits for a lock that another process holds."""

T = TypeVar("T")


async def patiently(work: Callable[[], Awaitable[T]], seconds: float = LOCK_SECONDS) -> T:
    """What `work` gives, tried again while another process holds a lock.

    Connections are opened with `timeout=0`: a wait inside SQLite could not be cancelled. Raises sqlite3.Error.
    """
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        try:
            return await work()
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.1)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether it would work if another process did not hold a lock."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def explained(error: sqlite3.Error, name: str, kind: str, path: Path) -> ToolError:
    """The error of the store `name`, whose file `path` is a `kind` file."""
    advice = _ADVICE.get(_code(error), "check the file and the path in the store's declaration")
    if not path.parent.is_dir():
        advice = f"the folder {path.parent} does not exist; create it or change the store's path"
    return ToolError(
        f"{name}: cannot use the {kind} file {path} ({error}); {advice.format(kind=kind)}", retryable=is_busy(error)
    )


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code, without the extension in its upper bits."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "another process holds its lock; end that process or try again",
    sqlite3.SQLITE_LOCKED: "another process holds its lock; end that process or try again",
    sqlite3.SQLITE_READONLY: "it cannot be written; change its permissions or the store's path",
    sqlite3.SQLITE_NOTADB: "it is no {kind} file; move it away or change the store's path",
    sqlite3.SQLITE_CORRUPT: "it is damaged; move it away or restore it from a copy",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
}

"""The claim on a run: one process at a time works on it, taken before any work and gone when the process is."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Final

_STEP_SECONDS: Final = 0.02


class Lock:
    """An OS lock on an open file. It ends with `release`, or with the process, however that ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, *, patience: float = 0.0) -> Lock | None:
        """The claim on the file; None where another has it for longer than `patience` seconds. Raises OSError."""
        deadline = time.monotonic() + patience
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                if time.monotonic() >= deadline:
                    return None
                time.sleep(_STEP_SECONDS)
                continue
            if _is_still(descriptor, path):
                return cls(descriptor)
            os.close(descriptor)  # the file was replaced meanwhile: claim the new one

    def release(self) -> None:
        """Give the claim up; more than once is no harm."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_claimed(path: Path) -> bool:
    """Whether somebody works on the run of this journal now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        mine, named = os.fstat(descriptor), path.stat()
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)

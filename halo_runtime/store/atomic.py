"""Files that are either as they were or as they shall be, readable by their owner alone."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file so that a crash leaves the old one or the new one. `durable`: it survives a power cut then.

    Raises OSError.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(folder: Path, pattern: str, before: float) -> None:
    """Delete what kills have left of files that were being written, older than `before` (seconds since 1970).

    `pattern` is that of the files' own names. Raises OSError.
    """
    for path in folder.glob(f".{pattern}.*"):
        if path.stat().st_mtime < before:
            path.unlink()


def publish(hidden: Path, path: Path) -> None:
    """Give a file that is whole its name. Raises FileExistsError where another has it, OSError."""
    try:
        os.link(hidden, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: nothing there both names a file and sees that the name is free
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        hidden.rename(path)
    else:
        hidden.unlink()


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk: a power cut may else take a new file whose content is there."""
    with suppress(OSError):  # not every file system can
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """A folder for its owner alone, with all above it that is not there yet. Raises OSError."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)

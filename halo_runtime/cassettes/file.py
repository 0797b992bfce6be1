"""The file behind a cassette that is written: claimed by one process, grown by whole lines."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from halo_runtime.errors import ConfigError, StoreError

MAX_BYTES: Final = 1024 * 1024 * 1024
"""A larger file is refused; it bounds what has to be held in memory."""


def content_of(path: Path) -> bytes:
    """The bytes of a cassette that is only read. Raises ConfigError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not be waited for
    except (OSError, ValueError) as failure:
        raise _unreadable(path, failure) from None
    try:
        return _content(descriptor, path)
    finally:
        os.close(descriptor)


class CassetteFile:
    """A file open for writing, and `content`, what it held then. What is written goes behind its end.

    Making one raises ConfigError where the file cannot be written or another process writes it. A new file is its
    owner's alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = _open(path)
        try:
            self.content = _content(self._descriptor, path)
            self._claim()
        except BaseException:
            self.close()
            raise
        self._size = len(self.content)

    def cut(self, size: int) -> None:
        """Keep only the first `size` bytes. Raises StoreError."""
        assert self._descriptor is not None, "closed"
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as failure:
            raise self._failed(failure) from None
        self._size = size

    def add(self, line: bytes) -> None:
        """Write a line; where that fails the file is as it was. Raises StoreError."""
        assert self._descriptor is not None, "closed"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError as failure:
            self.cut(self._size)
            raise self._failed(failure) from None
        self._size += len(line)

    def close(self) -> None:
        """Give the file up; more than once is no harm."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _claim(self) -> None:
        assert self._descriptor is not None, "it has just been opened"
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another run is being recorded into {self._path}; name another file") from None
        except OSError as failure:
            raise _unreadable(self._path, failure) from None

    def _failed(self, failure: OSError) -> StoreError:
        return StoreError(f"the cassette {self._path} cannot be written: {failure.strerror}")


def _open(path: Path) -> int:
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        return os.open(path, flags, 0o600)
    except (OSError, ValueError) as failure:
        if isinstance(failure, FileNotFoundError):
            raise ConfigError(f"the cassette {path} cannot be written: there is no folder {path.parent}") from None
        reason = getattr(failure, "strerror", None) or failure
        raise ConfigError(f"the cassette {path} cannot be written: {reason}") from None


def _content(descriptor: int, path: Path) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise _unreadable(path, OSError(errno.EINVAL, "it is no regular file"))
    with os.fdopen(os.dup(descriptor), "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path}: a cassette has at most {MAX_BYTES // 2**20} MiB")
    return content


def _unreadable(path: Path, failure: Exception) -> ConfigError:
    return ConfigError(f"the cassette {path} cannot be read: {getattr(failure, 'strerror', None) or failure}")

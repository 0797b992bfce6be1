"""Files of a workspace, read and written whole: text is UTF-8, a write is done as a whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.workspace.paths import Parts, show
from halo_runtime.tools.workspace.root import Root, Spot, check_regular, open_file

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""Larger files are neither read nor written."""
LOCK_SECONDS: Final = 10.0

_BOM: Final = "\ufeff"
_WRITABLE: Final = 0o222
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@record
class Text:
    """A text file. `text` has line ends as `\\n` where all of the file's are `\\r\\n`, and no byte order mark."""

    text: str
    bom: bool = False
    crlf: bool = False

    @classmethod
    def decode(cls, data: bytes, name: str) -> Text:
        """Raises ToolError for what is no UTF-8 text, `name` in it."""
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ToolError(f"`{name}` is UTF-16 text; this reads UTF-8")
        if is_binary(data):
            raise ToolError(f"`{name}` is a binary file ({len(data):,} bytes), no text")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ToolError(
                f"`{name}` is no UTF-8 text: byte 0x{data[error.start]:02x} in line {line} (offset {error.start})"
            ) from None
        bom = text.startswith(_BOM)
        text = text.removeprefix(_BOM)
        crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
        return cls(text.replace("\r\n", "\n") if crlf else text, bom, crlf)

    def encode(self) -> bytes:
        """The inverse of `decode`, for a changed text too."""
        text = self.text.replace("\r\n", "\n").replace("\n", "\r\n") if self.crlf else self.text
        return encode(_BOM + text if self.bom else text)

    @property
    def raw(self) -> str:
        """The text with the file's own line ends."""
        return self.text.replace("\n", "\r\n") if self.crlf else self.text

    def with_text(self, text: str) -> Text:
        """Another text in a file of the same kind."""
        return Text(text, self.bom, self.crlf)


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text at all."""
    return b"\0" in data[:8192]


def encode(text: str) -> bytes:
    """A text as a file has it. Raises ToolError for what no file of text can hold."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError("the text is no valid Unicode: it holds half a surrogate pair") from None


def read_bytes(root: Root, parts: Parts, stop: Stop) -> bytes:
    """All of a regular file. Raises ToolError."""
    with root.file(parts) as (descriptor, spot):
        return read_open(descriptor, spot.parts, stop)


def read_open(descriptor: int, parts: Parts, stop: Stop) -> bytes:
    """All of an open file, up to the limit. Raises ToolError where there is more."""
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(descriptor, 1 << 20):
        stop.check()
        pieces.append(piece)
        size += len(piece)
        if size > MAX_FILE_BYTES:
            raise ToolError(f"`{show(parts)}` is larger than {MAX_FILE_BYTES >> 20} MB, which is the most this reads")
    return b"".join(pieces)


def read_text(root: Root, parts: Parts, stop: Stop) -> Text:
    """A text file. Raises ToolError."""
    return Text.decode(read_bytes(root, parts, stop), show(parts))


def write_bytes(spot: Spot, data: bytes, stop: Stop, *, mode: int | None = None) -> None:
    """Put `data` in place of a file, or make one: others see the old one or the new one.

    The mode of a file that is there stays; a new one gets `mode`, or what is usual.

    Raises ToolError for what is no file, or may not be written.
    """
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"`{show(spot.parts)}` would be larger than {MAX_FILE_BYTES >> 20} MB, the most this writes")
    mode = mode_of(spot) or mode
    temporary = f".halo-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, _CREATE, 0o666 if mode is None else 0o600, dir_fd=spot.folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        stop.check()
        os.rename(temporary, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=spot.folder)
        raise
    os.fsync(spot.folder)


def append_bytes(spot: Spot, data: bytes, stop: Stop) -> None:
    """Add to the end of a file, or make one. Raises ToolError."""
    status = spot.status()
    if status is None:
        return write_bytes(spot, data, stop)
    mode_of(spot)
    descriptor = open_file(spot, os.O_WRONLY | os.O_APPEND)
    try:
        before = os.fstat(descriptor)
        if before.st_nlink > 1:
            # Other names of the file may lie outside, so this one gets a file of its own.
            with _reading(spot) as source:
                return write_bytes(spot, read_open(source, spot.parts, stop) + data, stop)
        if before.st_size + len(data) > MAX_FILE_BYTES:
            raise ToolError(f"`{show(spot.parts)}` would grow over {MAX_FILE_BYTES >> 20} MB, the most this writes")
        stop.check()
        if os.write(descriptor, data) < len(data):
            os.ftruncate(descriptor, before.st_size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(root: Root, stop: Stop) -> Generator[None]:
    """Hold the workspace for one change, against other calls and other processes of Halo. Raises ToolError."""
    # A lock belongs to the opening of a file, and each call has one of its own.
    waited = 0.0
    while True:
        try:
            fcntl.flock(root.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waited > LOCK_SECONDS:
                raise ToolError("another process is changing the workspace; try again", retryable=True) from None
            stop.wait(0.01)
            waited += 0.01
            continue
        break
    try:
        stop.check()
        yield
    finally:
        fcntl.flock(root.descriptor, fcntl.LOCK_UN)


@contextmanager
def _reading(spot: Spot) -> Generator[int]:
    descriptor = open_file(spot)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def mode_of(spot: Spot) -> int | None:
    """The permissions of the file that stands there; None for nothing. Raises ToolError where it may not be written."""
    if not spot.name:
        raise ToolError("`.` is a folder, no file")
    status = spot.status()
    if status is None:
        return None
    check_regular(status, spot.parts)
    if not status.st_mode & _WRITABLE:
        raise ToolError(f"`{show(spot.parts)}` may not be written: it is read-only")
    return stat.S_IMODE(status.st_mode) & 0o777

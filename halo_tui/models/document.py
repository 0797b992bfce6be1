"""A program's file while it is edited: its text, what is on disk, and saving without losing a byte."""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from halo_lang.source import BOM, Source, SourceDecodeError, decode

MAX_BYTES = 8 * 1024 * 1024
"""Larger files are refused: they are not programs, and an editor would hang on them."""


class DocumentError(Exception):
    """A file cannot be opened or saved; the message says which one, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one state of a file on disk from another without reading it."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp | None:
        """The stamp of the file at `path`, None when there is none."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


class Document:
    """One file: `text` is what the editor holds, exact in its line ends and without a byte order mark."""

    def __init__(self, path: Path, text: str = "", *, had_bom: bool = False, stamp: Stamp | None = None) -> None:
        self.path = path
        self.text = text
        self.had_bom = had_bom
        self._saved = text
        self._stamp = stamp

    @classmethod
    def open(cls, path: Path) -> Document:
        """Read a file; a missing one gives an empty document that saving will create.

        Raises DocumentError for a folder, a file that cannot be read, one too large, or one that is not UTF-8.
        """
        stamp = Stamp.of(path)
        if stamp is None and not path.is_symlink():
            _require_folder(path)
            return cls(path)
        source = _decoded(path, _read(path))
        return cls(path, source.text, had_bom=source.had_bom, stamp=stamp)

    @property
    def dirty(self) -> bool:
        """Whether the text differs from what was last read or written."""
        return self.text != self._saved

    @property
    def changed_on_disk(self) -> bool:
        """Whether another program changed, created or removed the file since it was last read or written."""
        return Stamp.of(self.path) != self._stamp

    @property
    def source(self) -> Source:
        """The text as the language reads it."""
        return Source(self.text, str(self.path), had_bom=self.had_bom)

    def save(self) -> None:
        """Write the text in one step: after a crash the file holds the old bytes or the new ones.

        Links are followed and the file's permissions kept. Raises DocumentError; the document is dirty as before then.
        """
        text = self.text
        target = Path(os.path.realpath(self.path))
        try:
            _replace(target, ((BOM if self.had_bom else "") + text).encode("utf-8"))
        except (OSError, UnicodeEncodeError) as error:
            raise DocumentError(f"cannot save {self.path}: {_reason(error)}; the text is still here") from error
        self._saved = text
        self._stamp = Stamp.of(self.path)


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise DocumentError(f"cannot open {path}: the folder {path.parent} does not exist; create it first")


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise DocumentError(f"cannot open {path}: it is a folder; give a .halo file")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DocumentError(f"cannot open {path}: it is not a regular file")
        if path.stat().st_size > MAX_BYTES:
            raise DocumentError(f"cannot open {path}: it is larger than {MAX_BYTES // 2**20} MB")
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot open {path}: {_reason(error)}") from error


def _decoded(path: Path, data: bytes) -> Source:
    try:
        return decode(data, str(path))
    except SourceDecodeError as error:
        raise DocumentError(
            f"cannot open {path}: it is not UTF-8 text (byte {error.offset}); convert it first"
        ) from error


def _replace(target: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _mode(target))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int:
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)

"""Programs from files: what is no readable program is refused by name, never by a traceback."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import halo_lang
from halo_lang.diagnostics import Diagnostic
from halo_lang.source import BOM, Source, SourceDecodeError, decode
from halo_runtime.cli.usage import UsageError

if TYPE_CHECKING:
    from halo_lang.analysis import Analysis

STDIN = "-"
"""Stands for stdin where a file is named."""

MAX_BYTES = 32 * 1024 * 1024
"""No program is larger; it bounds what a device or an endless pipe can make us read."""

_REASONS = {
    errno.ENOENT: "no such file",
    errno.EACCES: "permission denied",
    errno.EISDIR: "is a directory",
    errno.ENOTDIR: "no such file (a part of the path is no directory)",
    errno.ELOOP: "symbolic links that lead in a circle",
    errno.ENAMETOOLONG: "the name is too long",
}


def read_bytes(path: str) -> bytes:
    """The file's bytes. UsageError where there is no readable file of a bearable size."""
    _check_name(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as failure:
        raise _refusal(path, failure) from None
    return _bounded(data, path)


def read_stdin() -> bytes:
    """All of stdin; nothing where it is closed. UsageError where it is too much."""
    return b"" if sys.stdin is None else _bounded(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin")


def read_text(path: str) -> str:
    """A UTF-8 text file, exactly but for a byte order mark. UsageError where it cannot be read or is no text."""
    return _text(read_bytes(path), path)


def read_text_or_stdin(path: str) -> str:
    """As `read_text`; `-` stands for stdin."""
    return _text(read_stdin(), "stdin") if path == STDIN else read_text(path)


def read_source(path: str) -> tuple[Source, Diagnostic | None]:
    """A program's text, `-` for that on stdin; where its bytes are not UTF-8, the text before them and HL101."""
    return source_of(read_stdin() if path == STDIN else read_bytes(path), path)


def source_of(data: bytes, path: str) -> tuple[Source, Diagnostic | None]:
    """The text that a program's bytes are; where they are not UTF-8, the text before them and HL101."""
    try:
        return decode(data, path), None
    except SourceDecodeError as failure:
        return Source(failure.prefix, path), halo_lang.not_utf8(failure)


def analyse(source: Source, previous: Analysis | None = None) -> Analysis:
    """A checked program; with its `previous` version only what changed is read."""
    program = halo_lang.parse(source, None if previous is None else previous.program)
    return halo_lang.check(program, previous, is_priced=is_priced)


def is_priced(model: str) -> bool:
    """Whether a model has a price, in halo.toml or in the table."""
    # Only programs that limit their spending ask.
    from halo_runtime.configuration import configuration
    from halo_runtime.models.pricing import Prices

    return Prices(configuration().prices).is_priced(model)


def program_files(paths: Iterable[str]) -> list[str]:
    """The files that are meant, each once: directories stand for all `.halo` files below them, hidden folders apart.

    UsageError for a path that does not exist and for a directory without programs.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _expanded(path):
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def folders_below(directory: str) -> Iterator[tuple[str, list[str]]]:
    """A directory and all below it, hidden ones apart, each with the names of what is in it and no directory."""
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield folder, files


def status(path: str) -> os.stat_result:
    """What the system knows of a path, links followed. UsageError where it is none."""
    _check_name(path)
    try:
        return os.stat(path)  # noqa: PTH116 - as the other functions here take their paths
    except OSError as failure:
        raise _refusal(path, failure) from None


def _bounded(data: bytes, path: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path}: larger than {MAX_BYTES // 2**20} MB")
    return data


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as failure:
        raise UsageError(f"{path}: no UTF-8 text (byte {failure.start})", hint="save it as UTF-8") from None


def _expanded(path: str) -> list[str]:
    if not stat.S_ISDIR(status(path).st_mode):
        return [path]
    below = sorted(_below(path))
    if not below:
        raise UsageError(f"{path}: no .halo files in this directory")
    return below


def _check_name(path: str) -> None:
    if not path:
        raise UsageError("the name of a file is empty")
    if "\0" in path:
        raise UsageError(f"{path}: no file can have a NUL character in its name")


def _below(directory: str) -> Iterator[str]:
    for folder, files in folders_below(directory):
        # Regular files alone: to open a pipe is to wait for its other end, and an editor's lock file leads nowhere.
        yield from (str(path) for name in files if name.endswith(".halo") and (path := Path(folder, name)).is_file())


def _refusal(path: str, failure: OSError) -> UsageError:
    reason = _REASONS.get(failure.errno or 0, failure.strerror or str(failure))
    hint = None
    if failure.errno == errno.EISDIR:
        hint = "name a file in it"
    elif failure.errno == errno.ENOENT:
        hint = _similar(path)
    return UsageError(f"{path}: {reason}", hint=hint)


def _similar(path: str) -> str | None:
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in Path(path).parent.iterdir() if entry.suffix == ".halo" and entry.exists()]
    except OSError:
        return None
    close = get_close_matches(Path(path).name, names, n=1)
    return f"did you mean {Path(path).with_name(close[0])}?" if close else None

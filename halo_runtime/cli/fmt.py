"""`halo fmt`: the one canonical layout, written back in place."""

from __future__ import annotations

import difflib
import errno
import os
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import click

import halo_lang
from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_lang.source import BOM, Source, SourceDecodeError, decode
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import emit, emit_bytes, plural, say
from halo_runtime.cli.sources import STDIN, program_files, read_bytes, read_stdin
from halo_runtime.cli.usage import UsageError


@record
class Formatted:
    """A file's bytes before and after; `path` as it was given."""

    path: str
    before: bytes
    after: bytes
    broken: bool
    """Whether some of it has syntax errors and stays byte for byte."""

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


@click.command()
@click.argument("paths", metavar="FILE…|DIR|-", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 when something would change.")
@click.option("--diff", is_flag=True, help="Change nothing; show what would change.")
def fmt(paths: tuple[str, ...], check: bool, diff: bool) -> int:
    """Write programs in the one canonical layout.

    Files are changed in place, - reads stdin and writes to stdout. A directory stands for all .halo files below it.
    Declarations with syntax errors stay byte for byte; line ends and a byte order mark stay too.
    """
    if STDIN in paths and len(paths) > 1:
        raise UsageError("- (stdin) cannot be formatted together with files")
    # All are read and formatted before the first is written: a path that cannot be read changes nothing.
    results = [format_file(path) for path in (paths if STDIN in paths else program_files(paths))]
    changed = [result for result in results if result.changed]
    if diff:
        for result in changed:
            emit(sys.stdout, difference(result))
    if not check and not diff:
        _write(results)
    for result in results:
        if result.broken:
            say(f"{visible(result.path)}: what has syntax errors is kept as it is; halo check shows them")
    if paths != (STDIN,):
        say(_summary(results, would=check or diff))
    return ExitCode.FAILED if check and changed else ExitCode.COMPLETED


def format_file(path: str) -> Formatted:
    """The canonical layout of a file, or of stdin for `-`. UsageError where it is no UTF-8 text."""
    from halo_lang.formatter import format_source

    before = read_stdin() if path == STDIN else read_bytes(path)
    try:
        source = decode(before, path)
    except SourceDecodeError as failure:
        raise UsageError(f"{path}: {failure}", hint="save the file as UTF-8") from None
    broken = bool(halo_lang.parse(source).diagnostics)
    return Formatted(path, before, _encoded(source, format_source(source)), broken)


def difference(result: Formatted) -> str:
    """A unified diff."""
    before, after = (data.decode().splitlines(keepends=True) for data in (result.before, result.after))
    lines = difflib.unified_diff(before, after, result.path, f"{result.path} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, keeping its mode and owner; a symbolic link stays, its target is replaced.

    A crash leaves the old file or the new one, never half of one. OSError for what could not be written in place
    either: a file that is read-only, a pipe, a device.
    """
    target = path.resolve()
    if not target.is_file():
        raise OSError(errno.EINVAL, "is no regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    before = target.stat()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            with suppress(PermissionError):  # who may write a file may not give one away
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), before.st_mode & 0o7777)
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _encoded(source: Source, text: str) -> bytes:
    return (BOM + text if source.had_bom else text).encode()


def _write(results: list[Formatted]) -> None:
    for result in results:
        if result.path == STDIN:
            # As bytes: a text stream would not write what the locale cannot say.
            emit_bytes(sys.stdout, result.after)
        elif result.changed:
            try:
                replace_file(Path(result.path), result.after)
            except OSError as failure:
                raise UsageError(f"{result.path}: cannot be written: {failure.strerror}") from None


def _summary(results: list[Formatted], *, would: bool) -> str:
    """`2 files formatted, 1 file formatted in part, 3 files unchanged`, without those that are none."""
    counts = Counter((result.changed, result.changed and result.broken) for result in results)
    verb = "would be formatted" if would else "formatted"
    words = {(True, False): verb, (True, True): f"{verb} in part", (False, False): "unchanged"}
    return ", ".join(f"{plural(counts[kind], 'file')} {word}" for kind, word in words.items() if counts[kind])

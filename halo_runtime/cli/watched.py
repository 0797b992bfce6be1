"""Programs that are watched: what they were at the last look, and what a new look finds changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from halo_lang.records import record
from halo_runtime.cli.findings import Report
from halo_runtime.cli.sources import analyse, folders_below, program_files, read_bytes, source_of, status
from halo_runtime.cli.usage import UsageError
from halo_runtime.extras import lacking

if TYPE_CHECKING:
    from halo_lang.analysis import Analysis


@record
class News:
    """What a look finds: the findings of all files, those that are `fresh`, and what cannot be read for now."""

    reports: tuple[Report, ...]
    fresh: tuple[Report, ...]
    troubles: tuple[str, ...]
    changed: bool
    """Whether anything differs from the last look."""


@record
class _Seen:
    """A file as it was last read; `analysis` is None where it is no UTF-8."""

    stamp: tuple[int, ...]
    data: bytes
    report: Report
    analysis: Analysis | None


class Programs:
    """The programs that paths stand for. Only what may have changed is read, only what did is checked."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._places = [place for path in paths for place in (_absolute(path), os.path.realpath(path))]
        self._seen: dict[str, _Seen] = {}
        self._troubles: tuple[str, ...] = ()

    def look(self, touched: Collection[str] = ()) -> News:
        """The state of now. Files `touched` (absolute paths) are read even where they look as they did."""
        troubles: list[str] = []
        before, self._seen = self._seen, {}
        for file in self._files(troubles):
            try:
                self._seen[file] = _read(file, before.get(file), _absolute(file) in touched)
            except UsageError as gone:
                troubles.append(gone.message)
        known = {id(seen.report) for seen in before.values()}
        reports = tuple(seen.report for seen in self._seen.values())
        fresh = tuple(report for report in reports if id(report) not in known)
        changed = bool(fresh) or before.keys() != self._seen.keys() or self._troubles != tuple(troubles)
        self._troubles = tuple(troubles)
        return News(reports, fresh, self._troubles, changed)

    def folders(self) -> frozenset[str]:
        """The folders where changes matter: all that were named and all below them, and those around what was named.

        Around what is not there stands the nearest folder that is.
        """
        around = (_nearest_folder(place) for place in self._places)
        below = (_absolute(folder) for path in self._paths for folder, _ in folders_below(path))
        return frozenset((*around, *below))

    def concern(self, place: str) -> bool:
        """Whether a change at an absolute path may be one of these programs'."""
        return any(place.startswith(own) or own.startswith(place) for own in self._places)

    def _files(self, troubles: list[str]) -> Iterator[str]:
        found: set[str] = set()
        for path in self._paths:
            try:
                files = program_files([path])
            except UsageError as gone:
                troubles.append(gone.message)
                continue
            for file in files:
                if (real := os.path.realpath(file)) not in found:
                    found.add(real)
                    yield file


def _read(file: str, before: _Seen | None, touched: bool) -> _Seen:
    """A file as it is. UsageError where it cannot be read."""
    known = status(file)
    if not stat.S_ISREG(known.st_mode):
        raise UsageError(f"{file}: no regular file")  # a pipe gives its text once, and then makes us wait
    stamp = (known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns)
    if before is not None and before.stamp == stamp and not touched:
        return before
    data = read_bytes(file)
    if before is not None and before.data == data:
        return _Seen(stamp, data, before.report, before.analysis)
    source, undecodable = source_of(data, file)
    if undecodable is not None:
        return _Seen(stamp, data, Report(source, (undecodable,)), None)
    analysis = analyse(source, None if before is None else before.analysis)
    return _Seen(stamp, data, Report(source, analysis.diagnostics, tuple(lacking(analysis.program))), analysis)


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - unlike Path.absolute it takes `..` away, as the names of changes do


def _nearest_folder(place: str) -> str:
    """The folder around a place, or the nearest one above that is there."""
    folder = os.path.dirname(place)  # noqa: PTH120
    while not os.path.isdir(folder):  # noqa: PTH112
        folder = os.path.dirname(folder)  # noqa: PTH120
    return folder

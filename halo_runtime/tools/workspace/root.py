"""A folder that is never left: every path is walked name by name over open folders, links included (spec 5).

No path is ever given to the system as a whole, so nothing that others change meanwhile, a link put in place of a
folder say, can lead out. Links are followed by hand: those that stay inside lead on, all others are refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.workspace.paths import MAX_DEPTH, Closed, Parts, folded, show

MAX_LINKS: Final = 40
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NothingThereError(ToolError):
    """Nothing stands at a path; inside a workspace only, callers are told a ToolError."""


@record
class Spot:
    """A name in an open folder. `parts` is where it really lies, links resolved; `name` is "" for the root."""

    folder: int
    name: str
    parts: Parts

    def status(self) -> os.stat_result | None:
        """What stands there, links not followed; None for nothing."""
        try:
            return os.stat(self.name or ".", dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Root:
    """An open root folder. Blocking; for one thread at a time. Close it with `with`."""

    def __init__(self, descriptor: int, closed: Closed) -> None:
        self._descriptor = descriptor
        self._closed = closed

    @classmethod
    @contextmanager
    def open(cls, path: Path, closed: Closed) -> Generator[Root]:
        """The folder that the declaration names; it may be a link itself. Raises OSError."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(descriptor, closed)
        finally:
            os.close(descriptor)

    @property
    def descriptor(self) -> int:
        """The open folder."""
        return self._descriptor

    @contextmanager
    def at(self, parts: Parts, *, follow: bool = True, make: bool = False) -> Generator[Spot]:
        """The place of a path, whether or not something stands there.

        `follow`: a link at its end leads on too. `make`: folders on the way are made. Raises ToolError.
        """
        with ExitStack() as opened:
            yield _Walk(self._descriptor, self._closed, opened, make=make).go(parts, follow=follow)

    @contextmanager
    def file(self, parts: Parts) -> Generator[tuple[int, Spot]]:
        """An open regular file. Raises ToolError for anything else."""
        with self.at(parts) as spot:
            descriptor = open_file(spot)
            try:
                yield descriptor, spot
            finally:
                os.close(descriptor)

    @contextmanager
    def folder(self, parts: Parts) -> Generator[tuple[int, Parts]]:
        """An open folder and where it really lies. Raises ToolError for anything else."""
        with self.at(parts) as spot:
            try:
                descriptor = os.open(spot.name or ".", _FOLDER, dir_fd=spot.folder)
            except FileNotFoundError:
                raise missing(spot) from None
            except NotADirectoryError:
                raise ToolError(f"`{show(parts)}` is no folder") from None
            try:
                yield descriptor, spot.parts
            finally:
                os.close(descriptor)


class _Walk:
    """One walk down from the root. `stack` are the open folders from the root on, so that `..` needs no system."""

    def __init__(self, root: int, closed: Closed, opened: ExitStack, *, make: bool) -> None:
        self._closed = closed
        self._opened = opened
        self._make = make
        self._stack = [root]
        self._parts: list[str] = []
        self._links = 0

    def go(self, parts: Parts, *, follow: bool) -> Spot:
        self._closed.check(parts)
        pending = list(reversed(parts))
        while pending:
            name = pending.pop()
            if name == "..":  # of a link; what a caller names has none
                self._up(parts)
                continue
            here = (*self._parts, name)
            self._closed.check(here)
            target = _link(self._stack[-1], name) if pending or follow else None
            if target is not None:
                pending += self._linked(target, parts)
            elif pending:
                self._down(name, here)
            else:
                return Spot(self._stack[-1], name, here)
        return Spot(self._stack[-1], "", tuple(self._parts))

    def _up(self, parts: Parts) -> None:
        if not self._parts:
            raise _leads_out(parts)
        self._parts.pop()
        self._stack.pop()

    def _linked(self, target: str, parts: Parts) -> list[str]:
        """What is to be walked in place of a link, last name first."""
        self._links += 1
        if target.startswith("/") or self._links > MAX_LINKS:
            raise _leads_out(parts)
        return [part for part in reversed(target.split("/")) if part not in ("", ".")]

    def _down(self, name: str, here: Parts) -> None:
        if len(here) > MAX_DEPTH:
            raise ToolError(f"`{show(here)[:100]}…` lies more than {MAX_DEPTH} folders deep")
        folder = self._stack[-1]
        try:
            if self._make:
                _make_folder(folder, name)
            descriptor = os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            raise missing(Spot(folder, name, here)) from None
        except NotADirectoryError:
            raise ToolError(f"`{show(here)}` is no folder") from None
        self._opened.callback(os.close, descriptor)
        self._stack.append(descriptor)
        self._parts.append(name)


def open_file(spot: Spot, flags: int = 0) -> int:
    """A regular file, opened for reading, or with other `flags`. Raises ToolError for anything else."""
    status = spot.status()
    if status is not None:
        check_regular(status, spot.parts)  # opening a device may do something already
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would be waited for.
        descriptor = os.open(spot.name or ".", _FILE | flags, dir_fd=spot.folder)
    except FileNotFoundError:
        raise missing(spot) from None
    except IsADirectoryError:
        raise ToolError(f"`{show(spot.parts)}` is a folder, no file") from None
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ELOOP, errno.ENODEV, errno.EOPNOTSUPP):
            raise _special(spot.parts) from None
        raise
    check_regular(os.fstat(descriptor), spot.parts, descriptor)
    return descriptor


def check_regular(status: os.stat_result, parts: Parts, descriptor: int | None = None) -> None:
    """Close `descriptor` and raise ToolError for what is no regular file."""
    if stat.S_ISREG(status.st_mode):
        return
    if descriptor is not None:
        os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"`{show(parts)}` is a folder, no file")
    raise _special(parts)


def missing(spot: Spot) -> NothingThereError:
    """The error for a path where nothing stands, with the names beside it that may be meant."""
    wanted = spot.name
    with os.scandir(spot.folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(2000), strict=False)]
    same = [name for name in names if folded(name) == folded(wanted)]
    close = same or get_close_matches(wanted, names, n=3, cutoff=0.7)
    hint = f"; there is {', '.join(f'`{show((name,))}`' for name in close)}" if close else ""
    if same:
        hint += ", which is spelled in another way"
    return NothingThereError(f"there is no `{show(spot.parts)}`{hint}")


def entries_of(folder: int) -> Iterator[tuple[str, os.stat_result]]:
    """Names in an open folder in order, with what stands there, links not followed."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        try:
            yield entry.name, os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue  # gone meanwhile


def kind_of(status: os.stat_result) -> str:
    """`file`, `folder`, `link`, or `other` for what cannot be read as a file."""
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")


def _link(folder: int, name: str) -> str | None:
    """Where a link leads; None for what is none."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _make_folder(folder: int, name: str) -> None:
    with suppress(FileExistsError):  # a file there is found when it is opened as a folder
        os.mkdir(name, dir_fd=folder)


def _leads_out(parts: Parts) -> ToolError:
    return ToolError(f"`{show(parts)}` leads out of the workspace over a link")


def _special(parts: Parts) -> ToolError:
    return ToolError(f"`{show(parts)}` is no regular file (a pipe, a socket, a device)")

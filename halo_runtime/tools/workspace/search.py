"""Finding files by name and lines by pattern in a workspace (spec 5). What `.gitignore` files name is passed over."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json
from halo_runtime.prompts import cut
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.workspace.files import MAX_FILE_BYTES, is_binary, read_open
from halo_runtime.tools.workspace.paths import MAX_DEPTH, Closed, Globs, Parts, show
from halo_runtime.tools.workspace.root import Root, Spot, entries_of, kind_of, open_file

MAX_PATHS: Final = 10_000
MAX_MATCHES: Final = 1_000
MAX_LINE_CHARS: Final = 500
PATTERN_SECONDS: Final = 1.0
"""How long a pattern may take for one line."""
SEARCH_SECONDS: Final = 30.0


@record
class Ignored:
    """The patterns of the `.gitignore` in the folder `base`."""

    base: Parts
    globs: Globs


class Tree:
    """The files below the root that are neither closed nor ignored, in order, links not followed."""

    def __init__(self, root: Root, closed: Closed, stop: Stop) -> None:
        self._root = root
        self._closed = closed
        self._stop = stop

    def files(self) -> Iterator[tuple[Spot, os.stat_result]]:
        """Each regular file, with its folder open meanwhile."""
        return self._below(self._root.descriptor, (), ())

    def files_of(self, folder: int, parts: Parts) -> Iterator[tuple[Spot, os.stat_result]]:
        """Those below an open folder that lies at `parts`."""
        return self._below(folder, parts, ())

    def _below(self, folder: int, parts: Parts, ignored: tuple[Ignored, ...]) -> Iterator[tuple[Spot, os.stat_result]]:
        ignored = (*ignored, *_gitignore(folder, parts, self._stop))
        for name, status in entries_of(folder):
            self._stop.check()
            here, kind = (*parts, name), kind_of(status)
            if kind not in ("file", "folder") or self._passes_over(here, kind == "folder", ignored):
                continue
            if kind == "file":
                yield Spot(folder, name, here), status
            elif len(here) <= MAX_DEPTH:
                try:
                    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                except OSError:
                    continue  # gone or changed meanwhile, or not ours to read
                try:
                    yield from self._below(inner, here, ignored)
                finally:
                    os.close(inner)

    def _passes_over(self, here: Parts, folder: bool, ignored: tuple[Ignored, ...]) -> bool:
        if self._closed.hides_entry(here, folder=folder) or not _is_text(here[-1]):
            return True
        return any(file.globs.match(here[len(file.base) :], folder=folder) for file in ignored)


def find_paths(tree: Tree, pattern: str) -> Json:
    """The paths of files that match a glob; a last line says so where there are more than the limit."""
    globs, found = Globs([pattern]), list[Json]()
    for spot, _ in tree.files():
        if globs.match(spot.parts):
            if len(found) == MAX_PATHS:
                return [*found, f"[… more than {MAX_PATHS:,} paths; narrow the pattern]"]
            found.append(show(spot.parts))
    return found


def find_lines(tree: Tree, pattern: str, glob: str | None, stop: Stop) -> Json:
    """Lines that match a regular expression; a last entry says why where something is left out. Raises ToolError."""
    wanted, globs = _Pattern(pattern, stop), None if glob is None else Globs([glob])
    found: list[Json] = []
    for spot, status in tree.files():
        if globs is not None and not globs.match(spot.parts):
            continue
        path = show(spot.parts)
        if status.st_size > MAX_FILE_BYTES:
            found.append(_note(path, f"[not searched: larger than {MAX_FILE_BYTES >> 20} MB]"))
            continue
        for number, line in _lines(spot, stop):
            if wanted.is_late:
                return [*found, _note(path, f"[stopped here after {SEARCH_SECONDS:g} s; narrow the glob]")]
            if not wanted.matches(line, path, number):
                continue
            if len(found) >= MAX_MATCHES:
                return [*found, _note(path, f"[… more than {MAX_MATCHES:,} lines; narrow the pattern or the glob]")]
            found.append({"path": path, "line": number, "text": cut(line, MAX_LINE_CHARS)})
    return found


def _note(path: str, text: str) -> Json:
    return {"path": path, "line": None, "text": text}


def _lines(spot: Spot, stop: Stop) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers; none of what is no text, or cannot be read."""
    try:
        descriptor = open_file(spot)
    except (OSError, ToolError):
        return  # gone or changed meanwhile, or not ours to read
    try:
        data = read_open(descriptor, spot.parts, stop)
    finally:
        os.close(descriptor)
    if is_binary(data):
        return
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        yield number, line.removesuffix("\r")


class _Pattern:
    """A regular expression in bounded time. Raises ToolError for what is none, and where a line takes too long."""

    def __init__(self, pattern: str, stop: Stop) -> None:
        import regex

        try:
            self._search = regex.compile(pattern).search
        except regex.error as error:
            raise ToolError(f"`{cut(pattern, 100)}` is no regular expression: {error}") from None
        # Without repetition nothing takes long, and a time limit costs more than the search. With it, `concurrent`
        # lets the event loop go on meanwhile.
        repeats = any(sign in pattern for sign in "*+?{")
        self._options: dict[str, Any] = {"timeout": PATTERN_SECONDS, "concurrent": True} if repeats else {}
        self._stop = stop
        self._end = time.monotonic() + SEARCH_SECONDS

    @property
    def is_late(self) -> bool:
        """Whether the search as a whole has taken too long."""
        return time.monotonic() > self._end

    def matches(self, line: str, path: str, number: int) -> bool:
        self._stop.check()
        try:
            return self._search(line, **self._options) is not None
        except TimeoutError:
            raise ToolError(
                f"the pattern took longer than {PATTERN_SECONDS:g} s for line {number} of `{path}`; make it simpler"
            ) from None


def _gitignore(folder: int, parts: Parts, stop: Stop) -> Iterator[Ignored]:
    try:
        descriptor = open_file(Spot(folder, ".gitignore", (*parts, ".gitignore")))
    except (OSError, ToolError):
        return
    try:
        lines = read_open(descriptor, parts, stop).decode(errors="replace").splitlines()
        yield Ignored(parts, Globs.of_file(lines))
    except ToolError:
        return  # one that is too large or holds what is no pattern ignores nothing
    finally:
        os.close(descriptor)


def _is_text(name: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in name)

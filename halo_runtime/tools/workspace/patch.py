"""Unified diffs, as git and diff write them: read and applied to texts, without looking at any file (pure).

A hunk goes where its context stands exactly, nearest to the line that it names; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.prompts import cut
from halo_runtime.tools.workspace.edit import lines_of, nearest_line

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.ASCII)
_NO_FILE: Final = "/dev/null"
_NO_NEWLINE: Final = "\\"
_PLAIN_FILE: Final = "100644"
_UNABLE: Final = {
    "GIT binary patch": "changes to binary files",
    "Binary files ": "changes to binary files",
    "old mode ": "changes of permissions",
    "copy from ": "copies",
}


@record
class Hunk:
    """`old` lines, from line `start` on (from 1), become `new` ones. Lines have their `\\n`, unless they end a file."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@record
class FilePatch:
    """Changes to one file. `old` is None for a file that is made, `new` for one that goes."""

    old: str | None
    new: str | None
    hunks: tuple[Hunk, ...]

    @property
    def moves(self) -> bool:
        """Whether the file gets another path."""
        return self.old is not None and self.new is not None and self.old != self.new

    @property
    def name(self) -> str:
        """The file's path, the new one where it moves."""
        return self.new or self.old or ""


def parse_patch(text: str) -> list[FilePatch]:
    """The changes of a diff, file by file. Raises ToolError, with the line of the diff, for what is none."""
    patches = list(_Reader(text).read())
    if not patches:
        raise ToolError(
            "the patch holds no changes; it must be a unified diff with `--- a/…`, `+++ b/…` and `@@` lines"
        )
    return patches


def apply_hunks(text: str, patch: FilePatch) -> str:
    """The text after a file's hunks. Raises ToolError where the text is not what a hunk says."""
    lines = lines_of(text)
    result: list[str] = []
    done, shift = 0, 0
    for number, hunk in enumerate(patch.hunks, 1):
        place = _find(lines, hunk, done, shift)
        if place is None:
            raise ToolError(f"hunk {number} of `{patch.name}` does not fit: {_mismatch(lines, hunk, done)}")
        shift = place - _expected(hunk)
        result += [*lines[done:place], *hunk.new]
        done = place + len(hunk.old)
    return "".join([*result, *lines[done:]])


def _expected(hunk: Hunk) -> int:
    """The index of a hunk's first old line; a hunk without old lines names the line before it."""
    return hunk.start - 1 if hunk.old else hunk.start


def _find(lines: list[str], hunk: Hunk, done: int, shift: int) -> int | None:
    """Where a hunk's old lines stand, from `done` on, nearest to where it says."""
    wanted, last = _expected(hunk) + shift, len(lines) - len(hunk.old)
    if not hunk.old:
        return wanted if done <= wanted <= len(lines) else None
    places = sorted(range(done, last + 1), key=lambda place: abs(place - wanted))
    return next((place for place in places if _stands(lines, hunk.old, place)), None)


def _stands(lines: list[str], old: Sequence[str], place: int) -> bool:
    """Whether old lines stand there. Models forget to say that a file's last line has no line end."""
    found = lines[place : place + len(old)]
    return found == list(old) or (place + len(old) == len(lines) and [*found[:-1], f"{found[-1]}\n"] == list(old))


def _mismatch(lines: Sequence[str], hunk: Hunk, done: int) -> str:
    """Which line is another one, and what is most like it."""
    if not hunk.old:
        return f"it adds after line {hunk.start}, where the file has only {len(lines)} lines"
    present = set(lines[done:])
    wanted = next((line for line in hunk.old if line not in present), None)
    if wanted is None:
        return "its lines stand in the file, but not together, or before an earlier hunk"
    near = nearest_line([line.rstrip("\n") for line in lines], wanted)
    hint = "" if near is None else f"; the closest is line {near[0]}: `{cut(near[1], 200)}`"
    return f"the file has no line `{cut(wanted.rstrip(chr(10)), 200)}`{hint}"


class _Reader:
    """Reads a diff line by line. `head` is what git said of a file whose hunks may follow."""

    def __init__(self, text: str) -> None:
        self._lines = text.replace("\r\n", "\n").split("\n")
        self._at = 0
        self._head: _Head | None = None

    def read(self) -> Iterator[FilePatch]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._check(line)
            if line.startswith("diff --git "):
                yield from self._without_hunks()
                self._head = _Head(line)
            elif line.startswith("--- ") and self._line(1).startswith("+++ "):
                yield self._file()
                self._head = None
                continue
            elif self._head is not None:
                self._head.read(line)
            self._at += 1
        yield from self._without_hunks()

    def _check(self, line: str) -> None:
        for start, what in _UNABLE.items():
            if line.startswith(start):
                raise self._wrong(f"{what} are not supported")
        if line.startswith("new file mode ") and not line.endswith(_PLAIN_FILE):
            raise self._wrong("links, programs and submodules are not made by a patch, only plain files (mode 100644)")
        if line.startswith("@@"):
            raise self._wrong("a hunk without `--- …` and `+++ …` lines before it")

    def _without_hunks(self) -> Iterator[FilePatch]:
        """An empty file that is made or goes, a file that only moves."""
        if self._head is not None and self._head.changes:
            yield FilePatch(self._head.old, self._head.new, ())
        self._head = None

    def _file(self) -> FilePatch:
        old, new = _paths(self._line()[4:], self._line(1)[4:])
        self._at += 2
        hunks: list[Hunk] = []
        while self._line().startswith("@@"):
            hunks.append(self._hunk())
        if not hunks:
            raise self._wrong("no hunk after the file's name")
        if old is None and new is None:
            raise self._wrong("a file that is neither before nor after")
        return FilePatch(old, new, tuple(hunks))

    def _hunk(self) -> Hunk:
        head = _HUNK.match(self._line())
        if head is None:
            raise self._wrong("a hunk begins with a line such as `@@ -1,3 +1,4 @@`")
        olds, news = int(head[2] or 1), int(head[4] or 1)
        old: list[str] = []
        new: list[str] = []
        self._at += 1
        while len(old) < olds or len(new) < news:
            sign, line = self._change(
                f"the hunk says {olds} old and {news} new lines, but has {len(old)} and {len(new)}"
            )
            sides = [old] * (sign in " -") + [new] * (sign in " +")
            whole = not self._line().startswith(_NO_NEWLINE)
            self._at += not whole
            for side in sides:
                side.append(f"{line}\n" if whole else line)
        following = self._line()
        if len(old) > olds or len(new) > news or (following[:1] in (" ", "+", "-") and following[:2] != "--"):
            raise self._wrong(f"the hunk says {olds} old and {news} new lines, but has more")
        return Hunk(int(head[1]), tuple(old), tuple(new))

    def _change(self, problem: str) -> tuple[str, str]:
        """The sign and the text of a line in a hunk. Editors take the blank of an empty line away."""
        line = self._line()
        if self._at >= len(self._lines) or line[:1] not in ("", " ", "-", "+"):
            raise self._wrong(problem)
        self._at += 1
        return line[:1] or " ", line[1:]

    def _line(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else ""

    def _wrong(self, problem: str) -> ToolError:
        return ToolError(f"line {min(self._at, len(self._lines) - 1) + 1} of the patch: {problem}")


class _Head:
    """What git says of a file before its hunks: that it is made, goes or moves."""

    def __init__(self, line: str) -> None:
        # The two paths are the same there, but for their prefixes, unless the file moves.
        both = line.removeprefix("diff --git ")
        middle = len(both) // 2
        self.old, self.new = _paths(both[:middle], both[middle + 1 :])
        self.changes = False

    def read(self, line: str) -> None:
        """A line of the head."""
        self.changes = self.changes or line.startswith(("new file mode ", "deleted file mode ", "rename to "))
        if line.startswith("new file mode "):
            self.old = None
        elif line.startswith("deleted file mode "):
            self.new = None
        elif line.startswith("rename from "):
            self.old = _unquoted(line.removeprefix("rename from "))
        elif line.startswith("rename to "):
            self.new = _unquoted(line.removeprefix("rename to "))


def _paths(old: str, new: str) -> tuple[str | None, str | None]:
    """The two paths of a file, without times behind them and without git's prefixes; None for /dev/null."""
    before, after = _unquoted(old), _unquoted(new)
    if _NO_FILE in (before, after) or (before.startswith("a/") and after.startswith("b/")):
        before, after = before.removeprefix("a/"), after.removeprefix("b/")
    return None if before == _NO_FILE else before, None if after == _NO_FILE else after


def _unquoted(text: str) -> str:
    """A path as it is meant: git quotes what is no ASCII."""
    path = text.split("\t")[0].rstrip()
    if len(path) < 2 or not (path.startswith('"') and path.endswith('"')):
        return path
    try:
        return path[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError:
        raise ToolError(f"the patch names a file that cannot be read: {path}") from None

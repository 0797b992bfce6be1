"""Paths that a program or a model names, before any file is looked at; and which of them stay closed. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from halo_runtime.errors import ToolError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Parts: TypeAlias = tuple[str, ...]
"""A path inside the root, name by name; `()` is the root."""

DENIED: Final = (
    ".git", ".halo", ".ssh", ".netrc", ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "*.pem",
    "*.key",
)  # fmt: skip
"""Closed in every workspace unless its `deny` opens them again: what holds keys, and what decides what is run later
(hooks of git, journals of runs)."""

MAX_NAME_BYTES: Final = 255
MAX_PATH_BYTES: Final = 4096

MAX_DEPTH: Final = 100
MAX_STARS: Final = 4

_DRIVE: Final = re.compile(r"[A-Za-z]:")


def parse_path(text: str) -> Parts:
    """The parts of a relative path with `/`, without `.`. Raises ToolError for whatever could mean another place."""
    problem = _problem(text)
    if problem is not None:
        raise ToolError(f"{_shown(text)} {problem}")
    return tuple(part for part in text.split("/") if part not in ("", "."))


def _problem(text: str) -> str | None:
    if not text:
        return "is no path; name one inside the root, or . for the root itself"
    if "\0" in text:
        return "holds a NUL character, which no path can"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "is no valid Unicode text"
    if "\\" in text:
        return "holds a backslash; folders are separated by /"
    if text.startswith(("/", "~")) or _DRIVE.match(text):
        return "is no path inside the root; name it from the root on, without / or ~ before it"
    if ".." in text.split("/"):
        return "leads up with `..`; name the path from the root on"
    if len(text.encode()) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if text.count("/") > MAX_DEPTH:
        return f"lies more than {MAX_DEPTH} folders deep"
    if any(len(part.encode()) > MAX_NAME_BYTES for part in text.split("/")):
        return f"has a name of more than {MAX_NAME_BYTES} bytes"
    return None


def show(parts: Parts) -> str:
    """A path as results and messages have it. Bytes that are no UTF-8 are written as escapes."""
    return "/".join(parts).encode(errors="surrogateescape").decode(errors="backslashreplace") or "."


def folded(text: str) -> str:
    """A name as the most forgiving file system would compare it: no case, no Unicode forms, no invisible characters."""
    visible = (character for character in text if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", "".join(visible)).casefold()


class Globs:
    """Patterns as in `.gitignore`: without a slash they match names in every folder, with one paths from the root.

    The last pattern that matches counts, and `!` before it says that it does not. What lies in a folder that matches
    does too. `fold`: names are compared as the most forgiving file system would.
    """

    def __init__(self, patterns: Iterable[str], *, fold: bool = False) -> None:
        self._fold = fold
        self._patterns = [folded(pattern) if fold else pattern for pattern in patterns]
        for pattern in self._patterns:
            # More of them can take a regular expression for ever, and stand in no pattern that is meant.
            if pattern.count("**") > MAX_STARS or max(part.count("*") for part in pattern.split("/")) > MAX_STARS:
                raise ToolError(f"{_shown(pattern)} is no usable glob: it has more than {MAX_STARS} stars in one name")
        self._spec = self._compile()

    def match(self, parts: Parts, *, folder: bool = False) -> bool:
        """Whether a path matches, or a folder that it lies in."""
        text = "/".join(parts)
        text = folded(text) if self._fold else text
        return self._spec.match_file(f"{text}/" if folder else text)

    @classmethod
    def of_file(cls, lines: Iterable[str]) -> Globs:
        """The patterns of a `.gitignore`. Raises ToolError for what is none."""
        return cls(line for line in lines if line.strip() and not line.startswith("#"))

    def _compile(self) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec
        from pathspec.patterns.gitignore import GitIgnorePatternError

        try:
            return GitIgnoreSpec.from_lines(self._patterns)
        except (GitIgnorePatternError, re.error, ValueError) as error:
            raise ToolError(f"{', '.join(map(_shown, self._patterns))} is no glob: {error}") from None


class Closed:
    """What `deny` and Halo's own list keep closed, for reading as for writing."""

    def __init__(self, deny: Iterable[str] = ()) -> None:
        self._globs = Globs((*DENIED, *deny), fold=True)

    def hides(self, parts: Parts) -> bool:
        """Whether a path is closed, or a folder that it lies in. It counts as a folder and as a file."""
        prefixes = [parts[:length] for length in range(1, len(parts) + 1)]
        return any(self._globs.match(prefix) or self._globs.match(prefix, folder=True) for prefix in prefixes)

    def hides_entry(self, parts: Parts, *, folder: bool) -> bool:
        """The same for an entry of a folder that is known to be open; faster."""
        return self._globs.match(parts, folder=folder)

    def check(self, parts: Parts) -> None:
        """Raises ToolError for a path that is closed."""
        if self.hides(parts):
            raise ToolError(f"{_shown(show(parts))} is closed in this workspace (see deny: in its declaration)")


def _shown(text: str) -> str:
    """A path in a message, with what cannot be seen as escapes, and short."""
    text = text if len(text) <= 100 else f"{text[:100]}…"
    return f"`{text}`" if text.isprintable() else f"`{text.encode('unicode_escape').decode()}`"

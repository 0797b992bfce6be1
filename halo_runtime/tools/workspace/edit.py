"""Replacing one passage of a text, and telling where it may have been meant (pure)."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.prompts import cut

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_COMPARED_LINES: Final = 5_000
_SIMILAR: Final = 0.6


def replace_once(text: str, old: str, new: str, name: str) -> tuple[str, int]:
    """The text with `new` in place of `old`, and the line where that is. Raises ToolError unless it stands there once.

    Line ends of `old` and `new` may be of either kind where the text's are `\\n`.
    """
    if "\r" not in text:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise ToolError("`old` is empty; give the passage to replace, or use append or write")
    if old == new:
        raise ToolError("`old` and `new` are the same; nothing would change")
    places = _places(text, old)
    if not places:
        raise ToolError(f"`{name}` does not hold the passage{_nearest(text, old)}")
    if len(places) > 1:
        lines = ", ".join(str(_line(text, place)) for place in places[:5])
        more = ", …" if len(places) > 5 else ""
        raise ToolError(
            f"the passage stands {len(places)} times in `{name}` (lines {lines}{more}); give more of what is around it"
        )
    place = places[0]
    return text[:place] + new + text[place + len(old) :], _line(text, place)


def lines_of(text: str) -> list[str]:
    """The lines of a text with their `\n`; what Unicode also counts as line ends stays inside."""
    return _LINE.findall(text)


def nearest_line(lines: list[str], wanted: str) -> tuple[int, str] | None:
    """The line (from 1) that is most like `wanted`; None where none is."""
    wanted = wanted.strip()
    if not wanted:
        return None
    matcher = SequenceMatcher(None, "", wanted[:300], autojunk=False)
    best, found = _SIMILAR, None
    for number, line in enumerate(lines[:_COMPARED_LINES], 1):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, found = ratio, (number, line)
    return found


def _places(text: str, old: str) -> list[int]:
    places: list[int] = []
    place = text.find(old)
    while place >= 0:
        places.append(place)
        place = text.find(old, place + 1)
    return places


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _nearest(text: str, old: str) -> str:
    """Where the passage may be meant, as the end of a sentence."""
    lines = text.split("\n")
    wanted = [line.strip() for line in old.strip().split("\n")]
    stripped = [line.strip() for line in lines]
    for start in range(len(lines) - len(wanted) + 1):
        if stripped[start : start + len(wanted)] == wanted:
            return f"; line {start + 1} has it with other white space: {_quoted(lines[start : start + len(wanted)])}"
    found = nearest_line(lines, next((line for line in wanted if line), ""))
    return "" if found is None else f"; the closest is line {found[0]}: {_quoted([found[1]])}"


def _quoted(lines: list[str]) -> str:
    return f"`{cut(chr(10).join(lines), 300)}`"

"""From one version of a program to the next, at the cost of what changed.

Units in front of the edit and behind it are kept as they are; the text between is cut anew until a cut falls on an
old one in the unchanged rest. Two texts are compared by slices, so nothing here looks at single characters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from halo_lang.program import Program, Unit
from halo_lang.scanner import Piece, cut
from halo_lang.source import Source

# A header is read on over the beginning of the unit behind it at most, so two units in front of an edit are enough.
_MARGIN = 2
_MANY = 16
_TELLING = frozenset("\"'\\/*\n")
"""What begins or ends strings and comments, and so can make other quotes close a string in front of the edit."""

Parse = Callable[[str, Piece], Unit]


def update(source: Source, previous: Program, parse: Parse) -> Program:
    """The program of a new version, with the units of the previous one wherever their text is the same."""
    old, new = previous.source.text, source.text
    front = common_start(old, new, min(len(old), len(new)))
    back = common_end(old, new, min(len(old), len(new)) - front)
    around = slice(max(0, front - 2), len(old) - back + 2), slice(max(0, front - 2), len(new) - back + 2)
    first = _first_affected(previous, front, old[around[0]] + new[around[1]])
    last = bisect_left(previous.starts, len(old) - back)
    known = {unit.text: unit for unit in (*previous.spare, *previous.units[first:last])}
    fresh: list[Unit] = []
    for piece in cut(new, previous.starts[first] if previous.units else 0):
        at = _unit_at(previous, piece.start + len(old) - len(new)) if piece.start >= len(new) - back else None
        if at is not None:
            last = at
            break
        text = new[piece.start : piece.end]
        # Each unit serves once: two declarations must not be one object, or they could not be told apart.
        kept = known.pop(text, None)
        fresh.append(kept if kept is not None and kept.unsettled == piece.unsettled else parse(text, piece))
    else:
        last = len(previous.units)
    dropped = previous.units[first:last]
    spare = dropped if len(dropped) > _MANY else previous.spare
    return Program(source, (*previous.units[:first], *fresh, *previous.units[last:]), spare)


def _first_affected(previous: Program, front: int, around: str) -> int:
    """The number of the first unit whose end the edit could have moved."""
    first = max(0, bisect_right(previous.starts, front) - 1 - _MARGIN)
    if _TELLING.isdisjoint(around):
        return first
    return next((number for number in range(first) if previous.units[number].unsettled), first)


def _unit_at(program: Program, offset: int) -> int | None:
    """The number of the unit that begins exactly at an offset."""
    number = bisect_left(program.starts, offset)
    return number if number < len(program.starts) and program.starts[number] == offset else None


def common_start(a: Sequence[object], b: Sequence[object], most: int) -> int:
    """How many items both begin with, `most` at most."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            most = middle - 1
    return low


def common_end(a: Sequence[object], b: Sequence[object], most: int) -> int:
    """How many items both end with, `most` at most."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            most = middle - 1
    return low

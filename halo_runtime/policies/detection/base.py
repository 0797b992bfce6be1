"""What detectors give: places in one view of a text, each with its value in one spelling (spec 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from halo_lang.records import record


@record
class Match:
    """Characters `start` to `end` of a text. `value` is the same for every spelling of the same thing."""

    start: int
    end: int
    value: str


Detector: TypeAlias = Callable[[str], Iterator[Match]]
"""Finds one kind of thing in a text, in linear time, whatever the text is."""


def before(text: str, at: int, size: int) -> str:
    """The end of what stands before a place, in lower case: the context that makes a number plausible."""
    return text[max(0, at - size) : at].lower()

"""Text for the screen: runs of characters, each with the part it plays.

A role says what a run of text means; widgets decide how that looks in a theme. Text from people, models and files
passes through `visible`, so that nothing in it is ever obeyed by the terminal.
"""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, TypeAlias, get_args

from halo_lang import excerpt
from halo_runtime.json_types import Json, is_list, is_object

Role: TypeAlias = Literal["text", "dim", "title", "accent", "ok", "busy", "wait", "warning", "error"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

Run: TypeAlias = tuple[str, Role]
Line: TypeAlias = tuple[Run, ...]

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))

PREVIEW_WIDTH: Final = 200
"""Longest one-line preview of a value, in characters."""


def visible(text: str) -> str:
    """The text with everything that a terminal would act on as escapes; tabs and line feeds stay."""
    # Line by line, since most lines are printable as a whole, which is found out at once.
    return "\n".join(map(excerpt.visible, text.split("\n")))


def one_line(text: str, limit: int = PREVIEW_WIDTH) -> str:
    """The text on one line, cut at `limit` characters with an ellipsis."""
    cut = text[: limit + 1].replace("\n", "⏎").replace("\t", " ")
    return visible(cut if len(cut) <= limit else cut[: limit - 1] + "…")


def preview(value: Json, limit: int = PREVIEW_WIDTH) -> str:
    """A value on one line: strings in quotes, lists and objects as their size."""
    if is_object(value):
        return f"{{{counted(len(value), 'field')}}}"
    if is_list(value):
        return f"[{counted(len(value), 'item')}]"
    return f'"{one_line(value, limit)}"' if isinstance(value, str) else json.dumps(value)


def pretty(value: Json) -> str:
    """A value for reading: a string as it is, anything else as indented JSON; control characters visible."""
    return visible(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False))


def duration(seconds: float) -> str:
    """`<1ms`, `420ms`, `3.2s`, `2m05s`, `1h02m`."""
    if seconds < 0.001:
        return "<1ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def clock(seconds: float) -> str:
    """What is left of a time, as a clock counts it down: `42s`, `2m05s`, `1h02m`, `3d04h`."""
    whole = int(seconds)
    days, hours = divmod(whole // 3600, 24)
    if days:
        return f"{days}d{hours:02d}h"
    return f"{whole}s" if whole < 60 else duration(whole)


def ago(moment: datetime, now: datetime) -> str:
    """In one unit: `just now`, `42s ago`, `5m ago`, `3h ago`, `2d ago`."""
    seconds = int((now - moment).total_seconds())
    return next((f"{seconds // size}{unit} ago" for unit, size in _UNITS if seconds >= size), "just now")


def money(cost: Decimal) -> str:
    """US dollars: cents from one cent up, four places below it."""
    return f"${cost:.2f}" if cost >= Decimal("0.01") else f"${cost:.4f}"


def counted(count: int, noun: str) -> str:
    """`1 problem`, `2 problems`."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"

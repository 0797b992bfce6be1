"""PostgreSQL's texts for values that Python or JSON have no type for. Imports psycopg."""

from __future__ import annotations

import re
from typing import Final

from psycopg.abc import Buffer
from psycopg.adapt import Loader

_SHORT_OFFSET: Final = re.compile(r"[+-]\d\d\Z")


class TextLoader(Loader):
    """The text as the server writes it."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class TimestampLoader(Loader):
    """`2026-11-30 08:00:00+01` as `2026-11-30T08:00:00+01:00`; infinities and years before Christ as they are."""

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        if " " not in text or text.endswith("BC"):
            return text
        moment = text.replace(" ", "T", 1)
        return f"{moment}:00" if _SHORT_OFFSET.search(moment) else moment


_RANGES: Final = ("int4", "int8", "num", "ts", "tstz", "date")

LOADERS: Final[dict[str, type[Loader]]] = {
    "date": TextLoader,
    "interval": TextLoader,
    "time": TextLoader,
    "timetz": TextLoader,
    "timestamp": TimestampLoader,
    "timestamptz": TimestampLoader,
    **{f"{name}{kind}": TextLoader for name in _RANGES for kind in ("range", "multirange")},
}
"""Type → what reads its text."""

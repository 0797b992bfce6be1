"""Office files are archives: what is looked for in them before a library unpacks them."""

from __future__ import annotations

import io
import zipfile
from typing import Final

MAX_UNPACKED_BYTES: Final = 256 * 1024 * 1024
MAX_RATIO: Final = 200
"""How many times larger a part of an archive may become."""
MAX_PARTS: Final = 10_000

_SMALL: Final = 1024 * 1024
_CODES: Final = ("ascii", "utf-16-le", "utf-16-be")
_ENTITIES: Final = [mark.encode(code) for mark in ("<!DOCTYPE", "<!ENTITY") for code in _CODES]
_LONGEST: Final = max(map(len, _ENTITIES))


class UnreadableError(Exception):
    """The document cannot be read; the message follows its name."""


def check_archive(data: bytes) -> None:
    """Raises UnreadableError for an archive that unpacks to far more than it is, or whose XML declares entities."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except zipfile.BadZipFile:
        raise UnreadableError("is damaged, or no Office file") from None
    parts = archive.infolist()
    if len(parts) > MAX_PARTS:
        raise UnreadableError(f"has {len(parts):,} parts, over {MAX_PARTS:,}")
    if any(part.flag_bits & 1 for part in parts):
        raise UnreadableError("is encrypted; save it without a password")
    for part in parts:
        if part.file_size > _SMALL and part.file_size > MAX_RATIO * max(part.compress_size, 1):
            raise UnreadableError(f"is a zip bomb: {part.filename[:80]} becomes {MAX_RATIO} times larger and more")
    if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
        raise UnreadableError(f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB")
    for part in parts:
        if part.filename.lower().endswith((".xml", ".rels", ".vml")) and _declares_entities(archive, part):
            raise UnreadableError(f"declares XML entities ({part.filename[:80]}), which no Office file does")


def _declares_entities(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Whether a declaration stands anywhere in a part: comments of any length may come before it."""
    with archive.open(part) as file:
        piece = b""
        while more := file.read(_SMALL):
            piece = piece[-_LONGEST:] + more
            if any(mark in piece for mark in _ENTITIES):
                return True
    return False

"""Large values beside a journal, each in a file named by its content: a value that comes again costs nothing."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from halo_runtime.errors import StoreError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.store.atomic import write_atomically

LARGEST_INLINE: Final = 256 * 1024
"""Bytes of JSON that stand in the journal itself (spec 3.1)."""

_NAME = re.compile(r"[0-9a-f]{64}")
_SLOTS: Final = ("result", "current", "input", "arguments", "program")
"""The fields of a line whose values may be large; those of `stored` too."""


class Blobs:
    """Values of a folder of journals, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_large(self, document: JsonObject) -> JsonObject:
        """The document with its large values moved out; `blobs` then names them by field."""
        moved: dict[str, str] = {}
        kept = self._move(document, _SLOTS, "", moved)
        if "stored" in kept:
            kept = {**kept, "stored": self._move(kept["stored"], tuple(kept["stored"]), "stored ", moved)}
        return {**kept, "blobs": moved} if moved else kept

    def restore(self, document: JsonObject) -> JsonObject:
        """The document as it was given to `put_large`. Raises StoreError where a value is missing or changed."""
        moved: dict[str, str] = document.pop("blobs", {})
        for place, name in moved.items():
            group, _, field = place.rpartition(" ")
            (document[group] if group else document)[field] = self._get(name)
        return document

    def _move(self, fields: JsonObject, names: tuple[str, ...], prefix: str, moved: dict[str, str]) -> JsonObject:
        kept = dict(fields)
        for name in names:
            if name in kept and _size(kept[name]) > LARGEST_INLINE:
                moved[f"{prefix}{name}"] = self._put(kept.pop(name))
        return kept

    def _put(self, value: Json) -> str:
        data = _encoded(value)
        name = sha256(data).hexdigest()
        path = self._path(name)
        if not path.exists():
            write_atomically(path, data, durable=True)
        return name

    def _get(self, name: str) -> Json:
        if not _NAME.fullmatch(name):
            raise StoreError(f"a value is said to be in {name!r}, which is no name of one")
        try:
            data = self._path(name).read_bytes()
        except OSError as failure:
            raise StoreError(f"the value {self._path(name)} cannot be read: {failure.strerror}") from None
        if sha256(data).hexdigest() != name:
            raise StoreError(f"the value {self._path(name)} was changed")
        return json.loads(data.decode("utf-8", "surrogatepass"))

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"


def _encoded(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _size(value: Json) -> int:
    """Bytes of a value as JSON, at least; exact enough to tell large from small, and cheap for small ones."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _size(item) for key, item in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    if isinstance(value, list):
        return sum(map(_size, value)) + len(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON
    return 8


def remove_unused(folder: Path, used: set[str], before: float) -> int:
    """Delete values that no journal names and that are older than `before` (seconds since 1970); how many.

    A younger one may belong to a line that is just being written.
    """
    unused = [path for path in folder.glob("*/*.json") if path.stem not in used and path.stat().st_mtime < before]
    for path in unused:
        path.unlink()
    return len(unused)

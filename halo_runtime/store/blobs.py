"""Large values beside a journal, each in a file named by its content: a value that comes again costs nothing."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from halo_runtime.errors import StoreError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.store.atomic import write_atomically

LARGEST_INLINE: Final = 256 * 1024
"""Bytes of JSON that stand in the journal itself (spec 3.1)."""

_NAME = re.compile(r"[0-9a-f]{64}")
_QUOTED_NAME = re.compile(rb'"([0-9a-f]{64})"')
_MAPPINGS: Final = ("stored", "input", "arguments")
"""Fields with values by name: a large one among them is kept for itself, as it may come again elsewhere."""


class Blobs:
    """Values of a folder of journals, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_large(self, document: JsonObject) -> JsonObject:
        """The document with null for its large values; `blobs` then says in which file each is. Raises OSError."""
        moved: dict[str, str] = {}
        inside = {name: document[name] for name in _MAPPINGS if is_object(document.get(name))}
        kept = {**document, **{name: self._move(values, f"{name} ", moved) for name, values in inside.items()}}
        kept = self._move(kept, "", moved)
        return {**kept, "blobs": moved} if moved else document

    def restore(self, document: JsonObject) -> JsonObject:
        """The document as it was given to `put_large`. Raises StoreError where a value is missing or changed."""
        moved: dict[str, str] = document.pop("blobs", {})
        for place in sorted(moved, key=lambda place: " " in place):  # a mapping before what is inside it
            field, inside, key = place.partition(" ")
            if inside:
                document[field][key] = self._get(moved[place])
            else:
                document[field] = self._get(moved[place])
        return document

    def _move(self, fields: JsonObject, prefix: str, moved: dict[str, str]) -> JsonObject:
        """The fields in their order, the large ones put away and null."""
        large = [name for name, value in fields.items() if _size(value) > LARGEST_INLINE]
        moved |= {f"{prefix}{name}": self._put(fields[name]) for name in large}
        return {**fields, **dict.fromkeys(large)}

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


def names_in(journal: bytes) -> set[str]:
    """Every name of a value that a journal may need, also a damaged one and one of a newer format."""
    return {name.decode() for name in _QUOTED_NAME.findall(journal)}


def remove_unused(folder: Path, used: set[str], before: float) -> int:
    """Delete values that no journal names and that are older than `before` (seconds since 1970); how many.

    A younger one may belong to a line that is just being written.
    """
    unused = [path for path in folder.glob("*/*.json") if path.stem not in used and path.stat().st_mtime < before]
    for path in unused:
        path.unlink()
    return len(unused)

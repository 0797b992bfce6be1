"""The lines of a journal file: JSON documents, each sealed so that no byte can change and no line can move unseen.

A line is the document's compact JSON with one key more at its end, `"sum"`: the first 16 hexadecimal digits of
SHA-256 over the sum of the line before and the document's text. The first line is the header, which names the format.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import StoreError
from halo_runtime.json_types import Json, JsonObject, is_object

FORMAT: Final = 1
"""The version that this Halo writes; it reads all up to it."""

MIGRATIONS: Final[dict[int, Callable[[list[JsonObject]], list[JsonObject]]]] = {}
"""From each older version to the next: a function of all documents."""

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_SUM_LENGTH: Final = 16
_TAIL: Final = len(',"sum":""}') + _SUM_LENGTH
_NO_SUM: Final = "it has no sum"


class Sealer:
    """Writes lines, each sealed to the one before; `previous` is the sum of the last line there is."""

    def __init__(self, previous: str = "") -> None:
        self.previous = previous

    def line(self, document: JsonObject) -> bytes:
        """The document as a line with its line break."""
        body = _encode(document).encode("utf-8", "surrogatepass")
        self.previous = _sum(self.previous, body)
        return b'%b,"sum":"%b"}\n' % (body[:-1], self.previous.encode())


@record
class Reading:
    """What a journal file holds. `good` bytes of it are whole lines, whose sums are `sums`, the last `last_sum`.

    `torn`: half a line stands at the end, as a crash leaves it. `broken_line` (from 1) is the first line that is not
    what was written, `reason` says why.
    """

    documents: tuple[JsonObject, ...]
    good: int
    last_sum: str
    sums: frozenset[str] = frozenset()
    torn: bool = False
    broken_line: int | None = None
    reason: str = ""


def read_lines(data: bytes) -> Reading:
    """Read a journal file as far as it is intact. Raises StoreError for a format that this Halo does not know."""
    documents: list[JsonObject] = []
    sums: set[str] = set()
    previous, good = "", 0
    while (end := data.find(b"\n", good)) != -1:
        document, total = _read(data[good:end], previous)
        if document is None:
            if not documents and total == _NO_SUM:
                _refuse_newer(_format_of(data[good:end]))
            return Reading(
                _current(documents), good, previous, frozenset(sums), broken_line=len(documents) + 1, reason=total
            )
        documents.append(document)
        sums.add(total)
        previous, good = total, end + 1
    return Reading(_current(documents), good, previous, frozenset(sums), torn=good < len(data))


def _read(line: bytes, previous: str) -> tuple[JsonObject | None, str]:
    """A line's document and sum; None and the reason where the line is not what was written."""
    body, tail = line[:-_TAIL] + b"}", line[-_TAIL:]
    if not (tail.startswith(b',"sum":"') and tail.endswith(b'"}')):
        return None, _NO_SUM
    total = _sum(previous, body)
    if tail[8:-2] != total.encode():
        return None, "its sum does not match: it was changed, or a line before it is missing"
    try:
        document = json.loads(body.decode("utf-8", "surrogatepass"))
    except ValueError:
        return None, "it is no JSON"
    return (document, total) if is_object(document) else (None, "it is no JSON object")


def _current(documents: list[JsonObject]) -> tuple[JsonObject, ...]:
    """The documents in today's format."""
    version = documents[0].get("format") if documents else FORMAT
    if type(version) is not int or version < 1:
        raise StoreError("the first line is not that of a journal")
    _refuse_newer(version)
    while version < FORMAT:
        documents = MIGRATIONS[version](documents)
        version += 1
    return tuple(documents)


def _refuse_newer(version: Json) -> None:
    if type(version) is int and version > FORMAT:
        raise StoreError(
            f"it is written in format {version}, and this halo knows formats up to {FORMAT}; "
            "continue it with the halo that wrote it, or a newer one"
        )


def _format_of(line: bytes) -> Json:
    """The format that a header names which is sealed in no way known here; a newer one may seal otherwise."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document.get("format") if is_object(document) else None


def _sum(previous: str, body: bytes) -> str:
    return sha256(previous.encode() + body).hexdigest()[:_SUM_LENGTH]

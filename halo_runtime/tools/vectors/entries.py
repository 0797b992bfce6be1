"""Entries of a vector store: read from arguments, and held against filters. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.values import canonical, parse_json, type_name

MAX_TEXT: Final = 20_000
"""Code points of an entry: more has too many meanings to be found by one, and no model reads all of it."""
MAX_METADATA: Final = 20_000
MAX_ID: Final = 500
MAX_ITEMS: Final = 10_000
"""Of one call."""

_FIELDS: Final = {"text", "id", "metadata"}


@record
class Entry:
    """One text with its id and fields. `source` is the file that it was taken from."""

    id: str
    text: str
    metadata: JsonObject
    source: str | None = None

    def to_json(self) -> JsonObject:
        """As `get` gives it."""
        return {"id": self.id, "text": self.text, "metadata": self.metadata}


def read_entry(given: Json) -> Entry:
    """A text, or `{text, id, metadata}`. Without an id it is made of the text, so that the same one is kept once.

    Raises ToolError, in words that can stand behind "items[3]: ".
    """
    fields: JsonObject = {"text": given} if isinstance(given, str) else given if is_object(given) else {}
    if not fields:
        raise ToolError(f"an entry is a text or an object {{text, id, metadata}}, got {type_name(given)}")
    if unknown := sorted(fields.keys() - _FIELDS):
        raise ToolError(f"an entry has no field {', '.join(unknown)}; put what belongs to it into metadata")
    text, metadata = fields.get("text"), read_fields(fields.get("metadata"), "metadata")
    if not isinstance(text, str) or not text.strip():
        raise ToolError("an entry needs a text")
    if len(text) > MAX_TEXT:
        raise ToolError(
            f"the text has {len(text):,} characters, over {MAX_TEXT:,}; cut it into pieces, or use ingest for a file"
        )
    if metadata and len(json.dumps(metadata)) > MAX_METADATA:
        raise ToolError(f"metadata has more than {MAX_METADATA:,} characters as JSON")
    id_ = fields.get("id")
    return Entry(_id_of(text) if id_ is None else read_id(id_), _valid(text, "the text"), metadata)


def read_entries(items: Json) -> list[Entry]:
    """The entries of one call; of several with one id the last counts. Raises ToolError."""
    if not is_list(items):
        raise ToolError(f"items is a list of entries, got {type_name(items)}")
    if len(items) > MAX_ITEMS:
        raise ToolError(f"items has {len(items):,} entries, over {MAX_ITEMS:,}; add them in several calls")
    entries: list[Entry] = []
    for number, item in enumerate(items):
        try:
            entries.append(read_entry(item))
        except ToolError as error:
            raise ToolError(f"items[{number}]: {error.message}") from None
    return entries


def read_id(given: Json) -> str:
    """An id. Raises ToolError."""
    if not isinstance(given, str) or not given.strip():
        raise ToolError(f"an id is a text that is not empty, got {type_name(given)}")
    if len(given) > MAX_ID:
        raise ToolError(f"an id has at most {MAX_ID} characters")
    if not given.isprintable():
        raise ToolError("an id stands on one line and has no invisible characters")
    return given


def read_fields(given: Json, name: str) -> JsonObject:
    """An object, which a program writes as a text with JSON; empty for nothing. Raises ToolError."""
    fields: Json = given
    if isinstance(given, str):
        try:
            fields = parse_json(given)
        except ValueError as error:
            raise ToolError(f"{name} is a text that is no JSON: {error}") from None
    if fields is None:
        return {}
    if not is_object(fields):
        raise ToolError(f"{name} is an object of fields, got {type_name(fields)}")
    return fields


def fits(metadata: JsonObject, filter_: Mapping[str, Json]) -> bool:
    """Whether an entry has every field of a filter, with an equal value."""
    return all(name in metadata and canonical(metadata[name]) == canonical(value) for name, value in filter_.items())


def _id_of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _valid(text: str, what: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ToolError(f"{what} must be valid Unicode; this one holds half a surrogate pair")
    return text

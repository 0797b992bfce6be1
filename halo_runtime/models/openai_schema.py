"""JSON Schemas as OpenAI's two APIs take them, and what is asked for in words where they take none. Pure.

In strict mode a service holds its model to a schema; then every object must be closed and complete, and every value
must have a type. Other schemas are sent too, for the model to keep to as well as it can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import Message, ModelRequest

MAX_NAME: Final = 64
_ILLEGAL_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_STRICT: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
     "title", "description"}
)  # fmt: skip
"""Keywords that strict mode is sure to take."""
_TELLING: Final = frozenset({"type", "enum", "const", "anyOf", "$ref"})
"""Keywords one of which says what a value is."""


def described(schema: JsonObject) -> JsonObject:
    """An output schema with the name that the services want for it, and whether it can be kept to strictly."""
    name = _ILLEGAL_IN_NAMES.sub("_", str(schema.get("title") or "output"))[:MAX_NAME]
    return {"name": name, "schema": schema, "strict": can_be_strict(schema)}


def can_be_strict(schema: JsonObject) -> bool:
    """Whether a schema keeps the rules of strict mode: an object at the root, every object closed and complete."""
    return schema.get("type") == "object" and all(map(_is_strict, _schemas(schema)))


def in_words(request: ModelRequest) -> ModelRequest:
    """The request with its schema in the system prompt."""
    wanted = f"Your final answer is nothing but JSON of this schema: {json.dumps(request.json_schema)}"
    first, *others = request.messages
    if first.role == "system":
        messages = (replace(first, content=f"{first.content}\n\n{wanted}"), *others)
    else:
        messages = (Message("system", wanted), *request.messages)
    return replace(request, json_schema=None, messages=messages)


def _is_strict(schema: Json) -> bool:
    if not is_object(schema) or not schema.keys() & _TELLING or not schema.keys() <= _STRICT:
        return False
    kinds = schema.get("type")
    if kinds != "object" and not (is_list(kinds) and "object" in kinds):
        return True
    complete = set(schema.get("required", ())) == set(schema.get("properties", {}))
    return complete and schema.get("additionalProperties") is False


def _schemas(schema: Json) -> Iterator[Json]:
    """A schema and all within it."""
    yield schema
    if is_object(schema):
        for inner in _inner(schema):
            yield from _schemas(inner)


def _inner(schema: JsonObject) -> Iterable[Json]:
    for name in ("properties", "$defs"):
        named: Json = schema.get(name)
        yield from named.values() if is_object(named) else ()
    alternatives: Json = schema.get("anyOf")
    yield from alternatives if is_list(alternatives) else ()
    if "items" in schema:
        yield schema["items"]

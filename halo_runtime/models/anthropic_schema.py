"""The part of JSON Schema that Anthropic's structured output takes, and other schemas brought into it.

Objects are closed, most keywords of the kind `minimum` are refused: they are told in the description instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object

_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_KEPT: Final = frozenset({"type", "description", "title", "enum", "const", "required", "$ref"})
_NESTED: Final = {"oneOf": "anyOf", "anyOf": "anyOf", "allOf": "allOf"}
_COMBINED: Final = frozenset(_NESTED)
_HANDLED: Final = frozenset({"$defs", "properties", "items", "additionalProperties", "$schema", "default"})


class NotExpressible(ValueError):
    """A schema allows what structured output cannot; the text says what (`objects with any fields`)."""


def structured(schema: JsonObject) -> JsonObject:
    """The schema as `output_config.format` takes it; NotExpressible where that would forbid what it allows."""
    if _refers_to_itself(schema):
        raise NotExpressible("types that contain themselves")
    return _converted(schema)


def parameters(schema: JsonObject) -> JsonObject:
    """The schema of a tool's arguments: any, but an object without alternatives at its root, which are told."""
    told = {name: value for name, value in schema.items() if name in _COMBINED}
    kept = {name: value for name, value in schema.items() if name not in _COMBINED}
    return _described({**kept, "type": "object"}, told)


def _converted(schema: Json) -> JsonObject:
    if not is_object(schema) or not schema.keys() & {"type", "enum", "const", "$ref", *_COMBINED}:
        raise NotExpressible("values of any type")
    if is_list(schema.get("type")):
        return _converted(_alternatives(schema))
    known = {name: value for name, value in schema.items() if name in _KEPT}
    for name in schema.keys() & _COMBINED:
        known[_NESTED[name]] = [_converted(item) for item in schema[name]]
    if "$defs" in schema:
        known["$defs"] = {name: _converted(item) for name, item in schema["$defs"].items()}
    convert = _BY_TYPE.get(schema.get("type"))
    if convert is not None:
        known |= convert(schema)
    return _described(known, {name: value for name, value in schema.items() if _is_lost(name, known)})


def _is_lost(name: str, known: JsonObject) -> bool:
    return name not in known and name not in _HANDLED and name not in _COMBINED


def _alternatives(schema: JsonObject) -> JsonObject:
    """`type: [string, null]` as one schema for each type; what belongs to one type means nothing to another."""
    common = {name: value for name, value in schema.items() if name in ("title", "description", "$defs")}
    rest = {name: value for name, value in schema.items() if name not in common}
    return {**common, "anyOf": [{**rest, "type": kind} for kind in schema["type"]]}


def _object(schema: JsonObject) -> JsonObject:
    properties: JsonObject = schema.get("properties", {})
    if not properties and schema.get("additionalProperties") is not False:
        raise NotExpressible("objects with any fields")
    return {
        "properties": {name: _converted(item) for name, item in properties.items()},
        "required": schema.get("required", []),
        "additionalProperties": False,
    }


def _array(schema: JsonObject) -> JsonObject:
    least = {"minItems": schema["minItems"]} if schema.get("minItems") in (0, 1) else {}
    return {"items": _converted(schema.get("items")), **least}


def _string(schema: JsonObject) -> JsonObject:
    return {"format": schema["format"]} if schema.get("format") in _FORMATS else {}


_BY_TYPE: Final[dict[Json, Callable[[JsonObject], JsonObject]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
}


def _described(schema: JsonObject, told: JsonObject) -> JsonObject:
    if not told:
        return schema
    said = (schema.get("description"), json.dumps(told, ensure_ascii=False))
    return {**schema, "description": "\n\n".join(filter(None, said))}


def _refers_to_itself(schema: JsonObject) -> bool:
    """Whether a definition leads to itself again, by however many others, or anything to the root."""
    definitions: JsonObject = schema.get("$defs", {})
    leads = {f"#/$defs/{name}": frozenset(_references(item)) for name, item in definitions.items()}

    def returns(start: str) -> bool:
        seen: set[str] = set()
        ahead = set(leads.get(start, ()))
        while ahead:
            reference = ahead.pop()
            seen.add(reference)
            ahead |= leads.get(reference, frozenset()) - seen
        return start in seen

    return "#" in set(_references(schema)) or any(map(returns, leads))


def _references(schema: Json) -> Iterator[str]:
    if is_object(schema):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for item in schema.values():
            yield from _references(item)
    elif is_list(schema):
        for item in schema:
            yield from _references(item)

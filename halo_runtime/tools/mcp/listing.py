"""The tools of a server as Halo sees them: names, what they say of themselves, the schemas of their arguments. Pure.

All of it comes from a stranger. Descriptions are bounded, without invisible characters and marked as what they are;
schemas are brought into the form that all model services take, an object at the root; hints of harmlessness count for
nothing, hints of harm count.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from typing import Final

from halo_lang.catalog.signature import Effect, snake_case
from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.base import OfferedMethod
from halo_runtime.tools.mcp.limits import MAX_DOC, MAX_SCHEMA

UNTRUSTED: Final = "(the server says) "
"""Stands before what a server says of a tool, so that neither models nor people take it for the program's word."""

_MAPS: Final = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose value has schemas by name."""
_UNCHECKED: Final = frozenset(
    ("pattern", "format", "propertyNames", "$schema", "$id", "$anchor", "$ref", "$dynamicRef", "$dynamicAnchor",
     "$defs", "definitions")
)  # fmt: skip
_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_OPEN: Final[JsonObject] = {"type": "object", "properties": {}}
_SHOWN_NAMES: Final = 20


@record
class ServerTool:
    """One tool. `name` is the server's own; `marks` are hashes of what it says of itself, part by part."""

    name: str
    doc: str
    schema: JsonObject
    effect: Effect
    marks: Mapping[str, str]

    def offered(self) -> OfferedMethod:
        """As a method."""
        return OfferedMethod(self.name, self.doc, self.schema, self.effect)


def read_tool(document: JsonObject) -> ServerTool:
    """A tool of `tools/list`, as it comes over the wire."""
    annotations: Json = document.get("annotations")
    hints: JsonObject = annotations if is_object(annotations) else {}
    words = document.get("description") or document.get("title") or hints.get("title") or ""
    schema: Json = document.get("inputSchema")
    marks = {
        "description": _hash([document.get("title"), document.get("description")]),
        "arguments": _hash(schema),
        "annotations": _hash(annotations),
        "result": _hash(document.get("outputSchema")),
    }
    harmful = hints.get("destructiveHint") is True
    return ServerTool(
        str(document["name"]), _described(str(words)), argument_schema(schema), "destructive" if harmful else "write",
        marks,
    )  # fmt: skip


def find_tool(tools: Iterable[ServerTool], name: str) -> ServerTool:
    """The tool that a program or a model means by `name`: the server's own name before other spellings of it.

    `read_file` and `readFile` are the same, and so are `a.b/c-d` and `a_b_c_d`, as programs can only write the last.
    Raises ToolError where there is none, and where a spelling fits several.
    """
    known = {tool.name: tool for tool in tools}
    if name in known:
        return known[name]
    spelt = [tool for tool in known.values() if _plain(tool.name) == _plain(name)]
    if len(spelt) == 1:
        return spelt[0]
    if spelt:
        raise ToolError(
            f"{name} could be {' or '.join(sorted(tool.name for tool in spelt))}; write the one that is meant"
        )
    close = get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise ToolError(f"the server has no tool {name}{meant}; it has {_names(known)}")


def argument_schema(schema: Json) -> JsonObject:
    """A schema of arguments with an object at its root, which services want; the alternatives there are joined.

    What is joined allows all that the server's own schema allows, and perhaps more: the server still has a say.
    """
    if not is_object(schema) or len(json.dumps(schema)) > MAX_SCHEMA:
        return _OPEN
    root = _resolved(schema, schema, frozenset())
    properties: JsonObject = {}
    required: set[str] = set(_texts(root.get("required")))
    parts = [(key, [_resolved(part, schema, frozenset()) for part in _objects(root.get(key))]) for key in _COMBINED]
    for key, alternatives in parts:
        for part in alternatives:
            properties |= _named(part.get("properties"))
        wanted = [set(_texts(part.get("required"))) for part in alternatives]
        if wanted:
            required |= set[str]().union(*wanted) if key == "allOf" else set[str].intersection(*wanted)
    properties |= _named(root.get("properties"))
    kept = {key: root[key] for key in ("$defs", "definitions", "description") if key in root}
    closed = root.get("additionalProperties") is False and not any(alternatives for _, alternatives in parts)
    return {
        **kept,
        "type": "object",
        "properties": properties,
        **({"required": sorted(required & properties.keys())} if required & properties.keys() else {}),
        **({"additionalProperties": False} if closed else {}),
    }


def checkable(schema: Json) -> Json:
    """The schema without what is not safe to check: patterns and references of a stranger can take for ever."""
    if is_list(schema):
        return [checkable(item) for item in schema]
    if not is_object(schema):
        return schema
    kept: JsonObject = {}
    for key, value in schema.items():
        if key in _UNCHECKED:
            continue
        if key in ("additionalProperties", "unevaluatedProperties") and "patternProperties" in schema:
            continue
        if key in _MAPS and is_object(value):
            kept[key] = {name: checkable(item) for name, item in value.items()}
        elif key in ("enum", "const", "default", "examples", "required"):
            kept[key] = value
        elif key != "patternProperties":
            kept[key] = checkable(value)
    return kept


def without_invisible(text: str) -> str:
    """A text without characters that nobody sees, in which instructions could be hidden."""
    return "".join(one for one in text if unicodedata.category(one)[0] != "C" or one in "\n\t")


def _described(words: str) -> str:
    text = without_invisible(words[: MAX_DOC * 4]).strip()
    room = MAX_DOC - len(UNTRUSTED)
    text = text if len(text) <= room else f"{text[: room - 1]}…"
    return f"{UNTRUSTED}{text}" if text else ""


def _resolved(schema: JsonObject, root: JsonObject, seen: frozenset[str]) -> JsonObject:
    """A schema with what its own `$ref` leads to in its place; references further down stay."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or reference in seen or not reference.startswith("#/"):
        return {key: value for key, value in schema.items() if key != "$ref"}
    found: Json = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if is_object(found) else None
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**(_resolved(found, root, seen | {reference}) if is_object(found) else {}), **beside}


def _named(properties: Json) -> JsonObject:
    """Schemas by name; `true` and `false`, which services do not take for schemas, allow anything."""
    if not is_object(properties):
        return {}
    return {name: schema if is_object(schema) else {} for name, schema in properties.items()}


def _objects(value: Json) -> Sequence[JsonObject]:
    return [item for item in value if is_object(item)] if is_list(value) else []


def _texts(value: Json) -> Sequence[str]:
    return [item for item in value if isinstance(item, str)] if is_list(value) else []


def _names(known: Iterable[str]) -> str:
    names = sorted(known)
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return (", ".join(without_invisible(name)[:80] for name in names[:_SHOWN_NAMES]) or "none") + more


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", snake_case(name))


def _hash(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()

"""Schemas: does an output have the declared shape, and what is that shape as JSON Schema (spec 2.2, 12.2).

What the type names take:

- `String`, `Boolean`: these. `Number`: any number. `Integer`: a number without a fraction, `1.0` too. A Boolean is no
  number; null is none of them.
- `Array`, `List`, `Array<T>`: a list, each item a `T`. `Object`: an object. A schema's name: an object with its fields;
  other fields pass.
- A String where a list, an object or a schema is declared is parsed as JSON once, and the parsed value takes its place.
- `JSON`: any value; a String that is a JSON object or list gives way to it. `Any`: any value as it is.

A declared field must be there, whatever its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from halo_lang.nodes import Schema, TypeRef
from halo_lang.records import record
from halo_runtime.errors import SchemaValidationError
from halo_runtime.json_types import MISSING, Json, JsonObject
from halo_runtime.values import parse_json, type_name

MAX_FAILURES: Final = 50
"""How many failing paths a message lists; the others are counted."""

_LISTS: Final = ("Array", "List")
_JSON_TYPES: Final[dict[str, JsonObject]] = {
    "String": {"type": "string"},
    "Number": {"type": "number"},
    "Integer": {"type": "integer"},
    "Boolean": {"type": "boolean"},
    "Object": {"type": "object"},
    "JSON": {},
    "Any": {},
}


@record
class SchemaType:
    """A result type ready to be checked.

    `name` is the type as written. `json_schema` describes it for the services' JSON modes: all declared fields and no
    others, nested schemas in `$defs`; None where it is a list, for these modes answer objects only.
    """

    name: str
    json_schema: JsonObject | None
    _check: _Checker = field(repr=False)

    def check(self, value: Json) -> Json:
        """The value, with what Strings in it were parsed to in their places.

        Raises SchemaValidationError that lists every failing path with what was expected and found.
        """
        report = _Report()
        checked = self._check(value, None, report)
        if report.count:
            raise SchemaValidationError(f"the output does not match {self.name}: {report.text()}")
        return checked


class Schemas:
    """The schemas of one program, see `compile_schemas`."""

    def __init__(self, declarations: Iterable[Schema]) -> None:
        self._declared = {schema.name.text: schema for schema in declarations}
        # Filled after all are there: a schema may hold itself in a list.
        self._fields: dict[str, dict[str, _Field]] = {name: {} for name in self._declared}
        for name, schema in self._declared.items():
            self._fields[name] |= {
                declared.name.text: (_text(declared.type), self._checker(declared.type)) for declared in schema.fields
            }

    def result_type(self, type_ref: TypeRef) -> SchemaType | None:
        """How a declared result type is checked; None where it names no schema, for then nothing is checked."""
        if not any(name in self._declared for name in _names(type_ref)):
            return None
        json_schema = self._json_schema(type_ref.name.text) if type_ref.name.text in self._declared else None
        return SchemaType(_text(type_ref), json_schema, self._checker(type_ref))

    def named(self, name: str) -> SchemaType:
        """The schema of that name."""
        return SchemaType(name, self._json_schema(name), partial(_check_object, name, self._fields[name]))

    def _checker(self, type_ref: TypeRef) -> _Checker:
        name = type_ref.name.text
        if name in _LISTS:
            return partial(_check_list, _text(type_ref), self._checker(type_ref.item) if type_ref.item else _as_it_is)
        if name in self._fields:
            return partial(_check_object, name, self._fields[name])
        return _CHECKERS[name]

    def _json_schema(self, root: str) -> JsonObject:
        reached = self._references(root)
        for name in reached:  # grows while it is walked
            reached += [inner for inner in self._references(name) if inner not in reached]
        document = {"title": root, **_object_schema(self._declared[root])}
        if reached:
            document["$defs"] = {name: _object_schema(self._declared[name]) for name in reached}
        return document

    def _references(self, name: str) -> list[str]:
        """The schemas that a schema's fields name, each once."""
        found = (inner for declared in self._declared[name].fields for inner in _names(declared.type))
        return [inner for inner in dict.fromkeys(found) if inner in self._declared]


def compile_schemas(declarations: Iterable[Schema]) -> Schemas:
    """Make a program's schemas ready. Their types are known names: the program has been checked."""
    return Schemas(declarations)


# --- checking -----------------------------------------------------------------------------------------------

_Place: TypeAlias = "tuple[_Place, str | int] | None"
"""A path from its end: the last segment behind the place before it. None is the output itself."""


@dataclass(slots=True)
class _Report:
    """What failed in one check: the first MAX_FAILURES as text, all of them counted."""

    failures: list[str] = field(default_factory=list[str])
    count: int = 0

    def fail(self, place: _Place, expected: str, found: str) -> None:
        self.count += 1
        if self.count <= MAX_FAILURES:
            self.failures.append(f"{_path(place)}: expected {expected}, found {found}")

    def text(self) -> str:
        """All on one line, for errors are shown as one."""
        more = self.count - len(self.failures)
        return "; ".join([*self.failures, f"and {more:,} more"] if more else self.failures)


_Checker: TypeAlias = Callable[[Json, _Place, _Report], Json]
"""Reports what does not match, and gives the value that stands there from now on."""

_Field: TypeAlias = tuple[str, _Checker]
"""A field's type as written, and how to check it."""


def _check_plain(name: str, accepts: Callable[[Json], bool], value: Json, place: _Place, report: _Report) -> Json:
    if not accepts(value):
        fraction = " with a fraction" if name == "Integer" and value.__class__ is float else ""
        report.fail(place, name, type_name(value) + fraction)
    return value


def _check_list(name: str, check_item: _Checker, value: Json, place: _Place, report: _Report) -> Json:
    items = _unpacked(value, list)
    if items.__class__ is not list:
        report.fail(place, name, _instead(value, "list"))
        return value
    return [check_item(item, (place, index), report) for index, item in enumerate(items)]


def _check_object(name: str, fields: dict[str, _Field], value: Json, place: _Place, report: _Report) -> Json:
    found = _unpacked(value, dict)
    if found.__class__ is not dict:
        report.fail(place, name, _instead(value, "object"))
        return value
    checked = dict(found)
    for key, (expected, check) in fields.items():
        if key in checked:
            checked[key] = check(checked[key], (place, key), report)
        else:
            report.fail((place, key), expected, type_name(MISSING))
    return checked


def _as_it_is(value: Json, place: _Place, report: _Report) -> Json:
    return value


def _check_json(value: Json, place: _Place, report: _Report) -> Json:
    return _unpacked(value, dict, list)


def _is_integer(value: Json) -> bool:
    return value.__class__ is int or (value.__class__ is float and value.is_integer())


_CHECKERS: Final[dict[str, _Checker]] = {
    "String": partial(_check_plain, "String", lambda value: value.__class__ is str),
    "Number": partial(_check_plain, "Number", lambda value: value.__class__ in (int, float)),
    "Integer": partial(_check_plain, "Integer", _is_integer),
    "Boolean": partial(_check_plain, "Boolean", lambda value: value.__class__ is bool),
    "Object": partial(_check_object, "Object", {}),
    "JSON": _check_json,
    "Any": _as_it_is,
}


def _unpacked(value: Json, *kinds: type) -> Json:
    """What a String says in JSON where that is of a wanted kind; any other value as it is."""
    if value.__class__ is not str:
        return value
    try:
        parsed = parse_json(value)
    except ValueError:
        return value
    return parsed if parsed.__class__ in kinds else value


def _instead(value: Json, wanted: str) -> str:
    return f"String that is no JSON {wanted}" if value.__class__ is str else type_name(value)


def _path(place: _Place) -> str:
    segments: list[str] = []
    while place is not None:
        place, segment = place
        segments.append(str(segment))
    return ".".join(reversed(segments)) or "the whole"


# --- types as text and as JSON Schema -----------------------------------------------------------------------


def _text(type_ref: TypeRef) -> str:
    return type_ref.name.text if type_ref.item is None else f"{type_ref.name.text}<{_text(type_ref.item)}>"


def _names(type_ref: TypeRef | None) -> Iterator[str]:
    while type_ref is not None:
        yield type_ref.name.text
        type_ref = type_ref.item


def _object_schema(schema: Schema) -> JsonObject:
    return {
        "type": "object",
        "properties": {declared.name.text: _json_type(declared.type) for declared in schema.fields},
        "required": [declared.name.text for declared in schema.fields],
        "additionalProperties": False,
    }


def _json_type(type_ref: TypeRef) -> JsonObject:
    name = type_ref.name.text
    if name in _LISTS:
        return {"type": "array", "items": _json_type(type_ref.item) if type_ref.item else {}}
    return dict(_JSON_TYPES[name]) if name in _JSON_TYPES else {"$ref": f"#/$defs/{name}"}

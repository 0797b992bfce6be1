"""What a server says of its methods, in the form of the catalogue, so that programs can be held to it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from halo_lang.catalog.signature import Method, Parameter, Signature, Type
from halo_lang.catalog.specs import ProviderSpec
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.base import OfferedMethod

_TYPES: Final[dict[str, Type]] = {
    "string": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "array": "list",
    "object": "object",
}


def described(spec: ProviderSpec, methods: Iterable[OfferedMethod]) -> ProviderSpec:
    """The catalogue's entry of a provider with the methods that its server has, and no others."""
    return replace(spec, methods=tuple(map(_method, methods)), open_methods=None)


def _method(method: OfferedMethod) -> Method:
    """A method under a name that a program can write."""
    name = re.sub(r"\W+", "_", method.name, flags=re.ASCII)
    return Method(name, _signature(method.schema), "", method.effect, idempotent=False, doc=method.doc)


def _signature(schema: JsonObject) -> Signature:
    properties: Json = schema.get("properties")
    required: Json = schema.get("required")
    wanted = required if is_list(required) else []
    known: JsonObject = properties if is_object(properties) else {}
    parameters = [_parameter(name, item, required=name in wanted) for name, item in known.items()]
    # An object that says nothing of its fields, or says that there are others, is not one to hold a program to.
    is_open = not known or schema.get("additionalProperties") not in (None, False)
    ordered = sorted(parameters, key=lambda parameter: not parameter.required)
    return Signature(tuple(ordered), open_named=is_open and schema.get("additionalProperties") is not False)


def _parameter(name: str, schema: Json, *, required: bool) -> Parameter:
    told: JsonObject = schema if is_object(schema) else {}
    kind: Json = told.get("type")
    choices: Json = told.get("enum")
    words = tuple(choices) if is_list(choices) and all(isinstance(word, str) for word in choices) else ()
    return Parameter(
        name,
        _TYPES.get(kind, "any") if isinstance(kind, str) else "any",
        required=required,
        minimum=_number(told.get("minimum")),
        maximum=_number(told.get("maximum")),
        choices=words if kind == "string" else (),
        named_only=True,
    )


def _number(value: Json) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None

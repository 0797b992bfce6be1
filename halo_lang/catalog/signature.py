"""Signatures as data: what a method, rule, provider, directive or stage takes, and how arguments bind to it.

One `Signature` serves everybody: checks bind syntax nodes to it (HL302, HL303), the runtime binds values, completion
and the docs list it, and a model's function schema is made from it. Nothing here knows about nodes or runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, Literal, TypeAlias, TypeVar, cast

from halo_lang.records import record

Type: TypeAlias = Literal[
    "any", "string", "number", "integer", "boolean", "duration", "list", "object",
    "name", "pattern", "tool", "tools", "method", "schema", "rule", "target",
]  # fmt: skip
"""What a parameter takes. The second line is about names: `name` a bare word of `choices`, `pattern` one of those or
a regular expression as text, `tool` and `tools` declared tools, `method` a tool or `Tool.method`, `schema` a declared
schema, `rule` a policy rule, `target` an agent or a model."""

Constant: TypeAlias = str | int | float | bool | None
Value = TypeVar("Value")

DURATION = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:ms|[smhd])", re.ASCII)
"""A duration as text, the form in which it is a value (spec 12.1)."""


@record
class Parameter:
    """One argument: what it is called, takes and means.

    `minimum` and `maximum` are inclusive and count in the parameter's own unit (seconds for a duration); with
    `positive` the value must be over 0. `choices` are the words it may be; `items` is the type of a list's items.
    A `secret` belongs into the environment, not into a program. The text of `code` is run, so what is filled into it
    reaches its provider apart from what the program wrote. What is left out is read from the first of `variables`, of
    the environment, that is set. One that `flows` may be left out where a pipeline calls: it is then the field of that
    name of the flowing value, or that value itself where it has no fields.
    """

    name: str
    type: Type = "any"
    doc: str = ""
    required: bool = False
    default: Constant = None
    minimum: float | None = None
    maximum: float | None = None
    positive: bool = False
    choices: tuple[str, ...] = ()
    items: Type = "any"
    aliases: tuple[str, ...] = ()
    named_only: bool = False
    secret: bool = False
    code: bool = False
    variables: tuple[str, ...] = ()
    flows: bool = False

    def problem(self, value: object) -> str | None:
        """What is wrong with a run's value for this parameter, as words after its name; None when it is right."""
        if value is None and not self.required:
            return None
        if not _fits(self.type, value):
            return f"takes {self.expected()}, not {_found(value)}"
        if isinstance(value, list):
            items = cast("list[object]", value)
            return None if all(_fits(self.items, item) for item in items) else f"takes {self.expected()}"
        return self.out_of_range(value)

    def out_of_range(self, value: object) -> str | None:
        """The same for limits and choices alone, for a value of the right type (a duration in seconds or as text)."""
        if self.choices and isinstance(value, str) and self.type != "pattern":
            return None if value in self.choices else f"takes {self.expected()}"
        number = duration_seconds(value) if isinstance(value, str) and self.type == "duration" else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            return None
        wrong = (
            (self.positive and number <= 0)
            or (self.minimum is not None and number < self.minimum)
            or (self.maximum is not None and number > self.maximum)
        )
        return f"takes {self.expected()}" if wrong else None

    def expected(self) -> str:
        """What it takes, in words: `a whole number from 1 to 20`, `one of "fail", "keep", "drop"`."""
        if self.choices:
            words = (
                self.choices if self.type in ("name", "pattern") else tuple(f'"{choice}"' for choice in self.choices)
            )
            text = f"one of {', '.join(words)}"
            return f"{text}, or a regular expression" if self.type == "pattern" else text
        text = TYPE_WORDS[self.type]
        if self.type == "list" and self.items != "any":
            text = f"a list of {ITEM_WORDS.get(self.items, 'values')}"
        return text + self._limits() + (" such as 500ms, 30s or 5m" if self.type == "duration" else "")

    def _limits(self) -> str:
        if self.positive:
            return " over 0"
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum:g} to {self.maximum:g}"
        return f" of at least {self.minimum:g}" if self.minimum is not None else ""

    def json_schema(self) -> dict[str, object]:
        """The parameter as JSON Schema, for the functions that models are offered."""
        schema: dict[str, object] = dict(_SCHEMAS[self.type])
        if self.type == "list" and self.items != "any":
            schema["items"] = dict(_SCHEMAS[self.items])
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.minimum is not None:
            schema["minimum"] = self.minimum
        if self.maximum is not None:
            schema["maximum"] = self.maximum
        if self.doc:
            schema["description"] = self.doc
        return schema


ProblemKind: TypeAlias = Literal["missing", "surplus", "unknown", "duplicate"]


@record
class Problem:
    """Why arguments do not bind.

    `missing`: the parameter `name` has none. `surplus`: the positional argument `index` has no parameter.
    `unknown`: no parameter is called `name`. `duplicate`: the named argument `name` says again what is already said.
    """

    kind: ProblemKind
    name: str
    index: int = -1


@record
class Bound(Generic[Value]):
    """Arguments by parameter name. `rest` took the further positional ones, `extra` the further named ones."""

    signature: Signature
    arguments: dict[str, Value]
    rest: tuple[Value, ...]
    extra: dict[str, Value]
    problems: tuple[Problem, ...]

    def values(self) -> dict[str, object]:
        """All as one object for the runtime: defaults filled in, `rest` as a list under its parameter's name."""
        filled: dict[str, object] = {p.name: p.default for p in self.signature.parameters if p.default is not None}
        filled.update(self.arguments)
        filled.update(self.extra)
        if self.signature.rest is not None and self.rest:
            filled[self.signature.rest.name] = list(self.rest)
        return filled

    def wrong_values(self) -> list[str]:
        """What is wrong with the values of a run, one sentence each: ``KV.get: key takes a text, not 5``."""
        known = self.signature.by_name
        pairs = [(known[name], value) for name, value in self.arguments.items()]
        if self.signature.rest is not None:
            pairs += [(self.signature.rest, value) for value in self.rest]
        found = ((parameter.name, parameter.problem(value)) for parameter, value in pairs)
        return [f"{name} {problem}" for name, problem in found if problem is not None]


@dataclass(frozen=True)
class Signature:
    """Parameters in order. `rest` takes any further positional arguments, `open_named` any further named ones.

    Of the names in `any_of` (parameters, or that of `rest`) at least one must be given.
    """

    parameters: tuple[Parameter, ...] = ()
    rest: Parameter | None = None
    open_named: bool = False
    any_of: tuple[str, ...] = ()
    by_name: dict[str, Parameter] = field(init=False, repr=False, compare=False)
    """Each parameter under its name and its aliases."""
    slots: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The names of the parameters that positional arguments are for."""

    def __post_init__(self) -> None:
        names = {name: p for p in self.parameters for name in (p.name, *p.aliases)}
        object.__setattr__(self, "by_name", names)
        object.__setattr__(self, "slots", tuple(p.name for p in self.parameters if not p.named_only))

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that an argument may have."""
        return tuple(self.by_name)

    @cached_property
    def in_flow(self) -> Signature:
        """The same where a value flows in, from which parameters that flow are taken when they are left out."""
        if not any(parameter.flows for parameter in self.parameters):
            return self
        return replace(self, parameters=tuple(replace(p, required=False) if p.flows else p for p in self.parameters))

    def bind(self, positional: Sequence[Value], named: Mapping[str, Value]) -> Bound[Value]:
        """Give each argument to its parameter; never raises, what does not fit is in `problems`."""
        arguments = dict(zip(self.slots, positional, strict=False))
        further = tuple(positional[len(self.slots) :])
        problems: list[Problem] = []
        extra: dict[str, Value] = {}
        if self.rest is None:
            problems += [Problem("surplus", "", len(self.slots) + i) for i in range(len(further))]
            further = ()
        for name, value in named.items():
            parameter = self.by_name.get(name)
            if parameter is None:
                if self.open_named:
                    extra[name] = value
                else:
                    problems.append(Problem("unknown", name))
            elif parameter.name in arguments:
                problems.append(Problem("duplicate", name))
            else:
                arguments[parameter.name] = value
        problems += self._missing(arguments, further)
        return Bound(self, arguments, further, extra, tuple(problems))

    def _missing(self, arguments: Mapping[str, object], rest: Sequence[object]) -> list[Problem]:
        missing = [Problem("missing", p.name) for p in self.parameters if p.required and p.name not in arguments]
        if self.any_of:
            given = {*arguments, *((self.rest.name,) if self.rest is not None and rest else ())}
            if not given.intersection(self.any_of):
                missing.append(Problem("missing", self.any_of[0]))
        return missing

    def json_schema(self) -> dict[str, object]:
        """An object schema with the parameters as properties; further keys only where the signature is open."""
        return {
            "type": "object",
            "properties": {p.name: p.json_schema() for p in self.parameters},
            "required": [p.name for p in self.parameters if p.required],
            "additionalProperties": self.open_named,
        }

    def __str__(self) -> str:
        """As one writes it: `(key, value, ttl?)`."""
        shown = [p.name if p.required else f"{p.name}?" for p in self.parameters]
        shown += [f"{self.rest.name}…"] if self.rest is not None else []
        shown += ["…"] if self.open_named else []
        return f"({', '.join(shown)})"


Effect: TypeAlias = Literal["read", "write", "destructive"]


@record
class Method:
    """A method of a provider or of `System`: its arguments, the shape of its result, and what it does to the world.

    `passes`: the flowing value goes through and nothing is stored unless bound by `as`. `event`: the method tells
    the host (`on_system_event`) and does nothing else.
    """

    name: str
    signature: Signature
    result: str
    effect: Effect = "read"
    idempotent: bool = True
    doc: str = ""
    example: str = ""
    passes: bool = False
    event: bool = False


def required(name: str, type: Type = "any", doc: str = "", **limits: object) -> Parameter:  # noqa: A002
    """A parameter that must be given."""
    return Parameter(name, type, doc, required=True, **limits)  # pyright: ignore[reportArgumentType]


def optional(name: str, type: Type = "any", doc: str = "", **limits: object) -> Parameter:  # noqa: A002
    """A parameter that may be left out."""
    return Parameter(name, type, doc, **limits)  # pyright: ignore[reportArgumentType]


def duration_seconds(text: str) -> float | None:
    """Seconds of a duration as text (`500ms`, `1.5h`); None when it is none."""
    if DURATION.fullmatch(text) is None:
        return None
    unit = "ms" if text.endswith("ms") else text[-1]
    return float(text.removesuffix(unit)) * _UNITS[unit]


def camel_case(name: str) -> str:
    """`get_issue` as `getIssue`; a name without underscores as it is."""
    head, *tail = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def snake_case(name: str) -> str:
    """`getIssue` as `get_issue`; a name in lower case as it is."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _fits(type_: Type, value: object) -> bool:
    if type_ == "duration":
        return isinstance(value, str) and DURATION.fullmatch(value) is not None
    if type_ == "integer":
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool)
    expected = _PYTHON_TYPES.get(type_)
    if expected is None:
        return True
    return isinstance(value, expected) and (type_ != "number" or not isinstance(value, bool))


def _found(value: object) -> str:
    if isinstance(value, bool):
        return "a Boolean"
    words = ((str, "a text"), (int | float, "a number"), (list, "a list"), (dict, "an object"))
    return next((word for type_, word in words if isinstance(value, type_)), "null")


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PYTHON_TYPES: dict[Type, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "object": dict,
}

TYPE_WORDS: dict[Type, str] = {
    "any": "any value",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "duration": "a duration",
    "list": "a list",
    "object": "an object",
    "name": "a name",
    "pattern": "a name or a regular expression",
    "tool": "the name of a tool or store",
    "tools": "a list of tools, auto or none",
    "method": "a tool or Tool.method",
    "schema": "the name of a schema",
    "rule": "a policy rule",
    "target": "the name of an agent or a model",
}
"""Each type in words, for messages and docs."""

ITEM_WORDS: dict[Type, str] = {"string": "texts", "number": "numbers", "integer": "whole numbers", "object": "objects"}
"""The plural of those types that items of a list have."""

_TEXT: dict[str, object] = {"type": "string"}
_SCHEMAS: dict[Type, dict[str, object]] = {
    "any": {},
    "string": _TEXT,
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "duration": {"type": "string", "pattern": f"^{DURATION.pattern}$"},
    "list": {"type": "array"},
    "object": {"type": "object"},
    "name": _TEXT,
    "pattern": _TEXT,
    "tool": _TEXT,
    "tools": {"type": "array", "items": _TEXT},
    "method": _TEXT,
    "schema": _TEXT,
    "rule": {},
    "target": _TEXT,
}

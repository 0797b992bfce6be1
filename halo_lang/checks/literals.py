"""Whether a value as written can be what a parameter takes (HL303); what only a run knows is not judged."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from halo_lang import nodes
from halo_lang.catalog.signature import DURATION, Parameter, Type
from halo_lang.nodes import ArgumentValue
from halo_lang.source import Span
from halo_lang.spelling import Guess, nearest


class Flaw(NamedTuple):
    """What is wrong with a value, as words behind the parameter's name, and where."""

    text: str
    span: Span
    hint: str | None = None
    meant: str | None = None
    """How the value was certainly meant, as it is written in a program."""


Test: TypeAlias = Callable[[ArgumentValue], bool]


def flaw(parameter: Parameter, value: ArgumentValue, fixed: bool) -> Flaw | None:
    """What is wrong with `value` for `parameter`; `fixed` where no parameters or results are in reach."""
    if isinstance(value, nodes.Path):
        return _path_flaw(parameter, value, fixed)
    if isinstance(value, nodes.Null) and not parameter.required:
        return None
    if not fixed and isinstance(value, nodes.String) and "{{" in value.value and parameter.type not in _NEVER_TEXT:
        return None
    if not _TESTS[parameter.type](value):
        hint, meant = _mended(parameter, value)
        return Flaw(f"takes {parameter.expected()}, not {_written(value)}", value.span, hint, meant)
    if isinstance(value, nodes.ListValue):
        return _item_flaw(parameter, value, fixed)
    if parameter.out_of_range(_constant(value)) is not None:
        guess = nearest(value.value, parameter.choices) if isinstance(value, nodes.String) else None
        return _misspelt(f"takes {parameter.expected()}, not {_written(value)}", value.span, guess, '"')
    return None


def _path_flaw(parameter: Parameter, path: nodes.Path, fixed: bool) -> Flaw | None:
    expected = parameter.expected()
    written = ".".join(path.segments)
    text = f"takes {expected}, not `{written}`"
    if path.root == "Env":
        return None
    if parameter.type in ("name", "pattern"):
        if written in parameter.choices:
            return None
        return _misspelt(text, path.span, nearest(written, parameter.choices))
    longest = _NAME_PARTS.get(parameter.type)
    if longest is not None:
        fits = len(path.parts) <= longest and (parameter.type != "tools" or written in ("auto", "none"))
        listed = f"[{written}]" if parameter.type == "tools" and len(path.parts) == 1 else None
        return None if fits else Flaw(text, path.span, listed and f"write `{listed}`")
    if not fixed:
        return None
    if parameter.type != "string":
        return Flaw(text, path.span)
    quoted = f'"{written}"'
    fits = not parameter.choices or written in parameter.choices
    return Flaw(f"takes {expected}, not a name", path.span, f"write a text as {quoted}", quoted if fits else None)


def _misspelt(text: str, span: Span, guess: Guess | None, quote: str = "") -> Flaw:
    """The flaw of a word that is not among those that a parameter takes."""
    if guess is None:
        return Flaw(text, span)
    meant, mark = f"{quote}{guess.name}{quote}", quote or "`"
    return Flaw(text, span, f"did you mean {mark}{guess.name}{mark}?", meant if guess.certain else None)


def _mended(parameter: Parameter, value: ArgumentValue) -> tuple[str | None, str | None]:
    """What to do about a value of the wrong type, and how it was certainly meant."""
    if parameter.type == "duration" and isinstance(value, nodes.Number) and value.value > 0:
        return f"write `{value.value}s` for seconds", None
    if not isinstance(value, nodes.String):
        return None, None
    if parameter.type == "list" and parameter.items == "string":
        return 'put it in brackets: ["…"]', f'["{value.value}"]' if _PLAIN.fullmatch(value.value) else None
    pattern = _UNQUOTED.get(parameter.type)
    unquoted = pattern is not None and pattern.fullmatch(value.value) is not None
    return ("take the quotes away", value.value) if unquoted else (None, None)


def _item_flaw(parameter: Parameter, values: nodes.ListValue, fixed: bool) -> Flaw | None:
    items: Type = "tool" if parameter.type == "tools" else parameter.items
    if items == "any":
        return None
    item = Parameter(parameter.name, items, required=True)
    flaws = (flaw(item, value, fixed) for value in values.items)
    found = next((found for found in flaws if found is not None), None)
    return found and Flaw(f"takes {parameter.expected()}", found.span, found.hint, found.meant)


def _constant(value: ArgumentValue) -> object:
    match value:
        case nodes.Number() | nodes.String():
            return value.value
        case nodes.Duration():
            return value.text
        case _:
            return None


def _written(value: ArgumentValue) -> str:
    match value:
        case nodes.String():
            return "a text"
        case nodes.Number():
            return f"{value.value}"
        case nodes.Duration():
            return f"the duration {value.text}"
        case nodes.Boolean():
            return "true" if value.value else "false"
        case nodes.ListValue():
            return "a list"
        case nodes.Rule():
            return "a rule"
        case nodes.ModelRef():
            return "a model"
        case _:
            return "null"


def _one_of(*classes: type) -> Test:
    return lambda value: isinstance(value, classes)


def _whole(value: ArgumentValue) -> bool:
    return isinstance(value, nodes.Number) and float(value.value).is_integer()


_NAME_PARTS: Final[dict[Type, int]] = {"tool": 1, "tools": 1, "method": 2, "schema": 1, "rule": 1, "target": 1}
_PLAIN: Final = re.compile(r"[^\"\\\n]*")
"""A text that stands between `"` as it is."""
_UNQUOTED: Final[dict[Type, re.Pattern[str]]] = {
    "duration": DURATION,
    "number": re.compile(r"-?[0-9]+(?:\.[0-9]+)?"),
    "integer": re.compile(r"-?[0-9]+"),
    "boolean": re.compile("true|false"),
    "tools": re.compile("auto|none"),
}
"""Texts that stand for a value of another type, were it not for their quotes."""
_NEVER_TEXT: Final = frozenset[Type](("list", "object", "tool", "tools"))
_TESTS: Final[dict[Type, Test]] = {
    "any": lambda _: True,
    "string": _one_of(nodes.String, nodes.Duration),
    "number": _one_of(nodes.Number),
    "integer": _whole,
    "boolean": _one_of(nodes.Boolean),
    "duration": _one_of(nodes.Duration),
    "list": _one_of(nodes.ListValue),
    "object": _one_of(),
    "name": _one_of(),
    "pattern": _one_of(nodes.String),
    "tool": _one_of(),
    "tools": _one_of(nodes.ListValue),
    "method": _one_of(),
    "schema": _one_of(),
    "rule": _one_of(nodes.Rule),
    "target": _one_of(nodes.ModelRef, nodes.String),
}

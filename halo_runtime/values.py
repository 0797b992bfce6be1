"""JSON values: how they are read, written as text, compared for truth and hashed (spec 2.1, 12.2).

Every value that flows is made of `None`, `bool`, `int`, `float` (finite), `str`, `list` and `dict` with `str` keys,
nested at most `MAX_DEPTH` deep where it enters. All functions here are pure and take such values only; Python objects
become such values in `convert.py`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import repeat
from json.encoder import encode_basestring
from typing import Final

from halo_runtime.errors import RunError
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing

MAX_DEPTH: Final = 200
"""How deep lists and objects may be nested in what comes from outside."""

MAX_WRITTEN_DEPTH: Final = 300
"""How deep a value may be nested to be written or hashed: a program may wrap what came in, but not without end."""

MAX_CONTAINERS: Final = 2_000_000
"""How many lists and objects a value may hold to be written or hashed, one that stands in several places counted at
each: `[x, x]` of `[x, x]` of … is small in memory and without end on paper."""

_SPENT: Final = object()
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)
_TYPE_NAMES: dict[type, str] = {
    type(None): "Null",
    bool: "Boolean",
    int: "Number",
    float: "Number",
    str: "String",
    list: "List",
    dict: "Object",
}


# --- reading ------------------------------------------------------------------------------------------------


def lookup(value: Json, segments: Iterable[str]) -> Json | Missing:
    """What the path leads to: digits index a list, else are a key. MISSING where it leads nowhere."""
    for segment in segments:
        if value.__class__ is dict:
            value = value.get(segment, MISSING)
        elif value.__class__ is list:
            value = _item(value, segment)
        else:
            return MISSING
    return value


def _item(items: list[Json], segment: str) -> Json | Missing:
    # No list has an index of 19 digits, and int() refuses very long texts.
    if len(segment) < 19 and segment.isascii() and segment.isdigit() and int(segment) < len(items):
        return items[int(segment)]
    return MISSING


def truthy(value: Json) -> bool:
    """Whether a bare value passes: all do but null, false, 0, `""`, `"false"`, `[]` and `{}`."""
    return bool(value) and value != "false"


def type_name(value: Json | Missing) -> str:
    """The type as errors name it: Null Boolean Number String List Object, or `nothing` for MISSING."""
    return _TYPE_NAMES.get(value.__class__, "nothing")


def parse_json(text: str) -> Json:
    """The value of a JSON text; of two equal keys the last wins.

    Raises ValueError where the text is no JSON (NaN and infinities are none), a number is out of range, or lists and
    objects are nested deeper than MAX_DEPTH.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    except ValueError as failure:
        if "int_max_str_digits" in str(failure):  # Python's own limit, and its own advice
            raise ValueError("a number has too many digits") from None
        raise
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return value


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:  # an infinity less itself is NaN
        raise ValueError(f"the number {text[:40]} is out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _deeper_than(value: Json, limit: int) -> bool:
    level: list[Json] = [value]
    for _ in range(limit + 1):
        containers = [item for item in level if item.__class__ in (list, dict)]
        if not containers:
            return False
        level = [child for item in containers for child in _children(item)]
    return True


def _children(container: list[Json] | JsonObject) -> Iterable[Json]:
    return container.values() if isinstance(container, dict) else container


# --- writing ------------------------------------------------------------------------------------------------


def text_of(value: Json) -> str:
    """A value inside a text: strings as they are, others as compact JSON."""
    return value if value.__class__ is str else compact(value)


def compact(value: Json) -> str:
    """JSON without spaces: numbers as RFC 8785 writes them but ints in full, key order kept, raw Unicode."""
    if value.__class__ is str:
        return encode_basestring(value)
    return _written(value, sort=False) if _has_float(value) else _COMPACT.encode(value)


def indented(value: Json) -> str:
    """JSON for people: two spaces a level, else as `compact`."""
    _has_float(value)  # for its check of the depth
    return _written(value, sort=False, step="  ")


def canonical(value: Json) -> bytes:
    """RFC 8785, with two things it has no form for: ints in full, lone surrogates as their three bytes."""
    if value.__class__ is str:
        text = encode_basestring(value)
    elif value.__class__ is int:
        return b"%d" % value
    elif _has_float(value):
        text = _written(value, sort=True)
    else:
        text = _SORTED.encode(value)
        # Python sorts keys by code point, RFC 8785 by UTF-16 unit: they differ only beyond the basic plane.
        if not text.isascii() and _ASTRAL.search(text):
            text = _written(value, sort=True)
    return text.encode("utf-8", "surrogatepass")


def digest(value: Json) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def number_text(number: float) -> str:
    """A finite float as RFC 8785 writes it (`1.0` → `1`, `1e21` → `1e+21`)."""
    if abs(number) < 2**53:
        if number.is_integer():
            return str(int(number))
        if abs(number) >= 1e-4:
            return repr(number)  # in this range Python and ECMAScript write the same digits
    import rfc8785  # rare enough to keep it out of every start

    return rfc8785.dumps(number).decode()


def _has_float(value: Json) -> bool:
    """Whether a float is anywhere inside: the C encoder writes all else as we want it.

    Raises RunError for a value that is nested too deep or holds too much: every writer begins here, so none runs out
    of stack or time.
    """
    if value.__class__ is not list and value.__class__ is not dict:
        return value.__class__ is float
    return _holds_float(value, MAX_WRITTEN_DEPTH, repeat(None, MAX_CONTAINERS))


def _holds_float(value: Json, depth: int, budget: Iterator[None]) -> bool:
    """The same for a list or object; each takes one from `budget`."""
    if depth == 0:
        raise RunError(
            f"a value is nested deeper than {MAX_WRITTEN_DEPTH} lists and objects; is a loop wrapping its own result?"
        )
    if next(budget, _SPENT) is _SPENT:
        raise RunError(
            f"a value holds more than {MAX_CONTAINERS:,} lists and objects; is a stage doubling its own result?"
        )
    children = _children(value)
    kinds = set(map(type, children))
    found = float in kinds
    if list in kinds or dict in kinds:
        for child in children:
            if child.__class__ is list or child.__class__ is dict:
                found = _holds_float(child, depth - 1, budget) or found
    return found


def _written(value: Json, *, sort: bool, step: str = "", margin: str = "\n") -> str:
    """The encoder for what the C encoder cannot do: our floats, UTF-16 order of keys, indentation of both."""
    if value.__class__ is float:
        return number_text(value)
    if value.__class__ is str:
        return encode_basestring(value)
    if not value or value.__class__ not in (list, dict):
        return _COMPACT.encode(value)
    inner = margin + step
    parts: list[str] = []
    if value.__class__ is list:
        for item in value:
            parts.append(_written(item, sort=sort, step=step, margin=inner))
        return _bracketed("[", parts, "]", step, margin)
    colon = ": " if step else ":"
    for key, item in sorted(value.items(), key=_utf16) if sort else value.items():
        parts.append(f"{encode_basestring(key)}{colon}{_written(item, sort=sort, step=step, margin=inner)}")
    return _bracketed("{", parts, "}", step, margin)


def _bracketed(left: str, parts: list[str], right: str, step: str, margin: str) -> str:
    if not step:
        return f"{left}{','.join(parts)}{right}"
    return f"{left}{margin}{step}{f',{margin}{step}'.join(parts)}{margin}{right}"


def _utf16(pair: tuple[str, Json]) -> bytes:
    return pair[0].encode("utf-16-be", "surrogatepass")

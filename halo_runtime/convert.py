"""Python objects as JSON values, at the edge where a tool's result enters a run (spec 2.1).

One rule each:

- `None`, `bool`, `int`, `str` as they are; a finite `float` too; NaN and infinities become null, with a warning
- `list` and `tuple` become lists; mappings become objects, whole numbers as keys become text
- `bytes` and their kin become base64 text
- `datetime`, `date` and `time` become ISO 8601 text, `timedelta` a number of seconds
- `Decimal` becomes a number where that says the same in decimal digits, else its text
- `UUID`, paths and IP addresses become their text
- an `Enum` member becomes its value, a dataclass an object of its fields; both are converted in turn

Everything else is refused: a set has no order, and the text of an unknown object is rarely what was meant.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import ipaddress
import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Final, TypeAlias
from uuid import UUID

from halo_runtime.json_types import Json, JsonObject
from halo_runtime.values import MAX_DEPTH

MAX_DIGITS: Final = 4_000
"""How many digits a whole number may have: Python writes and reads no more than 4,300."""

Warn: TypeAlias = Callable[[str], None]
"""Takes a warning, one sentence."""

_Place: TypeAlias = tuple[str | int, ...]


class ConversionError(TypeError):
    """A value has no JSON form; the message names its path and type."""


def to_json(value: object, warn: Warn, *, finite: bool = True) -> Json:
    """The JSON value of a Python object, by the rules above; unless `finite`, NaN and infinities stay, for a later one.

    Raises ConversionError for what has no rule, for objects that contain themselves or are nested deeper than
    MAX_DEPTH, and for whole numbers of more than MAX_DIGITS digits.
    """
    return _Conversion(warn, finite).convert(value, ())


def _decimal(value: Json) -> object:
    if not value.is_finite():
        return math.nan if value.is_nan() else float(value)
    if value.adjusted() < MAX_DIGITS and value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if math.isfinite(number) and Decimal(repr(number)) == value else str(value)


def _fields(value: Json) -> object:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


_IP: Final = (ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv6Address, ipaddress.IPv6Network)

# What to make of an object that is no JSON value; what comes out is looked at again.
_RULES: Final[tuple[tuple[type | tuple[type, ...], Callable[[Json], object]], ...]] = (
    (Enum, lambda member: member.value),
    ((bytes, bytearray, memoryview), lambda data: b64encode(data).decode("ascii")),
    ((dt.date, dt.time), lambda moment: moment.isoformat()),
    (dt.timedelta, lambda duration: duration.total_seconds()),
    (Decimal, _decimal),
    ((UUID, PurePath, *_IP), str),
)


def _simpler(value: object) -> object:
    for kinds, rule in _RULES:
        if isinstance(value, kinds):
            return _simpler(rule(value))
    return _fields(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


class _Conversion:
    """One conversion: where warnings go, and the containers it is inside of, by identity."""

    def __init__(self, warn: Warn, finite: bool) -> None:
        self._warn = warn
        self._finite = finite
        self._inside: set[int] = set()

    def convert(self, value: Json, place: _Place) -> Json:
        # First what is most of all there is; no more than two calls a level, as the stack has to hold MAX_DEPTH.
        if value is None or value.__class__ in (str, bool):
            return value
        simple = _simpler(value)
        for kinds, method in _JSON_KINDS:
            if isinstance(simple, kinds):
                return method(self, simple, place)
        raise ConversionError(f"{_at(place)} is of type {type(value).__name__}, which has no JSON form")

    def scalar(self, value: Json, place: _Place) -> Json:
        return str.__str__(value) if isinstance(value, str) else value

    def integer(self, value: int, place: _Place) -> Json:
        if value.bit_length() * math.log10(2) > MAX_DIGITS:
            raise ConversionError(f"{_at(place)} is a whole number of more than {MAX_DIGITS:,} digits")
        return int(value)

    def number(self, value: float, place: _Place) -> Json:
        if math.isfinite(value) or not self._finite:
            return float(value)
        self._warn(f"{_at(place)} was {value}, which JSON lacks; it became null")
        return None

    def items(self, values: list[Json] | tuple[Json, ...], place: _Place) -> Json:
        self._enter(values, place)
        converted: list[Json] = []
        for index, item in enumerate(values):
            converted.append(self.convert(item, (*place, index)))
        self._inside.discard(id(values))
        return converted

    def mapping(self, values: Mapping[Json, Json], place: _Place) -> Json:
        self._enter(values, place)
        converted: JsonObject = {}
        for key, item in values.items():
            name = _key(key, place)
            converted[name] = self.convert(item, (*place, name))
        self._inside.discard(id(values))
        return converted

    def _enter(self, container: object, place: _Place) -> None:
        if id(container) in self._inside:
            raise ConversionError(f"{_at(place)} contains itself")
        if len(place) >= MAX_DEPTH:
            raise ConversionError(f"{_at(place[:8])}… is nested deeper than {MAX_DEPTH}")
        self._inside.add(id(container))


_JSON_KINDS: Final[tuple[tuple[type | tuple[type, ...], Callable[[_Conversion, Json, _Place], Json]], ...]] = (
    ((str, bool, type(None)), _Conversion.scalar),
    (int, _Conversion.integer),
    (float, _Conversion.number),
    ((list, tuple), _Conversion.items),
    (Mapping, _Conversion.mapping),
)


def _key(key: Json, place: _Place) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool) and key.bit_length() < 64:
        return str(key)
    raise ConversionError(f"{_at(place)} has a key of type {type(key).__name__}; keys are text")


def _at(place: _Place) -> str:
    return f"the result's {'.'.join(map(str, place))}" if place else "the result"

"""The one alias for JSON values: null, Boolean, Number (int or float), String, List, Object (spec 2.1)."""

from __future__ import annotations

from typing import Any, Final, TypeAlias, TypeGuard, final

Json: TypeAlias = Any
"""A JSON value. The only place where `Any` is allowed."""

JsonObject: TypeAlias = dict[str, Json]


def is_object(value: Json) -> TypeGuard[JsonObject]:
    """Whether a JSON value is an Object; unlike `isinstance`, it tells the type checker of what."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """Whether a JSON value is a List."""
    return isinstance(value, list)


@final
class Missing:
    """What a path that leads nowhere gives; distinct from null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()

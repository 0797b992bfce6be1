"""Frozen records: dataclasses with slots whose methods are made when they are first needed.

`@dataclass(frozen=True, slots=True)` compiles six methods a class, whether or not the class is ever used; of the 140
classes that `halo run` knows, that is a fifth of its start. A record looks the same to everyone: to type checkers
(`dataclass_transform`), to `match`, to `dataclasses.fields`, `replace` and `asdict`. Its `__init__` is compiled at the
first instance; what is called seldom is not compiled at all.

Supported is what values need: defaults, `field(...)`, ClassVar, inheritance between records, `__post_init__`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, TypeVar, dataclass_transform

_Class = TypeVar("_Class")
_MISSING: Final = dataclasses.MISSING
_SET: Final = object.__setattr__
_FIELD: Any = dataclasses.Field


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[_Class]) -> type[_Class]:
    """Make a class of annotated fields a frozen record."""
    inherited: dict[str, Any] = getattr(cls, "__record_fields__", {})
    annotated = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - `inspect` takes longer than all records
    own = {
        name: cls.__dict__.get(name, _MISSING) for name, kind in annotated.items() if not kind.startswith("ClassVar")
    }
    fields = {**inherited, **own}
    kept = {name: value for name, value in cls.__dict__.items() if name not in own and name not in _REMADE}
    added = {
        "__slots__": tuple(name for name in own if name not in inherited),
        "__match_args__": tuple(name for name, default in fields.items() if _takes_part(default, "init")),
        "__record_fields__": fields,
        "__record_compared__": tuple(name for name, default in fields.items() if _takes_part(default, "compare")),
        "__dataclass_fields__": _DataclassFields(),
    }
    made = type(cls)(cls.__name__, cls.__bases__, {**_METHODS, **kept, **added})
    made.__qualname__ = cls.__qualname__
    return made


class _DataclassFields:
    """The fields as `dataclasses` keeps them, for its functions; made when one of them asks."""

    def __get__(self, instance: object, owner: type[Any]) -> dict[str, Any]:
        described = [(name, object, _as_field(default)) for name, default in owner.__record_fields__.items()]
        made: Any = dataclasses.make_dataclass(owner.__name__, described, frozen=True)
        found: dict[str, Any] = made.__dataclass_fields__
        _owner(owner).__dataclass_fields__ = found
        return found


def _owner(cls: Any) -> Any:
    """The record that a class is or inherits from."""
    return next(base for base in cls.__mro__ if "__record_fields__" in base.__dict__)


def _as_field(default: Any) -> Any:
    """What `field(...)` gives: for a field that was written with it that, for another the same with its default."""
    return default if isinstance(default, _FIELD) else dataclasses.field(default=default)


def _takes_part(default: Any, where: str) -> bool:
    """Whether a field is one of those for `init`, `repr` or `compare`."""
    return getattr(default, where) if isinstance(default, _FIELD) else True


def _compiled_init(owner: Any) -> Any:
    known: dict[str, Any] = {"_MISSING": _MISSING}
    arguments, body = ["self"], [""]
    for name, default in owner.__record_fields__.items():
        made = _as_field(default)
        if not made.init:
            continue
        value = name
        if made.default_factory is not _MISSING:
            known[f"_{name}"] = made.default_factory
            value = f"_{name}() if {name} is _MISSING else {name}"
            arguments.append(f"{name}=_MISSING")
        elif made.default is not _MISSING:
            known[f"_{name}"] = made.default
            arguments.append(f"{name}=_{name}")
        else:
            arguments.append(name)
        setter = f"_{len(body)}"  # no field's default is called like that
        known[setter] = getattr(owner, name).__set__  # the slot's own, which need not look for the name
        body.append(f"{setter}(self, {value})")
    body.append("self.__post_init__()" if hasattr(owner, "__post_init__") else "")
    text = f"def __init__({', '.join(arguments)}):" + "\n ".join(body) + "\n pass"
    exec(text, known)  # the text is made of field names alone
    return known["__init__"]


# --- what all records have in common ------------------------------------------------------------------------


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    """Compile the class's own `__init__`, let it take this one's place, and call it."""
    owner = _owner(type(self))
    owner.__init__ = _compiled_init(owner)
    owner.__init__(self, *args, **kwargs)


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__record_compared__])


def _eq(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _repr(self: Any) -> str:
    names = (name for name, default in self.__record_fields__.items() if _takes_part(default, "repr"))
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _setattr(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in self.__record_fields__}


def _setstate(self: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        _SET(self, name, value)


_REMADE: Final = frozenset(("__dict__", "__weakref__"))
_METHODS: Final = {
    "__init__": _init,
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}

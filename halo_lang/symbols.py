"""What declarations show to each other, and lookups that remember what they were told.

A check of one declaration sees the others through a `Scope` only. It records every answer, so the result of the
check holds as long as the answers are the same: that is what makes checking incremental.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from halo_lang.nodes import Agent, Declaration, Pipeline, Policy, Provider, Schema, TypeRef
from halo_lang.source import Span
from halo_lang.spelling import NameIndex


class Kind(StrEnum):
    """What a name stands for. Tools and stores are one kind (seed 004)."""

    POLICY = "policy"
    TOOL = "tool"
    SCHEMA = "schema"
    AGENT = "agent"
    PIPELINE = "pipeline"
    UNKNOWN = "unknown"
    """Declared by something that does not parse; nothing is reported about it."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What others can see of a declaration; free of places, so that moving or editing its inside changes nothing.

    `parameters` are a pipeline's, `equips` an agent's tools, `provider` a tool's, `contains` the schemas that a
    schema holds without an Array between.
    """

    kind: Kind
    parameters: tuple[str, ...] = ()
    equips: frozenset[str] = frozenset()
    provider: str = ""
    contains: tuple[str, ...] = ()


GHOST: Final = Interface(Kind.UNKNOWN)
ARRAYS: Final = frozenset({"Array", "List"})
FIELD_TYPES: Final = ("String", "Number", "Integer", "Boolean", *sorted(ARRAYS), "Object", "JSON", "Any")
"""What a schema's field may be beside another schema (seed 003)."""


def interface_of(declaration: Declaration) -> Interface:
    """The interface of a declaration."""
    return _INTERFACES[type(declaration)](declaration)


def held_types(schema: Schema) -> list[TypeRef]:
    """The types of a schema's fields that may be schemas and stand in no Array."""
    return [field.type for field in schema.fields if field.type.name.text not in FIELD_TYPES]


def _policy(_: Policy) -> Interface:
    return Interface(Kind.POLICY)


def _provider(node: Provider) -> Interface:
    return Interface(Kind.TOOL, provider=node.provider.text)


def _schema(node: Schema) -> Interface:
    return Interface(Kind.SCHEMA, contains=tuple(held.name.text for held in held_types(node)))


def _agent(node: Agent) -> Interface:
    return Interface(Kind.AGENT, equips=frozenset(name.text for name in node.names("equips")))


def _pipeline(node: Pipeline) -> Interface:
    return Interface(Kind.PIPELINE, parameters=tuple(parameter.name.text for parameter in node.params))


_INTERFACES: Final[dict[type, Callable[..., Interface]]] = {
    Policy: _policy,
    Provider: _provider,
    Schema: _schema,
    Agent: _agent,
    Pipeline: _pipeline,
}


class Symbols:
    """All names of a program. Of two declarations with one name the first counts (HL201 tells of the second)."""

    def __init__(self, declared: Iterable[tuple[Declaration, Interface]], ghosts: frozenset[str]) -> None:
        interfaces: dict[str, Interface] = dict.fromkeys(ghosts, GHOST)
        repeated: list[Declaration] = []
        for declaration, interface in declared:
            first = interfaces.setdefault(declaration.name.text, interface)
            if first is not interface and first is not GHOST:
                repeated.append(declaration)
        self.interfaces = interfaces
        self.repeated = repeated

    def changed_since(self, other: Symbols) -> set[str]:
        """The names that stand for something else than in `other`, here or there."""
        mine, theirs = self.interfaces, other.interfaces
        if mine == theirs:
            return set()
        return {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}

    def of_kind(self, *kinds: Kind) -> list[str]:
        """The names of these kinds, in order."""
        return [name for name, interface in self.interfaces.items() if interface.kind in kinds]

    def near(self, word: str) -> list[str]:
        """Names that `word` may be a misspelling of, the likeliest first."""
        return self._index.near(word)

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex(self.interfaces)


class Scope:
    """The rest of the program, seen from one declaration that is being checked.

    `text` is the source that the declaration's spans count in. `broken`: the declaration lacks stages that did not
    parse, so what is missing in it may only seem so.
    """

    __slots__ = ("_symbols", "asked", "broken", "guessed", "text")

    def __init__(self, symbols: Symbols, text: str, broken: bool = False) -> None:
        self._symbols = symbols
        self.text = text
        self.broken = broken
        self.asked: dict[str, Interface | None] = {}
        """Every name looked up, with the answer."""
        self.guessed = False
        """Whether an answer depended on all names of the program."""

    def lookup(self, name: str) -> Interface | None:
        """What is declared under a name, None when nothing is."""
        found = self.asked[name] = self._symbols.interfaces.get(name)
        return found

    def suggest(self, word: str, *kinds: Kind) -> str | None:
        """The declared name that `word` is likely to mean, one of these kinds if possible."""
        self.guessed = True
        near = self._symbols.near(word)
        right = (name for name in near if self._symbols.interfaces[name].kind in kinds)
        return next(right, next(iter(near), None))

    def existing(self, *kinds: Kind) -> list[str]:
        """All names of these kinds."""
        self.guessed = True
        return self._symbols.of_kind(*kinds)

    def source(self, span: Span) -> str:
        """The text at a span of the declaration."""
        return self.text[span.start : span.end]

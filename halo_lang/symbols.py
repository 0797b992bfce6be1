"""What declarations show to each other, and lookups that remember what they were told.

A check of one declaration sees the others through a `Scope` only. It records every answer, so the result of the
check holds as long as the answers are the same: that is what makes checking incremental.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, Protocol, TypeAlias

from halo_lang import catalog
from halo_lang.catalog import ProviderSpec
from halo_lang.nodes import Agent, Boolean, Declaration, Pipeline, Policy, Provider, Schema, String, TypeRef
from halo_lang.placeholders import placeholders
from halo_lang.records import record
from halo_lang.source import Span
from halo_lang.spelling import Guess, NameIndex, first_of


class Kind(StrEnum):
    """What a name stands for. Tools and stores are one kind (seed 004)."""

    POLICY = "policy"
    TOOL = "tool"
    SCHEMA = "schema"
    AGENT = "agent"
    PIPELINE = "pipeline"
    UNKNOWN = "unknown"
    """Declared by something that does not parse; nothing is reported about it."""


Asked: TypeAlias = tuple[str, str]
"""What a system prompt asks its agent's callers for: `input`, `data` or nothing (which is either), and a name."""


@record
class Interface:
    """What others can see of a declaration; free of places, so that moving or editing its inside changes nothing.

    `parameters` are a pipeline's; `provider` is a tool's, `changes` whether it can change anything; `contains` are the
    schemas that a schema holds without an Array between. An agent's are `equips`, `requires`, and `fills`: the
    parameters of its callers that its system prompt may read (see `parameter_at`), and `asks`: all that this prompt
    needs of them to be filled in, unless the agent is a shadow, which reads what another one does. `asks_json` tells of
    an agent that its system prompt asks for JSON, of a policy that it demands it.
    """

    kind: Kind
    parameters: tuple[str, ...] = ()
    provider: str = ""
    changes: bool = False
    contains: tuple[str, ...] = ()
    equips: frozenset[str] = frozenset()
    requires: frozenset[str] = frozenset()
    fills: frozenset[str] = frozenset()
    asks: frozenset[Asked] = frozenset()
    asks_json: bool = False


GHOST: Final = Interface(Kind.UNKNOWN)
ARRAYS: Final = frozenset({"Array", "List"})
EVERY_PARAMETER: Final = "*"
FIELD_TYPES: Final = ("String", "Number", "Integer", "Boolean", *sorted(ARRAYS), "Object", "JSON", "Any")
"""What a schema's field may be beside another schema (seed 003)."""


_JSON_RULES: Final = frozenset({"RequireJSON", "RequireSchema"})
_WORD_JSON: Final = re.compile(r"\bjson\b", re.IGNORECASE)


def interface_of(declaration: Declaration) -> Interface:
    """The interface of a declaration."""
    return _INTERFACES[type(declaration)](declaration)


def held_types(schema: Schema) -> list[TypeRef]:
    """The types of a schema's fields that may be schemas and stand in no Array."""
    return [field.type for field in schema.fields if field.type.name.text not in FIELD_TYPES]


def parameter_at(path: Sequence[str]) -> str | None:
    """The name that a path reads where that is a parameter; `EVERY_PARAMETER` for all, None where it cannot be one."""
    if path[0] != "context":
        return path[0]
    if len(path) > 1 and path[1] == "input":
        return path[2] if len(path) > 2 else EVERY_PARAMETER
    return None


def asked_at(path: Sequence[str]) -> Asked | None:
    """What a path in a system prompt asks the callers of its agent for; None where they have no part in it."""
    match path:
        case ["context", "input" | "data" as namespace, name, *_]:
            return namespace, name
        case ["context" | "current" | "Env", *_]:
            return None
        case _:
            return "", path[0]


def asks_for_json(text: str) -> bool:
    """Whether an instruction or system prompt has the word JSON in it (spec 12.3)."""
    return _WORD_JSON.search(text) is not None


def _policy(node: Policy) -> Interface:
    return Interface(Kind.POLICY, asks_json=any(rule.name.text in _JSON_RULES for rule in node.rules))


def _provider(node: Provider) -> Interface:
    spec = catalog.provider(node.provider.text)
    named = ((argument.name.text, argument.value) for argument in node.args if argument.name is not None)
    flags = {name: value.value for name, value in named if isinstance(value, Boolean)}
    return Interface(Kind.TOOL, provider=node.provider.text, changes=spec is not None and spec.can_change(flags))


def _schema(node: Schema) -> Interface:
    return Interface(Kind.SCHEMA, contains=tuple(held.name.text for held in held_types(node)))


def _agent(node: Agent) -> Interface:
    prompt = system_prompt(node)
    system = prompt.value if prompt is not None else ""
    paths = [found.segments for found in placeholders(system)] if "{{" in system else []
    is_shadow = any(directive.name.text == "shadow" for directive in node.directives)
    return Interface(
        Kind.AGENT,
        equips=frozenset(name.text for name in node.names("equips")),
        requires=frozenset(name.text for name in node.names("requires")),
        fills=frozenset(name for name in map(parameter_at, paths) if name is not None),
        asks=frozenset(asked for asked in map(asked_at, paths) if asked is not None and not is_shadow),
        asks_json=asks_for_json(system),
    )


def system_prompt(node: Agent) -> String | None:
    """An agent's system prompt: the `system` modifier, else the entry in the brackets."""
    if node.system is not None:
        return node.system
    known = catalog.AGENT_SETTINGS.by_name
    for setting in node.config:
        entry = known.get(setting.name.text) if setting.name is not None else None
        if entry is not None and entry.name == "system" and isinstance(setting.value, String):
            return setting.value
    return None


def _pipeline(node: Pipeline) -> Interface:
    return Interface(Kind.PIPELINE, parameters=tuple(parameter.name.text for parameter in node.params))


_INTERFACES: Final[dict[type, Callable[..., Interface]]] = {
    Policy: _policy,
    Provider: _provider,
    Schema: _schema,
    Agent: _agent,
    Pipeline: _pipeline,
}


class Declared(Protocol):
    """A declaration with its interface."""

    @property
    def declaration(self) -> Declaration: ...
    @property
    def interface(self) -> Interface: ...


class Symbols:
    """All names of a program. Of two declarations with one name the first counts (HL201 tells of the second)."""

    def __init__(self, declared: Iterable[Declared], ghosts: frozenset[str]) -> None:
        interfaces: dict[str, Interface] = dict.fromkeys(ghosts, GHOST)
        repeated: list[Declaration] = []
        for one in declared:
            interface = one.interface
            first = interfaces.setdefault(one.declaration.name.text, interface)
            if first is not interface and first is not GHOST:
                repeated.append(one.declaration)
        self.interfaces = interfaces
        self.repeated = repeated
        self.told: Mapping[str, ProviderSpec] = {}
        """What servers have said of the methods of declared tools."""
        self._listings: dict[tuple[Kind, ...], tuple[str, ...]] = {}

    def changed_since(self, other: Symbols) -> set[str]:
        """The names that stand for something else than in `other`, here or there."""
        mine, theirs = self.interfaces, other.interfaces
        if mine == theirs:
            return set()
        pairs = ((name, mine.get(name), theirs.get(name)) for name in mine.keys() | theirs.keys())
        # A whole file can become ghosts and back; nothing that parses is one.
        return {name for name, now, was in pairs if now is not was and (now is GHOST or was is GHOST or now != was)}

    def of_kind(self, *kinds: Kind) -> list[str]:
        """The names of these kinds, in order."""
        return [name for name, interface in self.interfaces.items() if interface.kind in kinds]

    def listing(self, *kinds: Kind) -> tuple[str, ...]:
        """The names of these kinds by the alphabet: what a hint says of them stays true when declarations move."""
        found = self._listings.get(kinds)
        if found is None:  # one pass for all the hints of a program, however many they are
            found = self._listings[kinds] = tuple(sorted(self.of_kind(*kinds)))
        return found

    @cached_property
    def asking(self) -> frozenset[str]:
        """The agents whose system prompts ask their callers for something."""
        return frozenset(name for name, interface in self.interfaces.items() if interface.asks)

    def is_ghost(self, name: str) -> bool:
        """Whether a name is declared by something that does not parse."""
        return self.interfaces.get(name) is GHOST

    def near(self, word: str) -> tuple[str, ...]:
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

    __slots__ = ("_symbols", "asked", "broken", "guessed", "shared", "text")

    def __init__(self, symbols: Symbols, text: str, broken: bool = False) -> None:
        self._symbols = symbols
        self.text = text
        self.broken = broken
        self.asked: dict[str, Interface | None] = {}
        """Every name looked up, with the answer."""
        self.guessed = False
        """Whether an answer depended on all names of the program."""
        self.shared: dict[type, object] = {}
        """What one check of the declaration worked out for the others."""

    def lookup(self, name: str) -> Interface | None:
        """What is declared under a name, None when nothing is."""
        found = self.asked[name] = self._symbols.interfaces.get(name)
        return found

    def provider(self, tool: str) -> ProviderSpec | None:
        """What a tool's provider can do, as its server has said, else as the catalogue has it; None for no tool."""
        found = self.lookup(tool)
        if found is None or found.kind is not Kind.TOOL:
            return None
        return self._symbols.told.get(tool) or catalog.provider(found.provider)

    def suggest(self, word: str, *kinds: Kind) -> Guess | None:
        """The declared name that `word` is likely to mean, one of these kinds if there are any."""
        self.guessed = True
        near = self._symbols.near(word)
        return first_of(word, (name for name in near if not kinds or self._symbols.interfaces[name].kind in kinds))

    def existing(self, *kinds: Kind) -> tuple[str, ...]:
        """All names of these kinds, by the alphabet."""
        self.guessed = True
        return self._symbols.listing(*kinds)

    def source(self, span: Span) -> str:
        """The text at a span of the declaration."""
        return self.text[span.start : span.end]

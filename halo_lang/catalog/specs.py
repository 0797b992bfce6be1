"""The kinds of catalogue entries: providers, rules, directives, codes. Signatures and methods are in `signature`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from halo_lang.catalog.signature import Method, Signature, camel_case, snake_case
from halo_lang.records import record


@dataclass(frozen=True)
class ProviderSpec:
    """What `tool Name : Provider(config)` may say and what can then be called.

    `open_methods`: a name that is not listed is a path or comes from the server, so it is never unknown (HL301).
    `extra` is the package extra that brings what it needs, None when a bare install has it; `extra_where` is an extra
    that is needed only where a setting begins with a text: extra, setting, text. `changes_if` is the
    setting, with its value, without which nothing can be changed; None where nothing needs to be allowed. `listed`: the
    provider asks its server which methods there are when they are offered to a model (`SelfDescribing`). `unasked` are
    the methods that `tools: auto` does not offer: what the engine does by itself where such a tool is equipped.
    One that `notifies` can tell people of a question whose `channel:` it is.
    """

    name: str
    config: Signature
    methods: tuple[Method, ...]
    doc: str
    example: str
    aliases: tuple[str, ...] = ()
    open_methods: Method | None = None
    extra: str | None = None
    extra_where: tuple[str, str, str] | None = None
    changes_if: tuple[str, bool] | None = None
    notifies: bool = False
    listed: bool = False
    unasked: tuple[str, ...] = ()

    def method(self, name: str) -> Method | None:
        """The method written `name`, in snake_case or camelCase; an open provider has one for every name."""
        return self._spellings.get(name, self.open_methods)

    @property
    def method_names(self) -> tuple[str, ...]:
        """The methods' names as the docs spell them."""
        return tuple(method.name for method in self.methods)

    def can_change(self, settings: Mapping[str, object]) -> bool:
        """Whether a tool with these settings has methods that change something, for ever or not."""
        if self.changes_if is not None and settings.get(self.changes_if[0]) is not self.changes_if[1]:
            return False
        methods = (*self.methods, self.open_methods) if self.open_methods is not None else self.methods
        return any(method.effect != "read" for method in methods)

    @property
    def changes_unasked(self) -> bool:
        """Whether something that changes something is among what `tools: auto` offers."""
        if self.open_methods is not None or self.listed:
            return True
        return any(method.effect != "read" and method.name not in self.unasked for method in self.methods)

    def offered(self, settings: Mapping[str, object], *, auto: bool) -> tuple[Method, ...]:
        """The methods that a model is offered of a tool with these settings: those that work; `auto`: unasked."""
        can_change = self.changes_if is None or self.can_change(settings)
        return tuple(
            method
            for method in self.methods
            if (can_change or method.effect == "read") and not (auto and method.name in self.unasked)
        )

    @cached_property
    def _spellings(self) -> dict[str, Method]:
        return {spelling(method.name): method for method in self.methods for spelling in (snake_case, camel_case)}


Point: TypeAlias = Literal["input", "output", "tool", "result", "budget", "call"]


@record
class RuleSpec:
    """A policy rule. `points` are where it is evaluated; `budget` rules count over a run, `call` rules time a call."""

    name: str
    signature: Signature
    points: tuple[Point, ...]
    doc: str
    example: str
    extra: str | None = None
    aliases: tuple[str, ...] = ()


Target: TypeAlias = Literal["agent", "pipeline"]


@record
class DirectiveSpec:
    """A directive `@name(…)` and the declarations it may stand on."""

    name: str
    signature: Signature
    applies_to: tuple[Target, ...]
    doc: str
    example: str
    aliases: tuple[str, ...] = ()


@record
class Code:
    """A diagnostic code. `wrong` gives exactly this one, `right` shows how it is meant and gives none.

    A byte that is no UTF-8 stands in an example as a surrogate escape.
    """

    name: str
    severity: Literal["error", "warning", "info"]
    title: str
    text: str
    wrong: str
    right: str

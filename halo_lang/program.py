"""A parsed program: its units of text, the declarations in them, and where each stands.

A unit is the text from one declaration to the next (comments behind a declaration are part of its unit). What is
known about a unit follows from its text alone, so a unit whose text did not change serves the next version of the
program as it is: only where it stands has to be reckoned anew, and that is done when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress
from operator import attrgetter

from halo_lang.diagnostics import Diagnostic
from halo_lang.nodes import Declaration, Pipeline
from halo_lang.source import Position, Source, Span

_TEXT = attrgetter("text")
_DIAGNOSTICS = attrgetter("diagnostics")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Unit:
    """The text of one declaration up to the next, and what the parser made of it."""

    text: str
    declaration: Declaration | None = None
    """None where there is none, or none that can be used."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Syntax errors, with spans relative to the unit."""
    ghosts: frozenset[str] = frozenset()
    """Names that the unit declares without a usable declaration."""
    unsettled: bool = False
    """See `scanner.Piece`: the end of the unit depends on the quotes behind it."""


@dataclass(frozen=True, eq=False)
class Program:
    """One version of a source text as a program. Immutable; the maps are made when they are first asked for."""

    source: Source
    units: tuple[Unit, ...]
    """The whole text in pieces: joined they are `source.text`."""
    spare: tuple[Unit, ...] = ()
    """Units of an earlier version that one edit put out of use, such as an opening `/*`; the next may want them."""

    @cached_property
    def declarations(self) -> tuple[Declaration, ...]:
        """All usable declarations in order, pipelines that lack a broken stage among them (see `broken`)."""
        return tuple(unit.declaration for unit in self.units if unit.declaration is not None)

    @cached_property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines in order."""
        return tuple(declaration for declaration in self.declarations if isinstance(declaration, Pipeline))

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The syntax errors in order, with absolute spans."""
        # Most units have none, and a file may have very many units: they are gone through without Python's doing.
        found = compress(zip(self.units, self.starts, strict=True), map(_DIAGNOSTICS, self.units))
        return tuple(diagnostic.shifted(start) for unit, start in found for diagnostic in unit.diagnostics)

    @cached_property
    def ghosts(self) -> frozenset[str]:
        """Names of declarations that did not parse: known, but of unknown kind and content."""
        return frozenset(name for unit in self.units for name in unit.ghosts)

    @cached_property
    def broken(self) -> frozenset[str]:
        """Names of the pipelines that stand in `declarations` without some stage, because it did not parse."""
        return frozenset(
            unit.declaration.name.text for unit in self.units if unit.diagnostics and unit.declaration is not None
        )

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset of each unit."""
        return tuple(accumulate(map(len, map(_TEXT, self.units[:-1])), initial=0)) if self.units else ()

    def find(self, name: str) -> Declaration | None:
        """The first declaration of that name."""
        return self._by_name.get(name)

    def offset_of(self, declaration: Declaration) -> int:
        """The absolute offset that the spans of the declaration's nodes are relative to."""
        return self._offsets[id(declaration)]

    def span(self, declaration: Declaration, span: Span) -> Span:
        """A span of one of the declaration's nodes, as an absolute one."""
        return span.shifted(self.offset_of(declaration))

    def position(self, declaration: Declaration, span: Span) -> Position:
        """Line and column where a span of one of the declaration's nodes starts."""
        return self.source.position(span.start + self.offset_of(declaration))

    @cached_property
    def _by_name(self) -> dict[str, Declaration]:
        return {declaration.name.text: declaration for declaration in reversed(self.declarations)}

    @cached_property
    def _offsets(self) -> dict[int, int]:
        # By identity: two declarations may be equal in all but their place.
        pairs = zip(self.units, self.starts, strict=True)
        return {id(unit.declaration): start for unit, start in pairs if unit.declaration is not None}

"""Checking a program: syntax errors and everything the checks find, in order, with as little work as the edit needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from halo_lang.checks import DECLARATION_CHECKS, PROGRAM_CHECKS
from halo_lang.checks.whole import Known, PriceLookup, Whole, summarize
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Declaration
from halo_lang.program import Program, Unit
from halo_lang.symbols import Interface, Scope, Symbols, interface_of


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """What is known about one unit: its diagnostics (places relative to it) and the answers they rest on."""

    unit: Unit
    known: Known
    diagnostics: tuple[Diagnostic, ...]
    asked: dict[str, Interface | None]
    guessed: bool

    @property
    def declaration(self) -> Declaration:
        """The unit's declaration."""
        return self.known.declaration

    def holds(self, changed: set[str]) -> bool:
        """Whether the result is still right when those names (at least one) stand for something else now."""
        return not self.guessed and changed.isdisjoint(self.asked)


@dataclass(frozen=True, eq=False)
class Analysis:
    """A program and all its diagnostics, sorted by place. Give it to the next `check` to save work."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]
    symbols: Symbols
    checked: dict[int, Checked]
    """By identity of the unit, which each value keeps alive."""

    @cached_property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that keep the program from running."""
        return tuple(found for found in self.diagnostics if found.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """Whether the program can run."""
        return not self.errors


def check(program: Program, previous: Analysis | None = None, *, is_priced: PriceLookup | None = None) -> Analysis:
    """Check a program; of `previous` is kept what the edit between the two cannot have touched.

    `is_priced` says whether the cost of a model is known; without it HL511 is never reported.
    """
    before = previous.checked if previous is not None else {}
    declared = [(unit, unit.declaration) for unit in program.units if unit.declaration is not None]
    kept = [before.get(id(unit)) for unit, _ in declared]
    known = [
        Known(declaration, interface_of(declaration), summarize(declaration)) if entry is None else entry.known
        for (_, declaration), entry in zip(declared, kept, strict=True)
    ]
    symbols = Symbols([(one.declaration, one.interface) for one in known], program.ghosts)
    changed = symbols.changed_since(previous.symbols) if previous is not None else set[str]()
    checked: dict[int, Checked] = {}
    for (unit, _), entry, one in zip(declared, kept, known, strict=True):
        if entry is None or (changed and not entry.holds(changed)):
            entry = _check_unit(unit, one, symbols)
        checked[id(unit)] = entry
    whole = Whole(program, symbols, known, _meant(checked), is_priced)
    found = chain(program.diagnostics, _placed(program, checked), _across(whole))
    return Analysis(program, tuple(sorted(found, key=_place)), symbols, checked)


def _check_unit(unit: Unit, known: Known, symbols: Symbols) -> Checked:
    scope = Scope(symbols, unit.text, broken=bool(unit.diagnostics))
    diagnostics = tuple(found for check in DECLARATION_CHECKS for found in check(known.declaration, scope))
    return Checked(unit, known, diagnostics, scope.asked, scope.guessed)


def _placed(program: Program, checked: dict[int, Checked]) -> list[Diagnostic]:
    spoken = [entry for entry in checked.values() if entry.diagnostics]
    return [found.shifted(program.offset_of(entry.declaration)) for entry in spoken for found in entry.diagnostics]


def _meant(checked: dict[int, Checked]) -> frozenset[str]:
    found = (one for entry in checked.values() if entry.diagnostics for one in entry.diagnostics)
    return frozenset(one.fix.text for one in found if one.code == "HL203" and one.fix is not None)


def _across(whole: Whole) -> list[Diagnostic]:
    return [found for check in PROGRAM_CHECKS for found in check(whole)]


def _place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    return diagnostic.span.start, diagnostic.span.end, diagnostic.code

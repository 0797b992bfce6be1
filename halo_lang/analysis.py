"""Checking a program: syntax errors and everything the checks find, in order, with as little work as the edit needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from halo_lang.checks import DECLARATION_CHECKS, PROGRAM_CHECKS
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.nodes import Declaration
from halo_lang.program import Program, Unit
from halo_lang.symbols import Interface, Scope, Symbols, interface_of


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """What is known about one unit: its diagnostics (places relative to it) and the answers they rest on."""

    unit: Unit
    declaration: Declaration
    interface: Interface
    diagnostics: tuple[Diagnostic, ...]
    asked: dict[str, Interface | None]
    guessed: bool

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


def check(program: Program, previous: Analysis | None = None) -> Analysis:
    """Check a program; of `previous` is kept what the edit between the two cannot have touched."""
    known = previous.checked if previous is not None else {}
    declared = [(unit, unit.declaration) for unit in program.units if unit.declaration is not None]
    kept = [known.get(id(unit)) for unit, _ in declared]
    pairs = [
        (declaration, interface_of(declaration) if entry is None else entry.interface)
        for (_, declaration), entry in zip(declared, kept, strict=True)
    ]
    symbols = Symbols(pairs, program.ghosts)
    changed = symbols.changed_since(previous.symbols) if previous is not None else set[str]()
    checked: dict[int, Checked] = {}
    for (unit, _), entry, (declaration, interface) in zip(declared, kept, pairs, strict=True):
        if entry is None or (changed and not entry.holds(changed)):
            entry = _check_unit(unit, declaration, interface, symbols)
        checked[id(unit)] = entry
    found = chain(program.diagnostics, _placed(program, checked), _across(program, symbols))
    return Analysis(program, tuple(sorted(found, key=_place)), symbols, checked)


def _check_unit(unit: Unit, declaration: Declaration, interface: Interface, symbols: Symbols) -> Checked:
    scope = Scope(symbols, unit.text, broken=bool(unit.diagnostics))
    diagnostics = tuple(found for check in DECLARATION_CHECKS for found in check(declaration, scope))
    return Checked(unit, declaration, interface, diagnostics, scope.asked, scope.guessed)


def _placed(program: Program, checked: dict[int, Checked]) -> list[Diagnostic]:
    spoken = [entry for entry in checked.values() if entry.diagnostics]
    return [found.shifted(program.offset_of(entry.declaration)) for entry in spoken for found in entry.diagnostics]


def _across(program: Program, symbols: Symbols) -> list[Diagnostic]:
    return [found for check in PROGRAM_CHECKS for found in check(program, symbols)]


def _place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    return diagnostic.span.start, diagnostic.span.end, diagnostic.code

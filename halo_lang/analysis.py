"""Checking a program: syntax errors and everything the checks find, in order, with as little work as the edit needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from halo_lang.checks import DECLARATION_CHECKS, PROGRAM_CHECKS, SUMMARY_CHECKS
from halo_lang.checks.whole import Finding, Known, PriceLookup, Summary, Whole, summarize
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
    checked: dict[int, Checked]
    """By identity of the unit, which each value keeps alive."""
    whole: Whole
    findings: tuple[Finding, ...]
    """What the summaries of all declarations show."""

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
        _known(unit, declaration) if entry is None else entry.known
        for (unit, declaration), entry in zip(declared, kept, strict=True)
    ]
    symbols = Symbols(known, program.ghosts)
    changed = symbols.changed_since(previous.whole.symbols) if previous is not None else set[str]()
    checked: dict[int, Checked] = {}
    for (unit, _), entry, one in zip(declared, kept, known, strict=True):
        if entry is None or (changed and not entry.holds(changed)):
            entry = _check_unit(unit, one, symbols)
        checked[id(unit)] = entry
    whole = Whole(program, symbols, known, (*program.diagnostics, *_placed(program, checked)), is_priced)
    if previous is None or changed or _differs(previous, whole, checked):
        findings = tuple(finding for check in SUMMARY_CHECKS for finding in check(whole))
    else:
        findings = previous.findings
    found = chain(whole.told, _across(whole), *(finding(whole) for finding in findings))
    return Analysis(program, tuple(sorted(found, key=_place)), checked, whole, findings)


def _known(unit: Unit, declaration: Declaration) -> Known:
    return Known(declaration, interface_of(declaration), summarize(declaration, broken=bool(unit.diagnostics)))


def _differs(previous: Analysis, whole: Whole, checked: dict[int, Checked]) -> bool:
    """Whether a summary changed, or prices are looked up elsewhere; what names stand for is known to be the same."""
    if previous.whole.is_priced is not whole.is_priced:
        return True
    came = _facts(entry.known for key, entry in checked.items() if key not in previous.checked)
    return came != _facts(entry.known for key, entry in previous.checked.items() if key not in checked)


def _facts(known: Iterable[Known]) -> Counter[tuple[str, Interface, Summary]]:
    return Counter((one.declaration.name.text, one.interface, one.summary) for one in known)


def _check_unit(unit: Unit, known: Known, symbols: Symbols) -> Checked:
    scope = Scope(symbols, unit.text, broken=bool(unit.diagnostics))
    diagnostics = tuple(found for check in DECLARATION_CHECKS for found in check(known.declaration, scope))
    return Checked(unit, known, diagnostics, scope.asked, scope.guessed)


def _placed(program: Program, checked: dict[int, Checked]) -> list[Diagnostic]:
    spoken = [entry for entry in checked.values() if entry.diagnostics]
    return [found.shifted(program.offset_of(entry.declaration)) for entry in spoken for found in entry.diagnostics]


def _across(whole: Whole) -> list[Diagnostic]:
    return [found for check in PROGRAM_CHECKS for found in check(whole)]


def _place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    return diagnostic.span.start, diagnostic.span.end, diagnostic.code

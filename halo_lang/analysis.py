"""Checking a program: syntax errors and everything the checks find, in order, with as little work as the edit needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter

from halo_lang.catalog import ProviderSpec
from halo_lang.checks import DECLARATION_CHECKS, PROGRAM_CHECKS, SUMMARY_CHECKS
from halo_lang.checks.supply import Supply, supply_of
from halo_lang.checks.whole import Finding, Known, PriceLookup, Summary, Whole, summarize
from halo_lang.collector import without_collector
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.incremental import common_end, common_start
from halo_lang.nodes import Declaration
from halo_lang.program import Program, Unit
from halo_lang.symbols import Interface, Scope, Symbols, interface_of

_DIAGNOSTICS = attrgetter("diagnostics")


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


def check(
    program: Program,
    previous: Analysis | None = None,
    *,
    is_priced: PriceLookup | None = None,
    told: Mapping[str, ProviderSpec] | None = None,
) -> Analysis:
    """Check a program; of `previous` is kept what the edit between the two cannot have touched.

    `is_priced` says whether the cost of a model is known; without it HL511 is never reported.
    `told` is what servers have said of the methods of declared tools, by the tool's name; it goes before the catalogue,
    and with no `previous`.
    """
    with without_collector():
        edit = _edit(program, previous)
        symbols = _symbols(program, edit, previous)
        symbols.told = told or symbols.told
        checked, changed = _checked(edit, symbols, previous)
        whole = Whole(program, symbols, checked, (*program.diagnostics, *_placed(program, checked)), is_priced)
        if previous is None or changed or _differs(previous, whole, edit):
            findings = tuple(finding for check in SUMMARY_CHECKS for finding in check(whole))
        else:
            findings = previous.findings
        found = chain(whole.told, _across(whole), *(finding(whole) for finding in findings))
        return Analysis(program, tuple(sorted(found, key=_place)), checked, whole, findings)


@dataclass(frozen=True, slots=True, eq=False)
class _Edit:
    """What is between two versions: the units with a declaration that came, with what they say, and those that went."""

    came: dict[Unit, Known]
    went: dict[Unit, Known]
    ghosts: bool
    """Whether the names of what did not parse may have changed."""


def _edit(program: Program, previous: Analysis | None) -> _Edit:
    new = program.units
    old = () if previous is None else previous.program.units
    before = {} if previous is None else previous.checked
    front = common_start(old, new, min(len(old), len(new)))
    back = common_end(old, new, min(len(old), len(new)) - front)
    old, new = old[front : len(old) - back], new[front : len(new) - back]
    went = {unit: before[id(unit)].known for unit in old if unit.declaration is not None}
    came = {unit: went.get(unit) or _known(unit, unit.declaration) for unit in new if unit.declaration is not None}
    return _Edit(came, went, {unit.ghosts for unit in old} != {unit.ghosts for unit in new})


def _symbols(program: Program, edit: _Edit, previous: Analysis | None) -> Symbols:
    """All names; the very object of the previous version where the edit changes nothing that others can see."""
    if previous is None:
        return Symbols(edit.came.values(), program.ghosts)
    symbols = previous.whole.symbols
    # What is declared twice is kept as a node, which stands for one version only.
    if not edit.ghosts and not symbols.repeated and _shown(edit.came) == _shown(edit.went):
        return symbols
    units = (unit for unit in program.units if unit.declaration is not None)
    return Symbols([edit.came.get(unit) or previous.checked[id(unit)].known for unit in units], program.ghosts)


def _shown(known: dict[Unit, Known]) -> list[tuple[str, Interface]]:
    return [(one.declaration.name.text, one.interface) for one in known.values()]


def _checked(edit: _Edit, symbols: Symbols, previous: Analysis | None) -> tuple[dict[int, Checked], set[str]]:
    """What holds for each unit now, and the names that stand for something else than before."""
    before = {} if previous is None else previous.checked
    earlier = symbols if previous is None else previous.whole.symbols
    changed = set[str]() if earlier is symbols else symbols.changed_since(earlier)
    checked = dict(before)
    for unit in edit.went:
        del checked[id(unit)]
    for unit, known in edit.came.items():
        checked[id(unit)] = before.get(id(unit)) or _check_unit(unit, known, symbols)
    if changed:
        for key, entry in before.items():
            if key in checked and not entry.holds(changed):
                checked[key] = _check_unit(entry.unit, entry.known, symbols)
    return checked, changed


def _known(unit: Unit, declaration: Declaration) -> Known:
    summary = summarize(declaration, broken=bool(unit.diagnostics))
    return Known(declaration, interface_of(declaration), summary, supply_of(declaration))


def _differs(previous: Analysis, whole: Whole, edit: _Edit) -> bool:
    """Whether a summary changed, or prices are looked up elsewhere; what names stand for is known to be the same."""
    asking = whole.symbols.asking
    return previous.whole.is_priced is not whole.is_priced or _facts(edit.came, asking) != _facts(edit.went, asking)


def _facts(known: dict[Unit, Known], asking: Set[str]) -> Counter[tuple[str, Interface, Summary, Supply | None]]:
    # What a pipeline has for its agents changes with every letter of a result's name, and seldom does one ask for it.
    return Counter(
        (one.declaration.name.text, one.interface, one.summary, one.supply if one.supply.reaches(asking) else None)
        for one in known.values()
    )


def _check_unit(unit: Unit, known: Known, symbols: Symbols) -> Checked:
    scope = Scope(symbols, unit.text, broken=bool(unit.diagnostics))
    diagnostics = tuple(found for check in DECLARATION_CHECKS for found in check(known.declaration, scope))
    return Checked(unit, known, diagnostics, scope.asked, scope.guessed)


def _placed(program: Program, checked: dict[int, Checked]) -> list[Diagnostic]:
    spoken = compress(checked.values(), map(_DIAGNOSTICS, checked.values()))
    return [found.shifted(program.offset_of(entry.declaration)) for entry in spoken for found in entry.diagnostics]


def _across(whole: Whole) -> list[Diagnostic]:
    return [found for check in PROGRAM_CHECKS for found in check(whole)]


def _place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    return diagnostic.span.start, diagnostic.span.end, diagnostic.code

"""Every name of a program that means something: where it stands, also inside strings, and what it means there.

A unit's occurrences follow from its text and from what it asked about other declarations. They are kept with the unit
as long as the answers are the same, so after an edit only the edited unit is read again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

from halo_lang import nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.meanings import Entity, EntityKind, Meaning, PipelineNames
from halo_lang.assist.naming import Occurrence, named_in, system_prompts, texts_read
from halo_lang.checks.walk import calls
from halo_lang.nodes import Agent, Pipeline
from halo_lang.program import Program, Unit
from halo_lang.source import Span
from halo_lang.symbols import Interface, Scope, Symbols


class Found(NamedTuple):
    """An occurrence with its place in the whole text."""

    span: Span
    occurrence: Occurrence


@dataclass(frozen=True)
class _Index:
    """What one unit says, in order, and the answers about other declarations that this rests on."""

    occurrences: tuple[Occurrence, ...] = ()
    names: PipelineNames | None = None
    asked: dict[str, Interface | None] = field(default_factory=dict[str, "Interface | None"])

    def holds(self, symbols: Symbols) -> bool:
        """Whether the answers are still the same."""
        now = symbols.interfaces.get
        return all(now(name) is answer or now(name) == answer for name, answer in self.asked.items())

    def at(self, offset: int) -> Occurrence | None:
        """What stands at an offset, or ends there."""
        number = bisect_right(self.occurrences, offset, key=lambda one: one.span.start) - 1
        found = self.occurrences[number] if number >= 0 else None
        return found if found is not None and offset <= found.span.end else None

    @cached_property
    def by_entity(self) -> dict[Entity, list[Occurrence]]:
        """The occurrences by what they may mean."""
        found: dict[Entity, list[Occurrence]] = {}
        for occurrence in self.occurrences:
            for entity in occurrence.entities:
                found.setdefault(entity, []).append(occurrence)
        return found


_INDEXES: WeakKeyDictionary[Unit, _Index] = WeakKeyDictionary()
"""By identity of the unit. What is kept is looked at again before it is used, so no caller can see the difference."""


def occurrence_at(analysis: Analysis, offset: int) -> Found | None:
    """What stands at an offset, or ends there."""
    number = _unit_at(analysis.program, offset)
    if number is None:
        return None
    start = analysis.program.starts[number]
    # Prompts take a look at all who call the agent, so they come last.
    for index in _indexes(analysis, analysis.program.units[number]):
        found = index.at(offset - start)
        if found is not None:
            return Found(found.span.shifted(start), found)
    return None


def occurrences_of(analysis: Analysis, entity: Entity) -> list[Found]:
    """Every place that may mean an entity, in order."""
    owner = "" if entity.kind is EntityKind.BUILT_IN else entity.owner.partition(".")[0]
    found: list[Found] = []
    for unit, start in zip(analysis.program.units, analysis.program.starts, strict=True):
        # Only an agent's prompt can mean what belongs to a declaration without naming that.
        if entity.name in unit.text and (owner in unit.text or isinstance(unit.declaration, Agent)):
            for index in _indexes(analysis, unit):
                found += (Found(one.span.shifted(start), one) for one in index.by_entity.get(entity, ()))
    return sorted(found, key=lambda one: one.span)


def mentioning(analysis: Analysis, *names: str) -> Iterator[Found]:
    """The occurrences in those units that have one of the names in their text, in order."""
    for number, unit in enumerate(analysis.program.units):
        if any(name in unit.text for name in names):
            yield from in_unit(analysis, number)


def in_unit(analysis: Analysis, number: int) -> list[Found]:
    """The occurrences in one unit, in order."""
    unit, start = analysis.program.units[number], analysis.program.starts[number]
    found = (one for index in _indexes(analysis, unit) for one in index.occurrences)
    return sorted((Found(one.span.shifted(start), one) for one in found), key=lambda one: one.span)


def pipeline_names(analysis: Analysis, pipeline: Pipeline) -> PipelineNames | None:
    """The names in a pipeline of the program."""
    number = _unit_at(analysis.program, analysis.program.offset_of(pipeline))
    return _index(analysis, analysis.program.units[number]).names if number is not None else None


def _unit_at(program: Program, offset: int) -> int | None:
    """The number of the unit that an offset is in."""
    number = bisect_right(program.starts, offset) - 1
    return number if number >= 0 else None


def _indexes(analysis: Analysis, unit: Unit) -> Iterator[_Index]:
    """What a unit says by itself, then what an agent's prompt in it reads."""
    yield _index(analysis, unit)
    if isinstance(unit.declaration, Agent) and "{{" in unit.text:
        yield _Index(_prompt_reads(analysis, unit, unit.declaration))


def _index(analysis: Analysis, unit: Unit) -> _Index:
    symbols = analysis.whole.symbols
    index = _INDEXES.get(unit)
    if index is None or not index.holds(symbols):
        index = _INDEXES[unit] = _indexed(unit, symbols)
    return index


def _indexed(unit: Unit, symbols: Symbols) -> _Index:
    if unit.declaration is None:
        return _Index()
    scope = Scope(symbols, unit.text, broken=bool(unit.diagnostics))
    names = PipelineNames(unit.declaration, scope) if isinstance(unit.declaration, Pipeline) else None
    return _Index(_merged(named_in(unit.declaration, names, scope)), names, scope.asked)


def _merged(found: Iterator[Occurrence]) -> tuple[Occurrence, ...]:
    """Occurrences in order, one for each place: what several say about it belongs together."""
    by_place: dict[Span, Occurrence] = {}
    for one in found:
        other = by_place.get(one.span)
        if other is not None:
            meanings = tuple(dict.fromkeys((*other.meanings, *one.meanings)))
            one = Occurrence(one.span, meanings, one.declares or other.declares)
        by_place[one.span] = one
    return tuple(by_place[span] for span in sorted(by_place))


# --- system prompts -----------------------------------------------------------------------------------------


def _prompt_reads(analysis: Analysis, unit: Unit, agent: Agent) -> tuple[Occurrence, ...]:
    """What an agent's system prompt reads: it is filled where the agent is called, in whatever pipeline."""
    scope = Scope(analysis.whole.symbols, unit.text)
    callers = list(_callers(analysis, agent.name.text))
    found: list[Occurrence] = []
    for prompt in system_prompts(agent):
        for names, number, each in callers:
            found += texts_read(prompt, names, number, each, scope)
    return _merged(iter(found))


def _callers(analysis: Analysis, agent: str) -> Iterator[tuple[PipelineNames, int, nodes.EachStage | None]]:
    """Every stage that calls an agent."""
    for unit in analysis.program.units:
        if not isinstance(unit.declaration, Pipeline) or agent not in unit.text:
            continue
        names = _index(analysis, unit).names
        if names is None:
            continue
        for number, stage in enumerate(unit.declaration.stages):
            if any(call.callee.text == agent for call in calls(stage)):
                yield names, number, stage if isinstance(stage, nodes.EachStage) else None


# --- where things are introduced ----------------------------------------------------------------------------


def sites(analysis: Analysis, meaning: Meaning) -> Iterator[Span]:
    """Where what is meant is introduced, as places in the whole text."""
    program, entity = analysis.program, meaning.entity
    if entity.kind is EntityKind.DECLARATION:
        declaration = program.find(entity.name)
        if declaration is not None:
            yield program.span(declaration, declaration.name.span)
    elif meaning.home is not None and meaning.site is not None:
        yield program.span(meaning.home, meaning.site)
    elif entity.kind is EntityKind.PARAMETER:
        pipeline = program.find(entity.owner)
        params = pipeline.params if isinstance(pipeline, Pipeline) else ()
        yield from (program.span(pipeline, p.name.span) for p in params if p.name.text == entity.name and pipeline)

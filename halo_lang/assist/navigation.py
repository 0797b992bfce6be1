"""From a name to where it is introduced, and to all its uses."""

from __future__ import annotations

from halo_lang.analysis import Analysis
from halo_lang.assist.meanings import Entity, EntityKind, Meaning
from halo_lang.assist.occurrences import Found, occurrence_at, occurrences_of, sites
from halo_lang.source import Span


def definition(analysis: Analysis, offset: int) -> tuple[Span, ...]:
    """Where the name at an offset is introduced.

    A result has several such places where several stages may have made it; a method leads to what it is called on,
    where it is called, and to that call, where its result is read. What is built in has none.
    """
    found = occurrence_at(analysis, offset)
    if found is None:
        return ()
    places = (place for meaning in found.occurrence.meanings for place in _introduced(analysis, found, meaning))
    return tuple(dict.fromkeys(places))


def references(analysis: Analysis, offset: int, *, declaration: bool = True) -> tuple[Span, ...]:
    """Every place that means what the name at an offset means, in order.

    With `declaration` the places where it is introduced count too. Names in text that does not parse are not seen.
    """
    found = occurrence_at(analysis, offset)
    if found is None:
        return ()
    places = {
        one.span
        for entity in found.occurrence.entities
        for one in occurrences_of(analysis, entity)
        if declaration or not one.occurrence.declares
    }
    return tuple(sorted(places))


def _introduced(analysis: Analysis, found: Found, meaning: Meaning) -> tuple[Span, ...]:
    places = tuple(sites(analysis, meaning))
    entity = meaning.entity
    if entity.kind is EntityKind.METHOD and (not places or found.span in places):
        return tuple(sites(analysis, Meaning(Entity(EntityKind.DECLARATION, entity.owner))))
    return places

"""Renaming: every place that means a thing gets its new name, in strings too, and the program means what it meant.

A rename is refused, with a reason for people, where the name is not the program's to choose, where the new one is
taken, and where something would mean anything else afterwards: that is looked up in the renamed program itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, NamedTuple, NoReturn, TypeAlias

from halo_lang import nodes
from halo_lang.analysis import Analysis, check
from halo_lang.assist.meanings import MOST_MEANINGS, Entity, EntityKind, Meaning
from halo_lang.assist.occurrences import Found, mentioning, occurrence_at, occurrences_of, pipeline_names, sites
from halo_lang.checks.declared import RESERVED
from halo_lang.checks.walk import calls, flowing
from halo_lang.diagnostics import Fix
from halo_lang.excerpt import visible
from halo_lang.lexicon import KEYWORDS, NAME
from halo_lang.nodes import Pipeline
from halo_lang.parser import parse
from halo_lang.source import Source, Span
from halo_lang.symbols import FIELD_TYPES, Kind

_PLAIN: Final = re.compile(NAME)
_LONGEST: Final = 60
"""Characters of what is no name that a refusal shows."""
_WORDS: Final = {
    "current": "the flowing value",
    "index": "the counter of every each",
    "auto": "all tools of an agent",
    "none": "no tool at all",
}
"""Names that mean something without being declared."""


class RenameRefused(ValueError):
    """The rename would not be safe, or means nothing; the text says why."""


def rename_span(analysis: Analysis, offset: int) -> Span | None:
    """The name at an offset that can be renamed; None where there is none."""
    found = occurrence_at(analysis, offset)
    if found is None or any(_fixed(analysis, entity) is not None for entity in found.occurrence.entities):
        return None
    return found.span


def rename(analysis: Analysis, offset: int, new_name: str) -> tuple[Fix, ...]:
    """The edits that give the thing named at an offset a new name, in order; none where it has that name already.

    Raises RenameRefused where that is not possible, or not safe.
    """
    found = occurrence_at(analysis, offset)
    if found is None:
        raise RenameRefused("there is no name here that can be renamed")
    entity = _entity(analysis, found)
    _refuse_unread_text(analysis)
    if new_name == entity.name:
        return ()
    _refuse_name(analysis, entity, new_name)
    places = _places(analysis, entity)
    edits = tuple(Fix(place, new_name) for place in places)
    _refuse_other_meaning(_Renamed(analysis, entity, new_name, edits))
    return edits


def _refuse(reason: str) -> NoReturn:
    raise RenameRefused(reason)


# --- what can be renamed ------------------------------------------------------------------------------------


def _entity(analysis: Analysis, found: Found) -> Entity:
    """The one thing that a name means, if it can have another name."""
    entities = found.occurrence.entities
    for entity in entities:
        reason = _fixed(analysis, entity)
        if reason is not None:
            _refuse(reason)
    entity, *others = entities
    if others:
        may_be = " or ".join(map(_words, entities))
        _refuse(f"`{entity.name}` may mean {may_be} here; change it by hand")
    _refuse_repeated(analysis, entity)
    return entity


def _fixed(analysis: Analysis, entity: Entity) -> str | None:
    """Why a thing cannot have another name; None where it can."""
    return _FIXED.get(entity.kind, _free)(analysis, entity)


def _free(_: Analysis, __: Entity) -> str | None:
    return None


def _built_in(_: Analysis, entity: Entity) -> str:
    return f"`{entity.name}` is built in"


def _method(analysis: Analysis, entity: Entity) -> str | None:
    if entity.owner == "System":
        return f"`System.{entity.name}` is built in"
    owner = analysis.whole.symbols.interfaces.get(entity.owner)
    if owner is None or owner.kind is not Kind.AGENT:
        return f"`{entity.name}` is a method of the tool `{entity.owner}`: its provider gives it its name"
    return None


def _field(_: Analysis, entity: Entity) -> str:
    return f"`{entity.name}` is a field of what models answer and callers read, also in texts; change it by hand"


def _event(_: Analysis, entity: Entity) -> str:
    return f"`{entity.name}` is named by whoever sends the event"


def _index(_: Analysis, __: Entity) -> str:
    return "every each calls its counter `index`"


_FIXED: Final[dict[EntityKind, Callable[[Analysis, Entity], str | None]]] = {
    EntityKind.BUILT_IN: _built_in,
    EntityKind.METHOD: _method,
    EntityKind.FIELD: _field,
    EntityKind.SOURCE: _event,
    EntityKind.EVENT: _event,
    EntityKind.INDEX: _index,
}


def _refuse_repeated(analysis: Analysis, entity: Entity) -> None:
    for second in analysis.whole.symbols.repeated:
        if second.name.text in (entity.name, entity.owner):
            _refuse(f"`{second.name.text}` is declared twice; give one of the two another name by hand")


def _refuse_unread_text(analysis: Analysis) -> None:
    """A name can be used where nothing can be read."""
    for found in analysis.diagnostics:
        if found.code.startswith("HL1") or found.code == "HL406":
            line = analysis.program.source.position(found.span.start).line
            _refuse(f"line {line} does not parse, and may use the name; mend it first")


# --- the new name -------------------------------------------------------------------------------------------


def _refuse_name(analysis: Analysis, entity: Entity, name: str) -> None:
    if _PLAIN.fullmatch(name) is None:
        _refuse(f"`{visible(name[:_LONGEST], keep='')}` is no name: write letters, digits and `_`, no digit first")
    if name in RESERVED:
        _refuse(f"`{name}` is {'a keyword' if name in KEYWORDS else 'built in'}")
    if name in _WORDS:
        _refuse(f"`{name}` stands for {_WORDS[name]}")
    if entity.kind is EntityKind.DECLARATION and name in FIELD_TYPES:
        _refuse(f"`{name}` is a type")
    if name in analysis.whole.symbols.interfaces:
        _refuse(f"`{name}` is {_line_of(analysis, name)}")
    for other in _taken(analysis, entity, name):
        _refuse(f"`{name}` is {_words(other)} already")


def _line_of(analysis: Analysis, name: str) -> str:
    declaration = analysis.program.find(name)
    if declaration is None:
        return "declared already"
    return f"declared already, on line {analysis.program.position(declaration, declaration.name.span).line}"


def _taken(analysis: Analysis, entity: Entity, name: str) -> Iterator[Entity]:
    """What has the new name already where it would be in the way."""
    for found in mentioning(analysis, name):
        for other in found.occurrence.entities:
            if other.name == name and _are_in_the_way(entity, other):
                yield other


def _are_in_the_way(entity: Entity, other: Entity) -> bool:
    if other.kind not in _NAMES_OF_PIPELINES:
        return entity.kind is EntityKind.METHOD is other.kind and entity.owner == other.owner
    return entity.kind is EntityKind.DECLARATION or entity.owner == other.owner


_NAMES_OF_PIPELINES: Final = frozenset({EntityKind.PARAMETER, EntityKind.ITEM, EntityKind.RESULT, EntityKind.SOURCE})


# --- the places ---------------------------------------------------------------------------------------------


def _places(analysis: Analysis, entity: Entity) -> list[Span]:
    """Every place that has the old name."""
    found = occurrences_of(analysis, entity)
    for one in found:
        for other in one.occurrence.entities:
            if other != entity:
                line = analysis.program.source.position(one.span.start).line
                _refuse(f"`{entity.name}` on line {line} may mean {_words(other)} too; change both by hand")
    if any(len(one.occurrence.meanings) >= MOST_MEANINGS for one in mentioning(analysis, entity.name)):
        _refuse(f"`{entity.name}` is in a pipeline where a name may mean too many results; change it by hand")
    for pipeline in analysis.program.pipelines:
        _refuse_output_key(analysis, entity, pipeline)
    return [one.span for one in found]


def _refuse_output_key(analysis: Analysis, entity: Entity, pipeline: Pipeline) -> None:
    """The keys of the object that a pipeline gives are read by others, who would look for the old name."""
    last = flowing(pipeline.stages, len(pipeline.stages))
    stage = pipeline.stages[last] if last is not None else None
    names = pipeline_names(analysis, pipeline) if isinstance(stage, nodes.FanOutStage) else None
    if names is None or not isinstance(stage, nodes.FanOutStage):
        return
    keys = (names.item_of(item, stage).entity for item in stage.items)
    reader = _reader_of_keys(analysis, pipeline, entity.name) if entity in keys else None
    if reader is not None:
        _refuse(f"`{entity.name}` is also a key of what `{pipeline.name.text}` gives, {reader}; change it by hand")


def _reader_of_keys(analysis: Analysis, pipeline: Pipeline, key: str) -> str | None:
    schema = analysis.program.find(pipeline.returns.name.text)
    if isinstance(schema, nodes.Schema) and any(field.name.text == key for field in schema.fields):
        return f"and a field of the schema `{schema.name.text}`"
    name = pipeline.name.text
    for other in analysis.program.pipelines:
        if any(call.callee.text == name for stage in other.stages for call in calls(stage)):
            return f"which `{other.name.text}` calls"
    return None


# --- the renamed program ------------------------------------------------------------------------------------

_Meant: TypeAlias = tuple[EntityKind, str, str, tuple[int, ...]]
"""What a name means, in a form that can be compared over a rename: kind, name, owner, places."""


class _Renamed:
    """A rename that is about to be accepted, and the program that it would give."""

    def __init__(self, analysis: Analysis, entity: Entity, new_name: str, edits: Sequence[Fix]) -> None:
        self.before, self.entity, self.new_name = analysis, entity, new_name
        self._ends = [edit.span.end for edit in edits]
        self._shifts = list(accumulate((len(edit.text) - edit.span.end + edit.span.start for edit in edits), initial=0))
        source = analysis.program.source
        text = apply(source.text, edits)
        program = parse(Source(text, source.path, source.had_bom), analysis.program)
        self.after = check(program, analysis, is_priced=analysis.whole.is_priced)

    def moved(self, offset: int) -> int:
        """Where an offset of the old text is in the new one."""
        return offset + self._shifts[bisect_right(self._ends, offset)]

    def expected(self) -> dict[int, set[_Meant]]:
        """What the names should mean afterwards, by the places where they stand then."""
        found = mentioning(self.before, self.entity.name, self.new_name)
        return {
            self.moved(one.span.start): {
                self._meant(self._renamed(meaning.entity), map(self.moved, _starts(self.before, meaning)))
                for meaning in one.occurrence.meanings
            }
            for one in found
        }

    def meant(self) -> dict[int, set[_Meant]]:
        """What they mean then."""
        found = mentioning(self.after, self.entity.name, self.new_name)
        return {
            one.span.start: {
                self._meant(meaning.entity, _starts(self.after, meaning)) for meaning in one.occurrence.meanings
            }
            for one in found
        }

    def _meant(self, entity: Entity, places: Iterator[int]) -> _Meant:
        return entity.kind, entity.name, entity.owner, tuple(places)

    def _renamed(self, other: Entity) -> Entity:
        if other == self.entity:
            return replace(other, name=self.new_name)
        if self.entity.kind is EntityKind.DECLARATION and other.kind is not EntityKind.BUILT_IN:
            owner, dot, rest = other.owner.partition(".")
            if owner == self.entity.name:
                return replace(other, owner=f"{self.new_name}{dot}{rest}")
        return other


def apply(text: str, edits: Sequence[Fix]) -> str:
    """The text after edits that are in order and do not overlap."""
    parts: list[str] = []
    end = 0
    for edit in edits:
        parts += (text[end : edit.span.start], edit.text)
        end = edit.span.end
    return "".join((*parts, text[end:]))


def _starts(analysis: Analysis, meaning: Meaning) -> Iterator[int]:
    return (place.start for place in sites(analysis, meaning))


class _Told(NamedTuple):
    code: str
    start: int


def _refuse_other_meaning(renamed: _Renamed) -> None:
    expected, meant = renamed.expected(), renamed.meant()
    for start in sorted(expected.keys() | meant.keys()):
        if expected.get(start) != meant.get(start):
            _refuse(f"named `{renamed.new_name}`, line {_line(renamed, start)} would mean something else")
    before = Counter(_Told(one.code, renamed.moved(one.span.start)) for one in renamed.before.diagnostics)
    after = Counter(_Told(one.code, one.span.start) for one in renamed.after.diagnostics)
    for told in sorted((after - before) | (before - after), key=lambda told: told.start):
        what = "report" if told in after else "no longer report"
        _refuse(f"named `{renamed.new_name}`, line {_line(renamed, told.start)} would {what} {told.code}")


def _line(renamed: _Renamed, offset: int) -> int:
    return renamed.after.program.source.position(offset).line


def _words(entity: Entity) -> str:
    """A thing in words: "the parameter `text` of Main"."""
    if entity.kind is EntityKind.METHOD:
        return f"the method `{entity.owner}.{entity.name}`"
    of = f" of {entity.owner}" if entity.owner else ""
    return f"the {entity.kind.value} `{entity.name}`{of}"

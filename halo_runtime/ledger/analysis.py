"""Reading the loop off links, one event at a time (spec 7.3). Pure, and without a model.

What an event shows follows from the event and from what those that it links to have shown already. So it is worked out
when the event is logged and never changes: a set of marks, kept as the bits of a number. A report only counts marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntFlag
from typing import Final

from halo_lang.records import record
from halo_runtime.ledger.channels import CHANNELS, Channel, realised
from halo_runtime.ledger.events import MODULES, Event, Kind


class Mark(IntFlag):
    """What an event shows. The first six are the channels, in their order."""

    S_M = 1 << 0
    S_A = 1 << 1
    M_S = 1 << 2
    M_A = 1 << 3
    A_S = 1 << 4
    A_M = 1 << 5
    DURABILITY = 1 << 6
    """It uses a memory of another session, directly or through a recall in its own session."""
    SELF = 1 << 7
    """An act that no request started and that uses something."""
    SILENT = 1 << 8
    """Such an act that is silence."""
    GROUNDED = 1 << 9
    """Such an act with a Sensing or Memory event behind it, however far."""
    RETURN = 1 << 10
    """An outcome about an act."""
    OUTCOME_USE = 1 << 11
    """A remember, act or revise that rests on an outcome, directly or through memory."""
    REVISION = 1 << 12
    """A revise by the agent that does."""
    IN_FORCE = 1 << 13
    """An act that uses such a revision."""
    BROUGHT = 1 << 14
    """A recall of a memory of another session, or of such a recall; shows nothing until it is used."""
    CARRIES = 1 << 15
    """A Memory event with an outcome behind it, directly or through memory; shows nothing until it is used."""
    RESTS = 1 << 16
    """A Sensing or Memory event is behind it, however far."""


OF_CHANNEL: Final[dict[Channel, Mark]] = {channel: Mark(1 << place) for place, channel in enumerate(CHANNELS)}
COUNTED: Final = tuple(mark for mark in Mark if mark < Mark.BROUGHT)
"""The marks that reports are made of."""
_COUNTED: Final = tuple(map(int, COUNTED))


def told_apart(marks: int) -> list[int]:
    """1 or 0 for each of the counted marks."""
    return [1 if marks & mark else 0 for mark in _COUNTED]


@record
class Known:
    """What is asked of an event that another one links to."""

    kind: Kind
    agent: str
    session: str
    marks: int


@record
class Level:
    """A step of the rubric: what must be observed for it, beside all of the lower ones."""

    number: int
    name: str
    needs: Mark
    meaning: str


LEVELS: Final = (
    Level(0, "not observed", Mark(0), "no lower bound can be given from this trace"),
    Level(1, "reactive", Mark.S_A, "what it senses reaches its actions (S→A)"),
    Level(2, "stateful", Mark.M_A | Mark.DURABILITY, "memory reaches its actions (M→A) and lasts (state durability)"),
    Level(3, "initiating", Mark.SELF | Mark.GROUNDED, "it acts by itself, for what it sensed or remembered"),
    Level(
        4,
        "outcome-guided",
        Mark.A_S | Mark.RETURN | Mark.OUTCOME_USE,
        "it learns how its actions went (A→S, outcome return) and uses that (outcome use)",
    ),
    Level(
        5,
        "self-revising",
        Mark.REVISION | Mark.IN_FORCE,
        "it changes its own way of working for an outcome (agent revision) and acts by it (revision in force)",
    ),
)  # fmt: skip


def level_of(observed: int) -> Level:
    """The highest level that is observed with all lower ones, of all marks of an agent's events together."""
    reached = LEVELS[0]
    for level in LEVELS[1:]:
        if observed & level.needs != level.needs:
            break
        reached = level
    return reached


def marks_of(event: Event, used: Sequence[Known], about: Known | None) -> int:
    """What an event shows. `used` are the events of its `uses`, `about` that of its `about`."""
    linked: list[Kind] = [one.kind for one in (*used, about) if one is not None]
    found = Mark(0)
    for channel in realised(event.kind, linked):
        found |= OF_CHANNEL[channel]
    if any(MODULES[one.kind] in ("S", "M") or one.marks & Mark.RESTS for one in (*used, about) if one is not None):
        found |= Mark.RESTS
    found |= _of_memory(event, used) | _of_outcomes(event, used)
    if event.kind == "outcome" and about is not None:
        found |= Mark.RETURN
    if event.kind == "act":
        found |= _of_act(event, used, rests=bool(found & Mark.RESTS))
    return int(found)


def is_elsewhere(one: str, other: str) -> bool:
    """Whether two session labels tell two sessions apart; one without a label tells nothing."""
    return bool(one and other) and one != other


def _of_memory(event: Event, used: Iterable[Known]) -> Mark:
    remembered = [one for one in used if MODULES[one.kind] == "M"]
    direct = any(is_elsewhere(one.session, event.session) for one in remembered)
    through = any(one.session == event.session and one.marks & Mark.BROUGHT for one in remembered)
    if not direct and not through:
        return Mark(0)
    return Mark.BROUGHT if event.kind == "recall" else Mark.DURABILITY


def _of_outcomes(event: Event, used: Iterable[Known]) -> Mark:
    if not any(one.kind == "outcome" or one.marks & Mark.CARRIES for one in used):
        return Mark(0)
    found = Mark.CARRIES if MODULES[event.kind] == "M" else Mark(0)
    if event.kind in ("remember", "act", "revise"):
        found |= Mark.OUTCOME_USE
    if event.kind == "revise" and event.made_by == "agent":
        found |= Mark.REVISION
    return found


def _of_act(event: Event, used: Sequence[Known], *, rests: bool) -> Mark:
    found = Mark.IN_FORCE if any(one.marks & Mark.REVISION for one in used) else Mark(0)
    if event.trigger == "self" and used:
        found |= Mark.SELF
        found |= Mark.SILENT if event.form == "silence" else Mark(0)
        found |= Mark.GROUNDED if rests else Mark(0)
    return found

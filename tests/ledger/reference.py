"""The analysis as spec 7.3 words it, over whole lists of events: slow, without marks, nothing kept between events.

Tests hold the ledger's incremental analysis to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halo_runtime.ledger import Event

MODULE = {"observe": "S", "outcome": "S", "remember": "M", "recall": "M", "act": "A", "revise": None}


class Trace:
    """The events of one agent by number."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events: Mapping[int, Event] = {event.number: event for event in events}

    def linked(self, event: Event) -> list[Event]:
        about = [] if event.about is None else [event.about]
        return [self.events[number] for number in (*event.uses, *about)]

    def used(self, event: Event) -> list[Event]:
        return [self.events[number] for number in event.uses]

    def channel(self, channel: str) -> list[int]:
        origin, end = channel.split("→")
        return [
            event.number
            for event in self.events.values()
            if MODULE[event.kind] == end and any(MODULE[one.kind] == origin for one in self.linked(event))
        ]

    def behind(self, event: Event, seen: set[int] | None = None) -> set[int]:
        """All ancestors."""
        seen = set() if seen is None else seen
        for one in self.linked(event):
            if one.number not in seen:
                seen.add(one.number)
                self.behind(one, seen)
        return seen

    def outcomes(self, event: Event) -> set[int]:
        """The outcomes that are reached directly, or by paths through nothing but Memory events."""
        found: set[int] = set()
        for one in self.used(event):
            if one.kind == "outcome":
                found.add(one.number)
            elif MODULE[one.kind] == "M":
                found |= self.outcomes(one)
        return found

    def memories(self, event: Event) -> set[int]:
        """The memories of other sessions that are used directly, or by paths through recalls of the event's session."""
        found: set[int] = set()
        for one in self.used(event):
            if MODULE[one.kind] == "M" and one.session and event.session and one.session != event.session:
                found.add(one.number)
            elif one.kind == "recall" and one.session == event.session:
                found |= self.memories(one)
        return found

    def step(self, name: str) -> list[int]:
        return [event.number for event in self.events.values() if self._shows(name, event)]

    def _shows(self, name: str, event: Event) -> bool:
        match name:
            case "State durability":
                return event.kind != "recall" and bool(self.memories(event))
            case "Self-initiated action":
                return event.trigger == "self" and bool(event.uses)
            case "Outcome return":
                return event.kind == "outcome"
            case "Outcome use":
                return event.kind in ("remember", "act", "revise") and bool(self.outcomes(event))
            case "Agent revision":
                return event.made_by == "agent" and bool(self.outcomes(event))
            case _:
                return event.kind == "act" and any(self._shows("Agent revision", one) for one in self.used(event))

    def level(self) -> int:
        initiated = [self.events[number] for number in self.step("Self-initiated action")]
        grounded = any(MODULE[self.events[one].kind] in ("S", "M") for event in initiated for one in self.behind(event))
        conditions = [
            bool(self.channel("S→A")),
            bool(self.channel("M→A") and self.step("State durability")),
            grounded,
            bool(self.channel("A→S") and self.step("Outcome return") and self.step("Outcome use")),
            bool(self.step("Agent revision") and self.step("Revision in force")),
        ]
        return conditions.index(False) if False in conditions else 5

"""A question that a run asks, and the answers a person may give to it."""

from __future__ import annotations

from dataclasses import dataclass

from halo_runtime.cli.answers import typed_value
from halo_runtime.json_types import Json
from halo_runtime.results import Interrupt
from halo_runtime.values import parse_json, type_name
from halo_tui.models.lines import one_line, preview, visible

MAX_CHOICES = 9
"""Choices beyond this are typed: more buttons than digits cannot be pressed by key."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a typed text means as an answer: `note` says it to the person, `broken` that it is nearly JSON."""

    value: Json
    note: str
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that the program checks for: `label` for a button, `value` what is sent."""

    label: str
    value: Json


@dataclass(frozen=True, slots=True)
class Question:
    """An open interrupt as the form shows it."""

    interrupt: Interrupt

    @property
    def title(self) -> str:
        """What is wanted: an answer, or the payload of an event."""
        if self.interrupt.kind == "listen":
            return f"Waiting for {visible(self.interrupt.event or 'an event')}"
        return "The program asks"

    @property
    def message(self) -> str:
        return visible(self.interrupt.message)

    def read(self, text: str) -> Reading:
        """A choice in any letter case, else JSON if it parses, else text, as `halo run` reads what is typed there."""
        value = typed_value(text, self.interrupt.choices)
        if text.lstrip().startswith(("{", "[")) and isinstance(value, str):
            return Reading(value, f"sent as text; {_fault(text)}", broken=True)
        known = " as the program knows it" if value in self.interrupt.choices else ""
        return Reading(value, f"sent as {type_name(value)}{known}" if text else "")

    @property
    def takes_text(self) -> bool:
        """Whether text that is nearly JSON may be meant so; the payload of an event is data."""
        return self.interrupt.kind != "listen"

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(Choice(_label(value), value) for value in self.interrupt.choices[:MAX_CHOICES])

    @property
    def attachments(self) -> tuple[tuple[str, str], ...]:
        """Name and text of each attachment; a file is named by its path."""
        return tuple(_attachment(number, item) for number, item in enumerate(self.interrupt.attachments, 1))


def _fault(text: str) -> str:
    try:
        parse_json(text)
    except ValueError as error:
        return f"no JSON: {error}"
    return "no JSON"


def _label(value: Json) -> str:
    return one_line(value, 40) if isinstance(value, str) and value else preview(value, 40)


def _attachment(number: int, item: dict[str, Json]) -> tuple[str, str]:
    name = str(item.get("name") or f"attachment {number}")
    text = item.get("text")
    return visible(name), visible(text if isinstance(text, str) else str(item.get("path", "")))

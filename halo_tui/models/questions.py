"""A question that a run asks, and the answers a person may give to it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from halo_runtime.json_types import Json
from halo_runtime.results import Interrupt
from halo_tui.models.lines import one_line, preview, visible

MAX_CHOICES = 9
"""Choices beyond this are typed: more buttons than digits cannot be pressed by key."""


class AnswerError(ValueError):
    """The typed text is no JSON; the message says where it stops being so."""


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

    @property
    def wants_json(self) -> bool:
        """Whether the form starts in JSON: an event's payload is data, an answer is mostly words."""
        return self.interrupt.kind == "listen"

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(Choice(_label(value), value) for value in self.interrupt.choices[:MAX_CHOICES])

    @property
    def attachments(self) -> tuple[tuple[str, str], ...]:
        """Name and text of each attachment; a file is named by its path."""
        return tuple(_attachment(number, item) for number, item in enumerate(self.interrupt.attachments, 1))


def parse_answer(text: str, *, as_json: bool) -> Json:
    """The value that a typed text stands for: the text itself, or what it says as JSON.

    Raises AnswerError with line and column where the text is no JSON.
    """
    if not as_json:
        return text
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise AnswerError(f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError:
        raise AnswerError("not usable: nested too deep") from None


def _refuse(name: str) -> Json:
    raise AnswerError(f"not JSON: {name} is no JSON value")


def _label(value: Json) -> str:
    return one_line(value, 40) if isinstance(value, str) and value else preview(value, 40)


def _attachment(number: int, item: dict[str, Json]) -> tuple[str, str]:
    name = str(item.get("name") or f"attachment {number}")
    text = item.get("text")
    return visible(name), visible(text if isinstance(text, str) else str(item.get("path", "")))

"""A question that a run asks, and the answers a person may give to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from halo_runtime.cli.answers import typed_value
from halo_runtime.engine.approvals import approves
from halo_runtime.json_types import Json, Missing, is_object
from halo_runtime.raising import added, shown
from halo_runtime.results import Interrupt
from halo_runtime.values import parse_json, type_name
from halo_tui.models.lines import Line, Role, ago, clock, counted, one_line, preview, visible

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
    """An open interrupt as the form and the inbox show it; `pipeline` is the one whose run asks."""

    ROWS: ClassVar = 3
    """Rows of a question in the inbox."""

    interrupt: Interrupt
    pipeline: str = ""
    left_by: str = ""
    """Who has left an answer that the run takes when it goes on; empty where nobody has."""

    @property
    def id(self) -> str:
        """The interrupt's id: distinct, and the same after every resume."""
        return self.interrupt.id

    @property
    def run_id(self) -> str:
        return self.interrupt.run_id

    def about(self, now: datetime) -> str:
        """Whose question it is, since when it is open, and how long it will be."""
        parts = [self._whose, self._asked(now), self.time_left(now), self._left_for_it]
        return " · ".join(part for part in parts if part)

    def time_left(self, now: datetime) -> str:
        """`expires in 2h05m`, `expired`; empty for a question that stays open."""
        left = self._left(now)
        if left is None:
            return ""
        return f"expires in {clock(left)}" if left > 0 else "expired"

    def is_over(self, now: datetime) -> bool:
        """Whether its time to be answered is over."""
        left = self._left(now)
        return left is not None and left <= 0

    def _left(self, now: datetime) -> float | None:
        at = self.interrupt.expires_at
        return None if at is None else (datetime.fromisoformat(at) - now).total_seconds()

    def lines(self, now: datetime) -> tuple[Line, ...]:
        """The rows of the inbox: what is asked, what there is to know for an answer, and whose question it is."""
        asked = self.message if self.interrupt.kind != "listen" else self.title
        files = len(self.interrupt.attachments)
        attached = counted(files, "attachment") if files else ""
        known = [self._left_for_it, self.time_left(now), self._choices, attached, self._asked(now)]
        role: Role = "dim" if self.interrupt.expires_at is None else "warning"
        return (
            (("? ", "wait"), (one_line(asked), "text")),
            ((f"  {' · '.join(part for part in known if part)}", role),),
            ((f"  {self._whose}", "dim"),),
        )

    @property
    def _choices(self) -> str:
        return " / ".join(choice.label for choice in self.choices)

    @property
    def _whose(self) -> str:
        return " · ".join(part for part in (one_line(self.pipeline, 40), self.run_id) if part)

    @property
    def _left_for_it(self) -> str:
        return f"{one_line(self.left_by, 40)} left an answer" if self.left_by else ""

    def _asked(self, now: datetime) -> str:
        moment = self.interrupt.asked_at
        return f"asked {ago(datetime.fromisoformat(moment), now)}" if moment else ""

    @property
    def title(self) -> str:
        """What is wanted: an answer, or the payload of an event."""
        if self.interrupt.kind == "listen":
            return f"Waiting for {visible(self.interrupt.event or 'an event')}"
        return {"limit": "A limit is reached", "approve": "An agent asks for approval"}.get(
            self.interrupt.kind, "The program asks"
        )

    @property
    def _is_asked_by_it(self) -> bool:
        return self.interrupt.kind in ("yield", "listen")

    @property
    def message(self) -> str:
        return visible(self.interrupt.message)

    def read(self, text: str) -> Reading:
        """A choice in any letter case, else JSON if it parses, else text, as `halo run` reads what is typed there."""
        value = self.interrupt.meant(typed_value(text, self.interrupt.choices))
        if not self.interrupt.takes(value):
            return Reading(value, f"answer {self.interrupt.how}", broken=True)
        if self.interrupt.budget is not None:
            unit = self.interrupt.budget["unit"]
            amount = added(unit, value)
            return Reading(value, "allows no more" if amount is None else f"allows {shown(amount, unit)} more")
        if self.interrupt.kind == "approve":
            if not text.strip():
                return Reading(value, "answer approve or refuse", broken=True)
            return Reading(value, "approves the call" if approves(value) else "refuses the call")
        if text.lstrip().startswith(("{", "[")) and isinstance(value, str):
            return Reading(value, f"sent as text; {_fault(text)}", broken=True)
        known = " as the program knows it" if self._is_asked_by_it and value in self.interrupt.choices else ""
        return Reading(value, f"sent as {type_name(value)}{known}" if text else "")

    @property
    def takes_text(self) -> bool:
        """Whether a broken reading may be sent as text: an event's payload is data, and some want certain answers."""
        return self.interrupt.kind not in ("listen", "approve") and self.interrupt.how is None

    @property
    def allows(self) -> bool:
        """Whether its first choice lets something be done that policies hold back, so that Enter alone is no answer."""
        return self.interrupt.kind in ("approve", "limit")

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What the program checks for; first the answer that the question had in the run that this one continues."""
        former, known = self.interrupt.former, self.interrupt.choices
        found = [Choice(_label(value), value) for value in known if not same(value, former)]
        if not isinstance(former, Missing):
            found.insert(0, Choice(f"{_label(former)} (as before)", former))
        return tuple(found[:MAX_CHOICES])

    @property
    def attachments(self) -> tuple[tuple[str, str], ...]:
        """Name and text of each attachment; a file is named by its path."""
        return tuple(_attachment(number, item) for number, item in enumerate(self.interrupt.attachments, 1))


def same(value: Json, other: Json | Missing) -> bool:
    """Whether two JSON values are the same; `true` and `1` are not."""
    return not isinstance(other, Missing) and json.dumps(value) == json.dumps(other)


def _fault(text: str) -> str:
    try:
        parse_json(text)
    except ValueError as error:
        return f"no JSON: {error}"
    return "no JSON"


def _label(value: Json) -> str:
    if is_object(value) and list(value) == ["add"]:
        return f"add {preview(value['add'], 40)}"
    return one_line(value, 40) if isinstance(value, str) and value else preview(value, 40)


def _attachment(number: int, item: dict[str, Json]) -> tuple[str, str]:
    name = str(item.get("name") or f"attachment {number}")
    text = item.get("text")
    return visible(name), visible(text if isinstance(text, str) else str(item.get("path", "")))

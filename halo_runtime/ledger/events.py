"""The event model of the loop ledger (seed 000): kinds, modules, fields, and the event as it is kept."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.values import canonical

Kind: TypeAlias = Literal["observe", "outcome", "remember", "recall", "act", "revise"]
Module: TypeAlias = Literal["S", "M", "A"]

MODULES: Final[dict[Kind, Module | None]] = {
    "observe": "S",
    "outcome": "S",
    "remember": "M",
    "recall": "M",
    "act": "A",
    "revise": None,
}
"""Kind → its module of the loop: Sensing, Memory or Action; a revision belongs to none."""

COMMON: Final = ("summary", "uses", "session", "agent")
"""Fields of every kind."""

OWN: Final[dict[Kind, tuple[str, ...]]] = {
    "observe": (),
    "outcome": ("about",),
    "remember": (),
    "recall": (),
    "act": ("trigger", "form"),
    "revise": ("target", "made_by", "governance"),
}
"""Kind → the fields that it must have beyond those of every kind."""

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "trigger": ("request", "self"),
    "form": ("silence", "communication", "preparation", "execution"),
    "made_by": ("agent", "user"),
    "governance": ("approved", "bounded", "none"),
}
"""Field → its only values."""

GENESIS: Final = bytes(32)
"""What the first event chains to."""

_ID: Final = re.compile(r"e([1-9][0-9]{0,17})")


@record
class Event:
    """A logged step. `number` counts from 1 over the whole ledger and is the id without its `e`.

    `uses` are the numbers of earlier events of the same agent, `about` that of an act; `time` is UTC in ISO 8601 with
    microseconds, `client` the name of the program that logged it. A field that does not belong to the kind is None.
    """

    number: int
    kind: Kind
    summary: str
    uses: tuple[int, ...]
    session: str
    agent: str
    time: str
    client: str
    about: int | None = None
    trigger: str | None = None
    form: str | None = None
    target: str | None = None
    made_by: str | None = None
    governance: str | None = None

    @property
    def id(self) -> str:
        return event_id(self.number)

    def to_json(self) -> JsonObject:
        """The event with the names of the seed's fields; those of other kinds are left out."""
        document: JsonObject = {
            "id": self.id,
            "kind": self.kind,
            "summary": self.summary,
            "uses": [event_id(number) for number in self.uses],
            "session": self.session,
            "agent": self.agent,
            "time": self.time,
            "client": self.client,
        }
        if self.about is not None:
            document["about"] = event_id(self.about)
        for name in ("trigger", "form", "target", "made_by", "governance"):
            value = getattr(self, name)
            if value is not None:
                document[name] = value
        return document


def chained(previous: bytes, event: Event) -> bytes:
    """The event's hash: SHA-256 over that of the event before it (32 bytes) and its RFC 8785 JSON."""
    return sha256(previous + canonical(event.to_json())).digest()


def event_id(number: int) -> str:
    """`e5` of 5."""
    return f"e{number}"


def event_number(text: object) -> int | None:
    """5 of `e5`; None for what is no event's id."""
    found = _ID.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) if found else None


def time_text(moment: datetime) -> str:
    """A moment as events keep it: UTC, always with microseconds, so that texts compare as the moments do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_time(text: object) -> str | None:
    """A moment in ISO 8601 as events keep it, UTC where it names no zone; None for what is none."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return None if moment is None else time_text(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None

"""What a logging call must be (seed 000, spec 7.1). Pure; all problems of a call are found at once.

Refusals never repeat a value: it may be a secret. They name fields, the allowed values and ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from halo_lang.excerpt import visible
from halo_lang.records import record
from halo_runtime.errors import HaloError
from halo_runtime.json_types import Json, JsonObject, is_list
from halo_runtime.ledger.analysis import Known
from halo_runtime.ledger.events import CHOICES, COMMON, OWN, Event, Kind, event_id, event_number
from halo_runtime.policies.detection import find

LONGEST_SUMMARY: Final = 500
LONGEST_NAME: Final = 200
MOST_USES: Final = 1_000
_TEXTS: Final = ("summary", "session", "agent", "target")
_ABOUT: Final = "about must be the id of one of the agent's own act events"
_SECRET: Final = "looks as if it held a secret; say what happened without it"


class EventRefused(HaloError):
    """A logging call breaks rules; nothing was stored. `problems` are all of them, each saying what to fix."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@record
class Draft:
    """A call as far as it can be read without the ledger. `kind` is None where it is none of the six."""

    kind: Kind | None
    values: Mapping[str, str]
    uses: tuple[int, ...]
    about: int | None
    problems: tuple[str, ...]

    @property
    def agent(self) -> str:
        return self.values.get("agent", "")

    @property
    def linked(self) -> tuple[int, ...]:
        """The numbers of all events that it links to."""
        return self.uses if self.about is None else (*self.uses, self.about)

    def event(self, number: int, time: str, client: str) -> Event:
        """The event that it becomes; only of a draft without problems."""
        assert self.kind is not None
        values = {"session": "", **self.values}
        return Event(
            number=number, kind=self.kind, uses=self.uses, about=self.about, time=time, client=client, **values
        )


def read(fields: Mapping[str, Json]) -> Draft:
    """Read a call: `kind` and the fields of the seed. A field that is null counts as left out."""
    given: JsonObject = {name: value for name, value in fields.items() if value is not None}
    kind, problems = _kind(given.pop("kind", None))
    problems += _foreign(given, kind)
    values: dict[str, str] = {}
    for name in _TEXTS:
        if name in given:
            values[name], wrong = _text(name, given[name])
            problems += wrong
    problems += _missing(given, values, kind)
    for name, allowed in CHOICES.items():
        if name in given and given[name] in allowed:
            values[name] = given[name]
        elif name in given:
            problems.append(f"{name} must be {_either(allowed)}")
    uses, wrong = _uses(given.get("uses", []))
    problems += wrong
    about = event_number(given.get("about"))
    if "about" in given and about is None and kind == "outcome":
        problems.append(_ABOUT)
    return Draft(kind, values, uses, about if kind == "outcome" else None, tuple(dict.fromkeys(problems)))


def link_problems(draft: Draft, known: Mapping[int, Known]) -> tuple[str, ...]:
    """What is wrong with a call's links. `known` has of the events that it names those that there are."""
    own = {number: one for number, one in known.items() if one.agent == draft.agent}
    problems: list[str] = []
    unknown = [event_id(number) for number in draft.uses if number not in own]
    if unknown and draft.agent:
        problems.append(
            f"unknown event id(s) {', '.join(unknown)} for agent '{visible(draft.agent)}'; "
            "call halo_trace to see the ids of your earlier events"
        )
    if draft.about is not None and (draft.about not in own or own[draft.about].kind != "act"):
        problems.append(_ABOUT)
    return tuple(problems)


def _kind(value: Json) -> tuple[Kind | None, list[str]]:
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind in kinds:
        if value == kind:
            return kind, []
    return None, [f"kind must be {_either(kinds)}"]


def _foreign(given: Mapping[str, Json], kind: Kind | None) -> list[str]:
    """Fields that the kind has not; where the kind is not known, those that none has."""
    belonging = {*COMMON, *(OWN[kind] if kind else (name for own in OWN.values() for name in own))}
    known = {name for own in OWN.values() for name in own}
    return [
        f"{kind} has no field {name}" if name in known else f"there is no field {_shown(name)}"
        for name in given
        if name not in belonging
    ]


def _missing(given: Mapping[str, Json], values: Mapping[str, str], kind: Kind | None) -> list[str]:
    problems = [f"{name} must not be empty" for name in ("summary", "agent") if name not in given]
    for name in OWN[kind] if kind else ():
        if name not in given:
            what = f": {_either(CHOICES[name])}" if name in CHOICES else ""
            problems.append(_ABOUT if name == "about" else f"{kind} needs {name}{what}")
    if values.get("target") == "" and kind == "revise":
        problems.append("target must not be empty")
    return problems


def _text(name: str, value: Json) -> tuple[str, list[str]]:
    """A text without spaces around it, and what is wrong with it."""
    if not isinstance(value, str):
        return "", [f"{name} must be a text"]
    text = value.strip()
    longest = LONGEST_SUMMARY if name == "summary" else LONGEST_NAME
    if not text and name in ("summary", "agent"):
        return "", [f"{name} must not be empty"]
    if len(text) > longest:
        return "", [f"{name} must have at most {longest} characters, not {len(text)}"]
    if not _is_storable(text, line=name != "summary"):
        return "", [f"{name} must be Unicode text without control characters"]
    if find(text, ("Secrets",)):
        return "", [f"{name} {_SECRET}"]
    return text, []


def _is_storable(text: str, *, line: bool) -> bool:
    """Whether a text has nothing but characters; a summary may have line breaks and tabs."""
    if text.isprintable():
        return True
    allowed = "" if line else "\n\r\t"
    return not any(
        (ord(one) < 32 and one not in allowed) or 0xD800 <= ord(one) < 0xE000 or one == "\x7f" for one in text
    )


def _uses(value: Json) -> tuple[tuple[int, ...], list[str]]:
    if not is_list(value) or any(event_number(one) is None for one in value):
        return (), ['uses must be a list of event ids, such as ["e3", "e7"]']
    if len(value) > MOST_USES:
        return (), [f"uses must have at most {MOST_USES} ids, not {len(value)}"]
    numbers = [number for one in value if (number := event_number(one)) is not None]
    uses = tuple(dict.fromkeys(numbers))
    twice = [event_id(number) for number in uses if numbers.count(number) > 1] if len(uses) < len(numbers) else []
    return uses, [f"uses names {one} more than once" for one in twice]


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _shown(name: str) -> str:
    """A field's name as it was given, unless it is long or secret."""
    return visible(name) if len(name) <= 40 and not find(name, ("Secrets",)) else "of that name"


def client_name(text: str) -> str:
    """The name of the program that logs, as it is kept: shortened and printable, empty where it looks like a secret."""
    name = visible(text.strip()[:LONGEST_NAME])
    return "" if find(name, ("Secrets",)) else name

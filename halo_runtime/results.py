"""What a run gives back, and the questions it may leave open, in the shapes of spec 8.1."""

from __future__ import annotations

import reprlib
from dataclasses import field
from datetime import datetime
from typing import Literal, TypeAlias

from halo_lang.records import record
from halo_runtime import raising
from halo_runtime.errors import HaloError
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing, is_object
from halo_runtime.redaction import Redactor

Status: TypeAlias = Literal["completed", "halted", "paused", "failed", "interrupted"]
InterruptKind: TypeAlias = Literal["yield", "listen", "in_doubt", "approve", "limit"]
"""The last three Halo asks by itself: nothing in the program looks at their answers."""


@record
class Interrupt:
    """One open question to a human, or one awaited event.

    `id` is made of run, structural path and occurrence: distinct, and the same after every resume. `choices` are the
    literals that the program later compares the answer with. Times are ISO 8601 UTC. `former` is the answer that the
    question had in the run that this one continues; MISSING where it had none. `budget` is what a limit is about:
    policy, rule, unit, limit, spent, and what the next call uses at most. `origins` and `guards` are the effects that
    it came from, as an effect's record has them.
    """

    id: str
    run_id: str
    kind: InterruptKind
    message: str
    stage: str
    path: str
    channel: str | None = None
    attachments: tuple[JsonObject, ...] = ()
    choices: tuple[Json, ...] = ()
    event: str | None = None
    binding: str | None = None
    asked_at: str | None = None
    expires_at: str | None = None
    former: Json | Missing = MISSING
    budget: JsonObject | None = None
    origins: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()

    def takes(self, value: Json) -> bool:
        """Whether a value can be its answer: any can, but what is in doubt and a limit have certain answers only."""
        if self.kind == "in_doubt":
            return value in ("retry", "fail") or (is_object(value) and "skip" in value)
        return self.budget is None or raising.takes(self.budget["unit"], value)

    def meant(self, value: Json) -> Json:
        """What a person means who types a value: where a limit asks how much to add, a mere amount is that."""
        if self.budget is None or isinstance(value, bool) or not isinstance(value, int | float):
            return value
        return {"add": value}

    @property
    def how(self) -> str | None:
        """How it is answered, in words, where not every value is an answer."""
        if self.kind == "in_doubt":
            return '"retry", "fail" or {"skip": value}'
        return None if self.budget is None else raising.how(self.budget["unit"])

    def to_json(self) -> JsonObject:
        """The shape of spec 8.1, with `formerAnswer` and `budget` where there are such."""
        document: JsonObject = {
            "id": self.id,
            "kind": self.kind,
            "message": self.message,
            "channel": self.channel,
            "attachments": list(self.attachments),
            "choices": list(self.choices),
            "event": self.event,
            "stage": self.stage,
            "askedAt": self.asked_at,
            "expiresAt": self.expires_at,
        }
        seldom = {} if self.former is MISSING else {"formerAnswer": self.former}
        return document | seldom | ({} if self.budget is None else {"budget": self.budget})

    def is_late(self, now: datetime) -> bool:
        """Whether the time for an answer is over."""
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= now

    def to_stored(self) -> JsonObject:
        """For the journal: also what only the engine needs."""
        sources = {"origins": list(self.origins), "guards": list(self.guards)}
        known = {name: found for name, found in sources.items() if found}
        return {**self.to_json(), "runId": self.run_id, "path": self.path, "binding": self.binding, **known}

    @classmethod
    def from_stored(cls, document: JsonObject) -> Interrupt:
        """The inverse of `to_stored`."""
        return cls(
            id=document["id"],
            run_id=document["runId"],
            kind=document["kind"],
            message=document["message"],
            stage=document["stage"],
            path=document["path"],
            channel=document["channel"],
            attachments=tuple(document["attachments"]),
            choices=tuple(document["choices"]),
            event=document["event"],
            binding=document["binding"],
            asked_at=document["askedAt"],
            expires_at=document["expiresAt"],
            former=document.get("formerAnswer", MISSING),
            budget=document.get("budget"),
            origins=tuple(document.get("origins", ())),
            guards=tuple(document.get("guards", ())),
        )


def choices_label(kind: str) -> str:
    """What the choices of a question of a kind are, for people."""
    return "the program checks for" if kind in ("yield", "listen") else "answers"


@record
class Answer:
    """An answer to a question, and who gave it, when (ISO 8601 UTC) and how: `terminal`, `ahead`, `api`, …"""

    value: Json
    by: str | None = None
    at: str | None = None
    how: str = "api"
    signal: str | None = None
    """The id of the message that brought it, where it was sent before it was asked for."""

    def credit(self) -> JsonObject:
        """What a journal keeps beside the value."""
        document: JsonObject = {"by": self.by, "at": self.at, "how": self.how}
        return document if self.signal is None else document | {"signal": self.signal}


@record
class Context:
    """The state of a run (seed 003): the flowing value, the arguments, the results, the figures, the hash chain."""

    current: Json
    input: JsonObject
    data: JsonObject
    meta: JsonObject
    trace: list[JsonObject]

    def __repr__(self) -> str:
        """Short: asyncio asks for it each time a run ends."""
        names = ", ".join(self.data)
        return f"Context(current={reprlib.repr(self.current)}, data={{{names}}}, trace of {len(self.trace)})"

    def to_json(self) -> JsonObject:
        return {
            "current": self.current,
            "input": self.input,
            "data": self.data,
            "meta": self.meta,
            "trace": self.trace,
        }


@record
class RunResult:
    """How a run ended. A failure does not lose the context: what had been done is in it.

    `origins` is the side table of provenance: for each dotted path of `context.data` (`Bot.answer`, `summary`) the
    structural paths of the effects its value came from.
    """

    run_id: str
    status: Status
    output: Json
    context: Context
    error: HaloError | None = None
    interrupts: tuple[Interrupt, ...] = ()
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    edge: Redactor | None = field(default=None, repr=False, compare=False)
    """What takes out of the context, where it is shown, what the run's policies redact; the output is the program's."""

    def __repr__(self) -> str:
        """Short, as that of its context."""
        shown = {
            "run_id": self.run_id,
            "status": self.status,
            "output": self.output,
            "error": self.error,
            "interrupts": self.interrupts,
        }
        return f"RunResult({', '.join(f'{name}={reprlib.repr(value)}' for name, value in shown.items())})"

    @property
    def head(self) -> str:
        """Hash of the trace's last entry; kept beside the trace so that a cut-off tail is found."""
        return self.context.trace[-1]["hash"] if self.context.trace else ""

    def raise_for_status(self) -> RunResult:
        """Raise the run's error where it failed; return the result otherwise."""
        if self.error is not None:
            raise self.error
        return self

    def to_json(self) -> JsonObject:
        """The stable shape of `halo run --json` (spec 8.1)."""
        return {
            "runId": self.run_id,
            "status": self.status,
            "output": self.output,
            "error": None if self.error is None else error_to_json(self.error),
            "interrupts": [interrupt.to_json() for interrupt in self.interrupts],
            "context": self.context.to_json() if self.edge is None else self.edge.json(self.context.to_json()),
        }


def error_to_json(error: HaloError) -> JsonObject:
    """`{"type", "message", "stage", "file", "line", "column"}`; the place is null where none is known."""
    place = error.place
    return {
        "type": type(error).__name__,
        "message": error.message,
        "stage": place.stage if place else None,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }

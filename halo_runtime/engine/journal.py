"""The journal: what happened in a run, one record an effect, under its structural path (spec 3).

A run is deterministic but for its effects, so the journal alone rebuilds it: a run that is given a journal takes the
recorded results and does only what is not recorded. Records stand in the order in which effects ended; each path
occurs once, so any part of a journal is a journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from halo_lang.records import record
from halo_runtime import errors
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import Usage

if TYPE_CHECKING:
    from halo_runtime.engine.plan import StageInfo

EffectKind: TypeAlias = Literal["model", "tool", "human", "event", "clock", "random", "control"]
Outcome: TypeAlias = Literal["done", "failed", "cancelled"]

TIMEOUT: Final = "/timeout"
"""What the path of a time limit's record ends with, behind the path of its pipeline."""

SHADOW: Final = "/shadow/"
"""What stands in the path of a shadow's record between that of the call and the shadow's name."""

LIMIT: Final = "limit"
"""What the paths of questions about budgets have behind the run's pipeline, where other paths have a stage."""


def is_of_limit(path: str) -> bool:
    """Whether a record belongs to a question about a budget. It is read when a run begins, and not performed."""
    return path.split("/", 2)[1:2] == [LIMIT]


@record
class EffectRecord:
    """One ended effect.

    `request_sha256` tells what was asked, `result` is its JSON result (the error's JSON when it failed, null when it
    was cancelled). `origins` are the effects its request's values came from, `guards` those that the conditions on
    the way to it read. `reused`: taken from the journal of the run that this one continues. `answer` tells of an
    answer who gave it, when and how. `charge` tells of an agent's call what it counts for in budgets, or which of them
    refused it (see budgets.py).
    """

    path: str
    kind: EffectKind
    request_sha256: str
    outcome: Outcome
    result: Json
    origins: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    reused: bool = False
    answer: JsonObject | None = None
    charge: JsonObject | None = None

    @property
    def was_refused(self) -> bool:
        """Whether a budget kept it from being done."""
        return self.charge is not None and "refused" in self.charge

    def to_json(self) -> JsonObject:
        """All fields; those that seldom hold anything only where they do."""
        document: JsonObject = {
            "path": self.path,
            "kind": self.kind,
            "request": self.request_sha256,
            "outcome": self.outcome,
            "result": self.result,
        }
        seldom = {
            "origins": list(self.origins),
            "guards": list(self.guards),
            "reused": self.reused,
            "answer": self.answer,
            "charge": self.charge,
        }
        return document | {name: value for name, value in seldom.items() if value}

    @classmethod
    def from_json(cls, document: JsonObject) -> EffectRecord:
        """The inverse of `to_json`."""
        return cls(
            path=document["path"],
            kind=document["kind"],
            request_sha256=document["request"],
            outcome=document["outcome"],
            result=document["result"],
            origins=tuple(document.get("origins", ())),
            guards=tuple(document.get("guards", ())),
            reused=document.get("reused", False),
            answer=document.get("answer"),
            charge=document.get("charge"),
        )


class Recorder(Protocol):
    """Keeps a run beyond the process: what is told to it can be read back as the run (see store/runlog.py).

    Raises StoreError where it cannot keep something.
    """

    def effect(self, record: EffectRecord) -> None:
        """An effect has ended."""
        ...

    def begun(self, path: str) -> None:
        """An effect that must not happen twice is about to begin; it is kept for certain before this returns."""
        ...

    def booked(self, path: str, charge: JsonObject) -> None:
        """A call that budgets hold is about to begin, which counts for `charge` if nothing more is heard of it."""
        ...

    def asked(self, question: JsonObject) -> None:
        """A question is put to somebody, who may take longer than the process lives."""
        ...

    def stage(self, entry: StageEntry, news: JsonObject) -> None:
        """A stage execution has entered the trace; `news` is what `context.meta` has got since the one before."""
        ...

    def settle(self) -> None:
        """A stage is over: what was told so far is kept for certain before this returns, if the run asks for that."""
        ...


@record
class StageEntry:
    """One entry of the trace with what a reader needs to see the run as it was then.

    `seq` and `hash` are the trace's. `frame` is the path of the pipeline call, `pipeline` its name; `arguments` are the
    call's. `current` flows on, `stored` is what was written to the results, by name (`summary`, `Bot.answer`).
    """

    seq: int
    hash: str
    path: str
    kind: str
    label: str
    input_sha256: str
    output_sha256: str
    step: Step


@record
class Step:
    """What a stage execution did to its pipeline call's state (see StageEntry)."""

    frame: str
    pipeline: str
    info: StageInfo
    arguments: JsonObject
    current: Json
    stored: JsonObject


class Journal:
    """An append-only list of effect records with a look-up by path; `recorder` keeps each as it comes.

    `begun` are paths of effects that had begun when the journal was written: those without a record are in doubt.
    `aborted` are the charges of calls that were broken off and are to be made again, with their `path`: they were made
    all the same.
    Raises ValueError when a path is recorded twice: paths are the identity of effects, a collision is a defect.
    """

    def __init__(
        self,
        records: Iterable[EffectRecord] = (),
        *,
        begun: Iterable[str] = (),
        aborted: Iterable[JsonObject] = (),
        recorder: Recorder | None = None,
    ) -> None:
        self._by_path: dict[str, EffectRecord] = {}
        self._begun = set(begun)
        self.aborted = list(aborted)
        self.recorder: Recorder | None = None
        for entry in records:
            self.append(entry)
        self.recorder = recorder

    def append(self, record: EffectRecord) -> None:
        """Take a record, and have it kept first: what is not kept has not happened."""
        if record.path in self._by_path:
            raise ValueError(f"effect {record.path} is recorded already")
        if self.recorder is not None:
            self.recorder.effect(record)
        self._by_path[record.path] = record

    def begin(self, path: str) -> None:
        """Note that an effect is about to begin that must not happen twice."""
        self._begun.add(path)
        if self.recorder is not None:
            self.recorder.begun(path)

    def book(self, path: str, charge: JsonObject) -> None:
        """Note that a call is about to begin, and what it counts for at least: a kill may leave no record of it."""
        if self.recorder is not None:
            self.recorder.booked(path, charge)

    def ask(self, question: JsonObject) -> None:
        """Note that a question is about to be asked, so that it is known when the process dies before the answer."""
        if self.recorder is not None:
            self.recorder.asked(question)

    def in_doubt(self, path: str) -> bool:
        """Whether the effect at a path had begun and nothing is known of its end."""
        found = self._by_path.get(path)
        return path in self._begun and (found is None or found.outcome == "cancelled")

    def find(self, path: str) -> EffectRecord | None:
        return self._by_path.get(path)

    def __iter__(self) -> Iterator[EffectRecord]:
        return iter(self._by_path.values())

    def __len__(self) -> int:
        return len(self._by_path)

    def prefix(self, length: int) -> Journal:
        """A journal of the first `length` records."""
        return Journal(list(self)[:length])

    def copy(self) -> Journal:
        """A journal of the same records that nobody keeps."""
        return Journal(self, begun=self._begun, aborted=self.aborted)

    def without_cancelled(self) -> Journal:
        """A journal to go on from: what was cancelled is to be done again."""
        going_on = Journal(self, begun=self._begun, aborted=self.aborted, recorder=self.recorder)
        going_on.forget_cancelled()
        return going_on

    def forget_cancelled(self) -> None:
        """Forget what was cancelled because the run was stopped: it is to be done again."""
        cancelled = [entry for entry in self if entry.outcome == "cancelled"]
        self.aborted += [{**entry.charge, "path": entry.path} for entry in cancelled if entry.charge is not None]
        for entry in cancelled:
            del self._by_path[entry.path]


def error_to_record(error: errors.HaloError) -> JsonObject:
    """An error as a record's result, so that a replay raises the same one."""
    document: JsonObject = {"type": type(error).__name__, "message": error.message}
    if error.usage is not None:
        document["usage"] = asdict(error.usage)
    if error.embedded:
        document["embedded"] = list(error.embedded)
    if isinstance(error, errors.ServiceError):
        document |= {
            "retryable": error.retryable,
            "status": error.status,
            "retry_after": error.retry_after,
            "detail": error.detail,
            "cursor": error.cursor,
        }
        if error.code is not None:
            document["code"] = error.code
    return document


def error_from_record(document: JsonObject) -> errors.HaloError:
    """The error that `error_to_record` wrote down; one of an unknown type becomes a plain HaloError."""
    kind = getattr(errors, document["type"], errors.HaloError)
    if not issubclass(kind, errors.ServiceError):
        return _with_usage(kind(document["message"]), document)
    error = kind(
        document["message"],
        retryable=document["retryable"],
        status=document["status"],
        retry_after=document["retry_after"],
        detail=document["detail"],
        code=document.get("code"),  # seldom, and journals of earlier versions have none
    )
    error.cursor = document["cursor"]
    return _with_usage(error, document)


def _with_usage(error: errors.HaloError, document: JsonObject) -> errors.HaloError:
    usage: Json = document.get("usage")
    error.usage = Usage(**usage) if is_object(usage) else None
    error.embedded = document.get("embedded", ())
    return error

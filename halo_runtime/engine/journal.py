"""The journal: what happened in a run, one record an effect, under its structural path (spec 3).

A run is deterministic but for its effects, so the journal alone rebuilds it: a run that is given a journal takes the
recorded results and does only what is not recorded. Records stand in the order in which effects ended; each path
occurs once, so any part of a journal is a journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime import errors
from halo_runtime.json_types import Json, JsonObject

EffectKind: TypeAlias = Literal["model", "tool", "human", "event", "clock", "random", "control"]
Outcome: TypeAlias = Literal["done", "failed", "cancelled"]

TIMEOUT: Final = "/timeout"
"""What the path of a time limit's record ends with, behind the path of its pipeline."""


@record
class EffectRecord:
    """One ended effect.

    `request_sha256` tells what was asked, `result` is its JSON result (the error's JSON when it failed, null when it
    was cancelled). `origins` are the effects its request's values came from, `guards` those that the conditions on
    the way to it read.
    """

    path: str
    kind: EffectKind
    request_sha256: str
    outcome: Outcome
    result: Json
    origins: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        return {
            "path": self.path,
            "kind": self.kind,
            "request": self.request_sha256,
            "outcome": self.outcome,
            "result": self.result,
            "origins": list(self.origins),
            "guards": list(self.guards),
        }

    @classmethod
    def from_json(cls, document: JsonObject) -> EffectRecord:
        """The inverse of `to_json`."""
        return cls(
            path=document["path"],
            kind=document["kind"],
            request_sha256=document["request"],
            outcome=document["outcome"],
            result=document["result"],
            origins=tuple(document["origins"]),
            guards=tuple(document["guards"]),
        )


class Journal:
    """An append-only list of effect records with a look-up by path, in memory.

    Raises ValueError when a path is recorded twice: paths are the identity of effects, a collision is a defect.
    """

    def __init__(self, records: Iterable[EffectRecord] = ()) -> None:
        self._by_path: dict[str, EffectRecord] = {}
        for entry in records:
            self.append(entry)

    def append(self, record: EffectRecord) -> None:
        if record.path in self._by_path:
            raise ValueError(f"effect {record.path} is recorded already")
        self._by_path[record.path] = record

    def find(self, path: str) -> EffectRecord | None:
        return self._by_path.get(path)

    def __iter__(self) -> Iterator[EffectRecord]:
        return iter(self._by_path.values())

    def __len__(self) -> int:
        return len(self._by_path)

    def prefix(self, length: int) -> Journal:
        """A journal of the first `length` records."""
        return Journal(list(self)[:length])

    def without_cancelled(self) -> Journal:
        """A journal to go on from: what was cancelled is to be done again."""
        return Journal(self._kept())

    def forget_cancelled(self) -> None:
        """Forget what was cancelled because the run was stopped: it is to be done again."""
        self._by_path = {record.path: record for record in self._kept()}

    def _kept(self) -> list[EffectRecord]:
        return [record for record in self if record.outcome != "cancelled"]


def error_to_record(error: errors.HaloError) -> JsonObject:
    """An error as a record's result, so that a replay raises the same one."""
    document: JsonObject = {"type": type(error).__name__, "message": error.message}
    if isinstance(error, errors.ServiceError):
        document |= {
            "retryable": error.retryable,
            "status": error.status,
            "retry_after": error.retry_after,
            "detail": error.detail,
            "cursor": error.cursor,
        }
    return document


def error_from_record(document: JsonObject) -> errors.HaloError:
    """The error that `error_to_record` wrote down; one of an unknown type becomes a plain HaloError."""
    kind = getattr(errors, document["type"], errors.HaloError)
    if not issubclass(kind, errors.ServiceError):
        return kind(document["message"])
    error = kind(
        document["message"],
        retryable=document["retryable"],
        status=document["status"],
        retry_after=document["retry_after"],
        detail=document["detail"],
    )
    error.cursor = document["cursor"]
    return error

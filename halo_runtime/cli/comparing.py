"""Two stored runs side by side: route, values, calls, cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest
from typing import Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing, is_list, is_object
from halo_runtime.store.stored import StoredRun

Mark: TypeAlias = Literal["same", "differs", "left", "right"]
"""In both with the same value, in both with another one, or in one of them only."""

_SHORTENED = 200
"""Stages from which on a route is compared more coarsely, as its time grows with the square of its length."""


@dataclass(frozen=True)
class Side:
    """One of the two: a run, as it is or as it was after entry `seq` of its trace."""

    stored: StoredRun
    seq: int | None = None

    @property
    def stages(self) -> tuple[JsonObject, ...]:
        """The stages that it has been through."""
        return self.stored.stages if self.seq is None else self.stored.stages[: self.seq]

    @cached_property
    def document(self) -> JsonObject:
        """The shape of `halo show --json`."""
        return self.stored.to_json(self.seq)


@record
class Row:
    """A place of the route: the entries of the trace where they were there."""

    mark: Mark
    stage: str
    left: int | None
    right: int | None


@record
class Change:
    """A value that differs; MISSING where one of the two has none."""

    path: str
    left: Json | Missing
    right: Json | Missing

    def to_json(self) -> JsonObject:
        """The sides that have one."""
        sides = {"left": self.left, "right": self.right}
        return {"path": self.path} | {name: value for name, value in sides.items() if value is not MISSING}


@record
class Comparison:
    """What was found. `calls` are the calls that differ, side by side by their place among all calls."""

    route: tuple[Row, ...]
    values: tuple[Change, ...]
    calls: tuple[Change, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.values and not self.calls and all(row.mark == "same" for row in self.route)


def compare(left: Side, right: Side) -> Comparison:
    """Hold two runs against each other. Raises StoreError where one has no such entry."""
    return Comparison(
        tuple(_route(left, right)),
        tuple(changes(_state(left), _state(right))),
        tuple(changes(_calls(left), _calls(right))),
    )


def changes(left: Json | Missing, right: Json | Missing, path: str = "") -> Iterator[Change]:
    """The places at which two values differ, the innermost ones."""
    if is_object(left) and is_object(right):
        for name in dict.fromkeys([*left, *right]):
            yield from changes(left.get(name, MISSING), right.get(name, MISSING), _inside(path, name))
    elif is_list(left) and is_list(right):
        for index, (one, other) in enumerate(zip_longest(left, right, fillvalue=MISSING)):
            yield from changes(one, other, _inside(path, str(index)))
    elif type(left) is not type(right) or left != right:
        yield Change(path, left, right)


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _state(side: Side) -> JsonObject:
    """What is compared value by value; how the run ended belongs to no single entry."""
    document = side.document
    context = document["context"]
    state: JsonObject = {"input": context["input"], "data": context["data"], "current": context["current"]}
    if side.seq is None:
        state |= {"status": document["status"], "error": document["error"], "output": document["output"]}
    return {name: value for name, value in state.items() if value is not None or name == "current"}


def _calls(side: Side) -> JsonObject:
    """The calls by number, without how long they took."""
    names = ("agent", "method", "model", "messages", "reply", "tokens", "cost", "attempts", "tools")
    calls = side.document["context"]["meta"]["calls"]
    return {str(n): {name: call[name] for name in names if name in call} for n, call in enumerate(calls, 1)}


def _route(left: Side, right: Side) -> Iterator[Row]:
    olds, news = left.stages, right.stages
    keys = [[(d["kind"], d["stage"], _depth(d)) for d in stages] for stages in (olds, news)]
    matcher = SequenceMatcher(None, *keys, autojunk=max(map(len, keys)) > _SHORTENED)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(olds[old_start:old_end], news[new_start:new_end], strict=True)
            yield from (_both(old, new) for old, new in pairs)
        else:
            yield from (Row("left", old["stage"], old["seq"], None) for old in olds[old_start:old_end])
            yield from (Row("right", new["stage"], None, new["seq"]) for new in news[new_start:new_end])


def _both(old: JsonObject, new: JsonObject) -> Row:
    same = old["output_sha256"] == new["output_sha256"]
    return Row("same" if same else "differs", old["stage"], old["seq"], new["seq"])


def _depth(document: JsonObject) -> int:
    """How deep in nested pipelines, arms and items a stage stands."""
    return document["path"].count("/")

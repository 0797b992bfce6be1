"""What every call gives back and where its result is stored (spec 2.1)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple, Protocol

from halo_lang.records import record
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.frame import Frame
from halo_runtime.json_types import Json


class NamespaceWrite(NamedTuple):
    """A further result of a call: `data.<namespace>.<name>`."""

    namespace: str
    name: str
    value: Json
    origins: Origins


class Outcome(NamedTuple):
    """A call's result and the effects it came from.

    `writes` are results to be stored beside it. Calls never write to the context themselves, because arms and items
    that run in parallel must not see each other's results.
    """

    value: Json
    origins: Origins
    writes: tuple[NamespaceWrite, ...] = ()


class Call(Protocol):
    """A compiled call. `label` is what people see: `Writer.summarize`, `Review`."""

    @property
    def label(self) -> str: ...

    def invoke(self, frame: Frame, path: str) -> Awaitable[Outcome]:
        """Do the call with the frame's flowing value; effects go under `path`."""
        ...


@record
class Storage:
    """The names under which a call's result is stored.

    `callee` and `method` for `data.<callee>.<method>`, `alone` for the name by itself (None where it would hide a
    parameter or a declaration), `binding` for the `as` name.
    """

    callee: str | None
    method: str | None
    alone: str | None
    binding: str | None

    def names(self) -> list[tuple[str | None, str]]:
        """The names as namespace (None for a name of its own) and name, those that say most last."""
        in_namespace = (self.callee, self.method) if self.callee is not None and self.method is not None else None
        alone = [(None, name) for name in (self.alone, self.binding) if name is not None]
        return [*([in_namespace] if in_namespace else []), *alone]

    def store(self, frame: Frame, outcome: Outcome) -> None:
        """Write a result and what came beside it; the later one of the same name wins."""
        value, origins, writes = outcome
        for write in writes:
            frame.bind_in(*write)
        if self.callee is not None and self.method is not None:
            frame.bind_in(self.callee, self.method, value, origins)
        if self.alone is not None:
            frame.bind(self.alone, value, origins)
        if self.binding is not None:
            frame.bind(self.binding, value, origins)

"""A kept run for the screen: its stages and its state, now or after any of them (spec 9, Replay).

A journal that is damaged is shown as far as it is intact.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from halo_runtime.json_types import JsonObject
from halo_tui.models.data import Path
from halo_tui.models.lines import counted, money
from halo_tui.models.run import RunView, StageRow, figures

if TYPE_CHECKING:
    from halo_runtime.store.files import FileRunStore
    from halo_runtime.store.stored import StoredRun

TIMELESS: Final = None
"""A journal does not tell when a stage began."""


class Replay:
    """A kept run, looked at after one of the entries of its trace.

    `position` counts from 0, the start, over the stages in the order of the trace, to `last`, which is how the run
    stands. Nothing of it can be changed.
    """

    def __init__(self, stored: StoredRun, damage: str = "") -> None:
        self.stored = stored
        self.damage = damage
        self.rows = tuple(_timeline(stored, damage))
        self.position = self.last
        self._shown: tuple[int, RunView] | None = None

    @classmethod
    def open(cls, store: FileRunStore, run_id: str) -> Replay:
        """Read a run's journal. Raises UnknownRun, StoreError where nothing of it can be read."""
        from halo_runtime.errors import StoreError
        from halo_runtime.store.locks import is_claimed
        from halo_runtime.store.stored import StoredRun

        path, reading = store.read(run_id)
        if not reading.documents:
            raise StoreError(f"{path}: {reading.reason or 'it is empty'}; nothing of the run can be read")
        damage = f"line {reading.broken_line}: {reading.reason}" if reading.broken_line is not None else ""
        return cls(StoredRun(path, reading, claimed=is_claimed(path)), damage)

    @property
    def run_id(self) -> str:
        return self.stored.run_id

    @property
    def program(self) -> str:
        """The text of the program that was run."""
        return self.stored.header["program"]

    @property
    def file(self) -> str:
        """The path that the program had."""
        return self.stored.header["file"]

    @property
    def last(self) -> int:
        """The position at which the run stands."""
        return len(self.rows) - 1

    @property
    def entry(self) -> int | None:
        """The trace entry looked at; None where it is how the run stands."""
        return None if self.position == self.last else self.position

    @property
    def goes_on(self) -> bool:
        """Whether the run can be taken up again as it is."""
        return not self.damage and self.stored.status in ("paused", "interrupted")

    def go(self, position: int) -> bool:
        """Look at another position, the nearest there is; False when that is the one looked at already."""
        before, self.position = self.position, max(0, min(position, self.last))
        return self.position != before

    @property
    def marked_line(self) -> int:
        """The line of the stage looked at; 0 where there is none."""
        return self.rows[self.position][1].source_line

    @property
    def changed(self) -> frozenset[Path]:
        """The values in `context.data` that the stage has written."""
        if not 0 < self.position < self.last:
            return frozenset()
        names = self.stored.stages[self.position - 1].get("stored", {})
        return frozenset(("data", *name.split(".", 1)) for name in names)

    @property
    def view(self) -> RunView:
        """The run as it was then."""
        if self._shown is None or self._shown[0] != self.position:
            self._shown = self.position, self._view()
        return self._shown[1]

    def _view(self) -> RunView:
        view = view_of(self.stored, self.entry)
        if self.entry is None and self.damage:
            view.status = "damaged"
            view.error = {"type": "the journal is damaged", "message": self._advice}
        view.on = self._where
        return view

    @property
    def _where(self) -> str:
        place = "as it stands" if self.entry is None else f"after entry {self.position} of {self.last - 1}"
        return f"{place} · {self.run_id}"

    @property
    def _advice(self) -> str:
        repair = f"halo checkpoints repair {self.run_id}"
        return f"{self.damage}\nWhat stands before it is shown; `{repair}` keeps that and leaves the rest out."


def view_of(stored: StoredRun, entry: int | None = None) -> RunView:
    """A kept run after an entry of its trace; without one as it stands now, with its stages."""
    document = stored.to_json(entry, now=datetime.now(UTC))
    context, meta = document["context"], document["context"]["meta"]
    tokens, cost = figures(meta)
    view = RunView(
        status="replay" if entry is not None else document["status"],
        run_id=stored.run_id,
        pipeline=stored.pipeline,
        path=stored.pipeline,
        input=context["input"],
        current=context["current"],
        data=context["data"],
        meta=meta,
        output=document["output"],
        error=document["error"],
        tokens=tokens,
        cost=cost,
        warnings=[str(warning.get("message", "")) for warning in meta["warnings"]],
        open_questions={question["id"] for question in document["interrupts"]},
    )
    for stage in stored.stages if entry is None else stored.stages[:entry]:
        _keep_calls(view, stage["path"], stage)
    if entry is None:
        _keep_calls(view, stored.pipeline, stored.closing)  # those of the stage that failed, above all
        view.roots = _tree(stored.stages)
    return view


def _keep_calls(view: RunView, path: str, document: JsonObject | None) -> None:
    news = (document or {}).get("news", {})
    for call in news.get("calls", ()):
        view.calls.keep(path, call)
    for line in news.get("violations", ()):
        view.calls.keep_decision(path, line)


def _tree(stages: tuple[JsonObject, ...]) -> list[StageRow]:
    """The stages, those of a block or a nested pipeline below it."""
    rows = {stage["path"]: _row(stage) for stage in stages}
    roots: list[StageRow] = []
    for path, row in rows.items():
        above = next((rows[outer] for outer in _outer(path) if outer in rows), None)
        (roots if above is None else above.children).append(row)
    return roots


def _timeline(stored: StoredRun, damage: str) -> Iterator[tuple[int, StageRow]]:
    """A row for the start, one for each stage, and one for how the run stands, with their depths."""
    yield 0, StageRow(stored.pipeline, "start", f"{stored.pipeline} starts", 0, TIMELESS, "replay")
    paths = {stage["path"] for stage in stored.stages}
    halted = stored.status == "halted"
    for stage in stored.stages:
        row = _row(stage)
        if halted and stage is stored.stages[-1]:
            row.state = "halted"
        yield sum(outer in paths for outer in _outer(stage["path"])), row
    yield 0, _ending(stored, damage)


def _ending(stored: StoredRun, damage: str) -> StageRow:
    status = "damaged" if damage else stored.status
    error = stored.closing["error"] if stored.closing is not None else None
    note, line = damage, stored.stages[-1]["line"] if stored.stages else 0
    if status == "paused":
        note = counted(len(stored.interrupts), "open question")
    elif error is not None:
        note, line = f"{error['type']}: {error['message']}", error["line"] or line
    return StageRow(stored.pipeline, "end", status, line, TIMELESS, status, note=note)


def _row(stage: JsonObject) -> StageRow:
    calls = stage.get("news", {}).get("calls", [])
    reused = bool(calls) and all(call.get("reused") for call in calls)
    tokens, cost = sum(call["tokens"]["total"] for call in calls), sum(call["cost"] or 0 for call in calls)
    parts = [f"{tokens:,} tokens" if tokens else "", money(Decimal(str(cost))) if cost else ""]
    note = " · ".join(part for part in parts if part)
    return StageRow(
        stage["path"], stage["kind"], stage["stage"], stage["line"], TIMELESS, "completed", note=note, reused=reused
    )


def _outer(path: str) -> Iterator[str]:
    """The paths that enclose a path, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path

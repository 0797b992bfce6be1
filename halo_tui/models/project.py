"""The runs that a project keeps, as the workbench lists them: every run, and the questions that are open.

The store is opened when it is first needed, so that the editor does not wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

from halo_runtime.errors import HaloError
from halo_runtime.json_types import JsonObject
from halo_tui.models.lines import Line, ago, counted, one_line
from halo_tui.models.questions import Question
from halo_tui.models.run import STATES

if TYPE_CHECKING:
    from halo_runtime.store.files import FileRunStore

OpenStore = Callable[[], "FileRunStore"]

MAX_LISTED: Final = 500
"""Runs that are listed, the latest; `halo runs` lists them all."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One kept run in the list. `about` tells runs of one pipeline apart: their input, or what is wrong.

    A line without a `run_id` stands for runs that are not listed.
    """

    run_id: str
    status: str
    pipeline: str
    about: str
    updated_at: datetime | None
    questions: int = 0
    origin: str = ""
    """`<run>@<entry>` where it continues another run."""

    def line(self, now: datetime) -> Line:
        """One row: sign, pipeline, how long ago, open questions, input, and what it continues."""
        glyph, role = STATES.get(self.status, STATES["idle"])
        since = "" if self.updated_at is None else f"  {ago(self.updated_at, now)}"
        return (
            (f"{glyph} ", role),
            (one_line(self.pipeline, 40), "text"),
            (since, "dim"),
            (f"  {counted(self.questions, 'question')}" if self.questions else "", "wait"),
            (f"  {self.about}" if self.about else "", "error" if self.status == "damaged" else "dim"),
            (f"  ↳ {self.origin}" if self.origin else "", "dim"),
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """What a project keeps, at one moment. `trouble` says why the questions are not known, where they are not."""

    runs: tuple[RunLine, ...] = ()
    questions: tuple[Question, ...] = ()
    trouble: str = ""

    def find(self, run_id: str) -> RunLine | None:
        """The line of a run."""
        return next((line for line in self.runs if line.run_id == run_id), None)

    @property
    def at_work(self) -> bool:
        """Whether a process is at work on one of the runs: its end may go unnoted."""
        return any(line.status == "running" for line in self.runs)


class Project:
    """The kept runs. What reads files may be called in any thread."""

    def __init__(self, open_store: OpenStore) -> None:
        self._open_store = open_store

    @cached_property
    def store(self) -> FileRunStore:
        """Where the runs are kept."""
        return self._open_store()

    def look(self, now: datetime) -> Kept:
        """The runs and the open questions as they are now. Looking changes nothing."""
        lines = self.store.runs(now)
        runs = tuple(run_line(line) for line in lines[:MAX_LISTED])
        if len(lines) > MAX_LISTED:
            older = counted(len(lines) - MAX_LISTED, "older run")
            runs += (RunLine("", "idle", older, "`halo runs` lists them all", None),)
        try:
            questions, trouble = tuple(map(stored_question, self.store.open_interrupts(now))), ""
        except HaloError as error:
            questions, trouble = (), error.message
        return Kept(runs, questions, trouble)

    def obstacle(self) -> str:
        """Why no run can be kept; empty where one can. The folder is made for that."""
        from halo_runtime.store.atomic import make_folder

        folder = self.store.folder
        try:
            make_folder(folder)
        except OSError as failure:
            return f"{folder}: {failure.strerror}"
        return "" if os.access(folder, os.W_OK) else f"{folder} cannot be written to"


def run_line(line: JsonObject) -> RunLine:
    """A run from the list of a store."""
    moment = line["updatedAt"]
    return RunLine(
        run_id=line["runId"],
        status=line["status"],
        pipeline=line["pipeline"] or line["runId"],
        about=one_line(line["problem"] if line["status"] == "damaged" else line["inputPreview"]),
        updated_at=datetime.fromisoformat(moment) if moment else None,
        questions=line["interrupts"],
        origin=f"{line['parent']}@{line['forkedAt']}" if line["parent"] else "",
    )


def stored_question(document: JsonObject) -> Question:
    """An open question from the list of a store."""
    from halo_runtime.results import Interrupt

    interrupt = Interrupt.from_stored({"path": "", "binding": None, **document})
    left = document.get("left")
    return Question(interrupt, document["pipeline"], "" if left is None else left["by"] or "somebody")

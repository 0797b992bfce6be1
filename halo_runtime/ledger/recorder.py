"""Logs Halo runs: hears what a run does, and puts its steps into a ledger when it stops or pauses (spec 7.5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from halo_runtime.engine.events import RunEvent
from halo_runtime.json_types import Json
from halo_runtime.ledger.events import event_id
from halo_runtime.ledger.reading import Query
from halo_runtime.ledger.recording import Ended, Step, Story, steps_of
from halo_runtime.ledger.rules import EventRefused

if TYPE_CHECKING:
    from halo_lang import Program
    from halo_runtime.engine.journal import Journal
    from halo_runtime.ledger.store import Ledger

CLIENT: Final = "halo"
_PLACE: Final = re.compile(r"\[([^\[\]\s]+)\]\Z")


class RunRecorder:
    """An observer of runs that logs them. `agent` is whom they are logged as, the pipeline where it is None."""

    def __init__(self, ledger: Ledger, agent: str | None = None) -> None:
        self._ledger = ledger
        self._agent = agent
        self._stories: dict[str, Story] = {}

    def __call__(self, event: RunEvent) -> None:
        """Take note of an event of any run."""
        self._stories.setdefault(event.run_id, Story()).hear(event)

    def record(self, program: Program, pipeline: str, run_id: str, journal: Journal, ended: Ended) -> None:
        """Log the steps of a run that has stopped, but for those that were logged when it stopped before.

        Blocking. Raises StoreError where the ledger cannot be written.
        """
        story = self._stories.pop(run_id, Story())
        agent = self._agent or pipeline
        logged = self._logged(agent, run_id)
        for step in steps_of(program, pipeline, list(journal), story, ended):
            if step.place not in logged:
                logged[step.place] = self._log(step, agent, run_id, logged)

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _logged(self, agent: str, session: str) -> dict[str, int]:
        """The events of the run that are there already: place → number."""
        found: dict[str, int] = {}
        after: str | None = None
        while True:
            page = self._ledger.events(Query(agent=agent, session=session, after=after, limit=1000))
            for event in page.events:
                if place := _PLACE.search(event.summary):
                    found[place[1]] = event.number
            if page.next is None:
                return found
            after = page.next

    def _log(self, step: Step, agent: str, session: str, logged: dict[str, int]) -> int:
        uses: list[Json] = [event_id(logged[place]) for place in step.uses if place in logged]
        fields: dict[str, Json] = {"uses": uses, "session": session, "agent": agent}
        if step.about is not None:
            fields["about"] = event_id(logged[step.about])
        if step.form is not None:
            fields |= {"trigger": "request", "form": step.form}
        try:
            return self._ledger.log(step.kind, client=CLIENT, summary=step.summary, **fields).event.number
        except EventRefused:  # a question may look like a secret; that something happened is logged all the same
            summary = f"{step.kind} [{step.place}]"
            return self._ledger.log(step.kind, client=CLIENT, summary=summary, **fields).event.number

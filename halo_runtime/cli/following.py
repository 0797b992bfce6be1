"""What `halo watch` does: read a run's journal again and again while somebody writes it, and tell what is new."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from halo_runtime.cli.exit_codes import ExitCode, of_status
from halo_runtime.cli.journal_lines import for_people, for_programs
from halo_runtime.cli.output import json_text, say, tell
from halo_runtime.cli.project import store_of
from halo_runtime.errors import UnknownRun
from halo_runtime.json_types import JsonObject
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.live import Live
from halo_runtime.store.locks import is_claimed
from halo_runtime.store.stored import StoredRun

_STEP_SECONDS = 0.2
_RESTING = 4
"""A look at a long journal takes time: the next one is this many times as long away."""

Describe: TypeAlias = Callable[[JsonObject, StoredRun], str | None]
"""What a line of a journal says."""


def watch_run(reference: str, *, from_now: bool, as_json: bool) -> int:
    """Tell what happens until the run stops; the exit code says how it did."""
    store = store_of(reference)
    try:
        stored = _when_kept(store, reference)
        if stored is None:
            return ExitCode.COMPLETED
        stored = _follow(store, stored, from_now=from_now, describe=_as_json if as_json else for_people)
    except KeyboardInterrupt:
        say("no longer watching; the run is left as it is")
        return ExitCode.INTERRUPTED
    return of_status("interrupted" if stored.closing is None else stored.closing["status"])


def is_at_work(stored: StoredRun) -> bool:
    """Whether somebody goes on with the run now, who may not have written anything yet."""
    ended = stored.closing is not None and stored.closing["status"] not in ("paused", "interrupted")
    return stored.claimed and not ended


def _follow(store: FileRunStore, stored: StoredRun, *, from_now: bool, describe: Describe) -> StoredRun:
    """Tell the journal's lines, those that come while somebody is at work too; the run as it stopped."""
    seen = len(stored.reading.documents) if from_now else 0
    while True:
        for document in stored.reading.documents[seen:]:
            line = describe(document, stored)
            if line is not None:
                tell(line)
        seen = len(stored.reading.documents)
        if not is_at_work(stored):
            return stored
        stored = _changed(store, stored)


def _changed(store: FileRunStore, before: StoredRun) -> StoredRun:
    """The run when there is news of it. As long as its file does not grow, it is not read."""
    pause = _STEP_SECONDS
    while True:
        time.sleep(pause)
        if before.path.exists() and before.path.stat().st_size == before.reading.good and is_claimed(before.path):
            continue
        began = time.monotonic()
        stored = store.load(str(before.path))
        if len(stored.reading.documents) != len(before.reading.documents) or not is_at_work(stored):
            return stored
        pause = max(_STEP_SECONDS, _RESTING * (time.monotonic() - began))


def _when_kept(store: FileRunStore, reference: str) -> StoredRun | None:
    """The run once it is kept; None where it came to its end without. Raises UnknownRun."""
    told = False
    while True:
        live = store.live.find(reference)  # before the journal: a run that stops is kept first, and then has left
        try:
            return store.load(reference)
        except UnknownRun:
            if live is None and not told:
                raise
            if live is None:
                say("the run is over; it was not kept, so nothing more is known of it")
                return None
            if not told:
                say(_who(live))
        told = True
        time.sleep(_STEP_SECONDS)


def _who(live: Live) -> str:
    assert live.process is not None, "only those with a process are found"
    return (
        f"process {live.process.pid} is at work on {live.pipeline} since {live.started_at}; the run is not kept, so "
        "what it does cannot be seen here; waiting for its end"
    )


def _as_json(document: JsonObject, stored: StoredRun) -> str | None:
    told = for_programs(document, stored)
    return None if told is None else json_text(told, None)

"""What `halo stop` does: find the process that is at work on a run, and end that work."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import say, tell_json
from halo_runtime.cli.project import store_of
from halo_runtime.cli.settings import seconds_of
from halo_runtime.errors import RunRefused, UnknownRun
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.live import Live, Process
from halo_runtime.store.locks import is_claimed

_STEP_SECONDS = 0.05
_LAST_WORD_SECONDS = 2.0
"""How long a process may take that was told to end at once."""
_STOPPED = "has stopped"

Send = Callable[[signal.Signals], None]


def stop_run(reference: str, *, force: bool, wait: str, as_json: bool) -> int:
    """Stop it; the exit code. Raises RunRefused where that is not possible, UnknownRun."""
    store = store_of(reference)
    patience = seconds_of("--wait", wait)
    run_id, status = _status_of(store, reference)
    process = _process_at_work(store, run_id, status)
    with _signalling(process) as send:
        how = _stop(store, run_id, send, patience, force=force)
    if how is None:
        raise RunRefused(f"process {process.pid} has not stopped within {wait}; to end it at once: --force")
    if how != _STOPPED:
        store.live.leave(run_id)  # the process could not
    _, status = _status_of(store, reference)
    if as_json:
        tell_json({"runId": run_id, "pid": process.pid, "how": how, "status": status})
    else:
        further = "it was not kept" if status is None else f"it can go on: halo resume {run_id}"
        say(f"process {process.pid} {how}; the run is {status or 'over'}, {further}")
    return ExitCode.COMPLETED


def _status_of(store: FileRunStore, reference: str) -> tuple[str, str | None]:
    """A run's id, and its status where it is kept."""
    try:
        stored = store.load(reference)
    except UnknownRun:
        return reference, None
    return stored.run_id, stored.status


def _process_at_work(store: FileRunStore, run_id: str, status: str | None) -> Process:
    """Who is to be stopped. Raises RunRefused, UnknownRun."""
    live = next((one for one in store.live if one.run_id == run_id), None)
    if live is None and status is None:
        raise UnknownRun(f"there is no run {run_id} in {store.root}")
    if live is None:
        raise RunRefused(f"nobody is at work on the run {run_id}; it is {status}")
    return _checked(live)


def _checked(live: Live) -> Process:
    process = live.process
    if process is None:
        raise RunRefused(f"who is at work cannot be told: {live.unreadable}")
    if not process.is_here and process.lives:
        raise RunRefused(f"the run {live.run_id} is at work on {process.host}; stop it there")
    if not process.lives:
        raise RunRefused(
            f"process {process.pid}, which was at work on the run {live.run_id}, is gone; "
            f"to go on with the run: halo resume {live.run_id}"
        )
    if live.within is not None:
        raise RunRefused(f"the run {live.run_id} is at work in a {live.within} (process {process.pid}); stop it there")
    return process


@contextmanager
def _signalling(process: Process) -> Generator[Send]:
    """A way to signal this very process, whatever becomes of its id meanwhile."""
    try:
        handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        handle = None
    try:
        _refuse_other(process)

        def send(number: signal.Signals) -> None:
            try:
                os.kill(process.pid, number) if handle is None else signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                pass  # it has just ended
            except PermissionError:
                raise RunRefused(f"process {process.pid} belongs to somebody else, who can stop it") from None

        yield send
    finally:
        if handle is not None:
            os.close(handle)


def _refuse_other(process: Process) -> None:
    """The handle is that of the process which has the id now: see once more that it is the right one."""
    if not process.lives:
        raise RunRefused(f"process {process.pid} has just ended; the run is not stopped by this command")


def _stop(store: FileRunStore, run_id: str, send: Send, patience: float, *, force: bool) -> str | None:
    """Cancel the work, with force after a while the process; how it ended, None where it has not."""
    steps = [(signal.SIGINT, patience, _STOPPED)]
    if force:
        steps += [(signal.SIGTERM, _LAST_WORD_SECONDS, "was ended"), (signal.SIGKILL, _LAST_WORD_SECONDS, "was killed")]
    for number, seconds, how in steps:
        send(number)
        if _has_left(store, run_id, seconds):
            return how
    return None


def _has_left(store: FileRunStore, run_id: str, seconds: float) -> bool:
    """Whether nobody is at work on the run before the time is over.

    The claim is looked at too: the threads of a killed process may hold it for a moment longer.
    """
    deadline = time.monotonic() + seconds
    journal = store.folder / f"{run_id}.jsonl"
    while store.live.find(run_id) is not None or is_claimed(journal):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_STEP_SECONDS)
    return True

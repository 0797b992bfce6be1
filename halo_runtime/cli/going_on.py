"""What `halo resume` and `halo signal` do: a stored run goes on, or takes an answer first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halo_lang.source import Source
from halo_runtime.cli import reporting
from halo_runtime.cli.answers import value_of
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import say, tell_json
from halo_runtime.cli.performing import StoppedError, Work, carry_out
from halo_runtime.cli.progress import choose_progress
from halo_runtime.cli.project import store_of
from halo_runtime.cli.telemetry import exporting
from halo_runtime.cli.usage import UsageError
from halo_runtime.errors import RunBusy
from halo_runtime.results import RunResult
from halo_runtime.store.stored import StoredRun

if TYPE_CHECKING:
    from halo_runtime.cli.settings import Settings
    from halo_runtime.runtime import Runtime


def go_on(settings: Settings, reference: str, interrupt: str | None) -> int:
    """Go on with a run; questions are asked where there is a terminal."""
    if interrupt is not None:
        raise UsageError("--interrupt is for an answer", hint="give it too: --answer VALUE")

    async def work(runtime: Runtime) -> RunResult:
        return await runtime.resume(reference)

    return _perform(settings, store_of(reference).load(reference), work)


def answer_value(
    settings: Settings,
    reference: str,
    text: str,
    *,
    interrupt: str | None = None,
    event: str | None = None,
    wait: bool = True,
) -> int:
    """Answer a run and go on with it. `wait` False: to a run that is at work elsewhere the value is left."""
    stored = store_of(reference).load(reference)

    async def work(runtime: Runtime) -> RunResult:
        return await runtime.signal(
            reference, value_of(text), interrupt=interrupt, event=event, by=settings.person, how="command"
        )

    try:
        return _perform(settings, stored, work)
    except RunBusy as busy:
        if wait:
            busy.hint = f"to leave the answer for that process: halo signal {stored.run_id} VALUE"
            raise
    stored = _post(settings, reference, text, interrupt=interrupt, event=event)
    if store_of(reference).load(reference).status == "paused":  # who had the run has just let go of it
        try:
            return go_on(settings, reference, None)
        except RunBusy:
            pass
    return _tell_left(settings, stored)


def leave(settings: Settings, reference: str, text: str, *, interrupt: str | None, event: str | None) -> int:
    """Leave a value for a run, which takes it when it asks for it."""
    return _tell_left(settings, _post(settings, reference, text, interrupt=interrupt, event=event))


def _post(settings: Settings, reference: str, text: str, *, interrupt: str | None, event: str | None) -> StoredRun:
    stored = store_of(reference).load(reference)
    runtime = settings.runtime(stored)
    runtime.post(reference, value_of(text), interrupt=interrupt, event=event, by=settings.person, how="command")
    return stored


def _tell_left(settings: Settings, stored: StoredRun) -> int:
    if settings.as_json:
        tell_json(stored.to_json())
    elif not settings.quiet:
        say(f"left for the run {stored.run_id}, which takes it when it asks for it")
    return ExitCode.COMPLETED


def _perform(settings: Settings, stored: StoredRun, work: Work) -> int:
    progress = choose_progress(events=settings.events, quiet=settings.quiet)
    if not settings.events:
        progress.known = stored.paths
    runtime = settings.runtime(stored)
    with exporting(settings, runtime):
        try:
            result = carry_out(work, runtime, settings, progress)
        except StoppedError:
            return reporting.report_stopped(progress, as_json=settings.as_json)
        source = Source(stored.header["program"], stored.header["file"])
        return reporting.report(result, source, progress, [], settings)

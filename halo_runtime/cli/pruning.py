"""What `halo prune` does: choose old runs, delete them, say which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.listing import run_line
from halo_runtime.cli.output import plural, tell, tell_json
from halo_runtime.cli.project import run_store
from halo_runtime.cli.settings import seconds_of
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.json_types import JsonObject
from halo_runtime.store.files import FileRunStore

_BY_ITSELF = frozenset({"completed", "halted", "failed", "interrupted"})
_ASKED_FOR = frozenset({"paused", "damaged"})


def prune_runs(older: str, statuses: frozenset[str], *, dry_run: bool, as_json: bool) -> int:
    """Delete the runs that fit. Raises UsageError for a status that no run can be deleted by."""
    for status in sorted(statuses - _BY_ITSELF - _ASKED_FOR):
        raise UsageError(
            f"--status {status}: no runs are deleted by that", hint=did_you_mean(status, _BY_ITSELF | _ASKED_FOR)
        )
    store, now = run_store(), datetime.now(UTC)
    before = now - timedelta(seconds=seconds_of("--older", older))
    lines = [line for line in store.runs(now) if _fits(line, statuses) and _last(store, line) < before]
    chosen = [line["runId"] for line in lines]
    removed = set(chosen if dry_run else store.remove(chosen, now))
    gone = [line for line in lines if line["runId"] in removed]
    if as_json:
        tell_json({"removed": [line["runId"] for line in gone], "dryRun": dry_run})
    else:
        done = "would be deleted" if dry_run else "deleted"
        tell("\n".join([*(run_line(line, now) for line in gone), f"{plural(len(gone), 'run')} {done}"]))
    return ExitCode.COMPLETED


def _fits(line: JsonObject, statuses: frozenset[str]) -> bool:
    """Whether a run is one of those to delete; what waits for an answer has to be asked for."""
    if statuses:
        return line["status"] in statuses
    return line["status"] in _BY_ITSELF and not line["interrupts"]


def _last(store: FileRunStore, line: JsonObject) -> datetime:
    """When something happened to a run; of one without an end only its file knows."""
    if line["status"] not in ("interrupted", "damaged"):
        return datetime.fromisoformat(line["updatedAt"])
    return datetime.fromtimestamp((store.folder / f"{line['runId']}.jsonl").stat().st_mtime, UTC)

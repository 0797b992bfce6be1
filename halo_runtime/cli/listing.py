"""What `halo runs` and `halo inbox` say: tables for people, the shapes of spec 12.6 for programs."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime

from halo_lang.excerpt import visible
from halo_runtime.cli.narration import elapsed
from halo_runtime.cli.output import money, paint, plural, tell, tell_json
from halo_runtime.cli.project import run_store
from halo_runtime.cli.questions import attachment_line, choices_line
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.json_types import JsonObject
from halo_runtime.store.live import Live

STATUSES = frozenset({"paused", "running", "interrupted", "damaged", "completed", "halted", "failed"})
"""All that a run can be listed with."""

_FIRST = ("paused", "running", "interrupted", "damaged")
"""Statuses that wait for somebody stand at the top."""

_COLOURS = {
    "paused": "warning",
    "running": "info",
    "interrupted": "warning",
    "failed": "error",
    "damaged": "error",
    "completed": "good",
}


def list_runs(status: str | None, pipeline: str | None, limit: int | None, *, as_json: bool) -> int:
    """The kept runs that fit. Raises UsageError for a status that no run has."""
    if status is not None and status not in STATUSES:
        raise UsageError(f"--status {status}: no run has that", hint=did_you_mean(status, STATUSES))
    now = datetime.now(UTC)
    lines = [
        line
        for line in run_store().runs(now)
        if status in (None, line["status"]) and pipeline in (None, line["pipeline"])
    ][:limit]
    if as_json:
        tell_json({"runs": lines})
    elif not lines:
        tell("no runs are kept here")
    else:
        tell("\n".join(run_line(line, now) for line in sorted(lines, key=_waiting_first)))
    return 0


def list_live(*, as_json: bool) -> int:
    """The runs at work now; a record that nobody can read is shown as such."""
    live = list(run_store().live)
    if as_json:
        tell_json({"runs": [_live_document(one) for one in live]})
        return 0
    lines = [_live_line(one) for one in live]
    tell("\n".join(lines) or "no run is at work")
    return 0


def list_inbox(*, as_json: bool) -> int:
    """The open questions of all paused runs."""
    now = datetime.now(UTC)
    questions = run_store().open_interrupts(now)
    if as_json:
        tell_json({"interrupts": questions})
    else:
        tell("\n\n".join(_question(one, now) for one in questions) or "no question is open")
    return 0


def _live_document(one: Live) -> JsonObject:
    process = one.process
    return {
        "runId": one.run_id,
        "pid": None if process is None else process.pid,
        "alive": process is not None and process.lives,
        "pipeline": one.pipeline,
        "file": one.file,
        "startedAt": one.started_at,
        "problem": one.unreadable,
    }


def _live_line(one: Live) -> str:
    if one.process is None:
        return f"{one.run_id}  unreadable: {visible(one.unreadable or '')}"
    gone = "" if one.process.lives else " (gone)"
    return f"{one.run_id}  {visible(one.pipeline)}  process {one.process.pid}{gone}  {visible(one.file)}"


def _waiting_first(line: JsonObject) -> int:
    return _FIRST.index(line["status"]) if line["status"] in _FIRST else len(_FIRST)


def run_line(line: JsonObject, now: datetime) -> str:
    """A run on one line, with what tells it from others: when, which pipeline, how far, what it was given."""
    status = paint(_COLOURS.get(line["status"], "dim"), f"{line['status']:<11}", sys.stdout)
    if line["status"] == "damaged":
        return f"{line['runId']}  {status}  {visible(line['problem'])}"
    stages = plural(line.get("stages", 0), "stage")
    cost = "" if not line["cost"] else money(line["cost"])
    waiting = plural(line["interrupts"], "question") if line["interrupts"] else ""
    parent = f"from {line['parent']}@{line['forkedAt']}" if line["parent"] else ""
    about = [cost, waiting, parent, visible(line.get("inputPreview", ""))]
    parts = [line["runId"], status, visible(line["pipeline"]), stages, f"{_age(line['updatedAt'], now)} ago"]
    return "  ".join([*parts, *filter(None, about)])


def _question(one: JsonObject, now: datetime) -> str:
    going_on = ["halo", "resume", one["runId"]]
    what = f"waits for {one['event']}" if one["kind"] == "listen" else one["message"]
    lines = [
        f"? {visible(what, keep=chr(10))}",
        f"  {one['runId']}, {visible(one['stage'])}, {_age(one['askedAt'], now)} ago",
    ]
    lines += [f"  {attachment_line(attachment)}" for attachment in one["attachments"]]
    if one["choices"]:
        lines.append(f"  {choices_line(one['kind'], one['choices'])}")
    if one["expiresAt"]:
        lines.append(f"  expires in {elapsed((datetime.fromisoformat(one['expiresAt']) - now).total_seconds())}")
    if left := one.get("left"):
        by = visible(left["by"] or "somebody")
        lines.append(f"  {by} left an answer {_age(left['at'], now)} ago, which the run takes when it goes on")
        return "\n".join([*lines, f"  {shlex.join(going_on)}"])
    return "\n".join([*lines, f"  {shlex.join([*going_on, '--interrupt', one['id'], '--answer'])} VALUE"])


def _age(moment: str, now: datetime) -> str:
    return elapsed(max(0.0, (now - datetime.fromisoformat(moment)).total_seconds()))

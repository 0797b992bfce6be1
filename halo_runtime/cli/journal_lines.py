"""What a line of a run's journal says, to people and to programs. Pure."""

from __future__ import annotations

from collections.abc import Callable

from halo_lang.excerpt import visible
from halo_runtime.cli.narration import ITEM
from halo_runtime.cli.output import money, plural
from halo_runtime.cli.questions import open_question
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import Interrupt
from halo_runtime.store.stored import StoredRun
from halo_runtime.values import text_of

_LONGEST = 100
"""Characters of a value that are shown."""


def for_people(document: JsonObject, stored: StoredRun) -> str | None:
    """A line or block; None for what tells people nothing."""
    describe = _TEXTS.get(document["t"])
    return None if describe is None else describe(document, stored)


def for_programs(document: JsonObject, stored: StoredRun) -> JsonObject | None:
    """The stable shape of `halo watch --json`; None for what only the engine needs."""
    fields = _FIELDS.get(document["t"])
    if fields is None:
        return None
    shown: JsonObject = {"type": document["t"], "runId": stored.run_id}
    return shown | {name: document.get(name) for name in fields} | _figures(document)


def short(value: Json, longest: int = _LONGEST) -> str:
    """A value on one line, cut where it is long."""
    text = visible(text_of(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


_FIELDS: dict[str, tuple[str, ...]] = {
    "run": ("pipeline", "file", "input", "startedAt", "parent", "forkedAt"),
    "effect": ("path", "kind", "outcome", "reused", "answer"),
    "stage": ("seq", "path", "kind", "stage", "line", "current"),
    "status": ("status", "output", "error", "interrupts", "at", "cost", "tokens"),
    "refused": ("value", "interrupt", "event", "by", "reason"),
}


def _figures(document: JsonObject) -> JsonObject:
    """What a stage's calls came to."""
    if document["t"] != "stage":
        return {}
    calls = document.get("news", {}).get("calls", [])
    costs = [call["cost"] for call in calls]
    tokens = sum(call["tokens"]["total"] for call in calls)
    return {"calls": len(calls), "tokens": tokens, "cost": None if None in costs else sum(costs)}


def _run(document: JsonObject, _stored: StoredRun) -> str:
    parent = f", continues {document['parent']}@{document['forkedAt']}" if document["parent"] else ""
    return f"{document['runId']}  {document['pipeline']}  {visible(document['file'])}{parent}"


def _stage(document: JsonObject, _stored: StoredRun) -> str | None:
    if document["kind"] == ITEM:
        return None
    figures = _figures(document)
    spent = [plural(figures["tokens"], "token")] if figures["tokens"] else []
    spent += [money(figures["cost"])] if figures["cost"] else []
    after = f" ({', '.join(spent)})" if spent else ""
    return (
        f"{document['seq']}  line {document['line']}: {visible(document['stage'])}{after}: {short(document['current'])}"
    )


def _effect(document: JsonObject, _stored: StoredRun) -> str | None:
    """Answers and failures; what else there is shows in its stage."""
    answer = document.get("answer")
    if answer is not None and answer["how"] != "expired":
        return f"answered by {visible(answer['by'] or 'nobody named')} ({answer['how']}): {short(document['result'])}"
    if document["outcome"] == "failed":
        return f"{document['result']['type']}: {short(document['result']['message'])}"
    return None


def _status(document: JsonObject, stored: StoredRun) -> str:
    lines = [document["status"]]
    if document["error"] is not None:
        lines[0] += f": {document['error']['type']}: {visible(document['error']['message'])}"
    elif document["status"] in ("completed", "halted"):
        lines[0] += f": {short(document['output'])}"
    for one in document["interrupts"]:
        question = Interrupt.from_stored(one)
        lines.append(f"{open_question(question)}\n    halo signal {stored.run_id} VALUE --interrupt {question.id}")
    return "\n".join(lines)


def _refused(document: JsonObject, _stored: StoredRun) -> str:
    return f"refused: {short(document['value'])}: {visible(document['reason'])}"


_TEXTS: dict[str, Callable[[JsonObject, StoredRun], str | None]] = {
    "run": _run,
    "stage": _stage,
    "effect": _effect,
    "status": _status,
    "refused": _refused,
}

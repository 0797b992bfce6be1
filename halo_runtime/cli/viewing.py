"""What `halo show` and `halo verify` say of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from halo_lang.excerpt import visible
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import money, plural, tell, tell_json
from halo_runtime.cli.project import split_reference, store_of
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.store.verification import verify_journal
from halo_runtime.values import text_of

if TYPE_CHECKING:
    from halo_runtime.store.stored import StoredRun


def show_run(reference: str, *, as_json: bool) -> int:
    """A run as it is, or as it was at an entry of its trace."""
    name, seq = split_reference(reference)
    stored = store_of(name).load(name)
    document = stored.to_json(seq, now=datetime.now(UTC))
    if as_json:
        tell_json(document)
    else:
        tell(_text(stored, document, seq))
    return ExitCode.COMPLETED


def verify_run(reference: str, *, as_json: bool) -> int:
    """Whether a journal is what was written."""
    found = verify_journal(store_of(reference), reference)
    if as_json:
        tell_json(found.to_json())
    else:
        reason = f": {visible(found.reason)}" if found.reason else ""
        tell(f"{found}, {plural(found.entries, 'entry')}{reason}")
    return ExitCode.COMPLETED if found.status in ("valid", "open") else ExitCode.FAILED


def _text(stored: StoredRun, document: JsonObject, seq: int | None) -> str:
    context = document["context"]
    meta = context["meta"]
    lines = [f"{stored.run_id}  {document['status']}  {stored.pipeline}  {visible(stored.header['file'])}"]
    if stored.header["parent"]:
        lines.append(f"continues {stored.header['parent']} from entry {stored.header['forkedAt']}")
    if seq is not None:
        lines.append(f"after entry {seq}: {visible(context['trace'][-1]['stage'])}")
    if document["error"] is not None:
        lines.append(f"error {document['error']['type']}: {visible(document['error']['message'])}")
    lines += _decisions(meta["violations"])
    lines += [f"asks: {visible(one['message'])} ({one['id']})" for one in document["interrupts"]]
    lines += [f"{name}: {_short(value)}" for name, value in context["input"].items()]
    lines += [f"data.{name}: {_short(value)}" for name, value in context["data"].items()]
    lines.append(f"current: {_short(context['current'])}")
    if document["output"] is not None:
        lines.append(f"output: {_short(document['output'])}")
    lines.append(f"{plural(len(meta['calls']), 'call')}, {meta['tokens']['total']} tokens, cost {money(meta['cost'])}")
    lines += _embeddings(meta.get("embeddings", []))
    return "\n".join(lines)


def _decisions(violations: Sequence[JsonObject]) -> list[str]:
    """What policies stopped or changed, each once, with how often."""
    said = (
        f"policy {line['policy']}: {visible(line['rule'])} {line['action']} at {line['point']} of"
        f" {line['agent']}.{line['method']}"
        for line in violations
    )
    return [text if count == 1 else f"{text} ({count} times)" for text, count in Counter(said).items()]


def _embeddings(lines: Sequence[JsonObject]) -> list[str]:
    """What was embedded by services, which is not in the cost of the calls."""
    if not lines:
        return []
    costs = [line["cost"] for line in lines]
    cost = None if None in costs else sum(costs)
    return [f"embeddings: {sum(line['tokens'] for line in lines)} tokens, cost {money(cost)}"]


def _short(value: Json) -> str:
    text = visible(text_of(value))
    return text if len(text) <= 200 else text[:199] + "…"

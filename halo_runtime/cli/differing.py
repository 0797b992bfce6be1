"""What `halo diff` says of two runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

from halo_lang.excerpt import visible
from halo_runtime.cli.comparing import Change, Comparison, Mark, Row, Side, compare
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.journal_lines import short
from halo_runtime.cli.output import money, plural, tell, tell_json
from halo_runtime.cli.project import run_store, split_reference
from halo_runtime.json_types import MISSING, Json, JsonObject, Missing, is_object

_SIGNS: dict[Mark, str] = {"same": " ", "differs": "~", "left": "-", "right": "+"}
_ALL_SHOWN = 3
"""Stages in a row that are the same and are shown one by one; more are counted."""
_LONGEST = 300
"""Characters of a value that are shown."""


def diff_runs(left: str, right: str, *, as_json: bool) -> int:
    """Compare two runs. Raises UnknownRun, StoreError."""
    store = run_store()
    references = [split_reference(text) for text in (left, right)]
    first, second = (Side(store.load(name), seq) for name, seq in references)
    found = compare(first, second)
    if as_json:
        tell_json(_document(first, second, found))
    else:
        tell("\n".join(_text(first, second, found)))
    return ExitCode.COMPLETED


def _document(left: Side, right: Side, found: Comparison) -> JsonObject:
    return {
        "same": found.is_same,
        "left": _side(left),
        "right": _side(right),
        "route": [asdict(row) for row in found.route],
        "values": [change.to_json() for change in found.values],
        "calls": [change.to_json() for change in found.calls],
    }


def _side(side: Side) -> JsonObject:
    document = side.document
    meta = document["context"]["meta"]
    return {
        "runId": side.stored.run_id,
        "seq": side.seq,
        "status": document["status"],
        "pipeline": side.stored.pipeline,
        "programSha256": side.stored.header["programSha256"],
        "calls": len(meta["calls"]),
        "tokens": meta["tokens"],
        "cost": meta["cost"],
    }


def _text(left: Side, right: Side, found: Comparison) -> Iterator[str]:
    sides = [_side(left), _side(right)]
    for sign, side in zip("-+", sides, strict=True):
        at = "" if side["seq"] is None else f"@{side['seq']}"
        figures = (
            f"{plural(side['calls'], 'call')}, {plural(side['tokens']['total'], 'token')}, cost {money(side['cost'])}"
        )
        yield f"{sign} {side['runId']}{at}  {side['pipeline']}  {side['status']}  {figures}"
    if sides[0]["programSha256"] != sides[1]["programSha256"]:
        yield "the programs differ"
    if found.is_same:
        yield "the runs are the same"
        return
    yield from _section("route", _route(found.route))
    yield from _section("values", _values(found.values))
    yield from _section(
        "calls", _calls(found.calls, *(side.document["context"]["meta"]["calls"] for side in (left, right)))
    )


def _section(head: str, lines: Iterator[str]) -> Iterator[str]:
    """A head with its lines; nothing where there are none."""
    found = list(lines)
    if found:
        yield from ["", head, *found]


def _route(rows: tuple[Row, ...]) -> Iterator[str]:
    for is_same, group in groupby(rows, lambda row: row.mark == "same"):
        run = list(group)
        if is_same and len(run) > _ALL_SHOWN:
            yield f"    … {len(run)} stages are the same"
        else:
            yield from map(_row, run)


def _row(row: Row) -> str:
    left, right = ("" if seq is None else str(seq) for seq in (row.left, row.right))
    return f"  {_SIGNS[row.mark]} {left:>4} {right:>4}  {visible(row.stage)}"


def _values(changes: tuple[Change, ...]) -> Iterator[str]:
    """The values that differ; one that a call's result has under several names is shown once."""
    grouped: dict[str, list[Change]] = {}
    for change in changes:
        grouped.setdefault(f"{_value(change.left)} {_value(change.right)}", []).append(change)
    for group in grouped.values():
        yield from _sides(", ".join(change.path for change in group), group[0].left, group[0].right)


def _calls(changes: tuple[Change, ...], left: list[JsonObject], right: list[JsonObject]) -> Iterator[str]:
    """The calls that differ, by number and name; of one that only one side has, what it replied."""
    for change in changes:
        number, _, inside = change.path.partition(".")
        call = next(calls[int(number) - 1] for calls in (left, right) if int(number) <= len(calls))
        head = f"{number} {call['agent']}.{call['method']} {inside}".rstrip()
        sides = (change.left, change.right) if inside else map(_reply, (change.left, change.right))
        yield from _sides(head, *sides)


def _reply(call: Json | Missing) -> Json | Missing:
    return call["reply"] if is_object(call) else MISSING


def _sides(head: str, left: Json | Missing, right: Json | Missing) -> Iterator[str]:
    yield f"  {visible(head)}"
    yield f"    - {_value(left)}"
    yield f"    + {_value(right)}"


def _value(value: Json | Missing) -> str:
    return "(nothing)" if isinstance(value, Missing) else short(value, _LONGEST)

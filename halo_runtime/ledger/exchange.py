"""Ledgers as JSON lines and as OpenTelemetry spans, and JSON lines taken into a ledger (spec 7.4, 12.7)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.ledger.analysis import Known
from halo_runtime.ledger.events import MODULES, Event, event_number, read_time
from halo_runtime.ledger.rules import Draft, EventRefused, client_name, link_problems, read
from halo_runtime.ledger.writing import append, known_events, links_of
from halo_runtime.values import parse_json
from halo_runtime.version import __version__

if TYPE_CHECKING:
    from halo_runtime.ledger.store import Ledger

_ADDED: Final = ("id", "time", "client", "hash")
"""What Halo adds to an event. The hash is not taken over: it binds an event to its old id and neighbours."""

_INTERNAL: Final = 1
"""OTLP's kind of a span that is neither client nor server."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@record
class Imported:
    """What became of an import: how many events are stored now, and what is wrong with each refused line (from 1)."""

    stored: int
    refused: tuple[tuple[int, tuple[str, ...]], ...]


class _Undone(Exception):
    """Ends a transaction without keeping it."""


def take(ledger: Ledger, lines: Iterable[str | bytes], *, partial: bool, now: str) -> Imported:
    """Import lines in one transaction; see Ledger.take. `now` is the time of events that have none."""
    refused: list[tuple[int, tuple[str, ...]]] = []
    numbers: dict[int, int] = {}
    stored = 0
    try:
        with ledger.transaction() as connection:
            for place, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    _take(connection, line, numbers, now)
                    stored += 1
                except EventRefused as refusal:
                    refused.append((place, refusal.problems))
            if refused and not partial:
                raise _Undone
    except _Undone:
        stored = 0
    return Imported(stored, tuple(refused))


def _take(connection: sqlite3.Connection, line: str | bytes, numbers: dict[int, int], now: str) -> None:
    """Import one line. `numbers` leads from the file's ids to the ledger's, and gets the line's own."""
    fields = _fields(line)
    added = {name: fields.pop(name, None) for name in _ADDED}
    draft = read(fields)
    known = known_events(connection, [numbers[one] for one in draft.linked if one in numbers])
    there = {one: known[numbers[one]] for one in draft.linked if one in numbers}
    own, time, problems = _own(added, numbers, now)
    problems = (*problems, *draft.problems, *_broken_links(draft, there))
    if problems:
        raise EventRefused(problems)
    about = None if draft.about is None else numbers[draft.about]
    moved = replace(draft, uses=tuple(numbers[one] for one in draft.uses), about=about)
    logged = append(connection, moved, time, client_name(str(added["client"] or "")))
    if own is not None:
        numbers[own] = logged.event.number


def _fields(line: str | bytes) -> JsonObject:
    try:
        document = parse_json(line.decode() if isinstance(line, bytes) else line)
    except ValueError:
        raise EventRefused(["it is no JSON"]) from None
    if not is_object(document):
        raise EventRefused(["it is no JSON object"])
    return document


def _own(added: Mapping[str, Json], numbers: Mapping[int, int], now: str) -> tuple[int | None, str, tuple[str, ...]]:
    """A line's own id and time, and what is wrong with them."""
    problems: list[str] = []
    own = event_number(added["id"])
    if added["id"] is not None and own is None:
        problems.append("id must be an event id such as e3")
    if own in numbers:
        problems.append(f"id e{own} stands on an earlier line already")
    time = now if added["time"] is None else read_time(added["time"])
    if time is None:
        problems.append("time must be a moment in ISO 8601, such as 2026-11-30T10:00:00Z")
    return own, time or now, tuple(problems)


def _broken_links(draft: Draft, there: Mapping[int, Known]) -> tuple[str, ...]:
    """As the ledger says it of a call, but that there is no tool to call."""
    return tuple(
        problem.replace("call halo_trace to see the ids of your earlier events", "it must stand on an earlier line")
        for problem in link_problems(draft, there)
    )


def line_of(event: Event, digest: str) -> JsonObject:
    """An event as a line of an export; `digest` is its hash in hex."""
    return {**event.to_json(), "hash": digest}


def span_of(event: Event, ledger: str) -> JsonObject:
    """An event as a line of OpenTelemetry's file exporter: an OTLP/JSON document with one span.

    An agent's events are one trace, a span lasts no time, and a span's links are the event's. Ids are made of the
    ledger's own (`ledger`: the hash of its first event), so an export gives the same ones each time.
    Source: https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
    """
    trace = sha256(f"{ledger} {event.agent}".encode()).hexdigest()[:32]
    nanoseconds = _nanoseconds(event.time)
    values = {**event.to_json(), "module": MODULES[event.kind]}
    span: JsonObject = {
        "traceId": trace,
        "spanId": _span_id(ledger, event.number),
        "name": event.kind,
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds,
        "endTimeUnixNano": nanoseconds,
        "attributes": [_attribute(f"halo.event.{name}", value) for name, value in values.items() if value is not None],
        "links": [
            {
                "traceId": trace,
                "spanId": _span_id(ledger, number),
                "attributes": [_attribute("halo.link", "about" if number == event.about else "uses")],
            }
            for number in links_of(event)
        ],
    }
    scope = {"name": "halo.ledger", "version": __version__}
    resource = {"attributes": [_attribute("service.name", event.agent)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [span]}]}]}


def _span_id(ledger: str, number: int) -> str:
    return sha256(f"{ledger} {number}".encode()).hexdigest()[:16]


def _nanoseconds(time: str) -> str:
    """Since 1970, as OTLP/JSON writes 64 bits: a text. Moments before are the earliest there is."""
    since = datetime.fromisoformat(time) - _EPOCH
    return str(max(0, (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000))


def _attribute(name: str, value: Json) -> JsonObject:
    if is_list(value):
        return {"key": name, "value": {"arrayValue": {"values": [{"stringValue": str(one)} for one in value]}}}
    return {"key": name, "value": {"stringValue": str(value)}}

"""Ledgers as JSON lines and OpenTelemetry spans, and JSON lines taken in (spec 7.4, 12.7)."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, cast

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from halo_runtime.json_types import JsonObject
from halo_runtime.ledger import Imported, Ledger
from halo_runtime.ledger.exchange import line_of, span_of
from tests.ledger.support import step, walk_through


def line(number: int, kind: str = "observe", **fields: Any) -> str:
    return json.dumps({"id": f"e{number}", "kind": kind, "summary": "a", "agent": "demo", "session": "s1", **fields})


def exported(ledger: Ledger) -> list[JsonObject]:
    return [line_of(event, digest) for event, digest in ledger.export()]


def test_an_export_taken_into_an_empty_ledger_is_the_same_ledger() -> None:
    with Ledger.in_memory() as first, Ledger.in_memory() as second:
        walk_through(first)
        lines = exported(first)
        assert second.take(map(json.dumps, lines)) == Imported(9, ())
        assert exported(second) == lines
        assert second.report() == first.report()


def test_imported_events_get_new_ids_and_keep_links_and_times() -> None:
    with Ledger.in_memory() as ledger:
        step(ledger, "observe", agent="other")
        lines = [line(7, time="2020-01-01T10:00:00+02:00"), line(3, "remember", uses=["e7"]), "", line(4, uses=["e3"])]
        assert ledger.take(lines).stored == 3
        events = ledger.events().events
        assert [(one.id, one.uses) for one in events] == [("e1", ()), ("e2", ()), ("e3", (2,)), ("e4", (3,))]
        assert events[1].time == "2020-01-01T08:00:00.000000Z"
        assert ledger.verify().valid


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is no JSON"),
        ("[1]", "it is no JSON object"),
        ('{"kind": NaN}', "it is no JSON"),
        (b"\xff{}", "it is no JSON"),
        (line(2, uses=["e9"]), "unknown event id(s) e9 for agent 'demo'; it must stand on an earlier line"),
        (line(2, uses=["e2"]), "unknown event id(s) e2 for agent 'demo'; it must stand on an earlier line"),
        (line(2, uses=["e1"], agent="b"), "unknown event id(s) e1 for agent 'b'; it must stand on an earlier line"),
        (line(2, "outcome", about="e1"), "about must be the id of one of the agent's own act events"),
        (line(2, uses=["e1", "e1"]), "uses names e1 more than once"),
        (line(1), "id e1 stands on an earlier line already"),
        (line(2, time="yesterday"), "time must be a moment in ISO 8601, such as 2026-11-30T10:00:00Z"),
        (line(2, id="2"), "id must be an event id such as e3"),
        (line(2, channels=[]), "there is no field channels"),
    ],
)
def test_a_refused_line_is_named_and_nothing_is_stored(text: str | bytes, problem: str) -> None:
    with Ledger.in_memory() as ledger:
        lines = [line(1), text, line(5, uses=["e1"])]
        assert ledger.take(lines) == Imported(0, ((2, (problem,)),))
        assert ledger.events().events == ()
        assert ledger.take(lines, partial=True) == Imported(2, ((2, (problem,)),))
        assert [event.uses for event in ledger.events().events] == [(), (1,)]


def test_a_line_that_rests_on_a_refused_one_is_refused_too() -> None:
    with Ledger.in_memory() as ledger:
        found = ledger.take([line(1, summary=""), line(2, uses=["e1"]), line(3)], partial=True)
        assert (found.stored, [number for number, _ in found.refused]) == (1, [1, 2])


def test_spans_have_the_links_of_their_events() -> None:
    with Ledger.in_memory() as ledger:
        walk_through(ledger)
        events = list(ledger.export())
    documents = [span_of(event, events[0][1]) for event, _ in events]
    spans = [document["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for document in documents]
    by_id = {span["spanId"]: place for place, span in enumerate(spans, 1)}
    assert [[by_id[link["spanId"]] for link in span["links"]] for span in spans] == [
        [], [1], [1], [2], [1, 4], [5], [6], [7], [8]
    ]  # fmt: skip
    assert {span["traceId"] for span in spans} == {spans[0]["traceId"]}
    assert spans[5]["links"][0]["attributes"] == [{"key": "halo.link", "value": {"stringValue": "about"}}]
    assert (len(spans[0]["traceId"]), len(spans[0]["spanId"]), spans[0]["name"]) == (32, 16, "observe")
    assert spans[0]["startTimeUnixNano"].isdigit()
    assert documents == [span_of(event, events[0][1]) for event, _ in events]


def test_an_export_is_what_opentelemetrys_own_message_holds() -> None:
    """OTLP/JSON is Protobuf's JSON, but that ids are hexadecimal."""

    def in_base64(value: Any) -> Any:
        if isinstance(value, list):
            return [in_base64(one) for one in cast(list[Any], value)]
        if not isinstance(value, dict):
            return value
        found = {name: in_base64(one) for name, one in cast(dict[str, Any], value).items()}
        ids = {name: b64encode(bytes.fromhex(found[name])).decode() for name in ("traceId", "spanId") if name in found}
        return {**found, **ids}

    with Ledger.in_memory() as ledger:
        walk_through(ledger)
        for event, _ in ledger.export():
            span = ParseDict(in_base64(span_of(event, "key")), TracesData()).resource_spans[0].scope_spans[0].spans[0]
            assert (span.name, len(span.span_id), len(span.trace_id)) == (event.kind, 8, 16)
            assert span.start_time_unix_nano == span.end_time_unix_nano > 0
            assert len(span.links) == len(event.uses) + (event.about is not None)

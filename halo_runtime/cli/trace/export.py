"""`halo trace export`: the ledger as JSON lines or OpenTelemetry spans."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from halo_runtime.cli.trace.options import db_option, open_ledger


@click.command("export", short_help="Write the ledger as JSON lines, or as OpenTelemetry spans.")
@db_option
@click.option("--agent", metavar="NAME", help="Of one agent.")
@click.option("--session", metavar="LABEL", help="Of one session.")
@click.option("--format", "form", type=click.Choice(["jsonl", "otel"]), default="jsonl", help="Default: jsonl.")
def command(db: Path | None, agent: str | None, session: str | None, form: str) -> int:
    """Write all events to stdout, one JSON document a line.

    `jsonl` is what `halo trace import` reads. `otel` is OTLP/JSON as OpenTelemetry's file exporter writes it: an event
    is a span, and its links are the span's.

    Exit code 0.
    """
    from halo_runtime.cli.output import emit, json_text
    from halo_runtime.ledger.exchange import line_of, span_of

    with open_ledger(db) as ledger:
        first = ""
        for event, digest in ledger.export():
            first = first or digest
            if (agent or event.agent) != event.agent or (session or event.session) != event.session:
                continue
            document = line_of(event, digest) if form == "jsonl" else span_of(event, first)
            if not emit(sys.stdout, json_text(document, sys.stdout) + "\n"):
                break
    return 0

"""`--otel`: spans reach a collector; one that is not there costs a line and little time (spec 08)."""

from __future__ import annotations

import builtins
import json
import socket
import threading
import time
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

PROGRAM = """agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text |> Bot.draft("Draft.") |! yield("Send?") as verdict
"""
RUN = ["run", "p.halo", "-i", "text=hi", "--replies", "r.json", "--otel", "--no-input"]


class Collector(HTTPServer):
    """Takes spans over OTLP/HTTP and keeps them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, str | None, ExportTraceServiceRequest]] = []

    def spans(self) -> list[Any]:
        documents = [request for _, _, request in self.requests]
        return [span for d in documents for r in d.resource_spans for s in r.scope_spans for span in s.spans]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        document = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
        assert isinstance(self.server, Collector)
        self.server.requests.append((self.path, self.headers.get("authorization"), document))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the library
        pass


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    Path("p.halo").write_text(PROGRAM)
    Path("r.json").write_text('{"Bot": "hello"}')


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_of_a_run_and_of_its_continuation_reach_the_collector(
    collector: Collector, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20xyz")
    assert main([*RUN, "--json"]) == 4
    run_id = json.loads(capsys.readouterr().out)["runId"]
    assert {span.name for span in collector.spans()} == {
        "invoke_workflow Main", "|> Bot.draft", "invoke_agent Bot", "chat gpt-4o-mini", "|! yield",
    }  # fmt: skip
    assert {(path, key) for path, key, _ in collector.requests} == {("/v1/traces", "Bearer xyz")}
    resource = collector.requests[0][2].resource_spans[0].resource
    assert {a.key: a.value.string_value for a in resource.attributes}["service.name"] == "halo"
    (first,) = [span for span in collector.spans() if span.name.startswith("invoke_workflow")]
    collector.requests.clear()
    assert main(["resume", run_id, "--answer", "yes", "--otel"]) == 0
    (root,) = collector.spans()
    assert root.name == "invoke_workflow Main"
    assert [link.span_id for link in root.links] == [first.span_id]
    assert "--otel" not in capsys.readouterr().err


def test_a_collector_that_is_not_there_costs_a_line_and_little_time(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody:  # bound and not listening: nobody else gets the port
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:pw@{address}")
        begun = time.monotonic()
        assert main(RUN) == 4
        assert time.monotonic() - begun < 4
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "otel" in line.lower()] == [
        f"warning: --otel: not all spans could be sent to http://{address}; is a collector running there? "
        "The run is not affected"
    ]
    assert not [line for line in lines if "Traceback" in line or "pw" in line]


@pytest.mark.parametrize("more", ["--quiet", "--events"])
def test_the_line_is_left_out_where_there_is_no_room_for_it(
    more: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    assert main([*RUN, more]) == 4
    assert "--otel:" not in capsys.readouterr().err


def test_without_the_extra_nothing_starts_and_the_way_to_it_is_said(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith(("opentelemetry", "halo_runtime.telemetry.export")):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(RUN) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--otel: OpenTelemetry is not installed\n  = hint: pip install 'halo-workbench[otel]'" in captured.err
    assert not Path(".halo").exists()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "OTEL_TRACES_EXPORTER=zipkin: there is otlp, console and none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "spans are sent as http/protobuf"),
    ],
)
def test_an_exporter_that_is_not_there_is_refused_before_anything_runs(
    variable: str, value: str, message: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(RUN) == 2
    assert message in capsys.readouterr().err


def test_nothing_is_sent_where_the_environment_says_none(
    collector: Collector, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    assert main(RUN) == 4
    assert collector.requests == []
    assert "--otel:" not in capsys.readouterr().err


def test_spans_can_be_written_to_the_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    assert main(RUN) == 4
    assert '"name": "invoke_workflow Main"' in capsys.readouterr().err

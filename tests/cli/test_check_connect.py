"""`halo check --connect`: programs held to what servers say of their methods (spec 5)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.cli.main import main
from halo_runtime.tools.base import OfferedMethod
from halo_runtime.tools.described import described
from tests.tools.mcp_servers import WIRE

Captured = pytest.CaptureFixture[str]


def check(folder: Path, *stages: str, args: tuple[str, ...] = (), mode: str = "plain") -> int:
    """The exit code of a check."""
    server = f'"{sys.executable}", args: ["{WIRE}", "{mode}"], env: ["MCP_LOG={folder / "log"}"]'
    lines = "".join(f"\n    |> {stage}" for stage in stages)
    program = f"tool Demo : MCP({server})\n\npipeline Main(x: String) -> Result:\n  x{lines}\n"
    (folder / "a.halo").write_text(program)
    return main(["check", str(folder / "a.halo"), *args])


def test_calls_are_held_to_the_servers_methods(tmp_path: Path, capsys: Captured) -> None:
    stages = ("Demo.ecko()", "Demo.echo(txt: x)", "Demo.echo(text: 5)", "Demo.echo(text: x)")
    assert check(tmp_path, *stages, args=("--connect", "--json")) == 2
    found = json.loads(capsys.readouterr().out)["files"][0]
    assert [(one["code"], one["line"]) for one in found["diagnostics"]] == [("HL301", 5), ("HL302", 6), ("HL303", 7)]
    assert found["diagnostics"][0]["fix"]["text"] == "echo"
    assert found["unreached"] == []


def test_without_it_nobody_is_asked(tmp_path: Path, capsys: Captured) -> None:
    assert check(tmp_path, "Demo.ecko()", args=("--json",)) == 0
    assert ("unreached" in capsys.readouterr().out, (tmp_path / "log").exists()) == (False, False)


def test_a_server_that_cannot_be_asked_is_told_and_is_a_failure(tmp_path: Path, capsys: Captured) -> None:
    assert check(tmp_path, "Demo.echo()", args=("--connect",), mode="dies-at-once") == 2
    told = "tool Demo : MCP: Demo: the server broke the connection; it ended with exit code 2"
    assert told in capsys.readouterr().out


def test_a_program_with_errors_starts_no_server(tmp_path: Path) -> None:
    assert check(tmp_path, "Nobody.echo()", args=("--connect",)) == 2
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("args", [("--connect", "--watch"), ("--env-file", "x")])
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    assert check(tmp_path, args=args) == 2


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({}, "(…)"),
        ({"properties": {}, "additionalProperties": False}, "()"),
        ({"properties": {"b": {}, "a": {}}, "required": ["a"]}, "(a, b?)"),
        ({"properties": {"a": True}, "additionalProperties": {"type": "string"}}, "(a?, …)"),
        ({"properties": 5, "required": "a"}, "(…)"),
    ],
)
def test_a_schema_becomes_a_signature(schema: dict[str, Any], written: str) -> None:
    spec = catalog.provider("MCP")
    assert spec is not None
    told = described(spec, [OfferedMethod("x.y/z", "", schema, "write")])
    assert (told.method_names, str(told.methods[0].signature)) == (("x_y_z",), written)


def test_choices_and_limits_are_taken_over() -> None:
    spec = catalog.provider("MCP")
    assert spec is not None
    properties = {"n": {"type": "integer", "minimum": 1, "maximum": 5}, "w": {"type": "string", "enum": ["a", "b"]}}
    signature = described(spec, [OfferedMethod("x", "", {"properties": properties}, "write")]).methods[0].signature
    assert [one.expected() for one in signature.parameters] == ["a whole number from 1 to 5", 'one of "a", "b"']

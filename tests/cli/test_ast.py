"""`halo ast`: the syntax tree as JSON and as indented lines, of whole and of broken programs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from halo_lang import nodes, parse
from halo_lang.tree import text, trees
from halo_runtime.cli.main import main
from tests.lang.programs import programs

Captured = pytest.CaptureFixture[str]

PROGRAM = """\
// two declarations
agent Bot [openai/gpt-4o-mini, temp: 0.5]

pipeline Main(é: String) -> Result:
  "é" |> Bot.answer(n: 3, all: [true, null]) as answer
"""
BROKEN = "schema S { a: Array<String> }\npipeline Main(x: String) -> Result:\n  x |> Bot.go(\n  |> Bot.end()\n"
BY_NAME = {name: kind for name, kind in vars(nodes).items() if isinstance(kind, type)}


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.halo").write_text(PROGRAM)
    Path("broken.halo").write_text(BROKEN)


def printed(capsys: Captured, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["ast", *arguments])
    return code, json.loads(capsys.readouterr().out)


def all_nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "node" in value:
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from all_nodes(inner)


def test_declarations_stand_in_order_with_their_places(capsys: Captured) -> None:
    code, document = printed(capsys, "p.halo")
    assert code == 0
    assert list(document) == ["path", "declarations", "diagnostics"]
    assert (document["path"], document["diagnostics"]) == ("p.halo", [])
    agent, pipeline = document["declarations"]
    assert (agent["node"], agent["line"], agent["column"], agent["endLine"], agent["endColumn"]) == (
        "Agent", 2, 1, 2, 42,
    )  # fmt: skip
    assert (pipeline["node"], pipeline["complete"]) == ("Pipeline", True)


def test_a_node_has_its_fields_under_their_names(capsys: Captured) -> None:
    _, document = printed(capsys, "p.halo")
    agent, pipeline = document["declarations"]
    assert agent["model"] == {
        "node": "ModelRef", "line": 2, "column": 12, "endLine": 2, "endColumn": 30, "text": "openai/gpt-4o-mini",
    }  # fmt: skip
    (stage,) = pipeline["stages"]
    assert stage["operator"] == {"line": 5, "column": 7, "endLine": 5, "endColumn": 9}
    assert stage["binding"]["text"] == "answer"
    count, both = stage["call"]["args"]
    assert (count["name"]["text"], count["value"]["value"]) == ("n", 3)
    assert [item["node"] for item in both["value"]["items"]] == ["Boolean", "Null"]


def test_columns_count_code_points_and_a_byte_order_mark_is_none(capsys: Captured) -> None:
    Path("bom.halo").write_bytes(b"\xef\xbb\xbf" + PROGRAM.replace("\n", "\r\n").encode())
    _, document = printed(capsys, "bom.halo")
    assert document["declarations"] == printed(capsys, "p.halo")[1]["declarations"]


def test_of_a_broken_program_what_parsed_and_the_errors_are_told(capsys: Captured) -> None:
    code, document = printed(capsys, "broken.halo")
    assert code == 2
    assert [found["code"] for found in document["diagnostics"]] == ["HL105"]
    schema, pipeline = document["declarations"]
    assert (schema["node"], schema["complete"]) == ("Schema", True)
    assert (pipeline["node"], pipeline["complete"]) == ("Pipeline", False)
    assert [stage["call"]["method"]["text"] for stage in pipeline["stages"]] == ["end"]


def test_names_are_not_looked_up(capsys: Captured) -> None:
    Path("unknown.halo").write_text("pipeline Main(x: String) -> Result: x |> Missing.go()\n")
    code, document = printed(capsys, "unknown.halo")
    assert (code, document["diagnostics"]) == (0, [])


def test_stdin_is_read_and_bytes_that_are_no_text_are_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"agent Bot [a/b]\n\xff")))
    code, document = printed(capsys, "-")
    assert (code, document["path"]) == (2, "-")
    assert [found["code"] for found in document["diagnostics"]] == ["HL101"]
    assert [declaration["name"]["text"] for declaration in document["declarations"]] == ["Bot"]


def test_an_empty_program_is_an_empty_tree(capsys: Captured) -> None:
    Path("empty.halo").touch()
    assert printed(capsys, "empty.halo") == (0, {"path": "empty.halo", "declarations": [], "diagnostics": []})
    assert main(["ast", "--text", "empty.halo"]) == 0
    assert capsys.readouterr().out == ""


def test_the_tree_for_people_is_indented(capsys: Captured) -> None:
    Path("one.halo").write_text("schema S { ok: Array<Boolean> }\n")
    assert main(["ast", "one.halo", "--text"]) == 0
    assert capsys.readouterr().out == (
        "Schema 1:1-1:32\n"
        '  name: Name 1:8-1:9 text="S"\n'
        "  fields: Field 1:12-1:30\n"
        '    name: Name 1:12-1:14 text="ok"\n'
        "    type: TypeRef 1:16-1:30\n"
        '      name: Name 1:16-1:21 text="Array"\n'
        "      item: TypeRef 1:22-1:29\n"
        '        name: Name 1:22-1:29 text="Boolean"\n'
    )


def test_the_tree_for_people_has_the_errors_beside_it(capsys: Captured) -> None:
    assert main(["ast", "broken.halo", "--text"]) == 2
    captured = capsys.readouterr()
    assert "Pipeline 2:1-4:15 incomplete\n" in captured.out
    assert captured.err.startswith("broken.halo:3:14: error HL105")


def test_a_terminal_is_not_led_astray_by_a_string() -> None:
    (tree,) = trees(parse('pipeline Main(x: String) -> Result: "\x1b[2J"'))
    assert "\x1b" not in text([tree])


def test_nesting_as_deep_as_it_may_be_is_printed(capsys: Captured) -> None:
    Path("deep.halo").write_text(f"pipeline Main(x: String) -> Result: {'[' * 199}{']' * 199}\n")
    code, document = printed(capsys, "deep.halo")
    assert (code, document["diagnostics"]) == (0, [])


@settings(deadline=None, max_examples=30)
@given(programs(max_declarations=3))
def test_every_node_has_a_place_and_exactly_the_fields_of_its_class(source: str) -> None:
    for node in all_nodes(trees(parse(source))):
        fields = set(BY_NAME[node["node"]].__match_args__) - {"span"}
        assert node.keys() - {"complete"} == {"node", "line", "column", "endLine", "endColumn", *fields}
        assert (node["line"], node["column"]) <= (node["endLine"], node["endColumn"])


def test_the_reference_lists_every_node_with_its_parts(root: Path) -> None:
    page = (root / "docs/reference/json.md").read_text("utf-8").partition("## `halo ast`")[2]
    rows = re.findall(r"^\| (`[A-Z].*?) \| (.*)\|$", page, re.M)
    documented = {
        name: set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", parts)))
        for names, parts in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    kinds = [kind for kind in BY_NAME.values() if kind.__module__ == nodes.__name__]
    assert documented == {kind.__name__: set(kind.__match_args__) - {"span"} for kind in kinds}

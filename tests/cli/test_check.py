"""`halo check` and `halo explain`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from halo_runtime.cli.main import main

Captured = pytest.CaptureFixture[str]

GOOD = "pipeline Main(x: String) -> Result: x\n"
BAD = "pipeline Main(x: String) -> Result:\n  x |> Missing.go()\n"
WARNED = 'pipeline Main(x: String) -> Result: x |> System.Print("\\q")\n'


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"good": GOOD, "bad": BAD, "sub/warned": WARNED, ".hidden/bad": BAD}.items():
        path = tmp_path / f"{name}.halo"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "notes.txt").write_text("no program")


def test_a_clean_file_is_named_and_counted(capsys: Captured) -> None:
    assert main(["check", "good.halo"]) == 0
    assert capsys.readouterr().out == "good.halo: no problems\n\n1 file: no problems\n"


def test_an_error_is_a_block_with_line_and_caret(capsys: Captured) -> None:
    assert main(["check", "bad.halo"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("bad.halo:2:8: error HL203: ")
    assert "\n2 |   x |> Missing.go()\n  |        ^^^^^^^\n" in out
    assert out.endswith("\n\n1 file: 1 error\n")


def test_warnings_only_are_no_failure(capsys: Captured) -> None:
    assert main(["check", "sub/warned.halo"]) == 0
    assert capsys.readouterr().out.endswith("1 file: 1 warning\n")


def test_a_directory_stands_for_the_programs_below_it_each_counted_once(capsys: Captured) -> None:
    assert main(["check", ".", "./sub/../good.halo", "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert [file["path"] for file in document["files"]] == ["bad.halo", "good.halo", "sub/warned.halo"]
    assert (document["errors"], document["warnings"]) == (1, 1)


def test_in_a_directory_only_regular_files_are_opened(capsys: Captured) -> None:
    os.mkfifo("pipe.halo")
    Path(".#good.halo").symlink_to("somebody@host.123")
    assert main(["check", ".", "--json"]) == 2
    paths = [file["path"] for file in json.loads(capsys.readouterr().out)["files"]]
    assert paths == ["bad.halo", "good.halo", "sub/warned.halo"]


def test_json_has_the_stable_shape(capsys: Captured) -> None:
    main(["check", "bad.halo", "--json"])
    [file] = json.loads(capsys.readouterr().out)["files"]
    [found] = file["diagnostics"]
    assert set(found) == {
        "code",
        "severity",
        "message",
        "line",
        "column",
        "endLine",
        "endColumn",
        "hint",
        "related",
        "fix",
    }
    assert (found["code"], found["line"], found["column"], found["endColumn"]) == ("HL203", 2, 8, 15)


@pytest.mark.parametrize(("data", "message"), [(b"\xff\xfe\x00", "byte 0"), (b"agent \xc3(", "byte 6")])
def test_bytes_that_are_no_text_are_one_diagnostic(data: bytes, message: str, capsys: Captured) -> None:
    Path("binary.halo").write_bytes(data)
    assert main(["check", "binary.halo"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("binary.halo:1:")
    assert f"error HL101: invalid UTF-8 at {message}" in out


def test_an_empty_file_is_an_empty_program() -> None:
    Path("empty.halo").touch()
    assert main(["check", "empty.halo"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.halo"], "nowhere.halo: no such file"),
        (["goood.halo"], "did you mean good.halo?"),
        (["astray.halo"], "error: astray.halo: no such file\n"),
        (["good.halo/x"], "no such file (a part of the path is no directory)"),
        ([""], "the name of a file is empty"),
        (["empty"], "empty: no .halo files in this directory"),
        (["a\0b"], "NUL"),
        (["x" * 300], "the name is too long"),
        (["circle"], "symbolic links that lead in a circle"),
    ],
)
def test_what_is_no_file_is_refused_by_name(arguments: list[str], message: str, capsys: Captured) -> None:
    Path("empty").mkdir()
    Path("circle").symlink_to("circle")
    Path("astray.halo").symlink_to("nowhere")
    assert main(["check", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


@pytest.mark.parametrize(("model", "found"), [("openai/our-own", ["HL511"]), ("openai/gpt-4o-mini", [])])
def test_prices_are_known_to_the_check(model: str, found: list[str], capsys: Captured) -> None:
    Path("budget.halo").write_text(
        f"policy Budget : MaxSpend(1)\nagent Bot [{model}]\n  requires Budget\n{GOOD.strip()} |> Bot.go()\n"
    )
    assert main(["check", "budget.halo", "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert [diagnostic["code"] for diagnostic in file["diagnostics"]] == found


def test_a_flood_of_findings_is_cut_for_people_and_whole_in_json(capsys: Captured) -> None:
    Path("flood.halo").write_text("agent\n" * 150)
    assert main(["check", "flood.halo"]) == 2
    assert capsys.readouterr().out.endswith("flood.halo: 50 more (--json lists all)\n\n1 file: 150 errors\n")
    main(["check", "flood.halo", "--json"])
    assert len(json.loads(capsys.readouterr().out)["files"][0]["diagnostics"]) == 150


def test_a_code_is_explained(capsys: Captured) -> None:
    assert main(["explain", "hl405"]) == 0
    assert "HL405" in capsys.readouterr().out


def test_an_unknown_code_is_wrong_usage(capsys: Captured) -> None:
    assert main(["explain", "HL999"]) == 2
    assert "HL999" in capsys.readouterr().err

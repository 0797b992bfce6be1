"""`halo check --format`: annotations, SARIF, stdin, and where paths begin."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from halo_lang.diagnostics import Diagnostic, Fix, Related, Severity
from halo_lang.source import Source, Span
from halo_runtime.cli.findings import Report
from halo_runtime.cli.github import workflow_commands
from halo_runtime.cli.main import main
from halo_runtime.cli.sarif import log

Captured = pytest.CaptureFixture[str]

# The schema of the standard as SchemaStore keeps it and the npm package @microsoft/jest-sarif (MIT) delivers it.
SCHEMA = Draft4Validator(json.loads((Path(__file__).parent / "data/sarif-2.1.0-rtm.5.json").read_text("utf-8")))
TWICE = "pipeline Bot(x: String) -> Result: x\n" * 2
MIXED = 'pipeline Main(é: String) -> Result:\n  é |? (é = "😀") |> System.Print("\\q")\n'


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    Path("good.halo").write_text("pipeline Main(x: String) -> Result: x\n")
    Path("twice.halo").write_text(TWICE)
    Path("mixed.halo").write_text(MIXED)


def sarif(capsys: Captured, *paths: str) -> dict[str, Any]:
    """The one run of the log, which keeps to the standard's schema."""
    main(["check", "--format", "sarif", *paths])
    document = json.loads(capsys.readouterr().out)
    assert list(SCHEMA.iter_errors(document)) == []
    (run,) = document["runs"]
    return run


def results(run: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, int]]]:
    for result in run["results"]:
        (location,) = result["locations"]
        place = location["physicalLocation"]
        yield result["ruleId"], place["artifactLocation"]["uri"], place["region"]


def finding(message: str, path: str = "a.halo", **more: Any) -> Report:
    found = Diagnostic("HL203", Severity.ERROR, message, Span(0, 1), **more)
    return Report(Source("abc\ndef", path), (found,))


# --- which format --------------------------------------------------------------------------------------------


def test_json_is_a_short_word_for_its_format(capsys: Captured) -> None:
    assert main(["check", "twice.halo", "--json"]) == 2
    short = capsys.readouterr().out
    assert main(["check", "twice.halo", "--format", "json"]) == 2
    assert capsys.readouterr().out == short


@pytest.mark.parametrize("form", ["text", "github", "sarif"])
def test_json_and_another_format_are_wrong_usage(form: str, capsys: Captured) -> None:
    assert main(["check", "twice.halo", "--json", "--format", form]) == 2
    assert f"--json and --format {form} cannot go together" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--format", "json"], ["--format=json"], ["--json"]])
def test_a_refusal_is_json_too_where_json_is_asked_for(arguments: list[str], capsys: Captured) -> None:
    assert main(["check", *arguments, "nowhere.halo"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["message"] == "nowhere.halo: no such file"
    assert captured.err == ""


def test_an_unknown_format_names_those_there_are(capsys: Captured) -> None:
    assert main(["check", "good.halo", "--format", "xml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "'text', 'json', 'github', 'sarif'" in captured.err


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_the_exit_code_is_the_same_in_every_format(form: str) -> None:
    Path("warned.halo").write_text('pipeline Main(x: String) -> Result: x |> System.Print("\\q")\n')
    assert main(["check", "warned.halo", "--format", form]) == 0
    assert main(["check", "warned.halo", "twice.halo", "--format", form]) == 2


def test_stdin_is_checked_beside_files(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TWICE.encode())))
    assert main(["check", "good.halo", "-", "--json"]) == 2
    files = json.loads(capsys.readouterr().out)["files"]
    assert [(file["path"], len(file["diagnostics"])) for file in files] == [("-", 1), ("good.halo", 0)]


# --- colours -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["--color", "always", "check", "twice.halo"], ["check", "--color", "always", "twice.halo"]]
)
def test_colours_are_forced_in_front_of_a_command_and_behind_it(arguments: list[str], capsys: Captured) -> None:
    main(arguments)  # although the output is no terminal and NO_COLOR is set
    assert "\x1b[1;31merror HL201\x1b[0m" in capsys.readouterr().out


def test_a_choice_of_colours_holds_for_one_invocation(capsys: Captured) -> None:
    main(["check", "--color", "always", "twice.halo"])
    main(["check", "twice.halo"])
    assert "\x1b" not in capsys.readouterr().out.partition("1 file: 1 error\n")[2]


def test_colours_reach_refusals_too(capsys: Captured) -> None:
    main(["check", "--color", "always", "nowhere.halo"])
    assert capsys.readouterr().err.startswith("\x1b[1;31merror\x1b[0m: nowhere.halo")


# --- GitHub --------------------------------------------------------------------------------------------------


def test_a_finding_is_one_workflow_command(capsys: Captured) -> None:
    assert main(["check", "twice.halo", "--format", "github"]) == 2
    assert capsys.readouterr().out == (
        "::error file=twice.halo,line=2,col=10,endLine=2,endColumn=13,title=HL201::`Bot` is declared twice%0A"
        "hint: give one of the two another name; all declarations share one namespace\n"
    )


def test_without_findings_there_is_no_output_for_github(capsys: Captured) -> None:
    assert main(["check", "good.halo", "--format", "github"]) == 0
    assert capsys.readouterr().out == ""


def test_what_would_end_a_workflow_command_is_escaped() -> None:
    (line, end) = workflow_commands([finding("100%: a,b\r\n::error::", path="a,b:c%.halo")]).split("\n")
    assert line == (
        "::error file=a%2Cb%3Ac%25.halo,line=1,col=1,endLine=1,endColumn=2,title=HL203::100%25: a,b%0D%0A::error::"
    )
    assert end == ""


@pytest.mark.parametrize(
    ("severity", "command"), [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "notice")]
)
def test_each_severity_has_its_command(severity: Severity, command: str) -> None:
    report = Report(Source("a"), (Diagnostic("HL510", severity, "x", Span(0, 1)),))
    assert workflow_commands([report]).startswith(f"::{command} ")


def test_a_finding_over_several_lines_has_no_end_column() -> None:
    report = Report(Source("abc\ndef", "a.halo"), (Diagnostic("HL104", Severity.ERROR, "x", Span(1, 6)),))
    assert workflow_commands([report]) == "::error file=a.halo,line=1,col=2,endLine=2,title=HL104::x\n"


def test_paths_begin_at_the_root_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    folder = tmp_path / "below"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    Path("twice.halo").write_text(TWICE)
    main(["check", "twice.halo", "../twice.halo", "--format", "github"])
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "::error file=below/twice.halo",
        "::error file=twice.halo",
    ]


# --- SARIF ---------------------------------------------------------------------------------------------------


def test_a_log_names_the_rules_that_were_found(capsys: Captured) -> None:
    run = sarif(capsys, "twice.halo", "mixed.halo", "good.halo")
    driver = run["tool"]["driver"]
    assert driver["name"] == "halo"
    assert [(rule["id"], rule["defaultConfiguration"]["level"]) for rule in driver["rules"]] == [
        ("HL102", "error"),
        ("HL201", "error"),
        ("HL502", "warning"),
    ]
    assert driver["rules"][1]["shortDescription"] == {"text": "a name declared twice"}
    assert driver["rules"][1]["help"]["markdown"].startswith("## HL201: a name declared twice\n")
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_clean_log_has_no_results(capsys: Captured) -> None:
    run = sarif(capsys, "good.halo")
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_regions_count_code_points_and_say_so(capsys: Captured) -> None:
    run = sarif(capsys, "mixed.halo")
    assert run["columnKind"] == "unicodeCodePoints"
    assert list(results(run)) == [
        ("HL102", "mixed.halo", {"startLine": 2, "startColumn": 11, "endLine": 2, "endColumn": 12}),
        ("HL502", "mixed.halo", {"startLine": 2, "startColumn": 35, "endLine": 2, "endColumn": 36}),
    ]


def test_related_places_and_fixes_are_told(capsys: Captured) -> None:
    (result,) = sarif(capsys, "twice.halo")["results"]
    (related,) = result["relatedLocations"]
    assert related["message"] == {"text": "first declared here"}
    assert related["physicalLocation"]["region"]["startLine"] == 1
    (fix,) = sarif(capsys, "mixed.halo")["results"][0]["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "mixed.halo"
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 2, "startColumn": 11, "endLine": 2, "endColumn": 12},
            "insertedContent": {"text": "=="},
        }
    ]


def test_paths_become_relative_references_percent_encoded() -> None:
    Path("a b").mkdir()
    (result,) = log([finding("x", path="a b/c:é%#.halo")])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "a%20b/c%3A%C3%A9%25%23.halo",
        "uriBaseId": "%SRCROOT%",
    }


def test_a_file_outside_the_repository_has_a_uri_of_its_own() -> None:
    (result,) = log([finding("x", path="/else where/a.halo")])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///else%20where/a.halo"}


def test_bytes_of_a_name_that_are_no_text_are_kept() -> None:
    (result,) = log([finding("x", path="a\udcff.halo")])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%FF.halo"


SPANS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: Span(min(pair), max(pair)))


@given(st.text(max_size=8), SPANS, st.text(min_size=1, max_size=8), st.text(max_size=8))
def test_any_finding_gives_a_valid_log(text: str, span: Span, message: str, path: str) -> None:
    found = Diagnostic("HL501", Severity.INFO, message, span, message, (Related(message, span),), Fix(span, message))
    assert list(SCHEMA.iter_errors(log([Report(Source(text, path.replace("\0", "") or "x"), (found,))]))) == []


def test_a_file_that_is_not_utf8_is_a_result(capsys: Captured) -> None:
    Path("binary.halo").write_bytes(b"a\n\xff")
    assert list(results(sarif(capsys, "binary.halo"))) == [
        ("HL101", "binary.halo", {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 1})
    ]

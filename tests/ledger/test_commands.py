"""`halo trace`: the ledger on the command line (spec 7.4)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.cli.trace import COMMANDS
from halo_runtime.json_types import Json
from halo_runtime.ledger import Ledger, guide
from tests.ledger.support import step, walk_through

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def logged(inside: Path) -> Path:
    """The project's ledger, with the seed's story of demo and an event of another agent."""
    path = inside / ".halo" / "ledger.db"
    with Ledger.open(path) as ledger:
        walk_through(ledger)
        step(ledger, "observe", agent="<b>|other", summary="turned \u202e round", session="s9")
    return path


def told(capsys: Captured, *arguments: str, code: int = 0) -> Json:
    """What a command prints as JSON."""
    assert main(["trace", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: Captured) -> None:
    assert main(["trace", name, "--help"]) == 0
    assert f"Usage: halo trace {name}" in capsys.readouterr().out


def test_looking_where_no_ledger_is_finds_nothing_and_makes_nothing(inside: Path, capsys: Captured) -> None:
    assert told(capsys, "events") == {"events": [], "next": None}
    assert told(capsys, "report")["agents"] == []
    assert told(capsys, "verify") == {"status": "valid", "events": 0, "head": None, "problems": []}
    assert main(["trace", "report"]) == 0
    assert capsys.readouterr().out.startswith("No events.\n")
    assert list(inside.iterdir()) == []


def test_a_ledger_that_is_named_must_be_there(capsys: Captured) -> None:
    assert main(["trace", "report", "--db", "nope.db"]) == 2
    assert capsys.readouterr().err.startswith("error: there is no ledger nope.db\n")


@pytest.mark.usefixtures("logged")
def test_a_report_in_every_form_has_every_cell(capsys: Captured) -> None:
    for form in ("table", "md", "html"):
        assert main(["trace", "report", "--agent", "demo", "--format", form]) == 0
        out = capsys.readouterr().out
        for row, events in (
            ("S→M", "e2 ← e1"), ("S→A", "e3 ← e1"), ("M→A", "e5 ← e4"), ("A→S", "e6 ← e5"), ("M→S", ""),
            ("State durability", "e5 ← e2"), ("Agent revision", "e8 (governance bounded) ← e6"),
        ):  # fmt: skip
            (line,) = [line for line in out.splitlines() if re.match(rf"(\| |  |<tr.*<th>){row}", line)]
            assert events in line
            assert ("not observed" in line) == (not events)
        assert "Level 5, self-revising" in out
        assert "other" not in out


@pytest.mark.usefixtures("logged")
def test_names_of_agents_are_text_in_every_form(capsys: Captured) -> None:
    main(["trace", "report", "--format", "md"])
    assert "## \\<b\\>\\|other\n" in capsys.readouterr().out
    main(["trace", "report", "--format", "html"])
    assert "<h2>&lt;b&gt;|other</h2>" in capsys.readouterr().out


@pytest.mark.usefixtures("logged")
def test_a_report_as_json_has_ids_that_exist(capsys: Captured) -> None:
    document = told(capsys, "report", "--agent", "demo")
    (one,) = document["agents"]
    assert (one["agent"], one["events"], one["level"]) == ("demo", 9, {"number": 5, "name": "self-revising"})
    assert [cell["channel"] for cell in one["channels"]] == ["S→M", "S→A", "M→S", "M→A", "A→S", "A→M"]
    assert one["steps"][1] == {
        "step": "Self-initiated action",
        "observed": True,
        "count": 1,
        "events": [{"id": "e5", "from": ["e1", "e4"], "note": None}],
    }
    ids = {event["id"] for event in told(capsys, "events")["events"]}
    cells = [cell for cell in (*one["channels"], *one["steps"]) if cell["observed"]]
    assert {name for cell in cells for shown in cell["events"] for name in (shown["id"], *shown["from"])} <= ids
    assert [level["level"] for level in document["rubric"]] == [0, 1, 2, 3, 4, 5]
    assert main(["trace", "report", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rubric"] == document["rubric"]


@pytest.mark.usefixtures("logged")
def test_a_report_on_a_session_and_on_a_time(capsys: Captured) -> None:
    (one,) = told(capsys, "report", "--session", "s3")["agents"]
    assert [cell["step"] for cell in one["steps"] if cell["observed"]] == [
        "State durability", "Outcome use", "Agent revision", "Revision in force"
    ]  # fmt: skip
    assert told(capsys, "report", "--until", "2020-01-01")["agents"] == []
    assert main(["trace", "report", "--since", "yesterday"]) == 2
    assert "'yesterday' is no moment in ISO 8601" in capsys.readouterr().err


@pytest.mark.usefixtures("logged")
def test_events_are_listed_in_lines_that_no_terminal_obeys(capsys: Captured) -> None:
    assert main(["trace", "events", "--kind", "revise"]) == 0
    line = capsys.readouterr().out
    assert re.fullmatch(r"e8  \S+Z  demo  s3  revise agent bounded  the prompt  what happened  ← e7\n", line)
    assert main(["trace", "events", "--session", "s9"]) == 0
    assert "\u202e" not in capsys.readouterr().out


@pytest.mark.usefixtures("logged")
def test_events_come_in_pages_and_along_links(capsys: Captured) -> None:
    page = told(capsys, "events", "--agent", "demo", "--limit", "2", "--after", "e4")
    assert ([event["id"] for event in page["events"]], page["next"]) == (["e5", "e6"], "e6")
    assert [event["id"] for event in told(capsys, "events", "--ancestors", "e6")["events"]] == ["e5", "e4", "e2", "e1"]
    assert [event["id"] for event in told(capsys, "events", "--descendants", "e6")["events"]] == ["e7", "e8", "e9"]
    assert told(capsys, "events", "--ancestors", "e77", code=2)["error"]["message"] == "unknown event id(s) e77"
    assert main(["trace", "events", "--limit", "3"]) == 0
    assert capsys.readouterr().err == "there are more: --after e3\n"


def test_verify_tells_the_head_that_expect_takes(logged: Path, capsys: Captured) -> None:
    assert main(["trace", "verify"]) == 0
    out = capsys.readouterr().out
    found = re.fullmatch(r"valid, 10 events, (e10:[0-9a-f]{64})\n", out)
    assert found is not None
    assert main(["trace", "verify", "--expect", found[1]]) == 0
    assert main(["trace", "verify", "--expect", f"e1:{'0' * 64}"]) == 1
    assert "e1 has another hash than the one expected" in capsys.readouterr().out
    assert main(["trace", "verify", "--expect", "e1"]) == 2
    logged.write_bytes(b"no database, though it stands where one should be")
    assert main(["trace", "verify"]) == 1
    assert "it is no ledger" in capsys.readouterr().err


def test_export_and_import_are_each_others_inverse(inside: Path, logged: Path, capsys: Captured) -> None:
    main(["trace", "export"])
    lines = capsys.readouterr().out
    (inside / "lines.jsonl").write_text(lines, "utf-8")
    assert main(["trace", "import", "lines.jsonl", "--db", "other.db"]) == 0
    assert capsys.readouterr().err == "10 events stored\n"
    main(["trace", "export", "--db", "other.db"])
    assert capsys.readouterr().out == lines
    main(["trace", "export", "--db", str(logged), "--format", "otel", "--agent", "demo", "--session", "s3"])
    assert [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"]
            for line in capsys.readouterr().out.splitlines()] == ["revise", "act"]  # fmt: skip


def test_an_import_with_refused_lines_exits_with_1(inside: Path, capsys: Captured) -> None:
    (inside / "lines.jsonl").write_text('{"kind": "observe", "summary": "a", "agent": "demo"}\n{"kind": "act"}\n')
    found = told(capsys, "import", "lines.jsonl", code=1)
    assert (found["stored"], found["refused"][0]["line"]) == (0, 2)
    assert main(["trace", "import", "lines.jsonl", "--partial"]) == 1
    assert capsys.readouterr().err == (
        "line 2: summary must not be empty; agent must not be empty; act needs trigger: request or self;"
        " act needs form: silence, communication, preparation or execution\n1 event stored, 1 line refused\n"
    )


def test_the_guide_has_the_levels_and_the_same_text_for_all(capsys: Captured) -> None:
    assert main(["trace", "guide"]) == 0
    out = capsys.readouterr().out
    assert out == guide()
    assert told(capsys, "guide") == {"guide": out.rstrip("\n")}


def test_an_unknown_command_names_what_was_meant(capsys: Captured) -> None:
    assert main(["trace", "reprot"]) == 2
    assert capsys.readouterr().err == "error: no such command: trace reprot\n  = hint: did you mean report?\n"


def test_the_group_loads_no_ledger_for_its_help() -> None:
    code = "import sys\nfrom halo_runtime.cli.main import main\nmain(['trace', '--help'])\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sqlite3", "halo_runtime.ledger", "asyncio"} & set(done.stdout.split())

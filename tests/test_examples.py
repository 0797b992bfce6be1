"""Each example has no diagnostics and runs on its replies, through the command a reader would type."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from halo_lang import Source, check, parse
from halo_lang.formatter import format_source
from halo_runtime.json_types import Json, JsonObject

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.halo"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the examples, because some keep things beside the program."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def run(folder: Path, name: str, *arguments: str, replies: JsonObject | None = None, exit_code: int = 0) -> JsonObject:
    """What `halo run --json` prints for an example on its own replies, or on some of them replaced."""
    script = folder / f"{name}.replies.json"
    if replies is not None:
        script.write_text(json.dumps({**json.loads(script.read_text()), **replies}))
    command = [sys.executable, "-m", "halo_runtime.cli.main", "run", f"{name}.halo", "--json", "--no-input"]
    inputs: Sequence[str] = ["--input-json", f"{name}.input.json", "--replies", script.name]
    done = subprocess.run([*command, *inputs, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_no_diagnostics(name: str) -> None:
    analysis = check(parse((EXAMPLES / f"{name}.halo").read_text("utf-8")))
    assert [f"{item.code} {item.message}" for item in analysis.diagnostics] == []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_in_the_canonical_layout(name: str) -> None:
    text = (EXAMPLES / f"{name}.halo").read_text("utf-8")
    assert format_source(Source(text)) == text


@pytest.mark.parametrize("name", NAMES)
def test_an_example_stands_in_the_table(name: str) -> None:
    assert f"[{name}]({name}.halo)" in (EXAMPLES / "README.md").read_text("utf-8")


def test_a_bug_report_goes_to_the_engineer(folder: Path) -> None:
    result = run(folder, "support_triage")
    assert result["status"] == "completed"
    assert result["output"].startswith("Thank you for the report.")
    assert [call["agent"] for call in result["context"]["meta"]["calls"]] == ["Triager", "Engineer"]


def test_spam_stops_the_triage(folder: Path) -> None:
    spam = {"type": "spam", "urgent": False}
    result = run(folder, "support_triage", replies={"Triager.classify": spam}, exit_code=3)
    assert (result["status"], result["output"]) == ("halted", spam)


def test_an_announcement_waits_for_its_approval(folder: Path) -> None:
    result = run(folder, "review_with_approval", exit_code=4)
    (question,) = result["interrupts"]
    assert question["message"].startswith("Publish this announcement?\n\nVersion 2.1 opens large files")
    assert question["choices"] == ["publish", "revise"]


@pytest.mark.parametrize(
    ("decision", "published"),
    [("publish", "Version 2.1 opens large files"), ("revise", "Version 2.1 opens files of up to 10 GB")],
)
def test_an_approved_announcement_is_published(folder: Path, decision: str, published: str) -> None:
    result = run(folder, "review_with_approval", "--answer", f"decision={decision}")
    (event,) = result["context"]["meta"]["events"]
    assert event["name"] == "Publish"
    assert event["payload"] == result["output"]
    assert result["output"].startswith(published)


def test_a_rejected_announcement_is_not_published(folder: Path) -> None:
    result = run(folder, "review_with_approval", "--answer", "decision=no", exit_code=3)
    assert (result["status"], result["context"]["meta"]["events"]) == ("halted", [])


def test_research_merges_three_findings_into_a_report(folder: Path) -> None:
    result = run(folder, "research")
    assert result["output"]["title"] == "Heat pumps in old houses"
    assert list(result["context"]["data"]["findings"]) == ["find_background", "find_figures", "find_objections"]


def test_a_report_without_its_fields_fails(folder: Path) -> None:
    result = run(folder, "research", replies={"Editor.write_report": {"title": "Short"}}, exit_code=1)
    assert result["error"]["type"] == "SchemaValidationError"
    assert "summary" in result["error"]["message"]


def test_a_delivery_is_booked_by_what_the_agent_chooses(folder: Path) -> None:
    result = run(folder, "restock")
    assert result["output"]["booked"] == ["inner tube", "bell"]
    (call,) = result["context"]["meta"]["calls"]
    assert [tool["name"] for tool in call["tools"]] == ["Stock_get", "Stock_get", "Stock_set", "Stock_set"]
    assert [tool["result"] for tool in call["tools"]] == [None, None, 3, 1]


def test_each_issue_gets_its_labels_in_order(folder: Path) -> None:
    result = run(folder, "label_each")
    labels: list[Json] = [{"number": 7, "labels": ["bug"]}, {"number": 8, "labels": ["docs", "good first issue"]}]
    assert result["output"] == [*labels, {"number": 9, "labels": ["feature"]}]
    assert result["context"]["data"]["digest"].startswith("One bug")


def test_the_code_is_changed_until_the_judge_is_content(folder: Path) -> None:
    result = run(folder, "code_fix_loop")
    assert "raise ValueError" in result["output"]
    assert result["context"]["data"]["retries"] == 1


def test_code_that_never_passes_fails_after_three_jumps(folder: Path) -> None:
    endless = {"Coder.fix": "pass", "Tester.judge": {"passes": False, "reason": "no"}}
    result = run(folder, "code_fix_loop", replies=endless, exit_code=1)
    assert result["error"]["type"] == "LoopLimitError"
    assert len(result["context"]["meta"]["calls"]) == 8


OUTAGE = ("incident", "--answer", "recovery=10:02 UTC", "--answer")


def test_a_notice_without_a_time_is_corrected_and_then_published(folder: Path) -> None:
    result = run(folder, *OUTAGE, "approval=yes")
    assert result["output"]["cause"].startswith("the port of the test environment")
    assert [event["name"] for event in result["context"]["meta"]["events"]] == ["Publish", "ResolveIncident"]
    assert result["context"]["meta"]["events"][0]["payload"].startswith("Since 09:12 UTC")
    notices = [call for call in result["context"]["meta"]["calls"] if call["method"] == "announce"]
    assert [call["corrections"] for call in notices] == [1]


def test_a_notice_that_is_kept_back_is_not_published(folder: Path) -> None:
    result = run(folder, *OUTAGE, "approval=no")
    assert [event["name"] for event in result["context"]["meta"]["events"]] == ["ResolveIncident"]


def test_a_small_incident_ends_at_the_gate(folder: Path) -> None:
    small = {"severity": 3, "service": "search", "since": "09:12 UTC"}
    assert run(folder, "incident", replies={"Analyst.assess": small}, exit_code=3)["status"] == "halted"


def test_invoices_are_read_twice_where_they_do_not_add_up(folder: Path) -> None:
    result = run(folder, "invoices", "ReadInbox")
    *read, failed = result["output"]
    assert [(one["number"], one["total"]) for one in read] == [("2026-114", 100), ("R-77", 466)]
    assert failed["error"]["message"] == "there is no invoice in this mail"
    assert [line["amount"] for line in result["context"]["data"]["invoices"][1]["lines"]] == [430, 36]


def test_a_version_is_improved_until_it_reads_well(folder: Path) -> None:
    result = run(folder, "localise", "LocaliseAll")
    german, italian = result["output"]
    assert german.startswith("Der Wasserkocher Pico fasst")
    assert italian.startswith("Il bollitore Pico contiene")
    second = [call for call in result["context"]["meta"]["calls"] if call["method"] == "translate"][1]
    assert "say Wasserkocher" in second["messages"][-1]["content"]


def test_open_actions_are_there_in_the_next_meeting(folder: Path) -> None:
    first = run(folder, "minutes")
    assert first["output"].startswith("Decided: clay pots.")
    assert first["context"]["data"]["before"] is None
    second = run(folder, "minutes")
    assert second["context"]["data"]["before"] == first["context"]["data"]["actions"]["open"]


def test_the_tour_comes_to_its_end_where_a_title_is_no_text(folder: Path) -> None:
    titles: JsonObject = {"Writer.write_title": ["[1]", '["Slow", {"mornings": 2}]']}
    result = run(folder, "tour", "Tour", "--answer", "answer=yes", "--answer", "printer=LP-1", replies=titles)
    assert result["output"]["title"] == '["Slow",{"mornings":2}]'


def test_the_tour_goes_past_every_operator(folder: Path) -> None:
    result = run(folder, "tour", "Tour", "--answer", "answer=yes", "--answer", "printer=LP-1")
    assert result["output"] == {
        "title": "Slow mornings, long evenings",
        "cards": [
            {"slogan": "Boils before you sit down.", "risk": "The lid gets hot."},
            {"slogan": "Light that follows your book.", "risk": "The clip may mark thin pages."},
        ],
        "tries": 2,
    }
    assert result["context"]["data"]["again"] == 1
    kinds = {entry.get("kind") for entry in result["context"]["trace"]}
    assert kinds >= {"pipe", "gate", "branch", "fanout", "each", "yield", "listen", "loop"}

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

"""`--record`, `--replay` and `--replay-else-live`: what goes together, what is remembered, what is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from tests.cli.kept import told

Captured = pytest.CaptureFixture[str]

PROGRAM = """agent Bot [openai/gpt-4o-mini]

pipeline Main(text: String) -> Result:
  text
    |> Bot.draft("Draft.") as draft
    |! yield("Send {{draft}}?") as verdict
    |> Bot.send("Send.")
"""
RUN = ["run", "p.halo", "-i", "text=hi", "--no-input"]
RECORD = [*RUN, "--replies", "r.json", "--record", "c.jsonl"]
REPLAY = [*RUN, "--replay", "c.jsonl", "--answer", "verdict=yes"]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.halo").write_text(PROGRAM)
    Path("r.json").write_text('{"Bot.draft": "hello", "Bot.send": ["sent"]}')


def head(capsys: Captured, *arguments: str) -> str:
    """The last hash of a run's trace."""
    return told(capsys, *arguments)["context"]["trace"][-1]["hash"]


def methods() -> list[str]:
    """Who was asked, as the cassette has it."""
    return [json.loads(line)["request"]["method"] for line in Path("c.jsonl").read_text().splitlines()[1:]]


def test_a_recorded_run_replays_without_a_key_to_the_same_hash(capsys: Captured) -> None:
    first = head(capsys, *RECORD, "--answer", "verdict=yes")
    assert head(capsys, *REPLAY) == first


def test_a_run_goes_on_recording_where_it_was_told_to_at_its_start(capsys: Captured) -> None:
    run_id = told(capsys, *RECORD, code=4)["runId"]
    assert methods() == ["draft"]
    first = head(capsys, "resume", run_id, "--answer", "yes")
    assert methods() == ["draft", "send"]
    assert head(capsys, *REPLAY) == first


def test_a_run_goes_on_replaying_what_it_was_told_to_at_its_start(capsys: Captured) -> None:
    main([*RECORD, "--answer", "verdict=yes"])
    run_id = told(capsys, *RUN, "--replay", "c.jsonl", code=4)["runId"]
    assert told(capsys, "signal", run_id, "yes")["output"] == "sent"


def test_an_option_that_says_who_answers_takes_the_place_of_what_was_remembered(capsys: Captured) -> None:
    run_id = told(capsys, *RUN, "--replies", "r.json", code=4)["runId"]
    Path("other.json").write_text('{"Bot.draft": "hello", "Bot.send": "from the cassette"}')
    main([*RUN, "--replies", "other.json", "--record", "c.jsonl", "--answer", "verdict=yes"])
    assert told(capsys, "resume", run_id, "--answer", "yes", "--replay", "c.jsonl")["output"] == "from the cassette"


def test_a_miss_fails_the_run_with_the_stage_and_what_to_do(capsys: Captured) -> None:
    main([*RECORD, "--answer", "verdict=yes"])
    Path("p.halo").write_text(PROGRAM.replace('"Draft."', '"Draft it."'))
    capsys.readouterr()
    assert main([*REPLAY, "--quiet"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("p.halo:5:5: error ReplayMiss: Bot.draft: c.jsonl has no answer to this request;")
    assert "messages.0.content" in said
    assert "--replay-else-live c.jsonl" in said


def test_what_is_missing_is_asked_for_its_key_only_then(capsys: Captured) -> None:
    main([*RECORD, "--answer", "verdict=yes"])
    Path("p.halo").write_text(PROGRAM.replace('"Send."', '"Send it."'))
    capsys.readouterr()
    live = [*RUN, "--replay-else-live", "c.jsonl", "--answer", "verdict=yes", "--quiet"]
    assert main(live) == 1
    assert "OPENAI_API_KEY is not set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--replies", "r.json", "--replay", "c"], "--replies and --replay exclude each other"),
        (["--replies", "r.json", "--replay-else-live", "c"], "--replies and --replay-else-live exclude each other"),
        (["--record", "c", "--replay", "c"], "--record and --replay exclude each other"),
        (["--record", "c", "--replay-else-live", "c"], "--record and --replay-else-live exclude each other"),
        (["--replay", "c", "--replay-else-live", "c"], "--replay and --replay-else-live exclude each other"),
        (["--replay", "c", "--model", "local/smollm2"], "--replay and --model exclude each other"),
        (["--replay", "gone.jsonl"], "the cassette gone.jsonl cannot be read: No such file"),
        (["--replay", "r.json"], "r.json is no cassette"),
        (["--replies", "r.json", "--record", "p.halo"], "p.halo is no cassette, and is not written over"),
        (["--replies", "r.json", "--record", "gone/c"], "cannot be written: there is no folder gone"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_cannot_be_is_told_before_anything_has_begun(
    options: list[str], message: str, as_json: bool, capsys: Captured
) -> None:
    assert main([*RUN, *options, *(["--json"] if as_json else [])]) == 2
    captured = capsys.readouterr()
    assert message in (json.loads(captured.out)["error"]["message"] if as_json else captured.err)
    assert Path("p.halo").read_text() == PROGRAM
    assert not Path(".halo").exists()

"""What the commands for kept runs end with, and what they give programs (spec 12.6, decisions 31 to 39)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from tests.cli.kept import kept_run, project, run_at_work, told

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project(tmp_path)


def paused() -> str:
    return kept_run("flowers")


def completed() -> str:
    return kept_run("flowers", "--answer", "verdict=no")


def damaged() -> str:
    run_id = completed()
    path = Path(f".halo/checkpoints/{run_id}.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"stage":"|> Bot.draft"', b'"stage":"|> Bot.drift"'))
    return run_id


def torn() -> str:
    run_id = completed()
    path = Path(f".halo/checkpoints/{run_id}.jsonl")
    path.write_bytes(path.read_bytes()[:-3])
    return run_id


def nowhere() -> str:
    return "nowhere"


CODES: list[tuple[Callable[[], str], list[str], int, str | None]] = [
    (paused, ["resume", "RUN", "--no-input"], 4, None),
    (paused, ["resume", "RUN", "--answer", "no"], 0, None),
    (paused, ["resume", "RUN", "--interrupt", "ask-1"], 2, "UsageError"),
    (paused, ["resume", "RUN", "--answer", "no", "--interrupt", "ask-1"], 1, "UnknownInterrupt"),
    (paused, ["signal", "RUN", "no"], 0, None),
    (paused, ["signal", "RUN", "no", "--no-run"], 0, None),
    (paused, ["run", "p.halo", "--checkpoint", "RUN", "--replies", "r.json", "--no-input"], 4, None),
    (paused, ["run", "p.halo", "--checkpoint", "RUN", "--plan"], 0, None),
    (paused, ["run", "p.halo", "Other", "--checkpoint", "RUN"], 1, "RunRefused"),
    (completed, ["run", "p.halo", "--checkpoint", "RUN"], 0, None),
    (completed, ["run", "p.halo", "--checkpoint", "RUN@99"], 1, "StoreError"),
    (completed, ["resume", "RUN"], 1, "RunRefused"),
    (completed, ["signal", "RUN", "no"], 1, "RunRefused"),
    (completed, ["run", "p.halo", "-i", "text=x", "--strict"], 2, "UsageError"),
    (completed, ["show", "RUN"], 0, None),
    (completed, ["show", "RUN@99"], 1, "StoreError"),
    (completed, ["verify", "RUN"], 0, None),
    (completed, ["stop", "RUN"], 1, "RunRefused"),
    (completed, ["diff", "RUN", "RUN@1"], 0, None),
    (completed, ["checkpoints", "repair", "RUN"], 0, None),
    (completed, ["runs"], 0, None),
    (completed, ["inbox"], 0, None),
    (completed, ["prune", "--older", "1d"], 0, None),
    (torn, ["verify", "RUN"], 1, None),
    (torn, ["resume", "RUN"], 0, None),
    (damaged, ["verify", "RUN"], 1, None),
    (damaged, ["show", "RUN"], 1, "StoreError"),
    (damaged, ["resume", "RUN"], 1, "StoreError"),
    (damaged, ["diff", "RUN", "RUN"], 1, "StoreError"),
    (damaged, ["run", "p.halo", "--checkpoint", "RUN"], 1, "StoreError"),
    (damaged, ["checkpoints", "repair", "RUN"], 0, None),
    (nowhere, ["resume", "RUN"], 1, "UnknownRun"),
    (nowhere, ["signal", "RUN", "yes"], 1, "UnknownRun"),
    (nowhere, ["show", "RUN"], 1, "UnknownRun"),
    (nowhere, ["verify", "RUN"], 1, "UnknownRun"),
    (nowhere, ["diff", "RUN", "RUN"], 1, "UnknownRun"),
    (nowhere, ["checkpoints", "repair", "RUN"], 1, "UnknownRun"),
    (nowhere, ["run", "p.halo", "--checkpoint", "RUN"], 1, "UnknownRun"),
    (nowhere, ["runs", "--limit", "0"], 2, "UsageError"),
    (nowhere, ["runs", "--status", "pausd"], 2, "UsageError"),
]


NAMES = [f"{made.__name__}: {' '.join(arguments)}" for made, arguments, _, _ in CODES]


@pytest.mark.parametrize(("made", "arguments", "code", "error"), CODES, ids=NAMES)
def test_every_outcome_has_its_exit_code_and_one_json_object(
    made: Callable[[], str], arguments: list[str], code: int, error: str | None, capsys: Captured
) -> None:
    run_id = made()
    document = told(capsys, *(argument.replace("RUN", run_id) for argument in arguments), code=code)
    assert document.get("error", {}) is None or document.get("error", {}).get("type") == error


@pytest.mark.parametrize(("made", "arguments", "code", "error"), CODES, ids=NAMES)
def test_people_get_a_text_and_no_traceback(
    made: Callable[[], str], arguments: list[str], code: int, error: str | None, capsys: Captured
) -> None:
    run_id = made()
    capsys.readouterr()
    assert main([argument.replace("RUN", run_id) for argument in arguments]) == code
    captured = capsys.readouterr()
    assert captured.out + captured.err != ""
    assert "Traceback" not in captured.err
    assert error is None or f"error {error}: ".replace("error UsageError", "error") in captured.err


def test_a_run_at_work_is_refused_and_the_refusal_says_what_to_do(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        error = told(capsys, "resume", run_id, "--answer", "yes", code=1)["error"]
        assert error["type"] == "RunBusy"
        assert f"process {process.pid} on " in error["message"]
        capsys.readouterr()
        assert main(["resume", run_id, "--answer", "yes"]) == 1
        assert f"hint: to leave the answer for that process: halo signal {run_id} VALUE" in capsys.readouterr().err


def test_an_answer_for_a_run_at_work_is_left_for_it(capsys: Captured) -> None:
    with run_at_work() as (_, run_id):
        capsys.readouterr()
        assert main(["signal", run_id, "yes", "--by", "ada"]) == 0
        assert f"left for the run {run_id}" in capsys.readouterr().err
        message = json.loads(next(Path(f".halo/mail/{run_id}").iterdir()).read_text())
    assert (message["value"], message["by"]) == ("yes", "ada")


def test_a_fork_tells_what_it_cost_by_itself(capsys: Captured) -> None:
    run_id = completed()
    Path("p.halo").write_text(Path("p.halo").read_text().replace('"not sent"', '"nothing was sent"'))
    capsys.readouterr()
    assert main(["run", "p.halo", "--checkpoint", run_id, "--replies", "r.json", "--no-input"]) == 0
    assert "completed: 0 calls, 1 reused, 0 tokens, $0.0000, " in capsys.readouterr().err


def test_where_nothing_can_be_kept_a_pause_says_why_and_offers_no_command(capsys: Captured) -> None:
    Path(".halo").touch()
    assert main(["run", "q.halo", "-i", "text=x", "--replies", "r.json", "--no-input"]) == 4
    err = capsys.readouterr().err
    assert "error StoreError: the journal " in err
    assert "|! yield asks: Send a draft?" in err
    assert "halo resume" not in err


def test_where_nothing_can_be_kept_a_run_that_asks_to_be_kept_does_not_begin(capsys: Captured) -> None:
    Path(".halo").touch()
    assert told(capsys, "run", "p.halo", "-i", "text=x", "--replies", "r.json", code=1)["error"]["type"] == "StoreError"
    assert main(["run", "q.halo", "-i", "text=x", "--replies", "r.json", "--answer", "verdict=yes"]) == 0


def test_a_run_that_goes_on_tells_only_of_what_is_new(capsys: Captured) -> None:
    run_id = paused()
    capsys.readouterr()
    assert main(["resume", run_id, "--answer", "yes"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("line ")]
    assert lines == ["line 8: |? { Bot.send, System.Value }"]


def test_a_run_that_broke_off_before_its_question_is_told_and_counted_once(capsys: Captured) -> None:
    run_id = paused()
    journal = Path(f".halo/checkpoints/{run_id}.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    kept = next(index for index, line in enumerate(lines, 1) if b'"kind":"model"' in line)
    journal.write_bytes(b"".join(lines[:kept]))
    capsys.readouterr()
    assert main(["resume", run_id, "--answer", "yes"]) == 0
    err = capsys.readouterr().err
    assert [line for line in err.splitlines() if line.startswith("line ")] == [
        "line 7: |! yield",
        "line 8: |? { Bot.send, System.Value }",
    ]
    assert "completed: 2 calls, 1,100 tokens, $0.0002, " in err


def test_tools_whose_results_are_reused_are_not_told_of(capsys: Captured) -> None:
    program = (
        'store Deeds: KV("d.db")\n'
        "pipeline Main(xs: Array) -> Result:\n  xs |* each(x in xs) => One(x) |> System.Value(%s)\n"
        'pipeline One(x: Any) -> Any:\n  x |> Deeds.incr("{{x}}") |> System.Value("{{x}}")\n'
    )
    Path("d.halo").write_text(program % 1)
    main(["run", "d.halo", "Main", "-i", 'xs=["a","b"]', "--keep"])
    assert capsys.readouterr().err.count("tool Deeds.incr") == 2
    [run_id] = [path.stem for path in Path(".halo/checkpoints").glob("*.jsonl")]
    Path("d.halo").write_text(program % 2)
    assert main(["run", "d.halo", "Main", "--checkpoint", run_id]) == 0
    captured = capsys.readouterr()
    assert captured.out == "2\n"
    assert [line for line in captured.err.splitlines() if line.startswith(("line", "tool"))] == [
        "line 3: |> System.Value"
    ]


def test_a_continued_run_tells_only_of_what_it_does_anew(capsys: Captured) -> None:
    run_id = completed()
    program = Path("p.halo")
    program.write_text(program.read_text().replace('"not sent"', '"kept back"'))
    capsys.readouterr()
    assert main(["run", "p.halo", "--checkpoint", run_id, "--replies", "r.json", "--answer", "verdict=no"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "kept back\n"
    assert [line for line in captured.err.splitlines() if line.startswith("line ")] == [
        "line 8: |? { Bot.send, System.Value }"
    ]


def test_a_run_of_another_project_is_gone_on_with_in_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    journal = str(Path(f".halo/checkpoints/{paused()}.jsonl").absolute())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["resume", journal, "--answer", "no", "--quiet"]) == 0
    assert list(Path().iterdir()) == []
    Path(journal).write_bytes(b"".join(Path(journal).read_bytes().splitlines(keepends=True)[:-1]))
    capsys.readouterr()
    assert main(["verify", journal]) == 1
    assert capsys.readouterr().out.startswith("cut at")


def test_a_journal_that_lies_by_itself_is_gone_on_with_where_it_is(tmp_path: Path, capsys: Captured) -> None:
    journal = Path(f".halo/checkpoints/{paused()}.jsonl").rename(tmp_path / "alone.jsonl")
    capsys.readouterr()
    assert main(["resume", str(journal), "--answer", "no", "--quiet"]) == 0
    assert capsys.readouterr().out == "not sent\n"
    assert main(["verify", "alone.jsonl"]) == 0
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["runs"] == []

"""`halo watch` and `halo stop`: runs of other processes (spec 3.3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from halo_runtime.cli.main import main
from halo_runtime.cli.project import run_store
from tests.cli.kept import HALO, kept_run, project, run_at_work, told

Captured = pytest.CaptureFixture[str]
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project(tmp_path)


# --- watch ------------------------------------------------------------------------------------------------------


def test_a_run_that_has_stopped_is_told_from_its_start_with_its_own_exit_code(capsys: Captured) -> None:
    run_id = kept_run("flowers")
    capsys.readouterr()
    assert main(["watch", run_id]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{run_id}  Main  ")
    assert lines[1] == "1  line 6: |> Bot.draft (1100 tokens, $0.0002): a draft"
    assert lines[2] == "paused"
    assert lines[-1].startswith(f"    halo signal {run_id} VALUE --interrupt ask-")


def test_answers_tell_who_gave_them(capsys: Captured) -> None:
    run_id = kept_run("flowers", "--answer", "verdict=yes", "--by", "ada")
    capsys.readouterr()
    assert main(["watch", run_id]) == 0
    out = capsys.readouterr().out
    assert "answered by ada (ahead): yes\n" in out
    assert out.endswith("completed: sent\n")


def test_programs_get_an_object_a_line(capsys: Captured) -> None:
    run_id = kept_run("flowers")
    capsys.readouterr()
    assert main(["watch", run_id, "--json"]) == 4
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["type"] for one in documents] == ["run", "effect", "stage", "effect", "status"]
    stage = documents[2]
    assert (stage["seq"], stage["stage"], stage["tokens"], stage["calls"]) == (1, "|> Bot.draft", 1100, 1)
    assert documents[-1]["status"] == "paused"


def test_from_now_leaves_out_what_has_happened(capsys: Captured) -> None:
    run_id = kept_run("flowers")
    capsys.readouterr()
    assert main(["watch", run_id, "--from-now"]) == 4
    assert capsys.readouterr().out == ""


def test_a_run_at_work_is_followed_to_its_end() -> None:
    with run_at_work() as (process, run_id):
        watching = subprocess.Popen([*HALO, "watch", run_id], stdout=subprocess.PIPE, text=True)
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith(run_id)
        process.send_signal(signal.SIGINT)
        out, _ = watching.communicate(timeout=PATIENCE)
    assert out == "interrupted\n"
    assert watching.returncode == 130


def test_ctrl_c_ends_the_watching_and_not_the_run() -> None:
    with run_at_work() as (process, run_id):
        watching = subprocess.Popen([*HALO, "watch", run_id], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watching.stdout is not None
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=PATIENCE)
        assert (watching.returncode, err) == (130, "no longer watching; the run is left as it is\n")
        assert process.poll() is None


def test_of_a_run_that_is_not_kept_only_the_end_is_seen() -> None:
    with run_at_work("q.halo") as (process, run_id):
        watching = subprocess.Popen([*HALO, "watch", run_id], stderr=subprocess.PIPE, text=True)
        assert watching.stderr is not None
        assert watching.stderr.readline().startswith(f"process {process.pid} is at work on Main since ")
        process.kill()
        _, err = watching.communicate(timeout=PATIENCE)
    assert err == "the run is over; it was not kept, so nothing more is known of it\n"
    assert watching.returncode == 0


def test_there_is_nothing_to_watch_of_a_run_that_nobody_knows(capsys: Captured) -> None:
    assert told(capsys, "watch", "nowhere", code=1)["error"]["type"] == "UnknownRun"


# --- stop -------------------------------------------------------------------------------------------------------


def test_a_stopped_run_is_kept_and_can_go_on(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        document = told(capsys, "stop", run_id)
        assert process.wait(PATIENCE) == 130
    assert document == {"runId": run_id, "pid": process.pid, "how": "has stopped", "status": "interrupted"}
    assert main(["resume", run_id, "--replies", "r.json", "--no-input", "--quiet"]) == 4


def test_a_run_that_was_not_kept_is_kept_when_it_is_stopped(capsys: Captured) -> None:
    with run_at_work("q.halo") as (process, run_id):
        capsys.readouterr()
        assert main(["stop", run_id]) == 0
    expected = f"process {process.pid} has stopped; the run is interrupted, it can go on: halo resume {run_id}\n"
    assert capsys.readouterr().err == expected


def test_a_process_that_does_not_stop_is_only_ended_with_force(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        process.send_signal(signal.SIGSTOP)
        error = told(capsys, "stop", run_id, "--wait", "50ms", code=1)["error"]
        assert error["type"] == "RunRefused"
        assert error["message"].endswith("to end it at once: --force")
        assert process.poll() is None
        document = told(capsys, "stop", run_id, "--wait", "50ms", "--force")
    assert (document["how"], document["status"]) == ("was killed", "interrupted")
    assert list(run_store().live) == []


def record_of(run_id: str, **changed: object) -> None:
    """Change who is said to be at work on a run."""
    path = Path(f".halo/live/{run_id}.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_a_process_that_has_only_the_same_id_is_left_alone(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        record_of(run_id, started=1)
        error = told(capsys, "stop", run_id, code=1)["error"]
        assert error["message"].startswith(f"process {process.pid}, which was at work on the run {run_id}, is gone")
        assert process.poll() is None


def test_a_process_of_another_machine_is_stopped_there(capsys: Captured) -> None:
    with run_at_work() as (_, run_id):
        record_of(run_id, host="elsewhere")
        error = told(capsys, "stop", run_id, code=1)["error"]
        assert error["message"] == f"the run {run_id} is at work on elsewhere; stop it there"


def test_a_run_in_a_workbench_is_stopped_there_and_the_workbench_is_left_alone(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        record_of(run_id, within="workbench")
        error = told(capsys, "stop", run_id, code=1)["error"]
        assert error["message"] == f"the run {run_id} is at work in a workbench (process {process.pid}); stop it there"
        assert process.poll() is None


def test_a_run_that_nobody_is_at_work_on_cannot_be_stopped(capsys: Captured) -> None:
    run_id = kept_run("flowers")
    error = told(capsys, "stop", run_id, code=1)["error"]
    assert error["message"] == f"nobody is at work on the run {run_id}; it is paused"
    assert told(capsys, "stop", "nowhere", code=1)["error"]["type"] == "UnknownRun"


def test_the_record_of_a_killed_process_is_shown_as_that(capsys: Captured) -> None:
    with run_at_work() as (process, run_id):
        alive = told(capsys, "runs", "--live")["runs"]
        assert [(one["runId"], one["pid"], one["alive"]) for one in alive] == [(run_id, process.pid, True)]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert [one["alive"] for one in told(capsys, "runs", "--live")["runs"]] == [False]
        assert [one["status"] for one in told(capsys, "runs")["runs"]] == ["interrupted"]

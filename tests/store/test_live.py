"""Who is at work: a process is known by more than its number, and a record that is none is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from halo_runtime.store.live import LiveRuns, Process


def change(folder: Path, run_id: str, **fields: object) -> None:
    path = folder / f"{run_id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def entered(folder: Path, *run_ids: str) -> LiveRuns:
    live = LiveRuns(folder)
    for run_id in run_ids:
        live.enter(run_id, "Main", "a.halo", "2026-01-02T03:04:05.000Z")
    return live


def test_a_run_is_found_while_its_process_lives(tmp_path: Path) -> None:
    live = entered(tmp_path, "r")
    found = live.find("r")
    assert found is not None
    assert found.process is not None
    assert (found.process.pid, found.pipeline, found.file) == (os.getpid(), "Main", "a.halo")
    live.leave("r")
    live.leave("r")
    assert live.find("r") is None
    assert list(live) == []


def test_a_number_that_another_process_has_got_is_not_the_one_that_ran(tmp_path: Path) -> None:
    live = entered(tmp_path, "r")
    change(tmp_path, "r", started=Process.current().started + 1)
    assert live.find("r") is None
    assert [one.run_id for one in live] == ["r"]


def test_after_a_new_boot_nobody_of_before_lives(tmp_path: Path) -> None:
    live = entered(tmp_path, "r")
    change(tmp_path, "r", boot="another")
    assert live.find("r") is None


def test_a_process_of_another_machine_is_taken_to_live() -> None:
    elsewhere = replace(Process.current(), host="elsewhere", pid=1, boot="another")
    assert elsewhere.lives
    assert not elsewhere.is_here


def test_a_process_that_ended_lives_no_longer(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    text = Path(f"/proc/{child.pid}/stat").read_text()
    process = replace(Process.current(), pid=child.pid, started=int(text.rpartition(")")[2].split()[19]))
    assert process.lives
    child.communicate()
    assert not process.lives


def test_an_unreadable_record_is_shown_and_hides_no_other(tmp_path: Path) -> None:
    live = entered(tmp_path, "a", "c")
    (tmp_path / "b.json").write_text('{"runId": "b"')
    (tmp_path / "d.json").write_text('{"runId": "d", "pid": "many"}')
    (tmp_path / ".e.json.half").write_text("")
    records = list(live)
    assert [one.run_id for one in records] == ["a", "b", "c", "d"]
    assert [one.run_id for one in records if one.unreadable] == ["b", "d"]
    assert live.find("b") is None


def test_where_nothing_can_be_written_a_run_goes_unnoticed_but_goes(tmp_path: Path) -> None:
    (tmp_path / "live").write_text("a file")
    live = entered(tmp_path / "live", "r")
    assert live.find("r") is None
    live.leave("r")
    assert list(live) == []

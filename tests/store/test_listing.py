"""What a listing of runs shows is true, whatever has become of the index."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import StoreError, UnknownRun
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.locks import Lock
from tests.durability.support import Project

NOW = datetime(2026, 1, 2, 4, tzinfo=UTC)
DONE = "pipeline Main(x: Any) -> Any:\n  x |> System.Value(1)"
ASKS = 'pipeline Main(x: Any) -> Any:\n  x |! yield("Go on with {{x}}?", timeout: 2h)'


async def some_runs(project: Project) -> dict[str, str]:
    """A completed, a paused and an interrupted run, by what they are."""
    done = await project.run(DONE, {"x": 1}, run_id="a-done")
    asks = await project.run(ASKS, {"x": 2}, run_id="b-asks")
    cut = await project.run(DONE, {"x": 3}, run_id="c-cut")
    project.cut(cut.run_id, lambda line: line["t"] != "status")
    return {run.run_id: run.status for run in (done, asks)} | {cut.run_id: "interrupted"}


def shown(store: FileRunStore, now: datetime = NOW) -> dict[str, str]:
    return {line["runId"]: line["status"] for line in store.runs(now)}


def spoil(index: Path) -> None:
    index.write_bytes(b"this is no database" * 100)


def cut_short(index: Path) -> None:
    os.truncate(index, 5000)


def empty(index: Path) -> None:
    index.write_bytes(b"")


def make_stale(index: Path) -> None:
    with sqlite3.connect(index) as connection:
        connection.execute("UPDATE summaries SET size = size - 1, document = '{}'")
        connection.execute("INSERT INTO summaries VALUES ('gone', 1, 1, '{}')")
    connection.close()


@pytest.mark.parametrize("harm", [Path.unlink, spoil, cut_short, empty, make_stale], ids=lambda harm: harm.__name__)
async def test_a_listing_is_right_though_the_index_is_not(harm: Callable[[Path], Any], tmp_path: Path) -> None:
    project = Project(tmp_path / ".halo")
    expected = await some_runs(project)
    assert shown(project.store) == expected
    harm(tmp_path / ".halo" / "index.db")
    assert shown(project.store) == expected
    assert shown(project.store) == expected


async def test_a_listing_has_the_latest_run_first_and_what_it_needs(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await some_runs(project)
    first, second, third = project.store.runs(NOW)
    assert [line["runId"] for line in (first, second, third)] == ["c-cut", "b-asks", "a-done"]
    assert {
        "runId", "status", "pipeline", "file", "startedAt", "updatedAt", "cost", "tokens", "parent", "forkedAt",
        "interrupts",
    } <= set(second)  # fmt: skip
    assert (second["interrupts"], second["pipeline"], second["startedAt"]) == (1, "Main", "2026-01-02T03:04:05.000Z")


async def test_looking_at_runs_makes_and_changes_nothing(tmp_path: Path) -> None:
    assert FileRunStore(tmp_path / ".halo").runs(NOW) == []
    assert FileRunStore(tmp_path / ".halo").open_interrupts(NOW) == []
    with pytest.raises(UnknownRun):
        FileRunStore(tmp_path / ".halo").load("r")
    assert FileRunStore(tmp_path / ".halo").seal("r") is None
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a look at one folder

    project = Project(tmp_path / ".halo")
    await some_runs(project)
    before = [project.bytes_of(run_id) for run_id in ("a-done", "b-asks", "c-cut")]
    shown(project.store, NOW + timedelta(days=9))
    project.store.open_interrupts(NOW)
    project.store.load("b-asks").to_json(now=NOW + timedelta(days=9))
    assert [project.bytes_of(run_id) for run_id in ("a-done", "b-asks", "c-cut")] == before


async def test_a_damaged_run_is_shown_as_damaged_and_hides_no_other(tmp_path: Path) -> None:
    project = Project(tmp_path)
    expected = await some_runs(project)
    folder = project.store.folder
    (folder / "d-empty.jsonl").write_bytes(b"")
    (folder / "e-strange.jsonl").write_bytes(b"\x00\xff not a journal\n")
    (folder / "f-folder.jsonl").mkdir()
    (folder / "g-newer.jsonl").write_bytes(b'{"t":"run","format":99}\n')
    data = project.bytes_of("a-done")
    (folder / "h-middle.jsonl").write_bytes(data.replace(b'"Main"', b'"Mean"', 1))
    lines = {line["runId"]: line for line in project.store.runs(NOW)}
    assert {run_id: line["status"] for run_id, line in lines.items()} == expected | dict.fromkeys(
        ("d-empty", "e-strange", "f-folder", "g-newer", "h-middle"), "damaged"
    )
    assert "newer one" in lines["g-newer"]["problem"]
    assert "halo checkpoints repair" not in lines["d-empty"]["problem"]


async def test_a_run_that_was_damaged_since_keeps_no_other_question_from_being_seen(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await some_runs(project)
    await project.run(ASKS, {"x": 9}, run_id="z-asks")
    project.store.runs(NOW)
    path = project.store.folder / "b-asks.jsonl"
    status = path.stat()
    path.write_bytes(project.bytes_of("b-asks").replace(b"Go on", b"Go off"[:5], 1))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [one["runId"] for one in project.store.open_interrupts(NOW)] == ["z-asks"]


async def test_a_question_whose_time_is_over_is_listed_nowhere_and_its_run_as_failed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ASKS, {"x": 2}, run_id="r")
    late = datetime(2026, 1, 2, 5, 4, 5, tzinfo=UTC)
    assert shown(project.store, late - timedelta(milliseconds=1)) == {"r": "paused"}
    assert shown(project.store, late) == {"r": "failed"}
    assert project.store.open_interrupts(late) == []
    assert project.store.runs(late)[0]["interrupts"] == 0


async def test_the_questions_that_expire_first_stand_first(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for run_id, options in (("a", ""), ("b", ", timeout: 3h"), ("c", ", timeout: 1h")):
        await project.run(f'pipeline Main(x: Any) -> Any:\n  x |! yield("?"{options})', {"x": 1}, run_id=run_id)
    found = project.store.open_interrupts(datetime(2026, 1, 2, 3, 30, tzinfo=UTC))
    assert [one["runId"] for one in found] == ["c", "b", "a"]
    assert found[0]["pipeline"] == "Main"


async def test_an_interrupted_run_is_running_while_somebody_has_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await some_runs(project)
    lock = Lock.take(project.store.folder / "c-cut.jsonl")
    assert lock is not None
    assert shown(project.store)["c-cut"] == "running"
    lock.release()
    assert shown(project.store)["c-cut"] == "interrupted"


async def test_a_damaged_index_does_not_pass_for_one_without_a_seal(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await some_runs(project)
    spoil(tmp_path / "index.db")
    with pytest.raises(StoreError, match=r"index.db cannot be read: .*delete it"):
        project.store.seal("a-done")
    assert json.loads(project.bytes_of("a-done").splitlines()[-1])["status"] == "completed"


async def test_an_index_that_a_full_disk_left_empty_is_no_damage(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await some_runs(project)
    empty(tmp_path / "index.db")
    assert project.store.seal("a-done") is None
    assert (tmp_path / "index.db").stat().st_size == 0

"""Files for their owner alone; runs repaired and removed with what is theirs, and nothing else."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from halo_runtime.errors import StoreError, UnknownRun
from halo_runtime.store.locks import Lock
from halo_runtime.store.verification import verify_journal
from tests.durability.support import Project, sealed

NOW = datetime(2026, 1, 2, 4, tzinfo=UTC)
LATER = datetime.now(UTC) + timedelta(days=1)
ECHO = "pipeline Main(x: Any) -> Any:\n  x |> System.Value(x) as y"
ASKS = 'pipeline Main(x: Any) -> Any:\n  x |! yield("Sure?") |> System.Value(2)'


def large(letter: str) -> str:
    return letter * 300_000


def blobs(project: Project) -> set[str]:
    return {path.name for path in project.store.folder.rglob("blobs/*/*.json")}


async def test_every_file_and_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        project = Project(tmp_path / "new" / ".halo")
        paused = await project.run(ASKS, {"x": large("a")}, run_id="r")
        project.runtime().post("r", "yes", interrupt=paused.interrupts[0].id)
        project.store.live.enter("r", "Main", "a.halo", "2026-01-02T03:04:05.000Z")
        project.store.runs(NOW)
    finally:
        os.umask(mask)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "new", *(tmp_path / "new").rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    names = {path.name for path in modes}
    assert {"r.jsonl", "index.db", "r.json"} <= names
    assert len(blobs(project)) == 1


async def test_a_value_that_two_runs_share_stays_until_both_are_gone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for run_id, value in (("a", large("s")), ("b", large("s")), ("c", large("c"))):
        await project.run(ECHO, {"x": value}, run_id=run_id)
    assert len(blobs(project)) == 2
    assert project.store.remove(["a", "c", "unknown"], LATER) == ["a", "c"]
    assert len(blobs(project)) == 1
    assert project.store.load("b").to_json()["output"] == large("s")
    assert project.store.remove(["b"], LATER) == ["b"]
    assert blobs(project) == set()
    assert project.store.runs(NOW) == []
    assert project.store.seal("b") is None


async def test_a_young_value_may_belong_to_a_line_that_is_being_written_and_stays(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ECHO, {"x": large("a")}, run_id="a")
    project.store.remove(["a"], datetime.now(UTC))
    assert len(blobs(project)) == 1


async def test_what_a_kill_left_of_a_journal_that_began_is_removed_once_it_is_old(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ASKS, {"x": 1}, run_id="r")
    left = project.store.folder / ".dead.jsonl.0badcafe"
    left.write_text("")
    project.store.remove([], datetime.now(UTC))
    assert left.exists()
    project.store.remove([], LATER)
    assert not left.exists()
    assert [run["runId"] for run in project.store.runs(NOW)] == ["r"]


async def test_values_of_damaged_and_newer_journals_stay(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ECHO, {"x": large("a")}, run_id="damaged")
    await project.run(ECHO, {"x": large("b")}, run_id="newer")
    await project.run(ECHO, {"x": 1}, run_id="gone")
    for name, old, new in (("damaged", b'"Main"', b'"Mean"'), ("newer", b'"format":1', b'"format":2')):
        (project.store.folder / f"{name}.jsonl").write_bytes(project.bytes_of(name).replace(old, new, 1))
    project.store.remove(["gone"], LATER)
    assert len(blobs(project)) == 2


async def test_a_run_at_work_is_not_removed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ASKS, {"x": 1}, run_id="r")
    lock = Lock.take(project.store.folder / "r.jsonl")
    assert lock is not None
    assert project.store.remove(["r"], LATER) == []
    lock.release()
    assert project.store.remove(["r"], LATER) == ["r"]


async def test_removing_a_run_takes_its_mail_and_its_damaged_copy(tmp_path: Path) -> None:
    project = Project(tmp_path)
    paused = await project.run(ASKS, {"x": 1}, run_id="r")
    project.runtime().post("r", "yes", interrupt=paused.interrupts[0].id)
    (project.store.folder / "r.jsonl.damaged").write_text("")
    project.store.remove(["r"], LATER)
    assert list((tmp_path / "mail").iterdir()) == []
    assert [path.name for path in project.store.folder.iterdir()] == []


async def test_a_damaged_run_is_repaired_to_its_intact_beginning_and_goes_on(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ASKS, {"x": 1}, run_id="r")
    lines = project.bytes_of("r").splitlines(keepends=True)
    harmed = b"".join([*lines[:-1], lines[-1].replace(b'"paused"', b'"halted"')])
    path = project.store.folder / "r.jsonl"
    path.write_bytes(harmed)
    with pytest.raises(StoreError, match=rf"line {len(lines)}: its sum does not match.*halo checkpoints repair r"):
        project.store.load("r")

    assert project.store.repair("r") == (path, len(lines) - 1, 1)
    assert path.with_name("r.jsonl.damaged").read_bytes() == harmed
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    result = await project.runtime().resume("r")
    assert [question.message for question in result.interrupts] == ["Sure?"]


async def test_repairing_an_intact_run_changes_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ASKS, {"x": 1}, run_id="r")
    before = project.bytes_of("r")
    assert project.store.repair("r")[2] == 0
    assert project.bytes_of("r") == before
    assert not (project.store.folder / "r.jsonl.damaged").exists()


async def test_half_a_line_at_the_end_is_left_out_by_repair_too(tmp_path: Path) -> None:
    project = Project(tmp_path)
    await project.run(ASKS, {"x": 1}, run_id="r")
    before = project.bytes_of("r")
    (project.store.folder / "r.jsonl").write_bytes(before + b'{"t":"eff')
    assert project.store.repair("r")[2] == 1
    assert project.bytes_of("r") == before


async def test_a_run_whose_large_value_is_gone_can_be_repaired_up_to_it(tmp_path: Path) -> None:
    project = Project(tmp_path, {"A.go": large("r")})
    text = "agent A [openai/gpt-4o-mini]\npipeline Main(x: Any) -> Any:\n  x |> A.go() |> System.Value(1)"
    await project.run(text, {"x": 1}, run_id="r")
    name = project.lines("r")[1]["blobs"]["result"]
    [value] = project.store.folder.rglob(f"{name}.json")
    value.unlink()
    with pytest.raises(StoreError, match=rf"line 2: the value .*{value.name} cannot be read: No such file.*repair r"):
        project.store.load("r")
    assert str(verify_journal(project.store, "r")).startswith("broken")
    assert project.store.repair("r")[1] == 1
    result = await project.runtime().resume("r")
    assert (result.status, result.output) == ("completed", 1)


def test_nothing_is_repaired_that_is_no_journal(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.store.folder.mkdir()
    (project.store.folder / "e.jsonl").write_bytes(b"")
    (project.store.folder / "n.jsonl").write_bytes(sealed({"runId": "n"}).replace(b'"format":1', b'"format":7'))
    with pytest.raises(StoreError, match="no journal of a run"):
        project.store.repair("e")
    with pytest.raises(StoreError, match="nothing of the run can be read"):
        project.store.repair("n")
    with pytest.raises(UnknownRun):
        project.store.repair("unknown")

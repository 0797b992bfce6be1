"""Disks that are full, folders that may not be written: the run fails with a reason, and what was kept stays kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from halo_runtime.errors import StoreError
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.format import read_lines
from tests.durability.support import STORE, Project

ROOT = Path(__file__).resolve().parents[2]
LONG = """
import asyncio, resource, sys
import halo_lang
from halo_runtime import Runtime, ScriptedModel
from halo_runtime.store.files import FileRunStore

async def main(root, limit, on_error):
    text = '''agent A [openai/gpt-4o-mini]
@checkpoint
pipeline Main(xs: Array) -> Any:
  xs |> System.Value("begun") |* each(x in xs, concurrency: 1, onError: "%s") => A.say("{{x}}")
''' % on_error
    runtime = Runtime(env={}, replies=ScriptedModel({"*": {"replies": ["word " * 200], "repeat": True}}),
                      store=FileRunStore(root))
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    result = await runtime.run(halo_lang.parse(text), "Main", {"xs": list(range(50))}, run_id="r")
    print(result.status, type(result.error).__name__, result.error)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
"""


def long_run(root: Path, limit: int, on_error: str = "fail") -> str:
    """What a process says that keeps a long run in files of at most `limit` bytes, as on a full disk."""
    command = [sys.executable, "-c", LONG, str(root), str(limit), on_error]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("on_error", ["fail", "keep", "drop"])
def test_a_run_whose_disk_is_full_fails_and_its_journal_stays_whole(on_error: str, tmp_path: Path) -> None:
    said = long_run(tmp_path, 20_000, on_error)
    assert said.startswith("failed StoreError")
    assert "r.jsonl cannot be written: File too large; make room" in said
    path = tmp_path / "checkpoints" / "r.jsonl"
    reading = read_lines(path.read_bytes())
    assert (reading.torn, reading.broken_line) == (False, None)
    assert 10_000 < reading.good == path.stat().st_size <= 20_000
    store = FileRunStore(tmp_path)
    assert store.load("r").status == "interrupted"
    assert len(store.load("r").records) > 5


async def test_such_a_run_goes_on_when_there_is_room_with_nothing_done_twice(tmp_path: Path) -> None:
    long_run(tmp_path, 20_000)
    project = Project(tmp_path, {"*": {"replies": ["late"], "repeat": True}})
    done = len(project.store.load("r").records)
    result = await project.runtime().resume("r")
    assert result.status == "completed"
    assert result.output == ["word " * 200] * done + ["late"] * (50 - done)


def test_a_disk_that_is_full_from_the_start_leaves_a_reason(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LONG, str(tmp_path), "100", "fail"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert "cannot be written: File too large; make room" in done.stderr


@pytest.fixture
def readonly() -> Iterator[Callable[[], Path]]:
    """Makes a folder read-only, also for root, who then is somebody else for as long as the test takes."""
    folder = Path(tempfile.mkdtemp())

    def lock_up() -> Path:
        for path in [*folder.rglob("*"), folder]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:
            os.seteuid(65534)
        return folder

    project_root = folder / ".halo"
    project_root.mkdir()
    yield lock_up
    os.seteuid(os.getuid())
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("pipeline", ["@checkpoint\npipeline", "pipeline"])
async def test_a_run_that_cannot_be_kept_does_not_begin(pipeline: str, readonly: Callable[[], Path]) -> None:
    project = Project(readonly() / ".halo")
    with pytest.raises(StoreError, match=r"cannot be written: Permission denied; make room, or give it another place"):
        await project.run(f'{STORE}{pipeline} Main(x: Any) -> Any:\n  x |> Deeds.incr("k")', {"x": 1})
    assert project.deeds.calls == []


async def test_a_run_that_cannot_be_kept_when_it_pauses_says_so(readonly: Callable[[], Path]) -> None:
    project = Project(readonly() / ".halo")
    result = await project.run('pipeline Main(x: Any) -> Any:\n  x |! yield("Go?")', {"x": 1}, keep=False)
    assert (result.status, [question.message for question in result.interrupts]) == ("paused", ["Go?"])
    assert isinstance(result.error, StoreError)
    assert "cannot be written: Permission denied" in result.error.message


async def test_a_run_that_needs_no_file_needs_no_folder(readonly: Callable[[], Path]) -> None:
    result = await Project(readonly() / ".halo").run(
        "pipeline Main(x: Any) -> Any:\n  x |> System.Value(2)", {"x": 1}, keep=False
    )
    assert result.output == 2


async def test_runs_in_a_folder_that_may_only_be_read_can_be_read(readonly: Callable[[], Path], tmp_path: Path) -> None:
    project = Project(tmp_path / ".halo")
    await project.run('pipeline Main(x: Any) -> Any:\n  x |! yield("Sure?")', {"x": 1}, run_id="r")
    folder = readonly()
    os.seteuid(os.getuid())
    (folder / ".halo").chmod(0o700)
    shutil.copytree(project.root, folder / ".halo", dirs_exist_ok=True)
    project = Project(readonly() / ".halo")
    moment = datetime(2026, 1, 3, tzinfo=UTC)
    assert [line["status"] for line in project.store.runs(moment)] == ["paused"]
    assert [one["message"] for one in project.store.open_interrupts(moment)] == ["Sure?"]
    assert project.store.load("r").status == "paused"
    with pytest.raises(StoreError, match="Permission denied"):
        await project.runtime().signal("r", "yes")
    with pytest.raises(StoreError, match="Permission denied"):
        project.runtime().post("r", "yes")
    with pytest.raises(StoreError, match="Permission denied"):
        await project.fork('pipeline Main(x: Any) -> Any:\n  x |! yield("Sure?")', "r")

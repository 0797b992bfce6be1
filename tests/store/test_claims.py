"""One process at a time works on a run; the claim is gone with the process, however that ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from halo_runtime.errors import RunBusy, UnknownRun
from halo_runtime.redaction import Redactor
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.live import LiveRuns
from halo_runtime.store.locks import Lock, is_claimed
from tests.durability.support import sealed

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from halo_runtime.store.live import LiveRuns
from halo_runtime.store.locks import Lock
root = Path(sys.argv[1])
LiveRuns(root / "live").enter("r", "Main", "a.halo", "2026-01-02T03:04:05.000Z")
lock = Lock.take(root / "checkpoints" / "r.jsonl")
print("held" if lock else "refused", flush=True)
sys.stdin.read()
"""
HEADER = {"runId": "r", "pipeline": "Main"}


@pytest.fixture
def store(tmp_path: Path) -> FileRunStore:
    made = FileRunStore(tmp_path)
    made.folder.mkdir()
    (made.folder / "r.jsonl").write_bytes(sealed(HEADER))
    return made


@contextmanager
def holder(store: FileRunStore) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the run."""
    command = [sys.executable, "-c", HOLD, str(store.root)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_run_that_another_process_has_is_refused_with_its_number(
    store: FileRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("halo_runtime.store.files._PATIENCE_SECONDS", 0.0)
    with holder(store) as process:
        with pytest.raises(RunBusy, match=rf"process {process.pid} on .* at work on the run r; .*halo stop r"):
            store.claim("r")
        assert store.load("r").status == "running"


def test_a_claim_is_gone_when_its_process_is_killed(store: FileRunStore) -> None:
    with holder(store) as process:
        process.kill()
        process.wait()
        claim = store.claim("r")
        assert claim.stored.status == "interrupted"
        claim.lock.release()
    assert LiveRuns(store.root / "live").find("r") is None


def test_a_claim_waits_for_one_that_is_about_to_finish(store: FileRunStore) -> None:
    with holder(store) as process:
        threading.Timer(0.2, process.kill).start()
        store.claim("r").lock.release()


def test_a_claim_is_refused_within_the_process_too_and_can_be_given_up(store: FileRunStore) -> None:
    path = store.folder / "r.jsonl"
    first = Lock.take(path)
    assert first is not None
    assert Lock.take(path) is None
    assert is_claimed(path)
    first.release()
    first.release()
    assert not is_claimed(path)


def test_a_claim_is_on_the_file_that_has_the_name_now(store: FileRunStore) -> None:
    path = store.folder / "r.jsonl"
    old = Lock.take(path)
    assert old is not None
    path.rename(path.with_name("old"))
    path.write_bytes(sealed(HEADER))
    new = Lock.take(path)
    assert new is not None
    for lock in (old, new):
        lock.release()


def test_a_new_run_gets_its_claim_though_a_listing_looks_at_it(store: FileRunStore) -> None:
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for path in store.folder.glob("*.jsonl"):
                is_claimed(path)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        for number in range(100):
            log = store.new_log(f"n{number}", Redactor(), lambda pipeline, index: None)
            log.keep()
            assert Lock.take(log.path) is None, "the new run is its own"
            log.close()
    finally:
        over.set()
        looker.join()


def test_no_claim_on_what_is_not_there(store: FileRunStore) -> None:
    with pytest.raises(UnknownRun, match="there is no run s"):
        store.claim("s")
    for name in ("../r", "", ".hidden", "a b"):
        with pytest.raises(UnknownRun):
            store.claim(name)
    assert [path.name for path in store.folder.iterdir()] == ["r.jsonl"]

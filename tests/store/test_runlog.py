"""A run being written down: nothing before it is to be kept, everything after."""

from __future__ import annotations

import errno
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from halo_runtime.engine.journal import EffectRecord, StageEntry, Step
from halo_runtime.engine.plan import StageInfo
from halo_runtime.errors import Place, StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.redaction import Redactor
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.format import read_lines
from halo_runtime.store.runlog import RunLog

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def started(root: Path) -> RunLog:
    log = FileRunStore(root).new_log("r", Redactor(["secret-value"]), lambda pipeline, index: f"{pipeline}{index}")
    log.note("run", lambda: {"format": 1, "runId": "r", "pipeline": "Main"})
    return log


def effect(number: int, text: str = "text") -> EffectRecord:
    return EffectRecord(f"Main/{number}/step1/try1", "model", "0" * 64, "done", {"reply": text})


def stage(number: int, hash_: str) -> StageEntry:
    info = StageInfo(number, "pipe", "|> A.go", lambda: Place("|> A.go", "a.halo", 1, 1))
    step = Step("Main", "Main", info, {}, "current", {"a": 1})
    return StageEntry(number + 1, hash_, f"Main/{number}", "pipe", '"|> A.go"', "in", "out", step)


def kinds(log: RunLog) -> list[str]:
    return [document["t"] for document in read_lines(log.path.read_bytes()).documents]


def test_a_log_that_nobody_keeps_leaves_nothing(tmp_path: Path) -> None:
    log = started(tmp_path / ".halo")
    log.effect(effect(0))
    log.begun("Main/1/tool")
    log.settle()
    log.close()
    assert not (tmp_path / ".halo").exists()


def test_a_log_that_is_kept_late_has_all_from_the_start_in_order(tmp_path: Path) -> None:
    log = started(tmp_path)
    log.effect(effect(0))
    log.stage(stage(0, "h0"), {})
    log.keep()
    log.keep()
    log.begun("Main/1/tool")
    log.stage(stage(1, "h1"), {"warnings": [{"message": "m"}]})
    assert kinds(log) == ["run", "effect", "stage", "begun", "stage"]
    log.close()


def test_a_log_whose_process_dies_as_it_begins_leaves_no_run(tmp_path: Path) -> None:
    def die() -> JsonObject:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    if (child := os.fork()) == 0:
        log = started(tmp_path)
        log.note("effect", die)
        log.keep()
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert FileRunStore(tmp_path).runs(NOW) == []
    log = started(tmp_path)  # and its id is free
    log.keep()
    log.close()
    assert kinds(log) == ["run"]


def test_a_log_that_cannot_be_written_as_it_begins_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> JsonObject:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = started(tmp_path)
    log.note("effect", fail)
    with pytest.raises(StoreError, match="No space left on device; make room"):
        log.keep()
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_every_line_is_in_the_file_when_it_was_told(tmp_path: Path) -> None:
    log = started(tmp_path)
    log.keep()
    for number in range(5):
        log.effect(effect(number))
        assert len(kinds(log)) == number + 2
    log.close()


def test_no_secret_is_written_in_texts_or_names(tmp_path: Path) -> None:
    log = started(tmp_path)
    log.keep()
    log.effect(effect(0, "it is secret-value"))
    log.note("status", lambda: {"secret-value": ["secret-value"]})
    log.close()
    assert b"secret-value" not in log.path.read_bytes()


def test_a_stage_that_comes_out_otherwise_than_it_stands_there_is_refused(tmp_path: Path) -> None:
    log = started(tmp_path)
    log.keep()
    for number in range(2):
        log.stage(stage(number, f"h{number}"), {})
    log.close()

    store = FileRunStore(tmp_path)
    again = store.go_on(store.claim("r"), Redactor(), lambda pipeline, index: None)
    again.stage(stage(0, "h0"), {})
    assert not again.caught_up
    with pytest.raises(StoreError, match="entry 2 of the trace comes out otherwise than it stands there"):
        again.stage(stage(1, "other"), {})
    again.close()
    assert len(kinds(again)) == 3


def test_a_log_goes_on_behind_half_a_line_and_writes_no_stage_twice(tmp_path: Path) -> None:
    log = started(tmp_path)
    log.keep()
    log.stage(stage(0, "h0"), {})
    log.close()
    with log.path.open("ab") as file:
        file.write(b'{"t":"stage","se')

    store = FileRunStore(tmp_path)
    again = store.go_on(store.claim("r"), Redactor(), lambda pipeline, index: None)
    again.stage(stage(0, "h0"), {})
    again.stage(stage(1, "h1"), {})
    assert again.caught_up
    again.close()
    assert kinds(again) == ["run", "stage", "stage"]
    assert not read_lines(again.path.read_bytes()).torn


def test_an_id_that_is_taken_is_not_written_over(tmp_path: Path) -> None:
    first = started(tmp_path)
    first.keep()
    first.close()
    before = first.path.read_bytes()
    with pytest.raises(StoreError, match=r"r.jsonl cannot be written: File exists"):
        started(tmp_path).keep()
    assert first.path.read_bytes() == before


@pytest.mark.parametrize("run_id", ["../r", "a/b", "", ".r", "a b"])
def test_an_id_that_is_no_name_is_refused(run_id: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no run id"):
        FileRunStore(tmp_path / "x").new_log(run_id, Redactor(), lambda pipeline, index: None)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a look at one folder

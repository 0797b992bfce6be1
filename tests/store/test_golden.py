"""Journals as earlier versions wrote them: each must be read, and a paused one continued, for ever.

The files in `golden/` are never made anew. Where one no longer loads a migration is missing (store/format.py); where
a paused one no longer goes on, the engine asks for something else than it did.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from halo_runtime import RunResult
from halo_runtime.store.files import FileRunStore
from halo_runtime.store.verification import verify_journal
from tests.durability.support import Project, keys

GOLDEN = sorted((Path(__file__).parent / "golden").iterdir())
REPLIES = {"A.close": "closed", "*": {"error": 400}}


def copied(golden: Path, tmp_path: Path) -> Project:
    shutil.copytree(golden, tmp_path / "checkpoints")
    return Project(tmp_path, REPLIES)


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    return copied(request.param, tmp_path)


def test_every_journal_is_read_and_verified(project: Project) -> None:
    statuses = {name: project.store.load(name).status for name in ("completed", "paused", "large")}
    assert statuses == {"completed": "completed", "paused": "paused", "large": "completed"}
    verdicts = [str(verify_journal(project.store, name)) for name in ("completed", "paused", "large")]
    assert verdicts == ["valid", "open", "valid"]


def test_what_a_run_did_can_be_seen(project: Project) -> None:
    shown = project.store.load("completed").to_json()
    assert (shown["status"], shown["output"], shown["error"]) == ("completed", "closed", None)
    context = shown["context"]
    assert context["input"] == {"text": "hello", "xs": ["a", "b"]}
    assert context["data"]["A"]["draft"] == "é 🚀"
    assert context["data"]["checks"] == ["yes", "yes"]
    assert [call["method"] for call in context["meta"]["calls"]] == ["draft", "act", "rate", "rate", "close"]
    assert context["meta"]["tokens"] == {"input": 600, "output": 60, "total": 660}
    assert project.store.load("large").to_json()["output"] == "long " * 300


async def test_a_paused_run_goes_on_with_nothing_done_twice(project: Project) -> None:
    result: RunResult = await project.runtime().signal("paused", "yes", interrupt="ask-6100f282dd4c")
    assert [question.id for question in result.interrupts] == ["ask-d6f958f2fc30"]
    result = await project.runtime().signal("paused", "yes")
    assert (result.status, result.output) == ("completed", "closed")
    assert keys(project.deeds) == []
    assert result.context.trace[-1]["hash"] == project.store.load("completed").trace[-1]["hash"]


async def test_a_completed_run_with_its_own_program_is_given_back(project: Project) -> None:
    stored = FileRunStore(project.root).load("completed")
    result = await project.fork(stored.header["program"], "completed")
    assert (result.run_id, result.output) == ("completed", "closed")

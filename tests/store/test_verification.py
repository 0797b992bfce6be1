"""What `verify` finds: whatever was done to a journal after its run wrote it, by accident or with skill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.store.format import Sealer
from halo_runtime.store.verification import JournalVerdict, verify_journal
from tests.durability.support import Project, sealed

TEXT = "pipeline Main(x: Any) -> Any:\n  x |> System.Value(1) |> System.Value(2) |> System.Value(3)"
ASKS = 'pipeline Main(x: Any) -> Any:\n  x |> System.Value(1) |! yield("?") |> System.Value(2)'
Lines = list[dict[str, Any]]


async def run(tmp_path: Path, text: str = TEXT) -> Project:
    project = Project(tmp_path)
    await project.run(text, {"x": 1}, run_id="r")
    return project


def verdict(project: Project) -> str:
    return str(verify_journal(project.store, "r"))


def forge(project: Project, change: Callable[[Lines], Lines]) -> None:
    """Change a journal as somebody does who knows how its lines are sealed."""
    documents = [{name: value for name, value in line.items() if name != "sum"} for line in project.lines("r")]
    sealer = Sealer()
    path = project.store.folder / "r.jsonl"
    path.write_bytes(b"".join(sealer.line(document) for document in change(documents)))


async def test_a_run_that_ended_is_valid_and_one_that_goes_on_is_open(tmp_path: Path) -> None:
    assert verdict(await run(tmp_path / "a")) == "valid"
    project = await run(tmp_path / "b", ASKS)
    assert verdict(project) == "open"
    await project.runtime().signal("r", "yes")
    assert verdict(project) == "valid"


@pytest.mark.parametrize("left", [1, 2, 3, 4])
async def test_an_ended_run_whose_last_lines_are_missing_is_cut(left: int, tmp_path: Path) -> None:
    project = await run(tmp_path)
    path = project.store.folder / "r.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:left]))
    assert verdict(project) == f"cut at {left}"


async def test_a_paused_run_whose_last_lines_are_missing_is_cut(tmp_path: Path) -> None:
    project = await run(tmp_path, ASKS)
    path = project.store.folder / "r.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert verdict(project).startswith("cut")


async def test_half_a_line_is_torn_and_no_harm(tmp_path: Path) -> None:
    project = await run(tmp_path)
    with (project.store.folder / "r.jsonl").open("ab") as file:
        file.write(b'{"t":"eff')
    assert verdict(project) == "torn"


async def test_any_changed_byte_is_found(tmp_path: Path) -> None:
    project = await run(tmp_path)
    path = project.store.folder / "r.jsonl"
    data = path.read_bytes()
    for place in range(20, len(data) - 1, 37):
        changed = bytearray(data)
        changed[place] ^= 1
        path.write_bytes(bytes(changed))
        assert verdict(project).startswith("broken"), place


def edit(lines: Lines) -> Lines:
    return [{**line, "output_sha256": "0" * 64} if line.get("seq") == 2 else line for line in lines]


def swap(lines: Lines) -> Lines:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def drop(lines: Lines) -> Lines:
    return [line for line in lines if line.get("seq") != 2]


def renumber(lines: Lines) -> Lines:
    kept = drop(lines)
    return [{**line, "seq": line["seq"] - 1} if line.get("seq", 0) > 2 else line for line in kept]


def other_input(lines: Lines) -> Lines:
    return [{**lines[0], "input": {"x": 2}}, *lines[1:]]


@pytest.mark.parametrize("change", [edit, swap, drop, renumber, other_input], ids=lambda change: change.__name__)
async def test_a_skilled_change_is_found_by_the_chain(change: Callable[[Lines], Lines], tmp_path: Path) -> None:
    project = await run(tmp_path)
    forge(project, change)
    assert verdict(project).startswith("broken at")


async def test_a_journal_written_anew_whole_is_found_by_the_seal(tmp_path: Path) -> None:
    project = await run(tmp_path)
    forge(project, lambda lines: [{**lines[0], "startedAt": "2020-01-01T00:00:00.000Z"}, *lines[1:]])
    assert verdict(project).startswith("cut")


async def test_a_journal_without_an_index_is_judged_by_itself(tmp_path: Path) -> None:
    project = await run(tmp_path)
    (tmp_path / "index.db").unlink()
    assert verdict(project) == "valid"


async def test_what_is_no_journal_is_broken_from_its_start(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.store.folder.mkdir()
    path = project.store.folder / "r.jsonl"
    path.write_bytes(sealed({"runId": "r"}).replace(b'"runId":"r"', b'"runId":"s"'))
    assert verdict(project) == "broken at 0"
    found = verify_journal(project.store, "r")
    assert isinstance(found, JournalVerdict)
    assert found.to_json()["reason"] == "line 1: its sum does not match: it was changed, or a line before it is missing"

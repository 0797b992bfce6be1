"""Vector stores that share a file: namespaces, other processes, other models, a kill in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ToolError
from halo_runtime.tools.vectors import provider
from halo_runtime.tools.vectors.entries import fits, read_entry
from halo_runtime.tools.vectors.matrix import Matrix, unit
from tests.tools.vectors import Words, ask, call, files, ids, store

OTHER = """
import asyncio, sys
from pathlib import Path
from tests.tools.vectors import call, store
async def main(folder, name):
    async with store(Path(folder)) as tool:
        for number in range(20):
            await call(tool, "add", text=f"{name} {number}", id=f"{name}{number}")
            print(number, flush=True)
        if name == "endless":
            while True:
                await call(tool, "addMany", items=[{"text": f"batch {n}", "id": str(n)} for n in range(50)])
asyncio.run(main(*sys.argv[1:]))
"""


def other(root: Path, folder: Path, name: str) -> subprocess.Popen[str]:
    """Another process that adds entries."""
    command = [sys.executable, "-c", OTHER, str(folder), name]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)


async def test_namespaces_in_one_file_do_not_meet(tmp_path: Path) -> None:
    async with store(tmp_path, namespace="a") as a, store(tmp_path, namespace="b") as b:
        await call(a, "add", text="the same", id="one")
        assert await call(b, "search", query="the same") == []
        await call(b, "add", text="the other", id="one")
        assert ids(await call(a, "search", query="other")) == ["one"]
        assert await call(a, "get", id="one") == {"id": "one", "text": "the same", "metadata": {}}
        assert await call(b, "delete", id="one")
        assert await call(a, "count") == 1


async def test_a_search_sees_what_others_have_changed_since(tmp_path: Path) -> None:
    async with store(tmp_path, k=100) as reader, store(tmp_path) as writer:
        await call(writer, "addMany", items=[{"text": f"word {n}", "id": str(n)} for n in range(10)])
        assert len(await call(reader, "search", query="word")) == 10
        await call(writer, "delete", id="9")  # the newest
        await call(writer, "delete", id="3")
        await call(writer, "add", text="word 10", id="10")
        await call(writer, "add", text="quite different", id="0")
        found = ids(await call(reader, "search", query="word"))
        assert set(found) == {"0", "1", "2", "4", "5", "6", "7", "8", "10"}
        assert found[-1] == "0"


async def test_another_file_in_its_place_is_read_anew(tmp_path: Path) -> None:
    async with store(tmp_path) as reader:
        await call(reader, "addMany", items=["one", "two"])
        assert len(await call(reader, "search", query="one")) == 2
        for name in files(tmp_path):
            (tmp_path / name).unlink()
        assert await call(reader, "count") == 0
        await ask(tmp_path, "add", text="three", id="3")
        assert ids(await call(reader, "search", query="one")) == ["3"]


async def test_vectors_of_another_model_or_length_are_refused_before_anything_is_embedded(tmp_path: Path) -> None:
    await ask(tmp_path, "add", text="one", id="1")
    other = Words("other/model")
    async with store(tmp_path, other) as tool:
        for method, args in (("search", {"query": "one"}), ("add", {"text": "two"}), ("addMany", {"items": ["two"]})):
            with pytest.raises(ToolError) as caught:
                await call(tool, method, **args)
            assert caught.value.message == (
                f'Docs.{method}: the entries of namespace "docs" in v.db were embedded by words (64 numbers) and cannot'
                " be compared with those of other/model; declare that model, or add the texts anew under another"
                " namespace or path"
            )
    assert other.asked == []
    async with store(tmp_path, Words(length=32)) as tool:
        with pytest.raises(ToolError, match=r"words \(64 numbers\) .* words \(32 numbers\)"):
            await call(tool, "search", query="one")
        with pytest.raises(ToolError, match="cannot be compared"):
            await call(tool, "add", text="two")
        assert await call(tool, "count") == 1


async def test_an_emptied_namespace_may_change_its_model(tmp_path: Path) -> None:
    async with store(tmp_path) as first, store(tmp_path, Words("other", 32)) as second:
        await call(first, "add", text="one", id="1")
        assert ids(await call(first, "search", query="one")) == ["1"]
        await call(first, "delete", id="1")
        await call(second, "add", text="two", id="2")
        assert ids(await call(second, "search", query="two")) == ["2"]
        with pytest.raises(ToolError, match="embedded by other"):
            await call(first, "search", query="one")


async def test_processes_add_at_the_same_time_and_nothing_is_lost(root: Path, tmp_path: Path) -> None:
    running = [await asyncio.to_thread(other, root, tmp_path, name) for name in ("a", "b")]
    assert [await asyncio.to_thread(process.communicate) and process.returncode for process in running] == [0, 0]
    async with store(tmp_path, k=100) as tool:
        assert await call(tool, "count") == 40
        assert len(await call(tool, "search", query="a b")) == 40


def test_a_kill_in_the_middle_leaves_whole_entries(root: Path, tmp_path: Path) -> None:
    process = other(root, tmp_path, "endless")
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(told) == 20
    database = sqlite3.connect(tmp_path / "v.db")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    count = asyncio.run(ask(tmp_path, "count"))
    assert count in (20, 70)  # a batch is there, or nothing of it
    assert len(asyncio.run(ask(tmp_path, "search", query="endless", k=100))) == count


async def test_a_lock_that_stays_held_is_an_error_that_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = provider.patiently
    monkeypatch.setattr(provider, "patiently", lambda work: patient(work, 0.02))
    await ask(tmp_path, "add", text="one")
    holder = sqlite3.connect(tmp_path / "v.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(ToolError, match="another process holds its lock") as caught:
        await ask(tmp_path, "add", text="two")
    assert caught.value.retryable
    assert len(await ask(tmp_path, "search", query="one")) == 1  # reading goes on
    holder.close()


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"the folder .*nowhere does not exist; create it"):
        async with store(tmp_path, path="nowhere/v.db") as tool:
            await call(tool, "add", text="one")


async def test_a_namespace_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halo_runtime.tools.vectors.table.MAX_ENTRIES", 2)
    async with store(tmp_path) as tool:
        await call(tool, "addMany", items=["one", "two"])
        await call(tool, "add", text="two")  # it takes its own place
        with pytest.raises(ToolError, match="more than 2 entries; use several namespaces"):
            await call(tool, "addMany", items=["three", "four"])
        assert await call(tool, "count") == 2


# --- parts without a file ---------------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(st.sampled_from(["add", "keep"]), st.lists(st.integers(0, 40), min_size=1, max_size=6)), max_size=8
)


@given(steps, st.integers(0, 2**32 - 1))
def test_rows_that_come_and_go_are_ranked_as_if_they_had_always_been_there(
    changes: list[tuple[str, list[int]]], seed: int
) -> None:
    chance = np.random.default_rng(seed)
    matrix, there, last = Matrix(4), dict[int, list[float]](), 0
    for what, numbers in changes:
        if what == "add":
            seqs = [last + 1 + number for number in range(len(numbers))]
            rows = chance.integers(-2, 3, (len(seqs), 4)).astype(np.float32)
            matrix.add(seqs, unit(rows))
            there |= dict(zip(seqs, unit(rows).tolist(), strict=True))
            last = seqs[-1]
        else:
            kept = [number for number in numbers if number in there]
            matrix.keep(kept)
            there = {number: there[number] for number in sorted(kept)}
    query = unit([[1.0, 2.0, -1.0, 0.5]])[0]
    scores = [float(np.dot(np.float32(row), query)) for row in there.values()]
    found = list(matrix.ranked(query))
    assert sorted(number for number, _ in found) == sorted(there)
    assert [score for _, score in found] == pytest.approx(sorted(scores, reverse=True), abs=1e-5)
    assert len(matrix) == len(there)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2)
)
fields = st.dictionaries(st.text(max_size=2), json_values, max_size=3)


@given(fields, fields)
def test_a_filter_fits_exactly_what_has_all_of_it(metadata: dict[str, object], more: dict[str, object]) -> None:
    assert fits({**more, **metadata}, metadata)
    assert fits(metadata, {})
    missing = {name: value for name, value in more.items() if name not in metadata}
    assert fits(metadata, missing) == (not missing)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip), fields)
def test_an_entry_comes_back_as_it_was_given(text: str, metadata: dict[str, object]) -> None:
    entry = read_entry({"text": text, "metadata": metadata})
    assert json.loads(json.dumps(entry.to_json())) == {"id": entry.id, "text": text, "metadata": metadata}
    assert read_entry(text).id == entry.id

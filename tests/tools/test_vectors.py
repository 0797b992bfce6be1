"""Every method of a vector store: what it does, how it fails, and that it can be cancelled."""

from __future__ import annotations

import asyncio
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.vectors.entries import MAX_ITEMS, MAX_TEXT
from halo_runtime.tools.vectors.provider import MAX_QUERY
from tests.tools.vectors import SPEC, Words, ask, call, files, ids, opened, store

REFUNDS = {"id": "refunds", "text": "Money comes back in five days.", "metadata": {"page": 1}}
HOURS = {"id": "hours", "text": "We are closed on Sundays.", "metadata": {"page": 2}}

# Method → arguments, and what it gives in a store that has REFUNDS and HOURS, beside a file notes/a.md.
DONE: dict[str, tuple[dict[str, Any], Any]] = {
    "add": ({"text": "Shipping is free.", "id": "shipping", "metadata": {"a": 1}}, "shipping"),
    "addMany": ({"items": ["One.", {"text": "Two.", "id": "two"}]}, ["70277bfc409b5021", "two"]),
    "search": ({"query": "closed sundays", "k": 1}, [HOURS | {"score": 0.6325}]),
    "get": ({"id": "refunds"}, REFUNDS),
    "delete": ({"id": "refunds"}, True),
    "count": ({}, 2),
    "ingest": ({"path": "notes"}, {"files": 1, "entries": 1, "removed": 0, "skipped": []}),
}
METHODS = pytest.mark.parametrize("method", [method.name for method in SPEC.methods])


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A program's folder with a store in it."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A note.")
    await ask(tmp_path, "addMany", items=[REFUNDS, HOURS])
    return tmp_path


def test_every_method_is_tried() -> None:
    assert set(DONE) == set(SPEC.method_names)


@METHODS
async def test_a_method_does_what_the_catalogue_says(method: str, folder: Path) -> None:
    args, given = DONE[method]
    assert await ask(folder, method, **args) == given


@METHODS
async def test_a_file_that_is_no_store_is_told(method: str, tmp_path: Path) -> None:
    (tmp_path / "v.db").write_bytes(b"no database at all" * 300)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A note.")
    with pytest.raises(ToolError, match="it is no vector store file; move it away or change the store's path"):
        await ask(tmp_path, method, **DONE[method][0])


@METHODS
async def test_a_call_that_waits_for_another_process_can_be_cancelled(method: str, folder: Path) -> None:
    plain = sqlite3.connect(folder / "v.db", isolation_level=None)
    plain.execute("PRAGMA journal_mode = DELETE")  # so that readers wait too
    before = plain.execute("SELECT * FROM halo_vectors").fetchall()
    plain.execute("BEGIN EXCLUSIVE")
    async with store(folder) as tool:
        task = asyncio.create_task(call(tool, method, **DONE[method][0]))
        done, _ = await asyncio.wait([task], timeout=0.05)
        assert not done
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        plain.execute("ROLLBACK")
        assert plain.execute("SELECT * FROM halo_vectors").fetchall() == before
        plain.close()
        assert await call(tool, "count") == 2


@pytest.mark.parametrize("method", ["add", "addMany", "search"])
async def test_a_call_that_waits_for_its_embeddings_can_be_cancelled(method: str, folder: Path) -> None:
    words = Words(gate=asyncio.Event())
    async with store(folder, words) as tool:
        task = asyncio.create_task(call(tool, method, **DONE[method][0]))
        await words.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await call(tool, "count") == 2


# --- adding -----------------------------------------------------------------------------------------------------------


async def test_an_entry_takes_the_place_of_the_one_with_its_id(folder: Path) -> None:
    async with store(folder) as tool:
        await call(tool, "search", query="money")  # what is in memory must follow
        await call(tool, "add", text="Refunds are instant.", id="refunds")
        assert await call(tool, "get", id="refunds") == {
            "id": "refunds",
            "text": "Refunds are instant.",
            "metadata": {},
        }
        assert ids(await call(tool, "search", query="refunds instant", k=1)) == ["refunds"]
        assert await call(tool, "count") == 2


async def test_the_same_text_without_an_id_is_kept_once(tmp_path: Path) -> None:
    async with store(tmp_path) as tool:
        first = await call(tool, "add", text="Same.")
        assert await call(tool, "addMany", items=["Same.", "Other.", "Same."]) == [first, ids_of("Other."), first]
        assert await call(tool, "count") == 2


def ids_of(text: str) -> str:
    """The id of a text that was added without one."""
    return sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([""], r"items\[0\]: an entry needs a text"),
        (["a", {"id": "x"}], r"items\[1\]: an entry needs a text"),
        ([{"text": "a", "page": 1}], "no field page; put what belongs to it into metadata"),
        ([5], "got Number"),
        ([{"text": "a", "metadata": "m"}], "metadata is a text that is no JSON"),
        ([{"text": "a", "metadata": "[1]"}], "metadata is an object of fields, got List"),
        ([{"text": "a", "id": ""}], "an id is a text that is not empty"),
        ([{"text": "a", "id": 5}], "an id is a text"),
        ([{"text": "a", "id": "x" * 501}], "an id has at most 500"),
        ([{"text": "a", "id": "x]\n[y"}], "an id stands on one line"),
        ([{"text": "a", "id": "\ud800"}], "no invisible characters"),
        (["a" * (MAX_TEXT + 1)], "cut it into pieces, or use ingest"),
        ([{"text": "a", "metadata": {"a": "b" * 20_001}}], "metadata has more than"),
        (["\ud800"], "valid Unicode"),
        (["a"] * (MAX_ITEMS + 1), "add them in several calls"),
    ],
)
async def test_what_is_no_entry_is_told_and_nothing_is_added(items: list[Any], told: str, tmp_path: Path) -> None:
    words = Words()
    async with store(tmp_path, words) as tool:
        with pytest.raises(ToolError, match=told):
            await call(tool, "addMany", items=items)
        assert await call(tool, "count") == 0
    assert words.asked == []
    assert not (tmp_path / "v.db").exists()


async def test_nothing_to_add_is_nothing(tmp_path: Path) -> None:
    assert await ask(tmp_path, "addMany", items=[]) == []


# --- searching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["search", "get", "delete", "count"])
async def test_a_store_that_is_not_there_is_empty_and_is_not_made_by_looking(method: str, tmp_path: Path) -> None:
    words = Words()
    async with store(tmp_path, words) as tool:
        assert await call(tool, method, **DONE[method][0]) in ([], None, False, 0)
    assert files(tmp_path) == []
    assert words.asked == []


async def test_the_closest_come_first_as_many_as_asked_for(tmp_path: Path) -> None:
    async with store(tmp_path, k=2) as tool:
        await call(tool, "addMany", items=[{"id": str(n), "text": "red " * n + "blue"} for n in range(4)])
        found = await call(tool, "search", query="red")
        assert ids(found) == ["3", "2"]
        assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
        assert ids(await call(tool, "search", query="red", k=100)) == ["3", "2", "1", "0"]


async def test_of_equally_close_ones_the_older_comes_first(tmp_path: Path) -> None:
    async with store(tmp_path, k=100) as tool:
        names = [f"n{number:03}" for number in range(300)]
        await call(tool, "addMany", items=[{"id": name, "text": "the same words"} for name in names])
        assert ids(await call(tool, "search", query="same words")) == names[:100]


async def test_a_score_below_the_declared_one_is_no_match(folder: Path) -> None:
    async with store(folder, min_score=0.5) as tool:
        assert ids(await call(tool, "search", query="closed on sundays")) == ["hours"]
        assert await call(tool, "search", query="nothing of the kind") == []


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        ({"page": 2}, ["hours"]),
        ({"page": 2.0}, ["hours"]),
        ({"page": "2"}, []),
        ({"page": 2, "tag": None}, []),
        ({"nothing": None}, []),
        ({}, ["hours", "refunds"]),
        ('{"page": 2}', ["hours"]),
    ],
)
async def test_a_filter_wants_equal_fields(filter_: Any, found: list[str], folder: Path) -> None:
    assert ids(await ask(folder, "search", query="we are closed", filter=filter_)) == found


async def test_a_filter_finds_what_many_closer_ones_hide(tmp_path: Path) -> None:
    async with store(tmp_path) as tool:
        hay: list[Any] = [{"id": f"h{number}", "text": "a needle"} for number in range(600)]
        await call(tool, "addMany", items=[*hay, {"id": "far", "text": "hay", "metadata": {"a": [1]}}])
        assert ids(await call(tool, "search", query="a needle", filter={"a": [1]})) == ["far"]


async def test_a_query_without_a_word_is_told_and_a_long_one_is_cut(folder: Path) -> None:
    words = Words()
    async with store(folder, words) as tool:
        with pytest.raises(ToolError, match=r"Docs\.search: the query is empty"):
            await call(tool, "search", query=" \n")
        await call(tool, "search", query="x" * (MAX_QUERY + 1))
    assert list(map(len, words.asked)) == [MAX_QUERY]


# --- declarations -----------------------------------------------------------------------------------------------------


async def test_a_store_in_memory_ends_with_its_run(tmp_path: Path) -> None:
    async with store(tmp_path, path=":memory:") as tool:
        await call(tool, "add", text="Here.")
        assert await call(tool, "count") == 1
        assert len(await call(tool, "search", query="here")) == 1
    assert files(tmp_path) == []
    async with store(tmp_path, path=":memory:") as tool:
        assert await call(tool, "count") == 0


def test_a_declared_model_needs_its_key_before_the_run_starts(tmp_path: Path) -> None:
    from halo_runtime.models.embeddings import Embeddings
    from halo_runtime.models.registry import ModelRegistry

    config = ToolConfig(
        "Docs", "VectorStore", {"model": "openai/text-embedding-3-small"}, tmp_path, {}, Embeddings(ModelRegistry({}))
    )
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        tool_factory("VectorStore")(config)


async def test_a_probe_says_what_is_there_and_makes_nothing(folder: Path, tmp_path: Path) -> None:
    async with store(folder) as tool:
        assert await tool.probe() == "2 entries in v.db, embedded by words"
    async with store(folder, Words("other")) as tool:
        with pytest.raises(ToolError, match="were embedded by words"):
            await tool.probe()
    empty = tmp_path / "empty"
    empty.mkdir()
    async with store(empty) as tool:
        assert await tool.probe() == "0 entries in v.db, embedded by words"
    assert files(empty) == []


async def test_a_method_that_is_none_is_told(tmp_path: Path) -> None:
    async with store(tmp_path) as tool:
        with pytest.raises(ToolError, match="has no method `clear`; a VectorStore has add, addMany"):
            await tool.call("clear", {})


async def test_closing_twice_is_no_error(folder: Path) -> None:
    tool = opened(folder)
    assert await call(tool, "count") == 2
    await tool.close()
    await tool.close()

"""The KV store keeps JSON values by key, in a file, for several runs and processes at once."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import catalog
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.kv import KeyValueStore


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[KeyValueStore]:
    store = KeyValueStore(tmp_path / "kv.db", "", clock=clock)
    yield store
    await store.close()


async def one_call(path: Path, method: str, namespace: str = "", **args: Json) -> Json:
    """Open the file, do one thing, close it."""
    store = KeyValueStore(path, namespace, lock_seconds=0.05)
    try:
        return await store.call(method, args)
    finally:
        await store.close()


async def test_what_is_set_is_there_in_a_later_run(tmp_path: Path) -> None:
    await one_call(tmp_path / "kv.db", "set", key="color", value="blue")
    assert await one_call(tmp_path / "kv.db", "get", key="color") == "blue"


async def test_get_of_nothing_is_null(store: KeyValueStore) -> None:
    assert await store.call("get", {"key": "shape"}) is None


async def test_set_gives_the_value_so_that_it_flows_on(store: KeyValueStore) -> None:
    assert await store.call("set", {"key": "a", "value": {"n": 1}}) == {"n": 1}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), json_values), max_size=6))
def test_every_json_value_comes_back_as_it_was(entries: list[tuple[str, Json]]) -> None:
    async def scenario() -> None:
        store = KeyValueStore(Path(":memory:"), "")
        for key, value in entries:
            await store.call("set", {"key": key, "value": value})
        for key, value in dict(entries).items():
            assert await store.call("get", {"key": key}) == value
        listed = await store.call("list", {})
        expected = dict(sorted(entries, key=lambda entry: entry[0].encode()))
        assert listed == {"items": [{"key": k, "value": v} for k, v in expected.items()], "cursor": None}
        await store.close()

    asyncio.run(scenario())


async def test_delete_says_whether_there_was_something(store: KeyValueStore) -> None:
    await store.call("set", {"key": "a", "value": None})
    assert await store.call("delete", {"key": "a"}) is True
    assert await store.call("delete", {"key": "a"}) is False


async def test_an_entry_ends_with_its_time_to_live(store: KeyValueStore, clock: Clock) -> None:
    await store.call("set", {"key": "a", "value": 1, "ttl": "1m"})
    clock.now += 59
    assert await store.call("get", {"key": "a"}) == 1
    clock.now += 1
    assert await store.call("get", {"key": "a"}) is None
    assert await store.call("list", {}) == {"items": [], "cursor": None}
    assert await store.call("delete", {"key": "a"}) is False


@pytest.mark.parametrize("ttl", ["soon", "0s", "-1s", 5, True, [1]])
async def test_a_time_to_live_that_is_none_is_refused(store: KeyValueStore, ttl: Json) -> None:
    with pytest.raises(ToolError, match="`ttl` must be a duration"):
        await store.call("set", {"key": "a", "value": 1, "ttl": ttl})


async def test_counting_up_starts_at_nothing_and_keeps_the_time_to_live(store: KeyValueStore, clock: Clock) -> None:
    assert await store.call("incr", {"key": "n"}) == 1
    await store.call("set", {"key": "n", "value": 5, "ttl": "1m"})
    assert await store.call("incr", {"key": "n", "by": 2.5}) == 7.5
    clock.now += 60
    assert await store.call("incr", {"key": "n", "by": -1}) == -1


@pytest.mark.parametrize("value", ["5", True, [], {}])
async def test_only_numbers_are_counted_up(store: KeyValueStore, value: Json) -> None:
    await store.call("set", {"key": "n", "value": value})
    with pytest.raises(ToolError, match="cannot be counted up"):
        await store.call("incr", {"key": "n"})
    assert await store.call("get", {"key": "n"}) == value


@pytest.mark.parametrize(("value", "by"), [(1e308, 1e308), (10**400, 0.5)])
async def test_counting_does_not_leave_the_range_of_numbers(store: KeyValueStore, value: Json, by: Json) -> None:
    await store.call("set", {"key": "n", "value": value})
    with pytest.raises(ToolError, match="out of range"):
        await store.call("incr", {"key": "n", "by": by})
    assert await store.call("get", {"key": "n"}) == value


async def test_compare_and_swap_writes_only_over_what_was_expected(store: KeyValueStore) -> None:
    assert await store.call("cas", {"key": "a", "expected": None, "value": [1]}) is True
    assert await store.call("cas", {"key": "a", "expected": [2], "value": 3}) is False
    assert await store.call("cas", {"key": "a", "expected": [1], "value": 3}) is True
    assert await store.call("get", {"key": "a"}) == 3


async def test_compare_and_swap_does_not_take_true_for_one(store: KeyValueStore) -> None:
    await store.call("set", {"key": "a", "value": 1})
    assert await store.call("cas", {"key": "a", "expected": True, "value": 2}) is False


async def test_a_listing_goes_on_at_its_cursor(store: KeyValueStore) -> None:
    for number, key in enumerate(("b%1", "a", "b%2", "b%3", "c", "b_")):
        await store.call("set", {"key": key, "value": number})
    first = await store.call("list", {"prefix": "b%", "limit": 2})
    assert first == {"items": [{"key": "b%1", "value": 0}, {"key": "b%2", "value": 2}], "cursor": "b%2"}
    rest = await store.call("list", {"prefix": "b%", "limit": 2, "cursor": first["cursor"]})
    assert rest == {"items": [{"key": "b%3", "value": 3}], "cursor": None}


async def test_namespaces_in_one_file_do_not_meet(tmp_path: Path) -> None:
    await one_call(tmp_path / "kv.db", "set", namespace="x", key="a", value=1)
    assert await one_call(tmp_path / "kv.db", "get", namespace="y", key="a") is None


def test_two_processes_count_without_losing_anything(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from halo_runtime.tools.kv import KeyValueStore\n"
        "async def main():\n"
        "    store = KeyValueStore(Path(sys.argv[1]), '', lock_seconds=30)\n"
        "    await asyncio.gather(*(store.call('incr', {'key': 'n'}) for _ in range(50)))\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    file = tmp_path / "kv.db"
    running = [subprocess.Popen([sys.executable, "-c", program, str(file)]) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert asyncio.run(one_call(file, "get", key="n")) == 100


async def test_a_lock_that_stays_held_is_an_error_that_may_be_tried_again(tmp_path: Path) -> None:
    await one_call(tmp_path / "kv.db", "set", key="a", value=1)
    holder = sqlite3.connect(tmp_path / "kv.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(ToolError, match="another process holds its lock") as caught:
        await one_call(tmp_path / "kv.db", "incr", key="n")
    assert caught.value.retryable
    holder.close()


CALLS: dict[str, dict[str, Json]] = {
    "get": {"key": "a"},
    "set": {"key": "a", "value": 2},
    "delete": {"key": "a"},
    "list": {},
    "incr": {"key": "a"},
    "cas": {"key": "a", "expected": 1, "value": 2},
}
"""Each method, as one that changes something."""


def test_every_method_of_the_catalogue_is_tried() -> None:
    entry = catalog.provider("KV")
    assert entry is not None
    assert {method.name for method in entry.methods} == set(CALLS)


@pytest.mark.parametrize("method", CALLS)
async def test_every_method_can_be_cancelled_while_it_waits_for_a_lock(tmp_path: Path, method: str) -> None:
    await one_call(tmp_path / "kv.db", "set", key="a", value=1)
    holder = sqlite3.connect(tmp_path / "kv.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    store = KeyValueStore(tmp_path / "kv.db", "", lock_seconds=3600)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.call(method, CALLS[method]), 0.02)
    holder.close()
    assert await store.call("get", {"key": "a"}) == 1
    await store.close()


@pytest.mark.parametrize("method", CALLS)
async def test_every_method_fails_where_the_file_is_none(tmp_path: Path, method: str) -> None:
    (tmp_path / "kv.db").write_text("this is somebody's diary, and it is longer than a header\n" * 50)
    with pytest.raises(ToolError, match="it is no key-value file; move it away"):
        await one_call(tmp_path / "kv.db", method, **CALLS[method])
    assert (tmp_path / "kv.db").read_text().startswith("this is somebody's diary")


async def test_a_long_row_of_reads_lets_others_work(store: KeyValueStore) -> None:
    await store.call("set", {"key": "n", "value": 1})
    turns: list[int] = []

    async def others() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    task = asyncio.ensure_future(others())
    for _ in range(50):
        assert await store.call("get", {"key": "n"}) == 1
    task.cancel()
    assert len(turns) >= 50


async def test_reads_beside_writes_and_a_lock_of_another_process_find_what_is_there(tmp_path: Path) -> None:
    store = KeyValueStore(tmp_path / "kv.db", "", lock_seconds=20)
    await store.call("set", {"key": "n", "value": 0})
    calls = [store.call(method, {"key": "n"}) for _ in range(50) for method in ("incr", "get")]
    counted = (await asyncio.gather(*calls))[::2]
    assert (counted, await store.call("get", {"key": "n"})) == (list(range(1, 51)), 50)
    with sqlite3.connect(tmp_path / "kv.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        waiting = asyncio.ensure_future(store.call("get", {"key": "n"}))
        await asyncio.sleep(0)
        assert not waiting.done()
        other.execute("COMMIT")
        assert await waiting == 50
    other.close()
    await store.close()


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"the folder .*nowhere does not exist; create it"):
        await one_call(tmp_path / "nowhere" / "kv.db", "get", key="a")


async def test_a_folder_in_the_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot use the key-value file"):
        await one_call(tmp_path, "get", key="a")


@pytest.mark.parametrize("key", [7, None, ["a"], "\ud800"])
async def test_a_key_must_be_text(store: KeyValueStore, key: Json) -> None:
    with pytest.raises(ToolError, match="a key must be"):
        await store.call("get", {"key": key})


async def test_an_unknown_method_lists_those_there_are(store: KeyValueStore) -> None:
    with pytest.raises(ToolError, match="a KV store has get, set, delete, list, incr, cas"):
        await store.call("put", {})


async def test_a_declared_path_starts_at_the_programs_folder(tmp_path: Path) -> None:
    config = ToolConfig("Memory", "KV", {"path": "memory.db"}, tmp_path)
    tool = tool_factory("KV")(config)
    await tool.call("set", {"key": "a", "value": 1})
    await tool.close()
    assert (tmp_path / "memory.db").is_file()


def test_a_provider_that_is_not_here_yet_says_so() -> None:
    with pytest.raises(ConfigError, match=r"Nowhere is not available in this version"):
        tool_factory("Nowhere")

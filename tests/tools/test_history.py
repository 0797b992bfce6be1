"""A File store keeps a conversation, for several runs and processes at once (spec 5, reference 2.9)."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import catalog
from halo_runtime.engine.calls.history import History, remembered
from halo_runtime.errors import ToolError
from halo_runtime.tools import history, tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.history import Conversation


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.jsonl"


@pytest.fixture
async def chat(path: Path) -> AsyncIterator[Conversation]:
    chat = Conversation("Chat", path, "chat.jsonl")
    yield chat
    await chat.close()


def held(path: Path) -> bytes:
    """What the file holds; nothing where there is none."""
    return path.read_bytes() if path.exists() else b""


def put(path: Path, data: bytes) -> None:
    """Let the file hold something."""
    path.write_bytes(data)


@contextmanager
def held_by_another(path: Path) -> Generator[None]:
    """Another process has the file."""
    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        yield


async def refusal(chat: Conversation, method: str, **args: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await chat.call(method, args)
    return caught.value.message


def turns(*said: str) -> list[dict[str, str]]:
    """Turns of a user and an assistant by turns."""
    return [{"role": ("user", "assistant")[number % 2], "text": text} for number, text in enumerate(said)]


def test_the_code_has_the_methods_of_the_catalogue_and_no_others() -> None:
    spec = catalog.provider("File")
    assert spec is not None
    assert tuple(history._OPERATIONS) == spec.method_names


async def test_what_is_appended_is_read_by_a_later_run(path: Path, chat: Conversation) -> None:
    assert await chat.call("append", {"text": "hi"}) == 1
    assert await chat.call("append", {"text": "hello", "role": "assistant"}) == 2
    assert await chat.call("append", {"text": "how\nare you?", "reply": "fiñe \u2028"}) == 4
    later = tool_factory("File")(ToolConfig("Later", "File", {"path": "chat.jsonl"}, path.parent))
    assert await later.call("read", {}) == turns("hi", "hello", "how\nare you?", "fiñe \u2028")
    assert await later.call("read", {"limit": 2}) == turns("how\nare you?", "fiñe \u2028")
    await later.close()


async def test_the_file_has_the_documented_form_and_is_for_its_owner_alone(path: Path, chat: Conversation) -> None:
    await chat.call("append", {"text": "a", "reply": "b", "id": "run:1"})
    document = json.loads(held(path))
    assert document.pop("at").endswith("Z")
    assert document == {"v": 1, "id": "run:1", "turns": turns("a", "b")}
    assert os.stat(path).st_mode & 0o777 == 0o600  # noqa: PTH116


async def test_nothing_is_read_where_there_is_nothing_and_no_file_is_made(path: Path, chat: Conversation) -> None:
    assert await chat.call("read", {}) == []
    assert await chat.call("clear", {}) is None
    assert os.listdir(path.parent) == []  # noqa: PTH208


async def test_clear_forgets_all(path: Path, chat: Conversation) -> None:
    await chat.call("append", {"text": "a"})
    assert await chat.call("clear", {}) is None
    assert (await chat.call("read", {}), held(path)) == ([], b"")


async def test_the_same_id_is_added_once(chat: Conversation) -> None:
    for _ in range(2):
        assert await chat.call("append", {"text": "a", "reply": "b", "id": "x"}) == 2
    assert await chat.call("append", {"text": "a", "reply": "b", "id": "y"}) == 4


@pytest.mark.parametrize("length", [1, 20, -1])
async def test_a_torn_last_line_is_passed_over_and_goes_with_the_next_one(
    path: Path, chat: Conversation, length: int
) -> None:
    await chat.call("append", {"text": "a"})
    whole = held(path)
    put(path, whole + whole[:length])
    assert await chat.call("read", {}) == turns("a")
    assert await chat.call("append", {"text": "b", "role": "assistant"}) == 2
    assert await chat.call("read", {}) == turns("a", "b")
    assert held(path).startswith(whole)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no json", "is no JSON"),
        ("", "is no JSON"),
        ("[]", "is no exchange"),
        ('{"v": 1, "turns": [{"role": "system", "text": "x"}]}', "is no exchange"),
        ('{"v": 1, "turns": [{"role": "user", "text": 5}]}', "is no exchange"),
        ('{"v": 2, "what": "ever"}', "was written by a newer version of Halo"),
    ],
)
async def test_a_line_that_cannot_be_read_is_named_and_nothing_is_changed(
    path: Path, chat: Conversation, line: str, said: str
) -> None:
    await chat.call("append", {"text": "a"})
    put(path, held(path) + line.encode() + b"\n")
    before = held(path)
    for method, args in (("read", {}), ("append", {"text": "b"})):
        assert await refusal(chat, method, **args) == (
            f"Chat.{method}: line 2 of chat.jsonl {said}; mend the line, or move the file away"
        )
    assert held(path) == before


async def test_exchanges_of_several_stores_do_not_get_into_each_other(path: Path) -> None:
    stores = [Conversation("Chat", path) for _ in range(4)]
    await asyncio.gather(
        *(store.call("append", {"text": f"q{n}", "reply": f"a{n}"}) for n, store in enumerate(stores * 5))
    )
    said = await stores[0].call("read", {})
    assert [turn["text"][1:] for turn in said[::2]] == [turn["text"][1:] for turn in said[1::2]]
    assert len(said) == 40
    for store in stores:
        await store.close()


async def test_other_processes_add_at_the_same_time(path: Path, chat: Conversation) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from halo_runtime.tools.history import Conversation\n"
        "async def main():\n"
        "    chat = Conversation('Chat', Path(sys.argv[1]))\n"
        "    for n in range(20): await chat.call('append', {'text': str(n), 'reply': str(n)})\n"
        "    await chat.close()\n"
        "asyncio.run(main())\n"
    )
    others = [await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(path)) for _ in range(2)]
    assert [await other.wait() for other in others] == [0, 0]
    said = await chat.call("read", {})
    assert len(said) == 80
    assert all(question["text"] == answer["text"] for question, answer in zip(said[::2], said[1::2], strict=True))


async def test_a_write_that_fails_leaves_the_file_as_it_was(
    path: Path, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chat.call("append", {"text": "a"})
    before, write = held(path), os.write
    monkeypatch.setattr(history.os, "write", lambda descriptor, data: write(descriptor, data[:5]))
    assert await refusal(chat, "append", text="b") == "Chat.append: the disk is full; free some space"
    assert held(path) == before


async def test_what_cannot_be_used_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases = {"none/x": "the folder of none/x does not exist", ".": ". is a folder", "pipe": "pipe is no regular file"}
    for shown, said in cases.items():
        chat = Conversation("Chat", tmp_path / shown, shown)
        assert said in await refusal(chat, "append", text="a")
        await chat.close()
    chat = Conversation("Chat", tmp_path / "x", "x")
    monkeypatch.setattr(history.os, "open", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EACCES, "no")))
    assert "x may not be read and written" in await refusal(chat, "read")
    await chat.close()


async def test_a_conversation_does_not_grow_without_end(
    path: Path, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chat.call("append", {"text": "a"})
    monkeypatch.setattr(history, "MAX_BYTES", len(held(path)))
    assert "would grow over" in await refusal(chat, "append", text="b")
    monkeypatch.setattr(history, "MAX_BYTES", 10)
    assert "is larger than" in await refusal(chat, "read")


async def test_what_no_turn_can_be_is_refused(chat: Conversation) -> None:
    assert "half a surrogate pair" in await refusal(chat, "append", text="\ud800")
    assert "leave role: out" in await refusal(chat, "append", text="a", role="assistant", reply="b")


@pytest.mark.parametrize(("method", "args"), [("append", {"text": "b"}), ("clear", {}), ("read", {})])
async def test_a_call_that_is_cancelled_while_it_waits_does_nothing(
    path: Path, chat: Conversation, method: str, args: dict[str, Any]
) -> None:
    await chat.call("append", {"text": "a"})
    before = held(path)
    with held_by_another(path):
        task = asyncio.create_task(chat.call(method, args))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert held(path) == before


async def test_a_file_that_others_hold_is_not_waited_for_for_ever(
    path: Path, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chat.call("append", {"text": "a"})
    monkeypatch.setattr(history, "LOCK_SECONDS", 0.01)
    with held_by_another(path):
        assert "another process holds the file" in await refusal(chat, "read")


# --- what goes into a prompt


SAID = st.lists(st.builds(lambda role, text: {"role": role, "text": text}, st.sampled_from(["user", "assistant"]),
                          st.text("ab ", max_size=40)), max_size=12)  # fmt: skip
LIMIT = st.none() | st.integers(1, 30)


@given(SAID, LIMIT, LIMIT)
def test_what_is_remembered_are_the_last_whole_turns_within_the_limits(
    said: list[dict[str, str]], max_turns: int | None, max_tokens: int | None
) -> None:
    messages = remembered(said, History("Chat", max_turns, max_tokens))
    shown = [{"role": message.role, "text": message.content} for message in messages]
    assert shown == said[len(said) - len(shown) :]
    assert not shown or shown[0]["role"] == "user"
    assert max_turns is None or len(shown) <= max_turns
    if max_turns is None and max_tokens is None and said and said[0]["role"] == "user":
        assert shown == said


def test_a_turn_that_has_no_room_is_left_out_whole_with_all_before_it() -> None:
    said = [*turns("short", "short", "x" * 400, "answer", "last", "yes")]
    assert [m.content for m in remembered(said, History("Chat", None, 20))] == ["last", "yes"]
    assert [m.content for m in remembered(said, History("Chat", 3, None))] == ["last", "yes"]
    assert remembered(said, History("Chat", 1, None)) == ()

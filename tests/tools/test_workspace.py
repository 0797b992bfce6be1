"""A workspace reads and changes the files of its folder (spec 5 and 12.5)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.workspace import files as workspace_files
from halo_runtime.tools.workspace import provider as workspace
from halo_runtime.tools.workspace import search as workspace_search
from halo_runtime.tools.workspace.provider import Workspace


@pytest.fixture
def room(tmp_path: Path) -> Path:
    folder = tmp_path / "room"
    folder.mkdir()
    (folder / "note.txt").write_text("one\ntwo\nthree\n")
    (folder / "src").mkdir()
    (folder / "src/a.py").write_text("import os\nprint('deadline')\n")
    (folder / "src/b.md").write_text("# The deadline\n")
    return folder


@pytest.fixture
async def desk(room: Path) -> AsyncIterator[Workspace]:
    desk = Workspace("Desk", room, write=True)
    yield desk
    await desk.close()


def names(room: Path) -> list[str]:
    """Everything that stands in the room."""
    return sorted(str(path.relative_to(room)) for path in room.rglob("*"))


def contents(room: Path) -> list[tuple[str, str]]:
    """The same with what the files hold."""
    return [(name, (room / name).read_text() if (room / name).is_file() else "") for name in names(room)]


async def refusal(desk: Workspace, method: str, **args: Any) -> str:
    """The message with which a call is refused."""
    with pytest.raises(ToolError) as caught:
        await desk.call(method, args)
    return caught.value.message


def test_the_code_has_the_methods_of_the_catalogue_and_no_others() -> None:
    spec = catalog.provider("Workspace")
    assert spec is not None
    assert tuple(workspace._OPERATIONS) == spec.method_names
    assert set(workspace._CHANGES) == {"write", "edit", "append", "move", "delete", "mkdir", "applyPatch"}


# --- reading


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "one\ntwo\nthree\n"),
        ({"start": 2}, "two\nthree\n"),
        ({"end": 2}, "one\ntwo\n"),
        ({"start": 2, "end": 2}, "two\n"),
        ({"start": 3, "end": 99}, "three\n"),
    ],
)
async def test_a_file_is_read_whole_or_by_lines(desk: Workspace, args: dict[str, Any], text: str) -> None:
    assert await desk.call("read", {"path": "note.txt", **args}) == text


@pytest.mark.parametrize(
    ("args", "reason"),
    [({"start": 4}, "has only 3 lines; start is 4"), ({"start": 3, "end": 2}, "line 2 .end. comes before line 3")],
)
async def test_lines_that_are_not_there_are_refused(desk: Workspace, args: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        await desk.call("read", {"path": "note.txt", **args})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"ab\0cd", "`x` is a binary file (5 bytes), no text"),
        (b"ok\n caf\xe9", "`x` is no UTF-8 text: byte 0xe9 in line 2 (offset 7)"),
        ("hi".encode("utf-16"), "`x` is UTF-16 text; this reads UTF-8"),
    ],
)
async def test_what_is_no_text_is_said(desk: Workspace, room: Path, data: bytes, reason: str) -> None:
    (room / "x").write_bytes(data)
    assert await refusal(desk, "read", path="x") == f"Desk.read: {reason}"


async def test_a_byte_order_mark_is_no_text_and_line_ends_are(desk: Workspace, room: Path) -> None:
    (room / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert await desk.call("read", {"path": "x"}) == "a\r\nb\r\n"
    assert await desk.call("read", {"path": "x", "start": 2}) == "b\r\n"


async def test_long_texts_are_cut_where_it_says_how_to_read_on(
    desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "MAX_READ_CHARS", 10)
    (room / "x").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    assert await desk.call("read", {"path": "x"}) == "line 1\n[… 28 more characters cut; read on with start: 2]"
    assert await desk.call("read", {"path": "x", "start": 5}) == "line 5\n"
    (room / "y").write_text("x" * 12)
    assert await desk.call("read", {"path": "y"}) == f"{'x' * 10}\n[… 2 more characters cut]"


async def test_a_name_that_is_not_there_is_answered_with_those_that_are(desk: Workspace, room: Path) -> None:
    assert await refusal(desk, "read", path="notes.txt") == "Desk.read: there is no `notes.txt`; there is `note.txt`"
    (room / "cafe\u0301.txt").write_text("")
    said = await refusal(desk, "read", path="caf\u00e9.txt")
    assert said.endswith("there is `cafe\u0301.txt`, which is spelled in another way")
    assert "there is no `nowhere`" in await refusal(desk, "read", path="nowhere/x")
    assert "`src` is a folder, no file" in await refusal(desk, "read", path="src")


async def test_folders_are_listed_in_order(desk: Workspace, room: Path) -> None:
    (room / "link").symlink_to("note.txt")
    assert await desk.call("list", {}) == [
        {"path": "link", "kind": "link", "size": None},
        {"path": "note.txt", "kind": "file", "size": 14},
        {"path": "src", "kind": "folder", "size": None},
    ]
    assert await desk.call("list", {"path": "src", "glob": "*.md"}) == [
        {"path": "src/b.md", "kind": "file", "size": 15}
    ]
    assert "`note.txt` is no folder" in await refusal(desk, "list", path="note.txt")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["src/b.md"]),
        ("/*.txt", ["note.txt"]),
        ("**/*.py", ["src/a.py"]),
        ("src/*", ["src/a.py", "src/b.md"]),
        ("src", ["src/a.py", "src/b.md"]),
        ("*.rs", []),
    ],
)
async def test_files_are_found_by_name(desk: Workspace, pattern: str, found: list[str]) -> None:
    assert await desk.call("glob", {"pattern": pattern}) == found


async def test_lines_are_found(desk: Workspace, room: Path) -> None:
    (room / "bin").write_bytes(b"deadline\0")
    (room / "latin.txt").write_bytes(b"caf\xe9 deadline\r\n")
    assert await desk.call("search", {"pattern": "dead.*e"}) == [
        {"path": "latin.txt", "line": 1, "text": "caf\ufffd deadline"},
        {"path": "src/a.py", "line": 2, "text": "print('deadline')"},
        {"path": "src/b.md", "line": 1, "text": "# The deadline"},
    ]
    assert [match["path"] for match in await desk.call("search", {"pattern": "^#", "glob": "*.md"})] == ["src/b.md"]


async def test_what_gitignore_names_is_passed_over_by_searches_only(desk: Workspace, room: Path) -> None:
    (room / ".gitignore").write_text("# made\nbuild/\n*.log\n!keep.log\n")
    (room / "src/.gitignore").write_text("/a.py\n")
    for name in ("build/x.md", "x.log", "keep.log", "a.py"):
        (room / name).parent.mkdir(exist_ok=True)
        (room / name).write_text("deadline\n")
    found = [match["path"] for match in await desk.call("search", {"pattern": "deadline"})]
    assert found == ["a.py", "keep.log", "src/b.md"]
    assert await desk.call("glob", {"pattern": "*.log"}) == ["keep.log"]
    assert await desk.call("read", {"path": "build/x.md"}) == "deadline\n"
    assert "build" in [entry["path"] for entry in await desk.call("list", {})]


@pytest.mark.parametrize("pattern", ["a(", "[z-a]", "*"])
async def test_what_is_no_regular_expression_is_refused(desk: Workspace, pattern: str) -> None:
    assert "is no regular expression" in await refusal(desk, "search", pattern=pattern)


async def test_a_pattern_cannot_hang_a_search(desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_search, "PATTERN_SECONDS", 0.05)
    (room / "x").write_text("a" * 60 + "!\n")
    assert "took longer than 0.05 s for line 1 of `x`" in await refusal(desk, "search", pattern="(a|a|b?a)+$")
    assert "more than 4 stars" in await refusal(desk, "glob", pattern="*a*a*a*a*a*b")


async def test_what_is_too_much_is_cut_where_one_sees_it(
    desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_search, "MAX_MATCHES", 2)
    monkeypatch.setattr(workspace_search, "MAX_PATHS", 1)
    monkeypatch.setattr(workspace_search, "MAX_LINE_CHARS", 3)
    monkeypatch.setattr(workspace, "MAX_PATHS", 1)
    found = await desk.call("search", {"pattern": "e"})
    assert [match["text"] for match in found[:2]] == ["one", "thr\n[… 2 more characters cut]"]
    assert found[2:] == [
        {"path": "src/a.py", "line": None, "text": "[… more than 2 lines; narrow the pattern or the glob]"}
    ]
    assert await desk.call("glob", {"pattern": "*"}) == ["note.txt", "[… more than 1 paths; narrow the pattern]"]
    assert (await desk.call("list", {}))[1]["kind"] == "note"


async def test_a_search_that_takes_too_long_says_where_it_stopped(
    desk: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_search, "SEARCH_SECONDS", -1)
    assert await desk.call("search", {"pattern": "one"}) == [
        {"path": "note.txt", "line": None, "text": "[stopped here after -1 s; narrow the glob]"}
    ]


async def test_files_that_are_too_large_are_refused_and_named(
    desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (workspace_files, workspace_search):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", 20)
    (room / "big.txt").write_text("deadline\n" * 3)
    assert "is larger than" in await refusal(desk, "read", path="big.txt")
    assert "would grow over" in await refusal(desk, "append", path="note.txt", text="1234567")
    assert "would be larger than" in await refusal(desk, "write", path="x", text="x" * 21)
    found = await desk.call("search", {"pattern": "deadline", "glob": "big*"})
    assert [match["text"][:14] for match in found] == ["[not searched:"]


async def test_stat_looks_from_outside(desk: Workspace, room: Path) -> None:
    os.utime(room / "note.txt", (0, 86400))
    expected = {"path": "note.txt", "kind": "file", "size": 14, "modified": "1970-01-02T00:00:00Z"}
    assert await desk.call("stat", {"path": "note.txt"}) == expected
    assert await desk.call("stat", {"path": "no/such"}) is None
    os.mkfifo(room / "pipe")
    assert (await desk.call("stat", {"path": "pipe"}))["kind"] == "other"


# --- changing


async def test_nothing_is_changed_without_write(room: Path) -> None:
    looker = Workspace("Room", room)
    for method in sorted(workspace._CHANGES):
        with pytest.raises(ToolError, match=f"Room.{method}: the workspace may not be changed.*write: true"):
            await looker.call(method, {"path": "x", "text": "x"})
    await looker.close()


async def test_write_makes_folders_keeps_the_mode_and_leaves_nothing_behind(desk: Workspace, room: Path) -> None:
    assert await desk.call("write", {"path": "new/deep/x.txt", "text": "café"}) == {
        "path": "new/deep/x.txt",
        "bytes": 5,
    }
    (room / "note.txt").chmod(0o750)
    await desk.call("write", {"path": "note.txt", "text": ""})
    assert (room / "note.txt").stat().st_mode & 0o777 == 0o750
    assert (room / "note.txt").read_text() == ""
    assert names(room) == ["new", "new/deep", "new/deep/x.txt", "note.txt", "src", "src/a.py", "src/b.md"]


async def test_a_write_that_fails_leaves_the_file_as_it_was(
    desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workspace_files.os, "fsync", full)
    assert await refusal(desk, "write", path="note.txt", text="x") == ("Desk.write: the disk is full; free some space")
    assert (room / "note.txt").read_text() == "one\ntwo\nthree\n"
    assert names(room) == ["note.txt", "src", "src/a.py", "src/b.md"]


@pytest.mark.parametrize("method", ["write", "append", "edit"])
async def test_a_read_only_file_stays(desk: Workspace, room: Path, method: str) -> None:
    (room / "note.txt").chmod(0o444)
    assert "it is read-only" in await refusal(desk, method, path="note.txt", text="x", old="one", new="1")


async def test_append_adds_or_makes(desk: Workspace, room: Path) -> None:
    assert await desk.call("append", {"path": "log/x.txt", "text": "a"}) == {"path": "log/x.txt", "bytes": 1}
    await desk.call("append", {"path": "log/x.txt", "text": "é"})
    assert (room / "log/x.txt").read_text() == "aé"
    assert "is a folder" in await refusal(desk, "append", path="src", text="x")


async def test_appending_side_by_side_loses_nothing(desk: Workspace, room: Path) -> None:
    other = Workspace("Other", room, write=True)
    await asyncio.gather(*(tool.call("append", {"path": "n", "text": "x"}) for tool in (desk, other) * 20))
    await asyncio.gather(*(desk.call("edit", {"path": "note.txt", "old": old, "new": old.upper()})
                           for old in ("one", "two", "three")))  # fmt: skip
    await other.close()
    assert (room / "n").read_text() == "x" * 40
    assert (room / "note.txt").read_text() == "ONE\nTWO\nTHREE\n"


async def test_edit_replaces_one_passage(desk: Workspace, room: Path) -> None:
    assert await desk.call("edit", {"path": "note.txt", "old": "two\n", "new": "2\n"}) == {
        "path": "note.txt",
        "line": 2,
    }
    assert (room / "note.txt").read_text() == "one\n2\nthree\n"


async def test_edit_keeps_line_ends_and_the_byte_order_mark(desk: Workspace, room: Path) -> None:
    (room / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\r\nc\r\n")
    await desk.call("edit", {"path": "x", "old": "a\nb", "new": "1\n2"})
    await desk.call("edit", {"path": "x", "old": "2\r\nc", "new": "3"})
    assert (room / "x").read_bytes() == b"\xef\xbb\xbf1\r\n3\r\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("e", "x", "the passage stands 3 times in `note.txt` (lines 1, 3, 3); give more of what is around it"),
        ("thre\n", "x", "does not hold the passage; the closest is line 3: `three`"),
        ("  one\ntwo ", "x", "line 1 has it with other white space: `one\ntwo`"),
        ("zzzzz", "x", "`note.txt` does not hold the passage"),
        ("", "x", "`old` is empty"),
        ("one", "one", "the same; nothing would change"),
    ],
)
async def test_an_edit_that_is_not_clear_says_why(desk: Workspace, room: Path, old: str, new: str, said: str) -> None:
    assert said in await refusal(desk, "edit", path="note.txt", old=old, new=new)
    assert (room / "note.txt").read_text() == "one\ntwo\nthree\n"


async def test_move_gives_another_name_and_overwrites_nothing(desk: Workspace, room: Path) -> None:
    assert await desk.call("move", {"path": "note.txt", "to": "old/note.md"}) == {"path": "old/note.md"}
    assert await desk.call("move", {"path": "src", "to": "lib"}) == {"path": "lib"}
    assert (room / "lib/a.py").is_file()
    assert "is there already" in await refusal(desk, "move", path="old/note.md", to="lib/a.py")
    assert "into itself" in await refusal(desk, "move", path="lib", to="lib/inner")
    assert "there is no `gone`" in await refusal(desk, "move", path="gone", to="x")
    assert "root itself" in await refusal(desk, "move", path=".", to="x")


async def test_delete_says_whether_there_was_something(desk: Workspace, room: Path) -> None:
    assert await desk.call("delete", {"path": "note.txt"}) is True
    assert await desk.call("delete", {"path": "note.txt"}) is False
    assert await desk.call("delete", {"path": "no/such"}) is False
    assert "not empty" in await refusal(desk, "delete", path="src")
    assert "root itself" in await refusal(desk, "delete", path=".")
    (room / "empty").mkdir()
    assert await desk.call("delete", {"path": "empty"}) is True


async def test_mkdir_makes_all_on_the_way_and_may_be_done_again(desk: Workspace, room: Path) -> None:
    for _ in range(2):
        assert await desk.call("mkdir", {"path": "a/b/c"}) == {"path": "a/b/c"}
    assert (room / "a/b/c").is_dir()
    assert "and no folder" in await refusal(desk, "mkdir", path="note.txt")
    assert "`note.txt` is no folder" in await refusal(desk, "mkdir", path="note.txt/x")


async def test_text_that_no_file_can_hold_is_refused(desk: Workspace) -> None:
    assert "half a surrogate pair" in await refusal(desk, "write", path="x", text="\ud800")


# --- patches


async def test_a_patch_of_git_is_applied(desk: Workspace, room: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def git(*args: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", *identity, *args], cwd=work, check=True, capture_output=True, text=True).stdout

    for path in ("note.txt", "src/a.py", "src/b.md"):
        (work / path).parent.mkdir(exist_ok=True)
        (work / path).write_bytes((room / path).read_bytes())
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    (work / "note.txt").write_text("zero\none\ntwo\nthree")
    (work / "src/b.md").unlink()
    (work / "src/a.py").rename(work / "moved é.py")
    (work / "empty").write_text("")
    (work / "fresh").mkdir()
    (work / "fresh/x.txt").write_text("new\n")
    git("add", "-A")
    patch = git("diff", "--cached", "-M")
    changed = await desk.call("applyPatch", {"patch": patch})
    assert sorted(changed) == ["empty", "fresh/x.txt", "moved é.py", "note.txt", "src/a.py", "src/b.md"]
    for path in ("note.txt", "moved é.py", "empty", "fresh/x.txt"):
        assert (room / path).read_bytes() == (work / path).read_bytes()
    assert not list((room / "src").iterdir())


PATCH = "--- a/note.txt\n+++ b/note.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +1 @@\n-x\n+y\n", "there is no `gone.txt`"),
        ("--- a/src/b.md\n+++ b/src/b.md\n@@ -1 +1 @@\n-# A deadline\n+y\n", "the closest is line 1: `# The deadline`"),
        ("--- /dev/null\n+++ b/src/a.py\n@@ -0,0 +1 @@\n+x\n", "`src/a.py` is there already"),
        ("--- a/src/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import os\n", "has more lines than the patch"),
        ("--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n", "leads up with `..`"),
        ("--- /dev/null\n+++ b/.git/hooks/post-commit\n@@ -0,0 +1 @@\n+x\n", "is closed in this workspace"),
    ],
)
async def test_a_patch_is_applied_as_a_whole_or_not_at_all(desk: Workspace, room: Path, more: str, said: str) -> None:
    assert said in await refusal(desk, "applyPatch", patch=PATCH + more)
    assert (room / "note.txt").read_text() == "one\ntwo\nthree\n"


async def test_what_a_patch_has_changed_is_taken_back_when_a_later_write_fails(
    desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, renamed = os.rename, list[str]()

    def failing(source: str, target: str, **folders: int) -> None:
        renamed.append(target)
        if target == "b.md" and renamed.count("b.md") == 1:
            raise OSError(5, "Input/output error")
        rename(source, target, **folders)

    monkeypatch.setattr(workspace_files.os, "rename", failing)
    patch = PATCH + "--- a/src/b.md\n+++ b/src/b.md\n@@ -1 +1 @@\n-# The deadline\n+y\n"
    assert "Input/output error" in await refusal(desk, "applyPatch", patch=patch)
    assert renamed[0] == "note.txt"
    assert (room / "note.txt").read_text() == "one\ntwo\nthree\n"
    assert (room / "src/b.md").read_text() == "# The deadline\n"


# --- calls


async def test_a_cancelled_search_ends(desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, lines = threading.Event(), workspace_search._lines

    def endless(*args: Any) -> Any:
        begun.set()
        while True:
            yield from lines(*args)

    monkeypatch.setattr(workspace_search, "_lines", endless)
    monkeypatch.setattr(workspace_search, "MAX_MATCHES", 10**9)
    (room / "long").write_text("x\n" * 2000)
    task = asyncio.create_task(desk.call("search", {"pattern": "nothing", "glob": "long"}))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("write", {"path": "note.txt", "text": "x"}),
        ("append", {"path": "note.txt", "text": "x"}),
        ("edit", {"path": "note.txt", "old": "one", "new": "x"}),
        ("move", {"path": "note.txt", "to": "x"}),
        ("delete", {"path": "note.txt"}),
        ("mkdir", {"path": "made"}),
        ("applyPatch", {"patch": PATCH}),
    ],
)
async def test_a_cancelled_change_changes_nothing_afterwards(
    desk: Workspace, room: Path, method: str, args: dict[str, Any]
) -> None:
    before = contents(room)
    with workspace.Root.open(room, desk._closed) as root, workspace.exclusive(root, workspace.Stop()):
        waiting = asyncio.create_task(desk.call(method, args))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert contents(room) == before


@pytest.mark.parametrize(
    ("method", "args"),
    [("read", {"path": "note.txt"}), ("list", {}), ("glob", {"pattern": "*"}), ("stat", {"path": "note.txt"})],
)
async def test_a_call_that_reads_can_be_cancelled(
    desk: Workspace, monkeypatch: pytest.MonkeyPatch, method: str, args: dict[str, Any]
) -> None:
    begun, go_on, opened = threading.Event(), threading.Event(), workspace.Root.open

    def slow(*given: Any) -> Any:
        begun.set()
        go_on.wait(20)
        return opened(*given)

    monkeypatch.setattr(workspace.Root, "open", slow)
    task = asyncio.create_task(desk.call(method, args))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await desk.call(method, args) is not None


async def test_a_workspace_that_others_change_is_waited_for_and_not_for_ever(
    desk: Workspace, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_files, "LOCK_SECONDS", 0.02)
    with (
        workspace.Root.open(room, desk._closed) as root,
        workspace.exclusive(root, workspace.Stop()),
        pytest.raises(ToolError, match="another process is changing") as caught,
    ):
        await desk.call("delete", {"path": "note.txt"})
    assert caught.value.retryable
    assert await desk.call("delete", {"path": "note.txt"}) is True


def configured(folder: Path, **settings: Any) -> Any:
    return tool_factory("Workspace")(ToolConfig("Room", "Workspace", settings, folder))


async def test_a_missing_folder_is_named_as_declared_and_made_for_the_first_change(tmp_path: Path) -> None:
    looker, desk = configured(tmp_path, root="out"), configured(tmp_path, root="out", write=True)
    with pytest.raises(ToolError, match=r"^Room\.list: there is no folder out; create it") as caught:
        await looker.call("list", {})
    assert str(tmp_path) not in caught.value.message
    await desk.call("write", {"path": "x", "text": "y"})
    assert await looker.call("read", {"path": "x"}) == "y"
    await looker.close()
    await desk.close()


@pytest.mark.parametrize("glob", ["!", "[z-a]", "*a*a*a*a*a*"])
def test_a_deny_that_cannot_be_meant_stops_the_run_before_it_starts(tmp_path: Path, glob: str) -> None:
    with pytest.raises(ConfigError, match=r"^deny: .*glob"):
        configured(tmp_path, root=".", deny=[glob])

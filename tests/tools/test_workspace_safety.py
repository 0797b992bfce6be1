"""Nothing leads out of a workspace, and what is closed stays closed (reference 2.15, bugs 66)."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ToolError
from halo_runtime.tools.workspace.paths import Closed, folded, parse_path
from halo_runtime.tools.workspace.provider import Workspace
from tests.tools.test_bash import names_in

CALLS: dict[str, dict[str, Any]] = {
    "read": {},
    "write": {"text": "evil"},
    "edit": {"old": "secret", "new": "evil"},
    "append": {"text": "evil"},
    "list": {},
    "move": {"to": "taken"},
    "delete": {},
    "mkdir": {},
    "stat": {},
}


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """The root `room` with a file and a folder, and beside it what must not be touched."""
    for name in ("room", "room-evil", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("secret\n")
    (tmp_path / "room/inner").mkdir()
    return tmp_path / "room"


@pytest.fixture
async def desk(room: Path) -> AsyncIterator[Workspace]:
    desk = Workspace("Desk", room, write=True)
    yield desk
    await desk.close()


def state(folder: Path) -> list[tuple[str, bytes | None]]:
    """All that stands around the room, but not in it."""
    paths = sorted(path for name in ("room-evil", "outside") for path in (folder / name).rglob("*"))
    return [(str(path), path.read_bytes() if path.is_file() else None) for path in paths] + [
        (path.name, None) for path in sorted(folder.iterdir())
    ]


OUTSIDE = [
    "../outside/file",
    "..",
    "inner/../../outside/file",
    "inner/..",
    "./../room-evil/file",
    "{folder}/outside/file",
    "{folder}/room/file",
    "{folder}/room-evil/file",
    "//outside/file",
    "~/file",
    "~root",
    "C:/file",
    "c:file",
    "..\\outside\\file",
    "inner\\..\\..\\outside",
    "\\\\server\\share",
    "file\0",
    "\ud800",
    "",
    "x" * 256,
    "é" * 128,
    "/".join(["abcdefgh"] * 500),
    "/".join(["a"] * 120),
]


@pytest.mark.parametrize("path", OUTSIDE, ids=range(len(OUTSIDE)))
async def test_a_path_that_could_mean_another_place_is_refused(desk: Workspace, tmp_path: Path, path: str) -> None:
    before = state(tmp_path)
    path = path.replace("{folder}", str(tmp_path))
    for method, args in CALLS.items():
        with pytest.raises(ToolError) as caught:
            await desk.call(method, {"path": path, **args})
        assert "secret" not in caught.value.message
    with pytest.raises(ToolError):
        await desk.call("move", {"path": "file", "to": path})
    assert state(tmp_path) == before


def link(room: Path, target: str) -> str:
    (room / "link").symlink_to(target)
    return "link"


LINKS: dict[str, Callable[[Path], str]] = {
    "to a file outside": lambda room: link(room, "../outside/file"),
    "absolute": lambda room: link(room, str(room.parent / "outside/file")),
    "absolute, into the room": lambda room: link(room, str(room / "file")),
    "folder on the way": lambda room: f"{link(room, '../outside')}/file",
    "new file in a linked folder": lambda room: f"{link(room, '../outside')}/fresh",
    "new folder in a linked folder": lambda room: f"{link(room, '../outside')}/a/b",
    "into a folder that begins alike": lambda room: f"{link(room, '../room-evil')}/file",
    "over a link inside": lambda room: (
        ((room / "inner/up").symlink_to("../link"), link(room, "../outside/file")) and "inner/up"
    ),
    "up from a folder inside": lambda room: ((room / "inner/up").symlink_to("../../outside"), "inner/up/file")[1],
    "in a circle": lambda room: f"{link(room, 'link')}/x",
    "that ends nowhere outside": lambda room: link(room, "../outside/fresh"),
    "to the machine's root": lambda room: f"{link(room, '/')}/etc/hostname",
}


@pytest.mark.parametrize("case", LINKS)
async def test_a_link_that_leads_out_is_refused(desk: Workspace, room: Path, tmp_path: Path, case: str) -> None:
    path = LINKS[case](room)
    before = state(tmp_path)
    for method in ("read", "write", "edit", "append", "list", "mkdir"):
        with pytest.raises(ToolError, match="leads out of the workspace over a link"):
            await desk.call(method, {"path": path, **CALLS[method]})
    assert state(tmp_path) == before
    found = await desk.call("search", {"pattern": "secret"})
    assert [match["path"] for match in found] == ["file"]
    assert await desk.call("glob", {"pattern": "*"}) == ["file"]


async def test_a_link_itself_is_looked_at_moved_and_removed_not_what_it_leads_to(
    desk: Workspace, room: Path, tmp_path: Path
) -> None:
    before = state(tmp_path)
    link(room, "../outside/file")
    assert (await desk.call("stat", {"path": "link"}))["kind"] == "link"
    await desk.call("move", {"path": "link", "to": "inner/link"})
    assert (room / "inner/link").is_symlink()
    assert await desk.call("delete", {"path": "inner/link"}) is True
    assert state(tmp_path) == before


async def test_links_that_stay_inside_lead_on(desk: Workspace, room: Path) -> None:
    (room / "inner/back").symlink_to("../file")
    (room / "there").symlink_to("inner/../inner")
    assert await desk.call("read", {"path": "there/back"}) == "secret\n"
    assert await desk.call("write", {"path": "there/back", "text": "new"}) == {"path": "file", "bytes": 3}
    assert await desk.call("write", {"path": "there/fresh", "text": "x"}) == {"path": "inner/fresh", "bytes": 1}
    assert (room / "inner/back").is_symlink()


async def test_folders_that_become_links_meanwhile_never_lead_out(desk: Workspace, room: Path, tmp_path: Path) -> None:
    """Another process puts a link in place of a folder, again and again, while files are read and written there."""
    (room / "real").mkdir()
    (room / "real/file").write_text("mine\n")
    (room / "evil").symlink_to("../outside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("real", "evil"):
                (room / name).rename(room / "dir")
                (room / "dir").rename(room / name)

    before = state(tmp_path)
    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[str] = set()
    try:
        for _ in range(150):
            for method in ("read", "edit"):
                try:
                    seen.add(await desk.call(method, {"path": "dir/file", **CALLS[method]}))
                except ToolError as error:
                    seen.add(error.message.split("; there is")[0])
    finally:
        over.set()
        swapping.join()
    assert seen <= {
        "mine\n", "Desk.edit: `dir/file` does not hold the passage",
        *(f"Desk.{method}: {said}" for method in ("read", "edit") for said in (
            "there is no `dir`", "there is no `dir/file`", "`dir` is no folder",
            "`dir/file` leads out of the workspace over a link",
        )),
    }  # fmt: skip
    assert state(tmp_path) == before


def special(room: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(room / "x")
        return
    here = os.open(room, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{here}/x")  # the path of a socket must be short
    os.close(here)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_what_is_no_regular_file_is_refused_and_not_waited_for(desk: Workspace, room: Path, kind: str) -> None:
    special(room, kind)
    for method in ("read", "write", "append", "edit", "move", "delete"):
        with pytest.raises(ToolError, match="`x` is no regular file"):
            await asyncio.wait_for(desk.call(method, {"path": "x", **CALLS[method]}), 5)
    assert await asyncio.wait_for(desk.call("search", {"pattern": "secret"}), 5) != []
    assert (await desk.call("list", {}))[-1]["kind"] == "other"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
async def test_a_device_is_refused(desk: Workspace, room: Path) -> None:
    try:
        os.mknod(room / "x", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    with pytest.raises(ToolError, match="no regular file"):
        await desk.call("read", {"path": "x"})


async def test_appending_to_a_file_with_names_elsewhere_leaves_those(
    desk: Workspace, room: Path, tmp_path: Path
) -> None:
    os.link(tmp_path / "outside/file", room / "shared")
    before = state(tmp_path)
    for method in ("append", "edit", "write"):
        (room / "shared").unlink()
        os.link(tmp_path / "outside/file", room / "shared")
        await desk.call(method, {"path": "shared", **CALLS[method]})
    assert (room / "shared").read_text() == "evil"
    assert state(tmp_path) == before


# --- deny


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".git/hooks/post-commit", ".git", "sub/.git/config", ".GIT/config", ".g\u200cit/config",
        "\uff0egit/config", ".env", ".env.local", "sub/.env", "key.pem", "KEY.PEM", "id.key", ".halo/checkpoints/x",
        ".ssh/config", ".netrc", "private/x", "private/deep/x", "a/b.secret",
    ],
)  # fmt: skip
async def test_what_is_closed_is_neither_read_nor_written(room: Path, path: str) -> None:
    desk = Workspace("Desk", room, write=True, deny=["private", "*.secret"])
    before = names_in(room)
    for method in ("read", "write", "list", "stat", "delete", "mkdir", "move"):
        with pytest.raises(ToolError, match="is closed in this workspace"):
            await desk.call(method, {"path": path, **CALLS[method]})
    with pytest.raises(ToolError, match="is closed in this workspace"):
        await desk.call("move", {"path": "file", "to": path})
    await desk.close()
    assert names_in(room) == before


async def test_what_is_closed_is_not_found_either(room: Path) -> None:
    desk = Workspace("Desk", room, write=True, deny=["private"])
    for name in (".git/config", ".env", "private/x", "inner/.env.example"):
        (room / name).parent.mkdir(exist_ok=True)
        (room / name).write_text("secret\n")
    assert [entry["path"] for entry in await desk.call("list", {})] == ["file", "inner"]
    assert await desk.call("glob", {"pattern": "**"}) == ["file", "inner/.env.example"]
    assert {match["path"] for match in await desk.call("search", {"pattern": "."})} == {"file", "inner/.env.example"}
    (room / "link").symlink_to("private/x")
    for path in ("link", "private"):
        with pytest.raises(ToolError, match="is closed"):
            await desk.call("read", {"path": path})
    await desk.close()


async def test_a_folder_that_holds_what_is_closed_stays_where_it_is(room: Path) -> None:
    desk = Workspace("Desk", room, write=True, deny=["inner/data"])
    (room / "inner/data").write_text("secret\n")
    with pytest.raises(ToolError, match="it holds `inner/data`, which is closed"):
        await desk.call("move", {"path": "inner", "to": "open"})
    await desk.close()


def test_deny_may_open_what_is_closed_by_itself() -> None:
    closed = Closed(["!*.pem", "*.txt"])
    assert [closed.hides((name,)) for name in ("a.pem", "a.txt", ".env")] == [False, True, True]


NAMES = st.text(st.characters(exclude_characters="/\0\\", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_a_path_is_taken_apart_or_refused_but_never_leads_up(names: list[str]) -> None:
    try:
        parts = parse_path("/".join(names))
    except ToolError:
        return
    assert parts == tuple(name for name in names if name != ".")
    assert ".." not in parts


@given(NAMES)
def test_folding_twice_is_folding_once_for_closed_names(name: str) -> None:
    closed = Closed([])
    assert closed.hides((name,)) == closed.hides((folded(name),))

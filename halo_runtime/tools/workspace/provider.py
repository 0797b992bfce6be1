"""`Workspace(root, write, deny)`: the files of one folder, and nothing outside it (spec 5 and 12.5, decision 29).

Who calls may be a model that was talked into something: each path is taken apart, walked without leaving the root,
and checked against what stays closed. Work is done in threads; a cancelled call changes nothing afterwards.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from halo_lang import catalog
from halo_lang.records import record
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.prompts import cut
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.threads import Stop, Workers
from halo_runtime.tools.workspace.edit import lines_of, replace_once
from halo_runtime.tools.workspace.files import append_bytes, encode, exclusive, read_text, write_bytes
from halo_runtime.tools.workspace.moving import move, remove
from halo_runtime.tools.workspace.patching import Patching
from halo_runtime.tools.workspace.paths import Closed, Globs, parse_path, show
from halo_runtime.tools.workspace.root import NothingThereError, Root, entries_of, kind_of
from halo_runtime.tools.workspace.search import MAX_PATHS, Tree, find_lines, find_paths

MAX_READ_CHARS: Final = 1_000_000
"""Longer texts are cut at a line, with a mark that says how to read on."""


@record
class Call:
    """One call at work: its arguments, the open root, and whether somebody still waits."""

    args: JsonObject
    root: Root
    closed: Closed
    stop: Stop


Operation: TypeAlias = Callable[[Call], Json]


class Workspace:
    """One declared workspace. `root` is its folder, `shown` that folder as the declaration has it."""

    def __init__(
        self, name: str, root: Path, *, shown: str = "", write: bool = False, deny: Iterable[str] = ()
    ) -> None:
        self._name = name
        self._root = root
        self._shown = shown or str(root)
        self._write = write
        self._closed = Closed(deny)
        self._workers = Workers(name)

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method of the catalogue. Raises ToolError with a message for people and models."""
        operation = _OPERATIONS.get(method)
        if operation is None:
            raise ToolError(f"{self._name} has no method `{method}`; a workspace has {', '.join(_OPERATIONS)}")
        try:
            if method in _CHANGES and not self._write:
                raise ToolError("the workspace may not be changed; its declaration needs write: true for that")
            return await self._workers.do(lambda stop: self._work(method, operation, args, stop))
        except ToolError as error:
            raise ToolError(f"{self._name}.{method}: {error.message}", retryable=error.retryable) from None
        except OSError as error:
            reason = _REASONS.get(error.errno or 0) or f"{error.strerror} (`{args.get('path', '.')}`)"
            raise ToolError(f"{self._name}.{method}: {reason}") from None

    async def probe(self) -> str:
        """Look at the folder. Raises ToolError."""
        may = "read and changed" if self._write else "read"
        if not self._root.is_dir() and self._write:
            return f"the folder {self._shown} is made by the first change"
        entries: list[Json] = await self.call("list", {})
        return f"the folder {self._shown}, which may be {may}: {len(entries)} entries"

    async def close(self) -> None:
        """End the threads; nothing is kept open between calls."""
        self._workers.close()

    def _work(self, method: str, operation: Operation, args: JsonObject, stop: Stop) -> Json:
        changes = method in _CHANGES
        if not self._root.is_dir():
            if not changes:
                raise ToolError(f"there is no folder {self._shown}; create it, or change the declaration")
            self._make_root()
        with Root.open(self._root, self._closed) as root:
            call = Call(args, root, self._closed, stop)
            if not changes:
                return operation(call)
            with exclusive(root, stop):
                return operation(call)

    def _make_root(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(
                f"the folder {self._shown} cannot be made ({error.strerror}); create it, or change the declaration"
            ) from None


def open_workspace(config: ToolConfig) -> Workspace:
    """The workspace that a declaration describes. Raises ConfigError for what `deny` cannot mean."""
    settings = config.settings
    shown = settings["root"]
    write, deny = settings.get("write") is True, settings.get("deny") or ()
    try:
        return Workspace(config.name, config.folder / shown, shown=shown, write=write, deny=deny)
    except ToolError as error:
        raise ConfigError(f"deny: {error.message}") from None


# --- reading ------------------------------------------------------------------------------------------------


def _read(call: Call) -> Json:
    text = read_text(call.root, parse_path(call.args["path"]), call.stop).raw
    start, end = call.args.get("start"), call.args.get("end")
    return _lines_of(text, int(start or 1), None if end is None else int(end))


def _lines_of(text: str, start: int, end: int | None) -> str:
    """Lines `start` to `end` of a text, both included, and a mark where that is too much."""
    lines = lines_of(text)
    if end is not None and end < start:
        raise ToolError(f"line {end} (end) comes before line {start} (start)")
    if start > max(len(lines), 1):
        raise ToolError(f"the file has only {len(lines)} lines; start is {start}")
    chosen = "".join(lines[start - 1 : end])
    if len(chosen) <= MAX_READ_CHARS:
        return chosen
    size = chosen.rfind("\n", 0, MAX_READ_CHARS) + 1
    if size == 0:  # one line that is longer than all that may be shown
        return cut(chosen, MAX_READ_CHARS)
    following = start + chosen.count("\n", 0, size)
    return f"{chosen[:size]}[… {len(chosen) - size:,} more characters cut; read on with start: {following}]"


def _list(call: Call) -> Json:
    path, glob = call.args.get("path"), call.args.get("glob")
    globs = None if glob is None else Globs([glob])
    found: list[Json] = []
    with call.root.folder(parse_path("." if path is None else path)) as (folder, parts):
        for name, status in entries_of(folder):
            call.stop.check()
            here, kind = (*parts, name), kind_of(status)
            if call.closed.hides_entry(here, folder=kind == "folder") or (globs and not globs.match((name,))):
                continue
            if len(found) == MAX_PATHS:
                note = f"[… more than {MAX_PATHS:,} entries; narrow them with glob:]"
                return [*found, {"path": note, "kind": "note", "size": None}]
            found.append({"path": show(here), "kind": kind, "size": status.st_size if kind == "file" else None})
    return found


def _glob(call: Call) -> Json:
    return find_paths(Tree(call.root, call.closed, call.stop), call.args["pattern"])


def _search(call: Call) -> Json:
    tree = Tree(call.root, call.closed, call.stop)
    return find_lines(tree, call.args["pattern"], call.args.get("glob"), call.stop)


def _stat(call: Call) -> Json:
    try:
        with call.root.at(parse_path(call.args["path"]), follow=False) as spot:
            status = spot.status()
            path = show(spot.parts)
    except NothingThereError:
        return None
    if status is None:
        return None
    modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    kind = kind_of(status)
    return {"path": path, "kind": kind, "size": status.st_size if kind == "file" else None, "modified": modified}


# --- changing -----------------------------------------------------------------------------------------------


def _write(call: Call) -> Json:
    data = encode(call.args["text"])
    with call.root.at(parse_path(call.args["path"]), make=True) as spot:
        write_bytes(spot, data, call.stop)
        return {"path": show(spot.parts), "bytes": len(data)}


def _append(call: Call) -> Json:
    data = encode(call.args["text"])
    with call.root.at(parse_path(call.args["path"]), make=True) as spot:
        append_bytes(spot, data, call.stop)
        return {"path": show(spot.parts), "bytes": len(data)}


def _edit(call: Call) -> Json:
    parts = parse_path(call.args["path"])
    before = read_text(call.root, parts, call.stop)
    text, line = replace_once(before.text, call.args["old"], call.args["new"], show(parts))
    with call.root.at(parts) as spot:
        write_bytes(spot, before.with_text(text).encode(), call.stop)
        return {"path": show(spot.parts), "line": line}


def _move(call: Call) -> Json:
    source, target = parse_path(call.args["path"]), parse_path(call.args["to"])
    return {"path": show(move(call.root, call.closed, source, target, call.stop))}


def _delete(call: Call) -> Json:
    try:
        with call.root.at(parse_path(call.args["path"]), follow=False) as spot:
            return remove(spot)
    except NothingThereError:
        return False


def _mkdir(call: Call) -> Json:
    with call.root.at(parse_path(call.args["path"]), make=True) as spot:
        status = spot.status()
        if status is None:
            os.mkdir(spot.name, dir_fd=spot.folder)
        elif not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"`{show(spot.parts)}` is there already, and no folder")
        return {"path": show(spot.parts)}


def _apply_patch(call: Call) -> Json:
    return [*Patching(call.root, call.stop).apply(call.args["patch"])]


_OPERATIONS: Final[dict[str, Operation]] = {
    "read": _read,
    "write": _write,
    "edit": _edit,
    "append": _append,
    "list": _list,
    "glob": _glob,
    "search": _search,
    "move": _move,
    "delete": _delete,
    "mkdir": _mkdir,
    "stat": _stat,
    "applyPatch": _apply_patch,
}

_SPEC: Final = catalog.provider("Workspace")
assert _SPEC is not None
_CHANGES: Final = frozenset(method.name for method in _SPEC.methods if method.effect != "read")

_REASONS: Final = {
    errno.EACCES: "permission denied; the file or its folder belongs to somebody else, or is protected",
    errno.EPERM: "permission denied; the file or its folder belongs to somebody else, or is protected",
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the file system is read-only",
    errno.EMFILE: "too many files are open; try again",
    errno.ENFILE: "too many files are open; try again",
}

"""`File(path, maxTurns, maxTokens)`: a conversation kept from one call and one run to the next (spec 5).

The file is JSON Lines, one line an exchange, written in one piece under a lock and flushed to the disk:

    {"v": 1, "at": "2026-01-02T03:04:05Z", "id": "…", "turns": [{"role": "user", "text": "…"}, …]}

`id` is there where whoever adds it says it, so that the same exchange is not added twice. A last line that a crash has
torn is passed over, and gone with the next one. A line that cannot be read is an error: nothing is guessed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.threads import Stop, Workers

VERSION: Final = 1
MAX_BYTES: Final = 16 * 1024 * 1024
"""A conversation does not grow beyond this."""
LOCK_SECONDS: Final = 10.0

_ROLES: Final = ("user", "assistant")
_OPEN: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK


@record
class Exchange:
    """What was said in one piece: one turn, or a question and its answer."""

    turns: tuple[JsonObject, ...]
    key: str | None = None

    def to_line(self, at: datetime) -> bytes:
        """The exchange as a line of the file. Raises ToolError for text that no file can hold."""
        document: JsonObject = {"v": VERSION, "at": at.isoformat(timespec="seconds").replace("+00:00", "Z")}
        if self.key is not None:
            document["id"] = self.key
        document["turns"] = list(self.turns)
        try:
            return (json.dumps(document, ensure_ascii=False) + "\n").encode()
        except UnicodeEncodeError:
            raise ToolError("the text is no valid Unicode: it holds half a surrogate pair") from None

    @classmethod
    def from_line(cls, line: bytes) -> Exchange:
        """The inverse of `to_line`. Raises ValueError in words that follow "line 7"."""
        try:
            document: Json = json.loads(line)
        except ValueError:
            raise ValueError("is no JSON") from None
        version = document.get("v") if is_object(document) else None
        if isinstance(version, int) and version > VERSION:
            raise ValueError("was written by a newer version of Halo")
        turns = document.get("turns") if is_object(document) and version == VERSION else None
        if not is_list(turns) or not all(map(_is_turn, turns)):
            raise ValueError("is no exchange")
        key = document.get("id")
        return cls(tuple({"role": turn["role"], "text": turn["text"]} for turn in turns), key)


class Conversation:
    """One declared history. `shown` is the file as the declaration has it. Nothing is open between calls."""

    def __init__(self, name: str, path: Path, shown: str = "") -> None:
        self._name = name
        self._path = path
        self._shown = shown or str(path)
        self._workers = Workers(name)

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do `append`, `read` or `clear`. Raises ToolError."""
        operation = _OPERATIONS.get(method)
        if operation is None:
            raise ToolError(f"{self._name} has no method `{method}`; a File store has {', '.join(_OPERATIONS)}")
        try:
            return await self._workers.do(lambda stop: self._work(operation, args, stop))
        except ToolError as error:
            raise ToolError(f"{self._name}.{method}: {error.message}", retryable=error.retryable) from None
        except OSError as error:
            raise ToolError(f"{self._name}.{method}: {self._explain(error)}") from None

    async def probe(self) -> str:
        """Read the file, if there is one. Raises ToolError."""
        if not self._path.exists() and self._path.parent.is_dir():
            return f"{self._shown} is made when the first turn is kept"
        turns: list[Json] = await self.call("read", {})
        return f"{self._shown}: {len(turns)} turns"

    async def close(self) -> None:
        """End the threads."""
        self._workers.close()

    def _work(self, operation: Operation, args: JsonObject, stop: Stop) -> Json:
        with self._open(create=operation is _append) as descriptor:
            if descriptor is None:
                return operation(None, args, stop, self._shown)
            with _locked(descriptor, stop):
                return operation(descriptor, args, stop, self._shown)

    @contextmanager
    def _open(self, *, create: bool) -> Generator[int | None]:
        """The file; None where there is none. What a conversation holds is for its owner alone."""
        try:
            descriptor = os.open(self._path, _OPEN | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError:
            if create:
                raise
            yield None
            return
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolError(f"{self._shown} is no regular file")
            yield descriptor
        finally:
            os.close(descriptor)

    def _explain(self, error: OSError) -> str:
        reasons = {
            errno.ENOENT: f"the folder of {self._shown} does not exist; create it or change the store's path",
            errno.EISDIR: f"{self._shown} is a folder; change the store's path",
            errno.EACCES: f"{self._shown} may not be read and written; change its permissions or the store's path",
            errno.ENOSPC: "the disk is full; free some space",
        }
        return reasons.get(error.errno or 0) or f"{self._shown} cannot be used: {error.strerror}"


Operation: TypeAlias = Callable[[int | None, JsonObject, Stop, str], Json]


def open_history(config: ToolConfig) -> Conversation:
    """The history that a declaration describes."""
    shown = config.settings["path"]
    return Conversation(config.name, config.folder / shown, shown)


def _append(descriptor: int | None, args: JsonObject, stop: Stop, shown: str) -> Json:
    assert descriptor is not None, "opened so that it is made"
    role, reply, key = args.get("role") or "user", args.get("reply"), args.get("id")
    if reply is not None and role != "user":
        raise ToolError("a reply answers what a user said; leave role: out")
    turns: list[JsonObject] = [{"role": role, "text": args["text"]}]
    if reply is not None:
        turns.append({"role": "assistant", "text": reply})
    known, size = _read_all(descriptor, shown)
    count = sum(len(exchange.turns) for exchange in known)
    if key is not None and any(exchange.key == key for exchange in known):
        return count
    line = Exchange(tuple(turns), key).to_line(datetime.now(UTC))
    if size + len(line) > MAX_BYTES:
        raise ToolError(f"{shown} would grow over {MAX_BYTES >> 20} MB; clear it, or move it away")
    stop.check()
    os.ftruncate(descriptor, size)  # what is left of a line that a crash has torn
    try:
        written = os.write(descriptor, line)
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    return count + len(turns)


def _read(descriptor: int | None, args: JsonObject, stop: Stop, shown: str) -> Json:
    exchanges = [] if descriptor is None else _read_all(descriptor, shown)[0]
    turns = [
        _told(turn, exchange.key if args.get("ids") else None) for exchange in exchanges for turn in exchange.turns
    ]
    limit = args.get("limit")
    return turns if limit is None else turns[-int(limit) :]


def _told(turn: JsonObject, key: str | None) -> JsonObject:
    return turn if key is None else {**turn, "id": key}


def _clear(descriptor: int | None, args: JsonObject, stop: Stop, shown: str) -> Json:
    if descriptor is not None:
        stop.check()
        os.ftruncate(descriptor, 0)
        os.fsync(descriptor)


_OPERATIONS: Final[dict[str, Operation]] = {"append": _append, "read": _read, "clear": _clear}


def _read_all(descriptor: int, shown: str) -> tuple[list[Exchange], int]:
    """All exchanges, and where the last whole line ends. Raises ToolError for a line that is none."""
    size = os.fstat(descriptor).st_size
    if size > MAX_BYTES:
        raise ToolError(f"{shown} is larger than {MAX_BYTES >> 20} MB; move it away")
    data = os.pread(descriptor, size, 0)
    whole = data.rfind(b"\n") + 1
    exchanges: list[Exchange] = []
    for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
        try:
            exchanges.append(Exchange.from_line(line))
        except ValueError as problem:
            raise ToolError(f"line {number} of {shown} {problem}; mend the line, or move the file away") from None
    return exchanges, whole


@contextmanager
def _locked(descriptor: int, stop: Stop) -> Generator[None]:
    """Hold the file against other calls, runs and processes. Raises ToolError."""
    waited = 0.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if waited > LOCK_SECONDS:
                raise ToolError("another process holds the file; try again", retryable=True) from None
        stop.wait(0.005)
        waited += 0.005
    stop.check()
    yield  # the lock goes when the file is closed


def _is_turn(turn: Json) -> bool:
    return is_object(turn) and turn.get("role") in _ROLES and isinstance(turn.get("text"), str)

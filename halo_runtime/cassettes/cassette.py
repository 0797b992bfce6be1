"""A cassette in use: it records exchanges with models and tools, or answers in their place, or both.

An exchange is known by what was asked; of equal ones the one at the same place of the program answers, else the next
that has not been used. Answers come in the order in which they came when they were recorded.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from pathlib import Path

from halo_lang.records import record
from halo_runtime.cassettes import format as form
from halo_runtime.cassettes.file import CassetteFile, content_of
from halo_runtime.cassettes.format import ERRORS, Entry, Exchange, Kind, Outcome
from halo_runtime.cassettes.misses import why
from halo_runtime.engine.journal import error_from_record, error_to_record
from halo_runtime.engine.replay import PATIENCE, ReplayOrder
from halo_runtime.errors import ConfigError, ReplayMiss, ServiceError, TimeoutExceeded
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.base import OnDelta
from halo_runtime.redaction import Redactor


@record
class Asked:
    """A request as the engine is about to send it: by which run, at which structural path, and what it says."""

    run: str
    path: str
    kind: Kind
    request: JsonObject


class Cassette:
    """A file of exchanges, made by `record` or `replay`; a Runtime uses it for all its runs.

    `answers`: it gives what it has, so that no key is needed for that. `offline`: nothing else leaves the machine.
    """

    def __init__(self, path: Path, *, answers: bool, live: bool, anew: bool) -> None:
        self.path = path
        self.offline = not live
        self.answers = answers
        self._anew = anew
        self._file: CassetteFile | None = None
        self._own = False
        """Whether this object has had the file open before."""
        self._begun = False
        """Whether the file has its header, so that lines can be added."""
        there = answers and (self.offline or path.exists())
        self._library = _Library(form.read(content_of(path), str(path)).current() if there else [])
        self._written: set[tuple[str, str]] = set()
        """Run and path of each exchange that the file has been given."""
        self._broken_off: dict[str, list[Exchange]] = {}
        self._seq = 0
        self._redactor = Redactor()

    @classmethod
    def record(cls, path: str | Path, *, anew: bool = True) -> Cassette:
        """Keep every exchange in a file. A cassette that is there is replaced; one of the same run goes on.

        `anew` False: the recording of another run is refused with ConfigError when a run begins, and not replaced.
        """
        return cls(Path(path), answers=False, live=True, anew=anew)

    @classmethod
    def replay(cls, path: str | Path, *, else_live: bool = False) -> Cassette:
        """Answer from a file, with ReplayMiss for what it does not have. Raises ConfigError where it cannot be read.

        `else_live`: what it does not have is asked, and added to the file, which is begun where there is none.
        """
        return cls(Path(path), answers=True, live=else_live, anew=False)

    # --- the engine's side --------------------------------------------------------------------------------------

    def begin(self, run: str, redactor: Redactor) -> None:
        """A run is about to begin or to go on. Raises ConfigError where it could not be recorded; nothing is sent."""
        self._redactor = redactor
        if not self.offline and self._file is None:
            self._open(run)

    async def exchange(self, asked: Asked, live: Callable[[], Awaitable[Json]], hear: OnDelta | None) -> Json:
        """The result of a request: recorded, or that of `live`, which is recorded then.

        `hear` gets the text of a model's recorded reply as if it streamed. Raises what the exchange raised, ReplayMiss,
        and StoreError where it cannot be recorded.
        """
        key = self._key(asked)
        entry = self._library.take(key, asked) if self.answers else None
        if entry is not None and await self._library.came(entry, asked):
            return self._played(entry, hear)
        if self.offline:
            raise self._miss(asked, key, entry)
        return await self._recorded(asked, live)

    async def all_under(self, run: str, path: str) -> None:
        """Wait until the recorded exchanges under `path` have had their turn in a run."""
        await self._library.all_under(run, path)

    def heard(self, asked: Asked, outcome: Outcome, result: Json) -> None:
        """An exchange whose result a journal gave: it is as if it had been made here. Raises StoreError."""
        if outcome == "failed" and result["type"] not in ERRORS:
            return
        if outcome == "cancelled" or (asked.run, asked.path) in self._written:
            return
        if self.answers:
            self._library.take(self._key(asked), asked, exact=True)
        else:
            self._write(self._made(asked, outcome, _without_cursor(result)))

    def end(self, run: str, *, stopped: bool) -> None:
        """A run has ended or paused. What was broken off is kept with it, but not where the run was `stopped`:

        it is asked again then when the run goes on. Raises StoreError.
        """
        for exchange in self._broken_off.pop(run, []):
            if not stopped:
                self._write(exchange)
        if self._file is not None and not self._file.content and not self._begun:
            self._begin_file()

    def close(self) -> None:
        """Give the file up."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # --- recording ----------------------------------------------------------------------------------------------

    async def _recorded(self, asked: Asked, live: Callable[[], Awaitable[Json]]) -> Json:
        try:
            result = await live()
        except asyncio.CancelledError:
            self._broken_off.setdefault(asked.run, []).append(self._made(asked, "cancelled", None))
            raise
        except (ServiceError, TimeoutExceeded) as error:
            self._write(self._made(asked, "failed", _without_cursor(error_to_record(error))))
            raise
        self._write(self._made(asked, "done", _without_cursor(result)))
        return result

    def _made(self, asked: Asked, outcome: Outcome, result: Json) -> Exchange:
        self._seq += 1
        clean = self._redactor.json
        return Exchange(asked.run, self._seq, asked.path, asked.kind, clean(asked.request), outcome, clean(result))

    def _write(self, exchange: Exchange) -> None:
        if not self._begun:
            self._begin_file()
        assert self._file is not None, "begin comes before the first exchange"
        self._file.add(exchange.line())
        self._written.add((exchange.run, exchange.path))

    def _open(self, run: str) -> None:
        """Open the file for what is to come, which changes nothing in it yet."""
        file = CassetteFile(self.path)
        try:
            self._begun = self._goes_on(file, run)
        except BaseException:
            file.close()
            raise
        self._file, self._own = file, True

    def _goes_on(self, file: CassetteFile, run: str) -> bool:
        """Whether the file is to be added to; else it is begun anew with the first line."""
        if not file.content:
            return False
        if not form.is_cassette(file.content):
            raise ConfigError(f"{self.path} is no cassette, and is not written over; name another file")
        contents = form.read(file.content, str(self.path))
        runs = {entry.run for entry in contents.entries}
        if not (self.answers or self._own or run in runs):
            if runs and not self._anew:
                raise ConfigError(
                    f"{self.path} holds another run by now, and is not written over; "
                    "name a file for this one: --record FILE"
                )
            return False
        if not self.answers:
            self._written = {(entry.run, entry.path) for entry in contents.entries if entry.outcome != "cancelled"}
        self._seq = max((entry.seq for entry in contents.entries), default=0)
        file.cut(contents.sound)
        if not file.content[: contents.sound].endswith(b"\n"):
            file.add(b"\n")
        return True

    def _begin_file(self) -> None:
        assert self._file is not None, "begin comes before the first exchange"
        self._file.cut(0)
        self._file.add(form.header())
        self._begun = True

    # --- answering ----------------------------------------------------------------------------------------------

    def _key(self, asked: Asked) -> str:
        return form.identity(asked.kind, self._redactor.json(asked.request))

    def _played(self, entry: Entry, hear: OnDelta | None) -> Json:
        exchange = entry.exchange()
        if exchange.outcome == "failed":
            error = error_from_record(exchange.result)
            if self._library.has(entry.run, _next_try(entry.path)):
                error.retry_after = 0.0  # who waited for the service need not wait for the file
            elif self.offline and isinstance(error, ServiceError):
                error.retryable = False  # it was not tried again, for want of time or of `@retry`
            raise error
        if hear is not None and exchange.kind == "model" and exchange.result["reply"]["text"]:
            hear(exchange.result["reply"]["text"])
        return exchange.result

    def _miss(self, asked: Asked, key: str, broken_off: Entry | None) -> ReplayMiss:
        if broken_off is not None:
            reason = f"{broken_off.name}: it was broken off when {self.path} was recorded, so there is no answer"
        else:
            request, same = self._redactor.json(asked.request), self._library.count(key)
            reason = why(asked.kind, request, same, self._library.entries, str(self.path))
        error = ReplayMiss(reason)
        error.hint = f"record the run again with --record, or ask what is missing with --replay-else-live {self.path}"
        return error


class _Library:
    """The recorded exchanges, each to be given once."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self._unused: defaultdict[str, dict[str, deque[Entry]]] = defaultdict(dict)
        """Those of each key, by path, in the order in which the paths stand in the program."""
        for entry in sorted(entries, key=_structural):
            self._unused[entry.key].setdefault(entry.path, deque()).append(entry)
        self._places = {(entry.run, entry.path) for entry in entries}
        self._given: set[tuple[str, str]] = set()
        """Runs and paths that have had their answer, so that one which a journal gives again counts once."""
        self._orders: dict[tuple[str, str], ReplayOrder] = {}
        self._came = 0

    def count(self, key: str) -> int:
        """How many exchanges there are of a request."""
        return sum(entry.key == key for entry in self.entries)

    def has(self, run: str, path: str) -> bool:
        """Whether a recorded run had an exchange at a path."""
        return (run, path) in self._places

    def take(self, key: str, asked: Asked, *, exact: bool = False) -> Entry | None:
        """The answer to a request, which is used up then: that of the same path, else, unless `exact`, the next."""
        unused, place = self._unused[key], (asked.run, asked.path)
        path = asked.path if asked.path in unused else next(iter(unused), None)
        if path is None or (exact and (path != asked.path or place in self._given)):
            return None
        self._given.add(place)
        entry = unused[path].popleft()
        if not unused[path]:
            del unused[path]
        return entry

    async def came(self, entry: Entry, asked: Asked) -> bool:
        """Wait until an answer may come; False for one that was broken off, unless it is broken off again meanwhile."""
        recorded = (asked.run, entry.run)
        if recorded not in self._orders:
            self._orders[recorded] = ReplayOrder([other for other in self.entries if other.run == entry.run])
        await self._orders[recorded].turn(entry.path)
        self._came += 1
        idle = 0
        while entry.outcome == "cancelled" and idle < PATIENCE:
            before = self._came
            await asyncio.sleep(0)
            idle = idle + 1 if self._came == before else 0
        return entry.outcome != "cancelled"

    async def all_under(self, run: str, path: str) -> None:
        """Wait until the exchanges under `path` have come, of each recorded run that answers this one."""
        for (asking, _), order in tuple(self._orders.items()):
            if asking == run:
                await order.all_under(path)


def _structural(entry: Entry) -> list[tuple[int, str]]:
    """Sorts paths as their places stand in the program: `Main/2` before `Main/10`."""
    parts = re.split(r"([0-9]+)", entry.path)
    return [(int(part), "") if number % 2 else (0, part) for number, part in enumerate(parts)]


def _next_try(path: str) -> str:
    """The path of the try that follows the one at `path` (see engine/attempts.py); a tool's first has no number."""
    base, _, number = path.rpartition("/try")
    return f"{base}/try{int(number) + 1}" if number.isdecimal() else f"{path}/try2"


def _without_cursor(result: Json) -> Json:
    """A result or error without a scripted model's note of where it stood: it means nothing to a cassette."""
    if "reply" in result:
        return {**result, "reply": {**result["reply"], "cursor": None}}
    return {**result, "cursor": None} if "cursor" in result else result

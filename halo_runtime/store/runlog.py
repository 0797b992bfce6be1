"""One run being written down: the engine tells what happens, the lines of its journal come of it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from halo_runtime.engine.journal import EffectRecord, StageEntry
from halo_runtime.engine.trace import label_text
from halo_runtime.errors import StoreError
from halo_runtime.json_types import JsonObject
from halo_runtime.redaction import Redactor
from halo_runtime.store.atomic import make_folder, publish, sync_folder
from halo_runtime.store.blobs import LARGEST_INLINE, Blobs
from halo_runtime.store.format import Sealer
from halo_runtime.store.locks import Lock

_SETTLED_WITHIN: Final = 0.02
"""Seconds of effects that a power cut may take from a run that asks for certainty; a kill takes nothing."""

_OUTSIDE: Final = ("model", "tool", "human", "event")


class RunLog:
    """A Recorder that writes a journal file; it has the claim on it.

    A new run's lines stay in memory until `keep` is called, if it ever is: a run that neither pauses nor asks for
    checkpoints leaves no file. `fingerprint(pipeline, index)` is that of a stage. `durable`: each stage is flushed to
    the disk. `taken` is told the id of each message whose answer is kept. All that is written goes through the
    redactor. Raises StoreError where a line cannot be written; the file is as it was then.
    """

    def __init__(
        self,
        path: Path,
        redactor: Redactor,
        fingerprint: Callable[[str, int], str | None],
        *,
        durable: bool,
        taken: Callable[[str], None],
    ) -> None:
        self.path = path
        self.lock: Lock | None = None
        self.header: JsonObject = {}
        """The journal's first line, once it is written."""
        self._redactor = redactor
        self._fingerprint = fingerprint
        self._durable = durable
        self._taken = taken
        self._blobs = Blobs(path.parent / "blobs")
        self._sealer = Sealer()
        self._file: int | None = None
        self._size = 0
        self._waiting: list[Callable[[], JsonObject]] = []
        self._hashes: list[str] = []
        self._reached = -1
        self._settled = 0.0
        self._dirty = False

    # --- opening and closing ------------------------------------------------------------------------------------

    def keep(self) -> None:
        """From now on every line is on disk, those before included. A kill meanwhile leaves no journal."""
        if self._file is not None:
            return
        hidden = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            self._begin(hidden)
            publish(hidden, self.path)
        except OSError as failure:
            self._give_up(hidden)
            raise self._failed(failure) from None
        except BaseException:
            self._give_up(hidden)
            raise
        self._waiting.clear()
        if self._durable:
            sync_folder(self.path.parent)

    def _begin(self, hidden: Path) -> None:
        """Write what there is to a new file that nobody sees yet, and take the claim on it."""
        make_folder(hidden.parent)
        self._file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.lock = Lock.take(hidden)
        for make in self._waiting:
            self._write(make())
        if self._durable:
            self.sync()

    def _give_up(self, hidden: Path) -> None:
        """Be as before `keep`."""
        self.close()
        with suppress(OSError):
            hidden.unlink()
        self._sealer, self._size = Sealer(), 0

    def go_on(self, lock: Lock, header: JsonObject, size: int, last_sum: str, hashes: list[str]) -> None:
        """Write behind the first `size` bytes of an existing file, whose trace has the entries of `hashes`."""
        self.lock, self.header = lock, header
        self._sealer.previous, self._size, self._hashes = last_sum, size, hashes
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.ftruncate(self._file, size)  # half a line that a crash has left
        except OSError as failure:
            raise self._failed(failure) from None

    @property
    def kept(self) -> bool:
        """Whether there is a file."""
        return self._file is not None

    @property
    def stages(self) -> int:
        """How many stages are in the trace."""
        return len(self._hashes)

    @property
    def last_sum(self) -> str:
        """The sum of the last line."""
        return self._sealer.previous

    @property
    def caught_up(self) -> bool:
        """Whether the run has come as far as its journal, so that how it stopped is news."""
        return self._reached + 1 >= len(self._hashes)

    def close(self) -> None:
        """Give the file and the claim on it up."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self.lock is not None:
            self.lock.release()

    # --- what the engine tells ----------------------------------------------------------------------------------

    def effect(self, record: EffectRecord) -> None:
        """An effect has ended."""
        self.note("effect", record.to_json)
        if record.answer is not None and "signal" in record.answer:
            self.sync()
            self._taken(record.answer["signal"])
        if record.kind in _OUTSIDE and time.monotonic() - self._settled > _SETTLED_WITHIN:
            self.settle()

    def begun(self, path: str) -> None:
        """An effect that must not happen twice is about to begin."""
        self.note("begun", lambda: {"path": path})
        self.sync()

    def booked(self, path: str, charge: JsonObject) -> None:
        """A call that budgets hold is about to begin. A kill does not take this; a power cut may."""
        self.note("booked", lambda: {"path": path, "charge": charge})

    def asked(self, question: JsonObject) -> None:
        """A question is put to somebody."""
        self.note("asked", lambda: question)

    def stage(self, entry: StageEntry, news: JsonObject) -> None:
        """A stage execution has entered the trace. One that stands in the file already must be the same."""
        place = self._reached = entry.seq - 1
        if place < len(self._hashes):
            if self._hashes[place] != entry.hash:
                raise StoreError(
                    f"{self.path}: entry {entry.seq} of the trace comes out otherwise than it stands there"
                )
            return
        self._hashes.append(entry.hash)
        self.note("stage", lambda: self._stage(entry, news))

    def settle(self) -> None:
        """A stage is over."""
        if self._durable and self._dirty:
            self.sync()

    # --- lines --------------------------------------------------------------------------------------------------

    def note(self, kind: str, make: Callable[[], JsonObject]) -> None:
        """Add a line; `make` gives the document, without its kind, when it is needed."""
        if self._file is None:
            self._waiting.append(lambda: {"t": kind, **make()})
        else:
            self._write({"t": kind, **make()})

    def sync(self) -> None:
        """Have everything on the disk before this returns."""
        if self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as failure:
                raise self._failed(failure) from None
        self._settled, self._dirty = time.monotonic(), False

    def _write(self, document: JsonObject) -> None:
        assert self._file is not None, "there is a file"
        previous = self._sealer.previous
        shown = self._redactor.json(document)
        self._redactor.settle()
        if document["t"] == "run":
            self.header = shown
        try:
            line = self._line(shown)
            view = memoryview(line)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as failure:
            self._sealer.previous = previous
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise self._failed(failure) from None
        self._size += len(line)
        self._dirty = True

    def _line(self, document: JsonObject) -> bytes:
        previous = self._sealer.previous
        line = self._sealer.line(document)
        if len(line) <= LARGEST_INLINE:
            return line
        self._sealer.previous = previous
        return self._sealer.line(self._blobs.put_large(document))

    def _stage(self, entry: StageEntry, news: JsonObject) -> JsonObject:
        step = entry.step
        document: JsonObject = {
            "seq": entry.seq,
            "path": entry.path,
            "kind": entry.kind,
            "stage": label_text(entry.label),
            "input_sha256": entry.input_sha256,
            "output_sha256": entry.output_sha256,
            "hash": entry.hash,
            "line": step.info.place.line,
            "frame": step.frame,
            "fingerprint": self._fingerprint(step.pipeline, step.info.index),
            "current": step.current,
        }
        if step.stored:
            document["stored"] = dict(step.stored)
        if step.info.index == 0 and entry.kind != "item":  # its items would repeat what the whole stage was given
            document["arguments"] = step.arguments
        return document | {"news": news} if news else document

    def _failed(self, failure: OSError) -> StoreError:
        return StoreError(
            f"the journal {self.path} cannot be written: {failure.strerror}; make room, or give it another place"
        )

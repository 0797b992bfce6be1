"""The runs of a project in its `.halo` folder (spec 3.1, 3.3).

checkpoints/<run id>.jsonl   a journal each, the only truth; large values beside them in checkpoints/blobs
index.db                     what a listing shows, and the seals of ended runs
live/<run id>.json           who is at work now
mail/<run id>/               answers and events left for a run
vault/<run id>.json          what is kept out of a journal, while its run can go on (see policies/edge.py)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from halo_lang.collector import without_collector
from halo_lang.records import record
from halo_runtime.errors import RunBusy, StoreError, UnknownRun
from halo_runtime.json_types import JsonObject
from halo_runtime.redaction import Redactor
from halo_runtime.store.atomic import remove_leftovers, write_atomically
from halo_runtime.store.blobs import Blobs, names_in, remove_unused
from halo_runtime.store.format import Reading, read_lines
from halo_runtime.store.index import Index, Seal, Summary
from halo_runtime.store.live import LiveRuns
from halo_runtime.store.locks import Lock, is_claimed
from halo_runtime.store.mail import Mailbox
from halo_runtime.store.runlog import RunLog
from halo_runtime.store.stored import StoredRun, meta_of
from halo_runtime.store.vaults import VaultFile
from halo_runtime.values import text_of

_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PATIENCE_SECONDS: Final = 2.0
"""How long a claim waits for another process that is about to finish."""
_WAITING: Final = ("paused", "interrupted")
_FIRST_LINE: Final = b'{"t":"run",'
_YOUNG_SECONDS: Final = 3600.0
_PREVIEWED: Final = 60
"""Characters of a run's input that a listing has."""


@record
class Claim:
    """A run that this process may go on with, and nobody else until `lock` is released."""

    stored: StoredRun
    lock: Lock


class FileRunStore:
    """The runs in `root`, the project's `.halo` folder. Nothing is made there before something is to be kept.

    `flush`: journals of `@checkpoint` pipelines are flushed to the disk at each stage; without it a power cut may take
    the last stages, a kill may not. `within` is what this process is, where it must not be ended with a run (see
    `halo stop`).
    """

    def __init__(self, root: str | Path, *, flush: bool = True, within: str | None = None) -> None:
        self.root = Path(root)
        self.folder = self.root / "checkpoints"
        self.live = LiveRuns(self.root / "live", within)
        self._flush = flush
        self._index = Index(self.root / "index.db")

    # --- writing ------------------------------------------------------------------------------------------------

    def new_log(self, run_id: str, redactor: Redactor, fingerprint: Callable[[str, int], str | None]) -> RunLog:
        """A log for a new run. It leaves no file before it is told to `keep`. Raises ValueError for what is no id."""
        if not _RUN_ID.fullmatch(run_id):
            raise ValueError(f"{run_id!r} is no run id: letters, digits, `.`, `_` and `-`, a letter or digit first")
        return RunLog(self._path(run_id), redactor, fingerprint, durable=self._flush, taken=self.mail(run_id).discard)

    def go_on(self, claim: Claim, redactor: Redactor, fingerprint: Callable[[str, int], str | None]) -> RunLog:
        """A log that goes on with a claimed run's journal."""
        stored = claim.stored
        taken = self.mail(stored.run_id).discard
        for entry in stored.records:  # a kill may have come between an answer's being kept and its mail's deletion
            if entry.answer is not None and "signal" in entry.answer:
                taken(entry.answer["signal"])
        log = RunLog(stored.path, redactor, fingerprint, durable=self._flush, taken=taken)
        hashes = [document["hash"] for document in stored.stages]
        log.go_on(claim.lock, stored.header, stored.reading.good, stored.reading.last_sum, hashes)
        return log

    def closed(self, log: RunLog, closing: JsonObject) -> None:
        """Keep in the index how a run stopped, whose log has all of it; of a journal that lies elsewhere nothing."""
        if log.path.parent.resolve() != self.folder.resolve():
            return
        run_id = log.path.stem
        seal = Seal(closing["status"], closing["entries"], closing["head"], log.last_sum)
        lines: list[tuple[str, Summary]] = []
        if closing["status"] != "interrupted":  # which questions that one leaves open, its journal says
            status = log.path.stat()
            lines.append(
                (run_id, Summary(status.st_size, status.st_mtime_ns, _line(log.header, closing, closing, log.stages)))
            )
        self._index.put(lines, (run_id, seal))

    def mail(self, run_id: str) -> Mailbox:
        """What was left for a run."""
        return Mailbox(self.root / "mail" / run_id)

    def vault(self, run_id: str) -> VaultFile:
        """What is kept apart from a run's journal."""
        return VaultFile(self.root / "vault" / f"{run_id}.json")

    # --- reading ------------------------------------------------------------------------------------------------

    def load(self, reference: str) -> StoredRun:
        """The run of an id or of a journal's path. Raises UnknownRun, StoreError for what is no intact journal."""
        path, reading = self.read(reference)
        if reading.broken_line is not None or not reading.documents:
            raise _damaged(path, reading)
        return StoredRun(path, reading, claimed=is_claimed(path))

    def read(self, reference: str) -> tuple[Path, Reading]:
        """A journal as far as it is intact, its large values in place. Raises UnknownRun, StoreError."""
        path = self._find(reference)
        try:
            data = path.read_bytes()
            with without_collector():
                reading = _with_blobs(read_lines(data), Blobs(path.parent / "blobs"))
        except FileNotFoundError:
            raise UnknownRun(f"there is no run {reference} in {self.folder}") from None
        except OSError as failure:
            raise StoreError(f"{path} cannot be read: {failure.strerror}") from None
        except StoreError as problem:
            raise StoreError(f"{path}: {problem.message}") from None
        if not data.startswith(_FIRST_LINE):
            raise StoreError(f"{path} is no journal of a run")
        return path, reading

    def stamp(self) -> tuple[int, ...]:
        """Another one when a run began, stopped or was removed since, at the cost of a few looks at the folder."""
        places = (self.folder, self.root / "index.db", self.root / "live")
        return tuple(map(_modified, places))

    def claim(self, reference: str) -> Claim:
        """Take a run to go on with it. Raises RunBusy with who has it, UnknownRun, StoreError."""
        lock = self._taken(self._find(reference), reference)
        try:
            stored = self.load(reference)
        except BaseException:
            lock.release()
            raise
        return Claim(StoredRun(stored.path, stored.reading), lock)

    def _taken(self, path: Path, reference: str) -> Lock:
        try:
            lock = Lock.take(path, patience=_PATIENCE_SECONDS)
        except FileNotFoundError:
            raise UnknownRun(f"there is no run {reference} in {self.folder}") from None
        except OSError as failure:
            raise StoreError(f"{path} cannot be claimed: {failure.strerror}") from None
        if lock is None:
            raise self.busy(path.stem)
        return lock

    def busy(self, run_id: str) -> RunBusy:
        """The error that names who is at work on a run."""
        live = self.live.find(run_id)
        process = live.process if live is not None else None
        who = f"process {process.pid} on {process.host}" if process is not None else "another process"
        return RunBusy(f"{who} is at work on the run {run_id}; wait for it, or stop it with: halo stop {run_id}")

    def seal(self, run_id: str) -> Seal | None:
        """What a run said of its journal when it stopped."""
        return self._index.seal(run_id)

    # --- all runs -----------------------------------------------------------------------------------------------

    def runs(self, now: datetime) -> list[JsonObject]:
        """A line for each run in the shape of spec 12.6, the latest first; an unreadable one is `damaged`."""
        known = self._index.summaries()
        fresh: list[tuple[str, Summary]] = []
        found: list[JsonObject] = []
        for run_id, size, mtime in self._journals():
            summary = known.get(run_id)
            if summary is None or (summary.size, summary.mtime) != (size, mtime):
                summary = self._look(run_id, size, mtime)
                fresh.append((run_id, summary))
            found.append(self._as_of(summary.document, now))
        if fresh:
            self._index.put(fresh)
        return sorted(found, key=lambda line: line["runId"], reverse=True)

    def open_interrupts(self, now: datetime) -> list[JsonObject]:
        """The open questions of all paused runs (spec 12.6), those that expire first at the top, then the oldest.

        A run that broke off at a question waits for its answer too. `left` says who has left an answer and when, for a
        question that gets it when its run goes on.
        """
        waiting = [line["runId"] for line in self.runs(now) if line["status"] in _WAITING and line["interrupts"]]
        found: list[JsonObject] = []
        for run_id in waiting:
            try:
                stored = self.load(run_id)
            except StoreError:  # one that was damaged since keeps nobody from the others
                continue
            about = {"runId": run_id, "pipeline": stored.pipeline}
            box = list(self.mail(run_id))
            for question in stored.questions:
                if not question.is_late(now):
                    first = next((message for message in box if message.suits(question)), None)
                    left = {} if first is None else {"left": {"by": first.by, "at": first.at}}
                    found.append({**question.to_json(), **about, **left})
        return sorted(found, key=lambda one: (one["expiresAt"] or "9", one["askedAt"] or ""))

    def _journals(self) -> Iterable[tuple[str, int, int]]:
        """Run id, size and time of every journal."""
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl") and (status := _status(entry)) is not None:
                        yield entry.name.removesuffix(".jsonl"), status.st_size, status.st_mtime_ns
        except OSError:
            return

    def _look(self, run_id: str, size: int, mtime: int) -> Summary:
        try:
            return Summary(size, mtime, _summary(self.load(str(self._path(run_id)))))
        except (StoreError, KeyError, TypeError, ValueError) as problem:
            reason = problem.message if isinstance(problem, StoreError) else f"{type(problem).__name__}: {problem}"
            return Summary(size, mtime, {**_UNKNOWN, "runId": run_id, "status": "damaged", "problem": reason})

    def _as_of(self, line: JsonObject, now: datetime) -> JsonObject:
        """A kept line as it is now: a run without an end is running or interrupted, a late one has failed."""
        shown = {name: value for name, value in line.items() if name != "expiresAt"}
        if line["status"] == "open":
            at_work = self.live.find(line["runId"]) is not None or is_claimed(self._path(line["runId"]))
            shown["status"] = "running" if at_work else "interrupted"
        elif line["status"] == "paused" and line["expiresAt"] and datetime.fromisoformat(line["expiresAt"]) <= now:
            shown |= {"status": "failed", "interrupts": 0}
        return shown

    # --- keeping house ------------------------------------------------------------------------------------------

    def repair(self, reference: str) -> tuple[Path, int, int]:
        """Keep the intact beginning of a damaged journal: its path, and how many lines are kept and left out.

        The damaged file stays beside it as `.damaged`. Raises as `claim` does.
        """
        claim = self._taken(self._find(reference), reference)
        try:
            path, reading = self.read(reference)
            if not reading.documents:
                raise _damaged(path, reading)
            lines = path.read_bytes().splitlines(keepends=True)
            kept = len(reading.documents)
            if lines[kept:]:
                write_atomically(path.with_name(f"{path.name}.damaged"), b"".join(lines), durable=True)
                write_atomically(path, b"".join(lines[:kept]), durable=True)
        except OSError as failure:
            raise StoreError(f"{reference} cannot be repaired: {failure.strerror}") from None
        finally:
            claim.release()
        return path, kept, len(lines) - kept

    def remove(self, run_ids: Iterable[str], now: datetime) -> list[str]:
        """Delete runs with all that is theirs; those at work are left. The ids that are gone. Raises StoreError."""
        try:
            gone = [run_id for run_id in run_ids if self._removed(run_id)]
            young = now.timestamp() - _YOUNG_SECONDS
            remove_leftovers(self.folder, "*.jsonl", young)
            if gone:
                self._index.forget(gone)
                used = {name for path in self.folder.glob("*.jsonl*") for name in names_in(path.read_bytes())}
                remove_unused(self.folder / "blobs", used, young)
        except OSError as failure:
            raise StoreError(f"{failure.filename} cannot be deleted: {failure.strerror}") from None
        return gone

    def _removed(self, run_id: str) -> bool:
        path = self._path(run_id)
        try:
            lock = Lock.take(path)
        except FileNotFoundError:
            return False
        if lock is None:
            return False
        try:
            path.unlink()
            path.with_name(f"{path.name}.damaged").unlink(missing_ok=True)
            self.mail(run_id).remove()
            self.vault(run_id).remove()
        finally:
            lock.release()
        return True

    def _path(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.jsonl"

    def _find(self, reference: str) -> Path:
        if reference.endswith(".jsonl") or "/" in reference:
            return Path(reference)
        if _RUN_ID.fullmatch(reference) and _is_file(self._path(reference)):
            return self._path(reference)
        if _is_file(Path(reference)):
            return Path(reference)
        if not _RUN_ID.fullmatch(reference):
            raise UnknownRun(f"{reference!r} is no run id and no path of a journal")
        return self._path(reference)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be looked into
        return False


def _with_blobs(reading: Reading, blobs: Blobs) -> Reading:
    """A journal with its large values in place, up to the first line of which one is missing or was changed."""
    documents: list[JsonObject] = []
    for document in reading.documents:
        try:
            documents.append(blobs.restore(dict(document)) if "blobs" in document else document)
        except StoreError as problem:
            line = len(documents) + 1
            return replace(reading, documents=tuple(documents), broken_line=line, reason=problem.message)
    return replace(reading, documents=tuple(documents))


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """None for a file that was removed since the folder was read."""
    try:
        return entry.stat()
    except FileNotFoundError:
        return None


_UNKNOWN: Final[JsonObject] = {
    "pipeline": None, "file": None, "startedAt": None, "updatedAt": None, "cost": None, "tokens": None,
    "parent": None, "forkedAt": None, "interrupts": 0, "expiresAt": None, "stages": 0, "inputPreview": "",
}  # fmt: skip


def _summary(stored: StoredRun) -> JsonObject:
    """A run's line in a listing, from its journal."""
    figures = stored.closing or meta_of(document.get("news", {}) for document in stored.stages)
    line = _line(stored.header, stored.closing, figures, len(stored.stages))
    return line | {"interrupts": len(stored.questions)}


def _line(header: JsonObject, closing: JsonObject | None, figures: JsonObject, stages: int) -> JsonObject:
    """A run's line in a listing. `status` is `open` where the journal has no end."""
    interrupts: list[JsonObject] = []
    if closing is not None and closing["status"] == "paused":
        interrupts = closing["interrupts"]
    dates: list[str] = [question["expiresAt"] for question in interrupts if question["expiresAt"]]
    return {
        "runId": header["runId"],
        "status": "open" if closing is None else closing["status"],
        "pipeline": header["pipeline"],
        "file": header["file"],
        "startedAt": header["startedAt"],
        "updatedAt": header["startedAt"] if closing is None else closing["at"],
        "cost": figures["cost"],
        "tokens": figures["tokens"],
        "parent": header["parent"],
        "forkedAt": header["forkedAt"],
        "interrupts": len(interrupts),
        "expiresAt": min(dates, default=None),
        "stages": stages,
        "inputPreview": _preview(header["input"]),
    }


def _preview(arguments: JsonObject) -> str:
    """The beginning of what a run was given, to tell it from others of the same pipeline."""
    text = ", ".join(f"{name}={text_of(value)[:_PREVIEWED]}" for name, value in arguments.items())
    return text if len(text) <= _PREVIEWED else f"{text[:_PREVIEWED]}…"


def _modified(path: Path) -> int:
    """When a file or folder was changed, in nanoseconds; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _damaged(path: Path, reading: Reading) -> StoreError:
    line, reason = reading.broken_line or 1, reading.reason or "it is not whole"
    if not reading.documents:
        return StoreError(f"{path}, line {line}: {reason}; nothing of the run can be read")
    kept = len(reading.documents)
    return StoreError(
        f"{path}, line {line}: {reason}; `halo checkpoints repair {path.stem}` keeps the {kept} line(s) before it"
    )

"""The crash matrix: what became of the run at each boundary at which it was killed."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from halo_lang.records import record
from halo_runtime.crashtest.moments import BOUNDARIES, Diary, Moment
from halo_runtime.crashtest.processes import ChildError, import_ahead, imported, in_a_process
from halo_runtime.crashtest.subject import DOUBT, Attempt, Subject, answers_given
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.values import compact

OUTSIDE = ("model", "tool", "human", "event")
"""Kinds of effects that somebody outside the run can see."""

MAX_FILES = 1000
MAX_BYTES = 64 * 2**20
"""A program's folder is copied for every run, if it is no bigger."""

_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "node_modules")
_SAID = {
    "status": "the status",
    "output": "the output",
    "error": "the error",
    "interrupts": "the open questions",
    "data": "the data",
    "cost": "the cost",
    "calls": "the number of calls",
    "head": "the hash chain",
    "chain": "the journal's verdict",
}


@record
class Killed:
    """One boundary: where the run was killed, and what the process that went on with it made of it.

    `again` are the effects that were done twice, because the first time left no record; `asked` are those that a
    person was asked about. `outcome` is None where it could not be gone on with. `problems` say what does not hold.
    """

    number: int
    moment: Moment
    outcome: JsonObject | None
    done: int
    again: tuple[str, ...]
    asked: tuple[str, ...]
    problems: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """All of it."""
        return {
            "number": self.number,
            "boundary": BOUNDARIES[self.moment.boundary],
            "path": self.moment.path,
            "outcome": self.outcome,
            "effects": self.done,
            "again": list(self.again),
            "inDoubt": list(self.asked),
            "problems": list(self.problems),
        }


@record
class Undisturbed:
    """The run that nobody killed: what came of it, the moments that it came to, and the answers that it got."""

    outcome: JsonObject
    moments: tuple[Moment, ...]
    answers: dict[str, Json]

    @property
    def done(self) -> int:
        """How many effects it has done."""
        return len(_done(self.moments))


class Matrix:
    """The runs of one subject, each in a folder of its own that goes with `close`."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._scratch = TemporaryDirectory(prefix="halo-crashtest-")

    def __enter__(self) -> Matrix:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.cleanup()

    def undisturbed(self) -> Undisturbed:
        """The run to its end, twice.

        Raises ChildError where it cannot be run, or does not come out the same, and ConfigError for what cannot be
        copied.
        """
        first = self._to_its_end("undisturbed")
        differing = _differing(self._to_its_end("again").outcome, first.outcome)
        if differing:
            raise ChildError(f"two runs that nobody killed are not the same: {'; '.join(differing)}")
        return first

    def _to_its_end(self, name: str) -> Undisturbed:
        attempt = self._attempt(name)
        told = in_a_process(lambda: {"outcome": attempt.begin(None, {}), "modules": imported()})
        if told is None:
            raise ChildError("it was killed by somebody else")
        import_ahead(told["modules"])
        return Undisturbed(told["outcome"], tuple(attempt.diary), answers_given(attempt.diary))

    def killed(self, right: Undisturbed) -> Iterator[Killed]:
        """The run killed at each of its moments, in order, and gone on with by another process."""
        for number in range(1, len(right.moments) + 1):
            name = f"at{number}"
            yield self._kill(self._attempt(name), number, right)
            shutil.rmtree(Path(self._scratch.name) / name)

    def _kill(self, attempt: Attempt, number: int, right: Undisturbed) -> Killed:
        try:
            survived = in_a_process(lambda: attempt.begin(number, right.answers))
            before = tuple(attempt.diary)
            outcome = in_a_process(lambda: attempt.go_on(right.answers)) if survived is None else survived
        except ChildError as failure:
            return _lost(attempt.diary, number, str(failure))
        after = tuple(attempt.diary)[len(before) :]
        return judged(number, before, after, outcome or {}, right)

    def _attempt(self, name: str) -> Attempt:
        folder = Path(self._scratch.name) / name
        _copy_program(self._subject, folder / "program")
        return Attempt(self._subject, folder)


def judged(
    number: int, before: tuple[Moment, ...], after: tuple[Moment, ...], outcome: JsonObject, right: Undisturbed
) -> Killed:
    """Hold what came of a killed run against the run that nobody killed."""
    recorded = {moment.path for moment in before if moment.boundary == "recorded"}
    done_before, done_after = _done(before), _done(after)
    problems = _differing(outcome, right.outcome, may_cost_more=_under_way(before))
    problems += [f"{path} was recorded, and done again" for path in done_after if path in recorded]
    twice = (Counter(done_before) + Counter(done_after)).items()
    return Killed(
        number,
        before[-1],
        outcome,
        len(done_before) + len(done_after),
        tuple(path for path, times in twice if times > 1),
        tuple(moment.path.removesuffix(DOUBT) for moment in after if _is_of_doubt(moment)),
        tuple(problems),
    )


def _differing(outcome: JsonObject, right: JsonObject, *, may_cost_more: bool = False) -> list[str]:
    """What of a run's outcome is not as it should be."""
    return [
        f"{said} differs: {compact(outcome.get(name)):.80}, not {compact(right[name]):.80}"
        for name, said in _SAID.items()
        if outcome.get(name) != right[name]
        and not (name == "cost" and may_cost_more and (outcome.get(name) or 0) > (right[name] or 0))
    ]


def _under_way(before: tuple[Moment, ...]) -> bool:
    """Whether a request to a model was under way when the process died: it has been paid for, so it counts."""
    requests = sum(moment.boundary == "request" for moment in before)
    return requests > sum(moment.boundary == "recorded" and moment.kind == "model" for moment in before)


def _lost(diary: Diary, number: int, reason: str) -> Killed:
    moments = tuple(diary)
    last = moments[-1] if moments else Moment("end", "")
    return Killed(number, last, None, len(_done(moments)), (), (), (f"it cannot be gone on with: {reason}",))


def _done(moments: tuple[Moment, ...]) -> list[str]:
    """The effects that were done, of those that anybody outside can see."""
    return [m.path for m in moments if m.boundary == "done" and m.kind in OUTSIDE and not m.path.endswith(DOUBT)]


def _is_of_doubt(moment: Moment) -> bool:
    """Whether a person was asked what became of an effect."""
    return moment.boundary == "done" and moment.path.endswith(DOUBT)


def _copy_program(subject: Subject, target: Path) -> None:
    """Give a run files of its own: a program's tools work in its folder. Raises ConfigError where that is too big."""
    file = Path(subject.source.path).absolute()
    if not subject.needs_files:
        target.mkdir(parents=True)
        return
    sizes = list(islice(_sizes(file.parent), MAX_FILES + 1))
    if len(sizes) > MAX_FILES or sum(sizes) > MAX_BYTES:
        raise ConfigError(
            f"each run works on a copy of the program's folder, and {file.parent} has over {MAX_FILES} files or "
            f"{MAX_BYTES // 2**20} MiB; put the program and what it needs into a folder of its own"
        )
    shutil.copytree(file.parent, target, ignore=_LEFT_OUT, symlinks=True)


def _sizes(folder: Path) -> Iterator[int]:
    """Bytes of each file that would be copied."""
    for root, folders, files in os.walk(folder):
        left_out = _LEFT_OUT(root, [*folders, *files])
        folders[:] = [name for name in folders if name not in left_out]
        yield from (os.lstat(Path(root, name)).st_size for name in files if name not in left_out)

"""What policies redact, kept out of all that a run leaves behind: journal, index, events, screens, errors (spec 6).

Values inside a run stay what they are. Where they leave it, each place that a policy of the run would redact is
replaced by a mark, `⟨EMAIL_1·7f3a1⟩`. What the marks stand for is kept apart from the journal, for as long as the run
can go on: a run that goes on gets its values back, and comes to the same hashes. Secrets are not kept: `[SECRET_1]` is
for good.

Marks are not placeholders. A placeholder is what a model saw; a mark is what nobody shall read. The end of a mark is
the run's own, so that a text from outside cannot hold one of this run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from hashlib import sha256
from typing import Final

from halo_lang import Program, nodes
from halo_runtime.errors import HaloError, ServiceError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.policies.base import Finding
from halo_runtime.policies.detection import expanded, find
from halo_runtime.policies.vault import apart
from halo_runtime.redaction import Redactor
from halo_runtime.values import digest

_MARK: Final = re.compile(r"⟨([A-Z_]+_[1-9][0-9]*)·([0-9a-f]{5})⟩")
_PLAIN: Final = re.compile(r"[0-9a-f]{64}|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)|[A-Za-z_ ]{0,24}")
"""Hashes, times and single words, which journals are full of and nobody is in."""

_SECRET: Final = re.compile(r"\[SECRET_[0-9]+\]")
_SHORTEST_NUMBER: Final = 9
_KEPT_TEXTS: Final = 512


class Edge(Redactor):
    """Replaces secrets, and what `kinds` name, in what leaves a run; `end` is what its marks end with."""

    def __init__(self, secrets: Redactor, kinds: tuple[str, ...], end: str, memory: JsonObject | None = None) -> None:
        super().__init__()
        self._inner = secrets
        self._kinds = kinds
        self._end: str = end if memory is None else memory["end"]
        self._values: dict[str, JsonObject] = {} if memory is None else deepcopy(memory["values"])
        self._counts: dict[str, int] = {} if memory is None else dict(memory["counts"])
        self._marks: dict[tuple[str, str, bool], str] = {
            (name.rpartition("_")[0], kept["text"], kept["number"]): f"⟨{name}·{self._end}⟩"
            for name, kept in self._values.items()
        }
        self._texts: dict[str, str] = {}
        self._save: Callable[[JsonObject], None] | None = None
        self._saved = 0

    # --- as a redactor ------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether there is anything to replace."""
        return True

    def add(self, secrets: Iterable[str]) -> None:
        """Take more values as secret."""
        self._inner.add(secrets) if hasattr(self, "_inner") else super().add(secrets)

    def text(self, text: str) -> str:
        """The text as anybody may see it."""
        masked = self._texts.get(text)
        if masked is None:
            if len(self._texts) >= _KEPT_TEXTS:
                self._texts.clear()
            masked = self._texts[text] = self._masked(self._inner.text(text))
        return masked

    def json(self, value: Json) -> Json:
        """The value with everything replaced in strings, keys and numbers."""
        if isinstance(value, str):
            return self.text(value)
        if is_list(value):
            return [self.json(item) for item in value]
        if is_object(value):
            return {self.text(key): self.json(item) for key, item in value.items()}
        if isinstance(value, int) and len(digits := str(value)) >= _SHORTEST_NUMBER:
            found = self._found(digits)
            return value if not found else self._mark(found[0], digits, is_number=True)
        return value

    def identity(self, value: Json) -> Json:
        """As `json`, for hashes: secrets are equal, as those of a run that goes on are not known any more."""
        return _each_text(self.json(value), lambda text: _SECRET.sub("[SECRET]", text))

    def split(self, text: str) -> tuple[str, str]:
        """Nothing is shown before all has come: what is looked for may be of any length."""
        return "", text

    def clean(self, error: HaloError) -> None:
        """Replace what stands in an error's own texts."""
        error.args = (self.text(error.message), *error.args[1:])
        if isinstance(error, ServiceError) and error.detail is not None:
            error.detail = self.text(error.detail)

    # --- marks --------------------------------------------------------------------------------------------------

    def _masked(self, text: str) -> str:
        if _PLAIN.fullmatch(text):
            return text
        for mark in _MARK.finditer(text):
            self._reserve(mark)
        parts: list[str] = []
        at = 0
        for finding in self._found(text):
            parts += (text[at : finding.start], self._mark(finding, text[finding.start : finding.end]))
            at = finding.end
        return "".join((*parts, text[at:])) if at else text

    def _reserve(self, mark: re.Match[str]) -> None:
        """Give no other value the number of a mark that came from a recording of the same run."""
        kind, _, number = mark[1].rpartition("_")
        if mark[2] == self._end:
            self._counts[kind] = max(self._counts.get(kind, 0), int(number))

    def _found(self, text: str) -> list[Finding]:
        return apart(find(text, self._kinds), text)

    def _mark(self, finding: Finding, text: str, *, is_number: bool = False) -> str:
        """What stands for a text exactly as it is written, so that it can be put back."""
        key = (finding.kind, text, is_number)
        mark = self._marks.get(key)
        if mark is None:
            number = self._counts[finding.kind] = self._counts.get(finding.kind, 0) + 1
            name = f"{finding.kind}_{number}"
            mark = f"⟨{name}·{self._end}⟩" if finding.reversible else f"[{name}]"
            self._marks[key] = mark
            if finding.reversible:
                self._values[name] = {"text": text, "number": is_number}
        return mark

    # --- what is kept of it -------------------------------------------------------------------------------------

    @property
    def _size(self) -> int:
        return sum(self._counts.values())

    def kept_by(self, save: Callable[[JsonObject], None]) -> None:
        """Let `save` keep what the marks stand for, before anything with a mark is written."""
        self._save = save

    def settle(self) -> None:
        """Something with marks is about to be written. Raises what `save` raises."""
        if self._save is not None and self._saved != self._size:
            self._save({"end": self._end, "counts": self._counts, "values": self._values})
            self._saved = self._size


def edge_kinds(program: Program, policies: Iterable[str]) -> tuple[str, ...]:
    """What the policies redact, or refuse to let through: a run leaves nothing of it behind."""
    kinds: set[str] = set()
    for name in policies:
        policy = program.find(name)
        for rule in policy.rules if isinstance(policy, nodes.Policy) else ():
            if rule.name.text in ("Redact", "Block"):
                kinds |= {".".join(one.value.segments) for one in rule.args if isinstance(one.value, nodes.Path)}
    return expanded(kinds)


def end_of(program_sha256: str, inputs: JsonObject) -> str:
    """What the marks of a run end with: the same for the same program and input, so that hashes are the same too."""
    return sha256(f"{program_sha256} {digest(inputs)}".encode()).hexdigest()[:5]


def revealed(value: Json, memory: JsonObject) -> Json:
    """A value of a journal with what its marks stand for."""
    values, end = memory["values"], memory["end"]

    def text(found: re.Match[str]) -> str:
        return values[found[1]]["text"] if found[2] == end and found[1] in values else found[0]

    def put_back(written: str) -> Json:
        whole = _MARK.fullmatch(written)
        if whole is not None and whole[2] == end and values.get(whole[1], {}).get("number"):
            return int(values[whole[1]]["text"])
        return _MARK.sub(text, written)

    return _each_text(value, put_back)


def end_in(value: Json) -> str | None:
    """The end of the first mark in a value; None where there is none."""
    found: list[str] = []

    def look(text: str) -> Json:
        found.extend(mark[2] for mark in _MARK.finditer(text))
        return text

    _each_text(value, look)
    return found[0] if found else None


def _each_text(value: Json, change: Callable[[str], Json]) -> Json:
    """A value with each string, keys too, as `change` has it."""
    if isinstance(value, str):
        return change(value)
    if is_list(value):
        return [_each_text(item, change) for item in value]
    if is_object(value):
        return {str(change(key)): _each_text(item, change) for key, item in value.items()}
    return value

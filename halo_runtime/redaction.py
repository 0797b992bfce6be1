"""The one redactor: secret values never leave the engine in messages, events, journals, results or logs (spec 2.7)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

from halo_runtime.errors import HaloError, ServiceError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object

REDACTED = "[REDACTED]"
MINIMUM_LENGTH = 4
"""Shorter values would black out ordinary text ("1", "yes") and protect nothing."""
MINIMUM_KEY_LENGTH = 8
"""For values that are only taken for keys by their variable's name: no real key is shorter, many settings are."""

_SECRET_NAME = re.compile(r"(?:^|_)(?:API_KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")


class StreamRedactor:
    """Redacts a text that comes in pieces, so that what is shown is what redacting the whole text would show.

    A secret that is cut by the border between two pieces is found: what may be its beginning waits for the next piece.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._waits = ""

    def feed(self, piece: str) -> str:
        """What can be shown now that `piece` has come."""
        shown, self._waits = self._redactor.split(self._waits + piece)
        return shown

    def end(self) -> str:
        """What waited, once nothing more comes."""
        rest, self._waits = self._redactor.text(self._waits), ""
        return rest


class Redactor:
    """Replaces each of a set of secret values by `[REDACTED]`. Values may be added while a run goes on."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._starts: dict[str, list[str]] = {}
        self._longest = 0
        self.add(secrets)

    @classmethod
    def for_environment(cls, env: Mapping[str, str]) -> Redactor:
        """A redactor that knows the keys of an environment, by the names that keys have."""
        keys = (value for name, value in env.items() if _SECRET_NAME.search(name.upper()))
        return cls(value for value in keys if len(value.strip()) >= MINIMUM_KEY_LENGTH)

    def add(self, secrets: Iterable[str]) -> None:
        """Take more values as secret; stripped, as services see them, and as JSON writes them."""
        for secret in secrets:
            stripped = secret.strip()
            if len(stripped) >= MINIMUM_LENGTH:
                self._secrets |= {stripped, json.dumps(stripped)[1:-1], json.dumps(stripped, ensure_ascii=False)[1:-1]}
        if self._secrets:
            longest_first = sorted(self._secrets, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
            self._starts = {first: [one for one in longest_first if one[0] == first] for first, *_ in longest_first}
            self._longest = len(longest_first[0])

    @property
    def active(self) -> bool:
        """Whether there is anything to replace; lets hot paths skip the walk."""
        return self._pattern is not None

    def text(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def json(self, value: Json) -> Json:
        """The value with secrets replaced in strings and keys; the same object where nothing is to be done."""
        if self._pattern is None:
            return value
        return self._walk(value)

    def identity(self, value: Json) -> Json:
        """The value as it is for hashes."""
        return self.json(value)

    def kept_by(self, save: Callable[[JsonObject], None]) -> None:
        """Let `save` keep what is needed to put back what is replaced: nothing is, here."""

    def settle(self) -> None:
        """Something redacted is about to be written. Raises StoreError where what it needs cannot be kept."""

    def split(self, text: str) -> tuple[str, str]:
        """What of a text that goes on can be shown already, redacted, and the rest that has to wait.

        The rest begins where a secret may have begun whose end has not come, so it is shorter than the longest one;
        it belongs in front of the text that comes next.
        """
        if self._pattern is None:
            return text, ""
        shown: list[str] = []
        at, waits = 0, self._may_begin(text, 0)
        while (found := self._pattern.search(text, at)) is not None and found.start() < waits:
            shown += (text[at : found.start()], REDACTED)
            at = found.end()
            waits = self._may_begin(text, at)
        return "".join((*shown, text[at:waits])), text[waits:]

    def _may_begin(self, text: str, at: int) -> int:
        """The first place from `at` on where all that follows is the beginning of a secret; the end without one."""
        starts = self._starts
        for place in range(max(at, len(text) - self._longest + 1), len(text)):
            candidates = starts.get(text[place])
            if candidates is not None:
                rest = text[place:]
                if any(len(secret) > len(rest) and secret.startswith(rest) for secret in candidates):
                    return place
        return len(text)

    def clean(self, error: HaloError) -> None:
        """Replace secrets in an error's own texts; it stays the same error, with its place and its cause."""
        if self._pattern is None:
            return
        error.args = (self.text(error.message), *error.args[1:])
        if isinstance(error, ServiceError) and error.detail is not None:
            error.detail = self.text(error.detail)

    def _walk(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if is_list(value):
            return [self._walk(item) for item in value]
        if is_object(value):
            return {self.text(key): self._walk(item) for key, item in value.items()}
        return value

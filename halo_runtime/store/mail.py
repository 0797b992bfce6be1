"""Answers and events left for a run: by another process while it is at work, or before it has asked.

Each message is a file of its own in the run's folder, put there whole, taken in the order of sending, and deleted
when what it brought is in the journal.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from halo_lang.records import record
from halo_runtime.errors import StoreError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.redaction import Redactor
from halo_runtime.results import Answer, Interrupt
from halo_runtime.store.atomic import write_atomically

_DIGITS: Final = 8


@record
class Message:
    """What was sent: for a question by its id, for any open question (both None), or an event `Source.Event`."""

    id: str
    value: Json
    interrupt: str | None
    event: str | None
    by: str | None
    at: str
    how: str

    def suits(self, question: Interrupt) -> bool:
        """Whether it is for this question; an answer that names none is for the first that is asked and takes it."""
        if self.event is not None and question.event != self.event:
            return False
        return self.interrupt in (None, question.id) and question.takes(self.value)

    def cleaned(self, redactor: Redactor) -> Message:
        """The message as it may be kept: no secret in what was sent."""
        return replace(self, value=redactor.json(self.value), by=self.by and redactor.text(self.by))

    def answer(self) -> Answer:
        """The answer that it brings."""
        return Answer(self.value, self.by, self.at, self.how, signal=self.id)

    def to_json(self) -> JsonObject:
        """The message as a document."""
        return {name: getattr(self, name) for name in ("id", "value", "interrupt", "event", "by", "at", "how")}

    @classmethod
    def from_json(cls, document: JsonObject) -> Message:
        """The inverse of `to_json`."""
        return cls(**{name: document[name] for name in ("id", "value", "interrupt", "event", "by", "at", "how")})


class MemoryMail:
    """Messages for a run that is not kept."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    def post(self, message: Message) -> None:
        """Leave a message."""
        self._messages.append(message)

    def first(self, question: Interrupt) -> Message | None:
        """The first message for a question, which stays."""
        return next((message for message in self._messages if message.suits(question)), None)

    def take(self, question: Interrupt) -> Message | None:
        """The first message for a question, which is gone with that."""
        found = self.first(question)
        if found is not None:
            self._messages.remove(found)
        return found


class Mailbox:
    """The messages left for one run, on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def post(self, message: Message) -> None:
        """Leave a message behind those that are there. Raises StoreError."""
        # Numbered and not dated: a clock may stand still between two messages, or be set back.
        last = max((_number(path) for path in self._files()), default=0)
        name = f"{last + 1:0{_DIGITS}}-{message.id}.json"
        try:
            write_atomically(self._folder / name, json.dumps(message.to_json()).encode(), durable=True)
        except OSError as failure:
            raise StoreError(f"nothing can be left for the run {self._folder.name}: {failure.strerror}") from None

    def __iter__(self) -> Iterator[Message]:
        """The messages, the oldest first; a file that is none is passed over."""
        for path in self._files():
            try:
                document = json.loads(path.read_text())
                if is_object(document):
                    yield Message.from_json(document)
            except (OSError, ValueError, KeyError):
                continue

    def discard(self, message_id: str) -> None:
        """Delete a message whose content is in the journal; where that cannot be done who goes on does it."""
        for path in self._files():
            if path.name.endswith(f"-{message_id}.json"):
                with suppress(OSError):
                    path.unlink()

    def remove(self) -> None:
        """Delete the box with everything in it."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.suffix == ".json" and path.name[0] != ".")
        except OSError:
            return []


def _number(path: Path) -> int:
    number = path.name.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def new_id() -> str:
    """An id for a message."""
    return secrets.token_hex(6)

"""Answers and events left for a run: by another process while it is at work, or before it has asked.

Each message is a file of its own in the run's folder, put there whole, taken in the order of sending, and deleted
when what it brought is in the journal.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.results import Answer, Interrupt
from halo_runtime.store.atomic import write_atomically


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
        """Whether it is for this question; an answer that names none is for the first that is asked."""
        if self.event is not None and question.event != self.event:
            return False
        return self.interrupt in (None, question.id)

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

    def take(self, question: Interrupt) -> Message | None:
        """The first message for a question, which is gone with that."""
        found = next((message for message in self._messages if message.suits(question)), None)
        if found is not None:
            self._messages.remove(found)
        return found


class Mailbox:
    """The messages left for one run, on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def post(self, message: Message) -> None:
        """Leave a message. Raises OSError."""
        name = f"{message.at.replace(':', '')}-{message.id}.json"
        write_atomically(self._folder / name, json.dumps(message.to_json()).encode(), durable=True)

    def __iter__(self) -> Iterator[Message]:
        """The messages, the oldest first; a file that is none is passed over."""
        for path in self._files():
            try:
                document = json.loads(path.read_text())
                if is_object(document):
                    yield Message.from_json(document)
            except (OSError, ValueError, KeyError):
                continue

    def take(self, question: Interrupt) -> Message | None:
        """The first message for a question; it stays until `discard`."""
        return next((message for message in self if message.suits(question)), None)

    def discard(self, message_id: str) -> None:
        """Delete a message whose content is in the journal."""
        for path in self._files():
            if path.name.endswith(f"-{message_id}.json"):
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the box with everything in it."""
        for path in self._files():
            path.unlink(missing_ok=True)
        if self._folder.is_dir():
            self._folder.rmdir()

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.suffix == ".json" and path.name[0] != ".")
        except OSError:
            return []


def new_id() -> str:
    """An id for a message."""
    return secrets.token_hex(6)

"""What OpenAI's two APIs have in common for the provider that speaks them (openai.py): one `Wire` each.

A setting that a family of models does not take is left out and named in a warning. `refused` are parts of a request
that the service was seen to refuse to the model although the table does not say so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import ToolNames
from halo_runtime.models.openai_families import Family

SAMPLING: Final = ("temperature", "top_p")
CHAT: Final = "chat completions"
RESPONSES: Final = "responses"
"""The APIs by name, as they stand among what was refused."""


class StreamReader(Protocol):
    """Puts the document together that would have come without a stream."""

    def receive(self, part: bytes) -> bool:
        """Take the next bytes; true when nothing that counts can follow."""
        ...

    def document(self) -> JsonObject:
        """The whole document; ModelError for a stream that ended before it was complete."""
        ...


class Wire(Protocol):
    """One API: how a request is written in it and how its answer is read."""

    name: str
    path: str

    def body(
        self, request: ModelRequest, model: str, names: ToolNames, refused: Collection[str]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """All of a request but whether it streams, and a warning for each setting that was left out."""
        ...

    def streamed(self, refused: Collection[str]) -> JsonObject:
        """What asks for a stream, where the server has them."""
        ...

    def reader(self, hear: OnDelta | None) -> StreamReader:
        """Takes a stream; `hear` gets its text."""
        ...

    def check(self, document: JsonObject) -> None:
        """Raise ModelError for a failure under status 200."""
        ...

    def reply(self, document: JsonObject, model: str, names: ToolNames) -> ModelReply:
        """The reply in a document; ModelError where there is none that could be used."""
        ...


def sampling(
    request: ModelRequest, model: str, takes: Family, refused: Collection[str]
) -> tuple[JsonObject, tuple[str, ...]]:
    """The sampling settings that the model takes, and a warning for each that it does not."""
    made = {name: value for name in SAMPLING if (value := getattr(request, name)) is not None}
    taken = {name: value for name, value in made.items() if takes.sampling and name not in refused}
    return taken, tuple(left_out(model, name) for name in made if name not in taken)


def left_out(model: str, name: str) -> str:
    """The warning for a setting that a model does not take."""
    return f"{model} does not take {name}; it was left out"


def schema_in_words(model: str) -> str:
    """The warning for a schema that a model does not take."""
    return f"{model} takes no schema here; it was asked for in the system prompt instead"

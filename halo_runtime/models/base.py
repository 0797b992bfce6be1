"""One request and reply shape for every model service; a provider maps it to and from its wire, nothing else.

Shapes follow spec 4 and the cross-provider rules: usage totals include cached and reasoning tokens, a field the
service did not report is None (not zero), the presence of calls and not the stop reason tells that tools are asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field
from decimal import Decimal
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Stop: TypeAlias = Literal["end", "length", "tool", "refusal", "content_filter", "context_overflow", "error"]


@record
class ToolCall:
    """A function the model asks for. `arguments` is the raw text as it came, JSON or not."""

    id: str
    name: str
    arguments: str

    def to_json(self) -> JsonObject:
        """For the journal, figures and events."""
        return {"id": self.id, "name": self.name, "arguments": self.arguments}


@record
class Message:
    """One turn. `tool_calls` on assistant turns, `opaque` as in ModelReply.

    `tool_call_id` on tool turns, where `is_error` says that the call came to nothing, as its text does.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    opaque: JsonObject | None = None
    is_error: bool = False

    def to_json(self) -> JsonObject:
        """For people and the journal. Without `opaque`: it says nothing to them, and its reply is journalled whole."""
        document: JsonObject = {"role": self.role, "content": self.content}
        if self.tool_calls:
            document["tool_calls"] = [call.to_json() for call in self.tool_calls]
        if self.tool_call_id is not None:
            document["tool_call_id"] = self.tool_call_id
        return document


@record
class ToolSpec:
    """A function offered to the model: `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


@record
class ModelRequest:
    """What one request to a model says. `model` is the declared id with its prefix; None leaves a setting out.

    `agent` and `method` tell the scripted model which reply is meant; no service sees them.
    """

    model: str
    agent: str
    method: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    json_schema: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """For the journal: what was asked, settings that are unset left out."""
        document: JsonObject = {
            "model": self.model,
            "agent": self.agent,
            "method": self.method,
            "messages": [message.to_json() for message in self.messages],
        }
        document.update(self.settings())
        if self.json_schema is not None:
            document["json_schema"] = self.json_schema
        if self.tools:
            document["tools"] = [asdict(tool) for tool in self.tools]
        return document

    def settings(self) -> JsonObject:
        """The settings that are set, by name."""
        settings = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        return {name: value for name, value in settings.items() if value is not None}

    def identity(self) -> JsonObject:
        """What was asked, whoever answers: a run may go on with another model and keep the replies it has."""
        document = self.to_json()
        del document["model"]
        return document


@record
class Usage:
    """Tokens of one request; None where the service did not say.

    `cached` were read from the service's cache and `cache_written` put into it; both are part of `input`.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cache_written: int | None = None

    def to_json(self) -> JsonObject:
        """For the journal and events."""
        return {
            "input": self.input,
            "output": self.output,
            "cached": self.cached,
            "reasoning": self.reasoning,
            "cache_written": self.cache_written,
        }


@record
class ModelReply:
    """What came back. `cost` is the service's own figure in USD where it gives one, or 0 for local models.

    `warnings` tell of settings that the service does not take, and of replies that are not whole. `cursor` is the
    provider's own note of where it stood (the scripted model's place in a list of replies); it is journalled, and
    handed back by `restore`. `opaque` is what a service wants back with the turn it answered (signatures of its
    thinking, its own items): `{wire format: anything}`, for another service may be the next to be asked. It goes back
    unchanged on the turn's Message; a provider ignores what is not its own.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage = field(default_factory=Usage)
    model_used: str | None = None
    cost: Decimal | None = None
    warnings: tuple[str, ...] = ()
    cursor: Json = None
    opaque: JsonObject | None = None

    def to_json(self) -> JsonObject:
        """For the journal: all fields. Written out: every call passes here, and `asdict` looks at each value twice."""
        return {
            "text": self.text,
            "tool_calls": [call.to_json() for call in self.tool_calls],
            "stop": self.stop,
            "usage": self.usage.to_json(),
            "model_used": self.model_used,
            "cost": None if self.cost is None else str(self.cost),
            "warnings": list(self.warnings),
            "cursor": self.cursor,
            "opaque": self.opaque,
        }

    @classmethod
    def from_json(cls, document: JsonObject) -> ModelReply:
        """The inverse of `to_json`."""
        return cls(
            text=document["text"],
            tool_calls=tuple(ToolCall(**call) for call in document["tool_calls"]),
            stop=document["stop"],
            usage=Usage(**document["usage"]),
            model_used=document["model_used"],
            cost=None if document["cost"] is None else Decimal(document["cost"]),
            warnings=tuple(document["warnings"]),
            cursor=document["cursor"],
            opaque=document.get("opaque"),  # journals of earlier versions have none
        )


OnDelta: TypeAlias = Callable[[str], None]
"""Receives text as it streams."""


class ModelProvider(Protocol):
    """One model service. Errors are ModelError, with `retryable` and `status` set; cancelling stops the request."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Send one request and return the whole reply; text goes to `on_delta` as it comes where it streams."""
        ...

    def missing(self) -> str | None:
        """What keeps this provider from working at all (a key, a package) and how to supply it, else None.

        Asked before a run starts, so that nothing is spent on a run that cannot end.
        """
        ...

    def restore(self, cursors: Sequence[Json]) -> None:
        """Take note of the cursors of replies that a journal already holds."""
        ...

    async def close(self) -> None:
        """Free what the provider holds (connections, a loaded model)."""
        ...


@runtime_checkable
class Forecasting(Protocol):
    """A provider that can say beforehand what it would leave out of a request."""

    def forecast(self, request: ModelRequest) -> tuple[str, ...]:
        """The warnings that the reply would come with for that; nothing is sent, and no key is needed.

        Raises ModelError where the service could not be asked like that at all.
        """
        ...


@runtime_checkable
class Service(ModelProvider, Protocol):
    """A ModelProvider that can say where it asks and which models there are."""

    @property
    def address(self) -> str:
        """The base URL, or what stands for one."""
        ...

    async def models(self) -> tuple[str, ...]:
        """The names of its models, those of the first thousand. ModelError where it cannot be asked, or refuses."""
        ...


ProviderFactory: TypeAlias = Callable[[Mapping[str, str]], ModelProvider]
"""Makes a provider from the environment's variables."""

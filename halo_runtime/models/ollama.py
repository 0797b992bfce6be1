"""Ollama's own `/api/chat`, for `ollama/…` and for those `local/…` that are not embedded.

Its OpenAI-compatible route is not used: there the context window cannot be set, and Ollama drops the front of a prompt
that does not fit the one it would choose, without a word.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.access import access_problem
from halo_runtime.models.base import Message, ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import ToolNames, offered, read_reply, tool_names
from halo_runtime.models.embedding_wire import ollama_body, read_ollama
from halo_runtime.models.embeddings import Embedded, Purpose
from halo_runtime.models.http import Endpoint, JsonService
from halo_runtime.models.streams import Lines
from halo_runtime.models.surrogates import Mended, valid_text

HOST_VARIABLE: Final = "OLLAMA_HOST"
KEY_VARIABLE: Final = "OLLAMA_API_KEY"
DEFAULT_PORT: Final = 11434
TOTAL_SECONDS: Final = 1800.0
"""The first call may load a large model from a slow disk, and what runs without a graphics card takes its time."""

IDLE_SECONDS: Final = 300.0
"""It holds a call back until all of it is there."""

MIN_CONTEXT: Final = 4096
MAX_CONTEXT: Final = 2**20
BYTES_PER_TOKEN: Final = 3
"""Less than any common text has, so that the context is rather too large than too small."""
REPLY_TOKENS: Final = 2048
"""Room in the context for a reply whose length is not limited."""

_WIRE: Final = "ollama"
"""Whose opaque turns these are."""
_SCHEME_PORTS: Final = {"http": 80, "https": 443}
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""What a server listens on for all → where it is on this machine; OLLAMA_HOST serves for both."""


class Ollama:
    """A ModelProvider for one Ollama server; its address is read from `env` once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        key = env.get(KEY_VARIABLE, "").strip()
        endpoint = _endpoint(server_address(env.get(HOST_VARIABLE, "")) or "", key)
        self._problem = access_problem(endpoint, key, f"127.0.0.1:{DEFAULT_PORT}", key_needed=False)
        self._service = JsonService(endpoint)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Send one request; cancelling closes the connection, upon which Ollama stops generating."""
        if self._problem is not None:
            raise ModelError(self._problem)
        names = tool_names(request)
        body = _body(request, names)
        try:
            turn = await self._ask(body, on_delta)
            reply = read_reply(turn.completion(), names, self._service.error)
        except ModelError as error:
            error.hint = error.hint or _embedded_hint(request.model)
            raise
        opaque: JsonObject | None = {_WIRE: {"thinking": turn.thinking}} if turn.thinking else None
        warnings = reply.warnings + _context_warning(reply, body["options"]["num_ctx"])
        return replace(reply, warnings=warnings, opaque=opaque)

    async def embed(self, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts, in one request."""
        if self._problem is not None:
            raise ModelError(self._problem)
        answer = await self._service.post("/api/embed", ollama_body(_name(model), texts, purpose))
        return read_ollama(answer, len(texts), self._service.error)

    def missing(self) -> str | None:
        """Why no request could be sent: an address that is none, or that a key must not go to."""
        return self._problem

    @property
    def address(self) -> str:
        """The base URL."""
        return self._service.endpoint.url

    async def models(self) -> tuple[str, ...]:
        """The names of the models that the service has."""
        if self._problem is not None:
            raise ModelError(self._problem)
        return await self._service.names("/api/tags", "models", "name")

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def _ask(self, body: JsonObject, on_delta: OnDelta | None) -> _Turn:
        turn = _Turn(self._service, on_delta)
        if on_delta is None:
            turn.take(await self._service.post("/api/chat", body | {"stream": False}))
            return turn
        whole = await self._service.stream(
            "/api/chat", body | {"stream": True}, turn.receive, accepts="application/x-ndjson"
        )
        turn.finish(whole)
        return turn


def open_service(env: Mapping[str, str]) -> Ollama:
    """The provider of `ollama/…` ids."""
    return Ollama(env)


class _Turn:
    """The assistant's turn, put together from the documents in which it comes: one, or one a token."""

    def __init__(self, service: JsonService, on_delta: OnDelta | None) -> None:
        self._service = service
        self._shown = Mended(on_delta)
        self._lines = Lines()
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[Json] = []
        self._last: JsonObject = {}

    @property
    def thinking(self) -> str:
        """What the model thought before it answered; it goes back with its turn."""
        return valid_text("".join(self._thinking))

    def receive(self, part: bytes) -> bool:
        """Take the next bytes of a stream of JSON lines; true when the turn is complete."""
        self._take_lines(self._lines.feed(part))
        return self._done

    def finish(self, whole: JsonObject | None) -> None:
        """Take what is left: the last line, or the whole answer of a server that did not stream."""
        if whole is not None:
            self.take(whole)
        elif not self._done:
            self._take_lines(self._lines.end())

    def take(self, document: JsonObject) -> None:
        """Take one document. Calls come whole, each but once, whatever index they carry."""
        if document.get("error"):
            raise self._service.error(f"failed: {_told(document['error'])}", retryable=True)
        message: Json = document.get("message")
        self._last = document
        if not is_object(message):
            return
        calls: Json = message.get("tool_calls")
        self._calls += calls if is_list(calls) else ()
        self._thinking += _texts(message.get("thinking"))
        for text in _texts(message.get("content")):
            self._content.append(text)
            self._shown.feed(text)

    def completion(self) -> JsonObject:
        """The turn as a `chat.completion`, which chat.py reads; ModelError for one that was not ended."""
        if not self._done:
            raise self._service.error("ended its answer before it was complete", retryable=True)
        self._shown.end()
        message: JsonObject = {"content": "".join(self._content) or None, "tool_calls": self._calls}
        return {
            "model": self._last.get("model"),
            "choices": [{"message": message, "finish_reason": self._last.get("done_reason")}],
            "usage": {
                "prompt_tokens": self._last.get("prompt_eval_count"),
                "completion_tokens": self._last.get("eval_count"),
            },
        }

    @property
    def _done(self) -> bool:
        return self._last.get("done") is True

    def _take_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            if line.strip() and not self._done:
                self.take(self._document(line))

    def _document(self, line: str) -> JsonObject:
        with suppress(ValueError, RecursionError):
            document: Json = json.loads(line)
            if is_object(document):
                return document
        raise self._service.error(f"streamed a line that is no JSON object ({len(line)} characters)", retryable=True)


# --- the request ------------------------------------------------------------------------------------------------------


def _body(request: ModelRequest, names: ToolNames) -> JsonObject:
    """All of a request but whether it streams, which Ollama would do unless told otherwise."""
    body: JsonObject = {"model": _name(request.model), "messages": list(_messages(request.messages, names))}
    if request.tools:
        body["tools"] = offered(request, names)
    if request.json_schema is not None:
        body["format"] = request.json_schema
    options = {"temperature": request.temperature, "top_p": request.top_p, "num_predict": request.max_tokens}
    body["options"] = {name: value for name, value in options.items() if value is not None}
    body["options"]["num_ctx"] = _context(body, request.max_tokens)
    return body


def _name(model: str) -> str:
    return model.partition("/")[2]


def _messages(messages: Sequence[Message], names: ToolNames) -> Iterator[JsonObject]:
    """The turns; a tool's answer tells the function, for Ollama's templates know no ids of calls."""
    asked: dict[str, str] = {}
    for message in messages:
        wire: JsonObject = {"role": message.role, "content": valid_text(message.content)}
        if message.tool_calls:
            asked |= {call.id: names[call.name] for call in message.tool_calls}
            wire["tool_calls"] = [
                {"function": {"name": names[call.name], "arguments": _arguments(call.arguments)}}
                for call in message.tool_calls
            ]
        if message.tool_call_id in asked:
            wire["tool_name"] = asked[message.tool_call_id]
        yield wire | ((message.opaque or {}).get(_WIRE) or {})


def _arguments(text: str) -> JsonObject:
    """The arguments as the object that Ollama takes; what is none (from another model) goes along as it was."""
    with suppress(ValueError, RecursionError):
        arguments: Json = json.loads(valid_text(text) or "{}")
        if is_object(arguments):
            return arguments
    return {"invalid": valid_text(text)}


def _context(body: JsonObject, max_tokens: int | None) -> int:
    """Tokens of context that a request needs, as a power of two: Ollama loads the model anew for each other size."""
    size = len(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    needed = size // BYTES_PER_TOKEN + (max_tokens or REPLY_TOKENS)
    return min(MAX_CONTEXT, max(MIN_CONTEXT, 1 << (needed - 1).bit_length()))


# --- the answer -------------------------------------------------------------------------------------------------------


def _texts(value: Json) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else ()


def _told(error: Json) -> str:
    return " ".join((error if isinstance(error, str) else json.dumps(error)).split())[:500]


def _context_warning(reply: ModelReply, context: int) -> tuple[str, ...]:
    if reply.usage.input is None or reply.usage.input < 0.95 * context:
        return ()
    return (f"the prompt filled the context of {context} tokens; Ollama may have dropped its beginning",)


def _embedded_hint(model: str) -> str | None:
    """Why Ollama was asked at all, for who meant a model in this process."""
    if not model.startswith("local/"):
        return None
    return f"no model {_name(model)} is embedded (local/smollm2 is), so Ollama was asked for it"


# --- where it is ------------------------------------------------------------------------------------------------------


def server_address(host: str) -> str | None:
    """The URL that OLLAMA_HOST means, in every form that Ollama's own programs take; None where it is no address."""
    scheme, mark, rest = host.strip().strip("\"'").rpartition("://")
    scheme = scheme.lower() if mark else "http"
    usual = _SCHEME_PORTS.get(scheme, DEFAULT_PORT) if mark else DEFAULT_PORT
    try:
        parts = urlsplit(f"{scheme}://{_bracketed(rest)}")
        port = usual if parts.port is None else parts.port
        name = parts.hostname or "127.0.0.1"
    except ValueError:
        return None
    plain = not (parts.query or parts.fragment or "@" in parts.netloc or re.search(r"\s", rest))
    if scheme not in _SCHEME_PORTS or port == 0 or not plain:
        return None
    path = parts.path.rstrip("/").removesuffix("/chat").removesuffix("/api")
    return f"{scheme}://{_bracketed(_ANY_ADDRESS.get(name, name))}:{port}{path}"


def _bracketed(name: str) -> str:
    """An IPv6 address as URLs write it; everything else as it is."""
    with suppress(ValueError):
        return f"[{ipaddress.IPv6Address(name)}]"
    return name


def _endpoint(url: str, key: str) -> Endpoint:
    start = "; is Ollama running there? Start it with `ollama serve`, or set {url} to where it is"
    return Endpoint(
        service="Ollama",
        url=url,
        key_variable=KEY_VARIABLE,
        url_variable=HOST_VARIABLE,
        headers={"authorization": f"Bearer {key}"} if key else {},
        secrets=(key,) if key else (),
        advice={
            404: "; `ollama list` shows the models that are there, `ollama pull NAME` gets one, if {url} is right",
            "ConnectError": start,
            "ConnectTimeout": start,
        },
        total_seconds=TOTAL_SECONDS,
        first_seconds=TOTAL_SECONDS,
        idle_seconds=IDLE_SECONDS,
    )

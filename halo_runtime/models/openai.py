"""OpenAI, the servers that speak its API, OpenRouter and Together (chat_services.py), in chat completions or responses.

Which of the two a model is asked in says its family (openai_families.py), or the service itself when it refuses the
other one. A server that has no responses is asked in chat completions, with what can be had there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.access import access_problem
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import tool_names
from halo_runtime.models.chat_services import OPENAI, OPENROUTER, TOGETHER, ChatService
from halo_runtime.models.chat_wire import ChatWire
from halo_runtime.models.embedding_wire import openai_body, read_openai
from halo_runtime.models.embeddings import Embedded, Purpose
from halo_runtime.models.http import JsonService
from halo_runtime.models.openai_refusals import refused_part
from halo_runtime.models.openai_wire import CHAT, RESPONSES, Wire
from halo_runtime.models.responses_wire import ResponsesWire
from halo_runtime.models.thoughts import Spoken


class OpenAILike:
    """A ModelProvider for one service; its key and address are read from `env` once.

    It remembers what the service refused to a model, so that each such thing costs one request at most.
    """

    def __init__(self, service: ChatService, env: Mapping[str, str]) -> None:
        key = env.get(service.key_variable, "").strip()
        endpoint = service.endpoint(env, key)
        self._service = service
        self._problem = access_problem(endpoint, key, service.url)
        self._http = JsonService(endpoint)
        self._chat = ChatWire(service, self._http)
        self._responses = ResponsesWire(service, self._http)
        self._refused: defaultdict[str, set[str]] = defaultdict(set)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Send one request; ModelError where the service refuses, fails, or answers with nothing that can be used."""
        if self._problem is not None:
            raise ModelError(self._problem)
        model = request.model.removeprefix(f"{self._service.prefix}/")
        names = tool_names(request)
        refused = self._refused[model]
        listener = None if on_delta is None else _Listener(on_delta, self._service.thinks_aloud)
        while True:
            wire = self._wire(request, model, refused)
            body, warnings = wire.body(request, model, names, refused)
            body |= {} if listener is None else wire.streamed(refused)
            try:
                document = await self._ask(wire, body, listener)
                break
            except ModelError as error:
                part = refused_part(error, wire.name, body)
                nowhere_else = part == CHAT and not self._has_responses(refused)
                if part is None or nowhere_else or (listener is not None and listener.told):
                    raise
                refused.add(part)
        reply = wire.reply(document, model, names)
        if listener is not None:
            listener.end(reply.text)
        return replace(reply, warnings=warnings + reply.warnings)

    def forecast(self, request: ModelRequest) -> tuple[str, ...]:
        """What the model's family leaves out, or the service was seen to refuse."""
        model = request.model.removeprefix(f"{self._service.prefix}/")
        refused = self._refused[model]
        return self._wire(request, model, refused).body(request, model, tool_names(request), refused)[1]

    async def embed(self, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts, in one request."""
        if self._problem is not None:
            raise ModelError(self._problem)
        body = openai_body(model.removeprefix(f"{self._service.prefix}/"), texts)
        return read_openai(await self._http.post("/embeddings", body), len(texts), self._http.error)

    def missing(self) -> str | None:
        """Why no request could be sent: no key, or an address that a key must not go to."""
        return self._problem

    @property
    def address(self) -> str:
        """The base URL."""
        return self._http.endpoint.url

    async def models(self) -> tuple[str, ...]:
        """The names of the models that the service has."""
        if self._problem is not None:
            raise ModelError(self._problem)
        if self._service.key_path is not None:  # its list of models is open to everybody
            await self._http.get(self._service.key_path)
        return await self._http.names("/models", self._service.models_field)

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _wire(self, request: ModelRequest, model: str, refused: Collection[str]) -> Wire:
        """The API that the request is made in."""
        if not self._has_responses(refused):
            return self._chat
        use = self._service.family(model).responses
        with_tools = bool(request.tools) or any(message.tool_calls for message in request.messages)
        needed = use == "always" or (use == "with tools" and with_tools)
        return self._responses if needed or CHAT in refused else self._chat

    def _has_responses(self, refused: Collection[str]) -> bool:
        return self._service.responses and RESPONSES not in refused

    async def _ask(self, wire: Wire, body: JsonObject, listener: _Listener | None) -> JsonObject:
        """The document that answers, streamed or not."""
        if not body.get("stream"):
            document = await self._http.post(wire.path, body)
        else:
            reader = wire.reader(None if listener is None else listener.hear)
            whole = await self._http.stream(wire.path, body, reader.receive)
            document = reader.document() if whole is None else whole
        wire.check(document)
        return document


def open_openai(env: Mapping[str, str]) -> OpenAILike:
    """The provider of `openai/…` ids."""
    return OpenAILike(OPENAI, env)


def open_openrouter(env: Mapping[str, str]) -> OpenAILike:
    """The provider of `openrouter/…` ids."""
    return OpenAILike(OPENROUTER, env)


def open_together(env: Mapping[str, str]) -> OpenAILike:
    """The provider of `together/…` ids."""
    return OpenAILike(TOGETHER, env)


class _Listener:
    """Hands text on as it comes, without thoughts, and at the end what has not been told yet; `told` counts it."""

    def __init__(self, on_delta: OnDelta, thinks_aloud: bool) -> None:
        self._on_delta = on_delta
        self._spoken = Spoken() if thinks_aloud else None
        self.told = 0

    def hear(self, text: str) -> None:
        """Take the next text of a stream."""
        self._tell(text if self._spoken is None else self._spoken.feed(text))

    def end(self, whole: str) -> None:
        """Tell the rest of the text: all of it where the server did not stream."""
        self._tell(whole[self.told :])

    def _tell(self, text: str) -> None:
        self.told += len(text)
        if text:
            self._on_delta(text)

"""Chat completions: OpenAI's, those of its like-minded servers, OpenRouter's and Together's (chat_services.py).

A setting that a family of models does not take is left out and named in the reply's warnings; one that the service
refuses to a model, although the table does not say so, too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.access import access_problem
from halo_runtime.models.base import Message, ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import (
    ToolNames,
    check_reported,
    content_text,
    read_reply,
    request_body,
    tool_names,
)
from halo_runtime.models.chat_services import OPENAI, OPENROUTER, TOGETHER, ChatService
from halo_runtime.models.chat_stream import CompletionStream
from halo_runtime.models.http import JsonService
from halo_runtime.models.thoughts import Spoken, spoken

PATH: Final = "/chat/completions"

_SAMPLING: Final = ("temperature", "top_p")
_REFUSALS: Final = frozenset({400, 404, 422, 501})
_NOT_TAKEN: Final = re.compile(
    r"deprecated|not (be )?support|unsupported|not permitted|unrecognized|unknown|extra inputs|requested parameters"
    r"|must be verified|not implemented",
    re.IGNORECASE,
)
_NAMED: Final = {
    "stream_options": re.compile(r"stream_options"),
    "stream": re.compile(r"\bstream(ing|ed)?\b", re.IGNORECASE),
    "response_format": re.compile(r"(?<!schema for )response_format|requested parameters"),
    **{name: re.compile(rf"\b{name}\b") for name in _SAMPLING},
}
"""Setting that can be done without → how a refusal names it."""


class ChatCompletions:
    """A ModelProvider for one service; its key and address are read from `env` once.

    It remembers which settings the service refused to a model, so that each costs one request at most.
    """

    def __init__(self, service: ChatService, env: Mapping[str, str]) -> None:
        key = env.get(service.key_variable, "").strip()
        endpoint = service.endpoint(env, key)
        self._service = service
        self._problem = access_problem(endpoint, key, service.url)
        self._http = JsonService(endpoint)
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
            body, warnings = self._body(request, model, names, refused)
            body |= {} if listener is None else self._streamed(refused)
            try:
                document = await self._ask(body, listener)
                break
            except ModelError as error:
                name = _refused_setting(error, body)
                if name is None or (listener is not None and listener.told):
                    raise
                refused.add(name)
        reply = read_reply(document, names, self._http.error)
        if listener is not None:
            listener.end(reply.text)
        return replace(reply, warnings=warnings + reply.warnings, opaque=self._opaque(document, model))

    def missing(self) -> str | None:
        """Why no request could be sent: no key, or an address that a key must not go to."""
        return self._problem

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _ask(self, body: JsonObject, listener: _Listener | None) -> JsonObject:
        """The completion that answers, streamed or not."""
        if not body.get("stream"):
            document = await self._http.post(PATH, body)
        else:
            hear = None if listener is None else listener.hear
            stream = CompletionStream(hear, self._http.error, self._http.failure)
            whole = await self._http.stream(PATH, body, stream.receive)
            document = stream.completion() if whole is None else whole
        check_reported(document, self._http.error, self._http.failure)
        if self._service.thinks_aloud:
            _drop_thoughts(document)
        return document

    def _streamed(self, refused: Collection[str]) -> JsonObject:
        """What asks for a stream, where the server has them."""
        if "stream" in refused:
            return {}
        usage = self._service.asks_for_usage and "stream_options" not in refused
        return {"stream": True} | ({"stream_options": {"include_usage": True}} if usage else {})

    def _body(
        self, request: ModelRequest, model: str, names: ToolNames, refused: Collection[str]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """All of a request but whether it streams, and a warning for each setting that the model does not take."""
        settings, warnings = self._settings(request, model, refused)
        if request.json_schema is not None and "response_format" in refused:
            request = _in_words(request)
            warnings += (f"{model} takes no schema here; it was asked for in the system prompt instead",)
        body = request_body(request, model, names, strict=self._service.strict) | settings
        if request.json_schema is not None and self._service.insists:
            body["provider"] = {"require_parameters": True}
        for wire, message in zip(body["messages"], request.messages, strict=True):
            kept: Json = (message.opaque or {}).get(self._service.prefix)
            if is_object(kept) and kept.get("model") == model:  # other models' signatures would be refused
                wire["reasoning_details"] = kept["reasoning_details"]
        return body, warnings

    def _settings(
        self, request: ModelRequest, model: str, refused: Collection[str]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """The settings that the model takes, and a warning for each that it does not."""
        takes = self._service.family(model)
        settings: JsonObject = {}
        warnings: list[str] = []
        if request.max_tokens is not None:
            settings[takes.max_tokens] = request.max_tokens
        for name in _SAMPLING:
            value = getattr(request, name)
            if value is not None and takes.sampling and name not in refused:
                settings[name] = value
            elif value is not None:
                warnings.append(f"{model} does not take {name}; it was left out")
        if request.tools and takes.tools == "no":
            advice = "offers tools with {} only in its responses API, which this version does not speak"
            raise self._http.error(advice.format(model))
        if request.tools and takes.tools == "without reasoning":
            settings["reasoning_effort"] = "none"
            warnings.append(f"{model} takes tools here only with its reasoning off; reasoning_effort was set to none")
        return settings, tuple(warnings)

    def _opaque(self, document: JsonObject, model: str) -> JsonObject | None:
        details: Json = document["choices"][0]["message"].get("reasoning_details")
        if not self._service.keeps_reasoning or not details:
            return None
        return {self._service.prefix: {"model": model, "reasoning_details": details}}


def open_openai(env: Mapping[str, str]) -> ChatCompletions:
    """The provider of `openai/…` ids."""
    return ChatCompletions(OPENAI, env)


def open_openrouter(env: Mapping[str, str]) -> ChatCompletions:
    """The provider of `openrouter/…` ids."""
    return ChatCompletions(OPENROUTER, env)


def open_together(env: Mapping[str, str]) -> ChatCompletions:
    """The provider of `together/…` ids."""
    return ChatCompletions(TOGETHER, env)


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


def _refused_setting(error: ModelError, body: JsonObject) -> str | None:
    """The setting that a request failed for because the server or the model does not have it at all."""
    detail = error.detail or ""
    if error.status not in _REFUSALS or not _NOT_TAKEN.search(detail):
        return None
    return next((name for name, pattern in _NAMED.items() if name in body and pattern.search(detail)), None)


def _in_words(request: ModelRequest) -> ModelRequest:
    """The request with its schema in the system prompt."""
    wanted = f"Your final answer is nothing but JSON of this schema: {json.dumps(request.json_schema)}"
    first, *others = request.messages
    if first.role == "system":
        messages = (replace(first, content=f"{first.content}\n\n{wanted}"), *others)
    else:
        messages = (Message("system", wanted), *request.messages)
    return replace(request, json_schema=None, messages=messages)


def _drop_thoughts(document: JsonObject) -> None:
    """Take the thoughts out of a completion's text."""
    choices: Json = document.get("choices")
    for choice in choices if is_list(choices) else ():
        message: Json = choice.get("message") if is_object(choice) else None
        text = content_text(message.get("content")) if is_object(message) else None
        if is_object(message) and text:
            message["content"] = spoken(text)

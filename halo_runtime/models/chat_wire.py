"""Chat completions as a `Wire`: OpenAI's, those of its like-minded servers, OpenRouter's and Together's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import ToolNames, check_reported, content_text, read_reply, request_body
from halo_runtime.models.chat_services import ChatService
from halo_runtime.models.chat_stream import CompletionStream
from halo_runtime.models.http import JsonService
from halo_runtime.models.openai_families import Family
from halo_runtime.models.openai_schema import in_words
from halo_runtime.models.openai_wire import CHAT, left_out, sampling, schema_in_words
from halo_runtime.models.thoughts import spoken
from halo_runtime.models.turns import answered

_LIMITS: Final = ("max_tokens", "max_completion_tokens")


class ChatWire:
    """Chat completions of one service."""

    name = CHAT
    path = "/chat/completions"

    def __init__(self, service: ChatService, http: JsonService) -> None:
        self._service = service
        self._http = http

    def body(
        self, request: ModelRequest, model: str, names: ToolNames, refused: Collection[str]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """All of a request but whether it streams, and a warning for each setting that was left out."""
        settings, warnings = self._settings(request, model, refused)
        if request.json_schema is not None and "response_format" in refused:
            request = in_words(request)
            warnings += (schema_in_words(model),)
        request = replace(request, messages=answered(request.messages))
        body = request_body(request, model, names, strict=self._service.strict) | settings
        if request.json_schema is not None and self._service.insists:
            body["provider"] = {"require_parameters": True}
        for wire, message in zip(body["messages"], request.messages, strict=True):
            kept: Json = (message.opaque or {}).get(self._service.prefix)
            if is_object(kept) and kept.get("model") == model:  # other models' signatures would be refused
                wire["reasoning_details"] = kept["reasoning_details"]
        return body, warnings

    def streamed(self, refused: Collection[str]) -> JsonObject:
        """What asks for a stream, where the server has them."""
        if "stream" in refused:
            return {}
        usage = self._service.asks_for_usage and "stream_options" not in refused
        return {"stream": True} | ({"stream_options": {"include_usage": True}} if usage else {})

    def reader(self, hear: OnDelta | None) -> CompletionStream:
        """Takes a stream of chunks."""
        return CompletionStream(hear, self._http.error, self._http.failure)

    def check(self, document: JsonObject) -> None:
        """Raise ModelError for a failure under status 200."""
        check_reported(document, self._http.error, self._http.failure)

    def reply(self, document: JsonObject, model: str, names: ToolNames) -> ModelReply:
        """The reply in a completion, without the thoughts of models that think aloud."""
        if self._service.thinks_aloud:
            _drop_thoughts(document)
        reply = read_reply(document, names, self._http.error)
        details: Json = document["choices"][0]["message"].get("reasoning_details")
        if not self._service.keeps_reasoning or not details:
            return reply
        return replace(reply, opaque={self._service.prefix: {"model": model, "reasoning_details": details}})

    def _settings(
        self, request: ModelRequest, model: str, refused: Collection[str]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        takes = self._service.family(model)
        settings, warnings = sampling(request, model, takes, refused)
        if request.max_tokens is not None:
            limit = _limit(takes, refused)
            settings |= {} if limit is None else {limit: request.max_tokens}
            warnings += (left_out(model, "max_tokens"),) if limit is None else ()
        if request.tools and takes.responses != "never" and self._service.responses:
            if not takes.rests:
                raise self._http.error(f"has no responses API, and {model} takes tools nowhere else")
            settings["reasoning_effort"] = "none"
            warnings += (f"{model} takes tools here only with its reasoning off; reasoning_effort was set to none",)
        return settings, warnings


def _limit(takes: Family, refused: Collection[str]) -> str | None:
    """The name that the limit of tokens goes by: the family's, else the other one that servers have for it."""
    names = (takes.max_tokens, *_LIMITS)
    return next((name for name in names if name not in refused), None)


def _drop_thoughts(document: JsonObject) -> None:
    """Take the thoughts out of a completion's text."""
    choices: Json = document.get("choices")
    for choice in choices if is_list(choices) else ():
        message: Json = choice.get("message") if is_object(choice) else None
        text = content_text(message.get("content")) if is_object(message) else None
        if is_object(message) and text:
            message["content"] = spoken(text)

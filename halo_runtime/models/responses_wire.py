"""OpenAI's responses API as a `Wire`."""

from __future__ import annotations

from collections.abc import Collection

from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import ToolNames
from halo_runtime.models.chat_services import ChatService
from halo_runtime.models.http import JsonService
from halo_runtime.models.openai_schema import in_words
from halo_runtime.models.openai_wire import RESPONSES, sampling, schema_in_words
from halo_runtime.models.responses_reply import check_response, read_reply
from halo_runtime.models.responses_request import request_body
from halo_runtime.models.responses_stream import ResponseStream


class ResponsesWire:
    """The responses API of one service."""

    name = RESPONSES
    path = "/responses"

    def __init__(self, service: ChatService, http: JsonService) -> None:
        self._service = service
        self._http = http

    def body(
        self, request: ModelRequest, model: str, names: ToolNames, refused: Collection[str]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """All of a request but whether it streams, and a warning for each setting that was left out."""
        settings, warnings = sampling(request, model, self._service.family(model), refused)
        if request.json_schema is not None and "text" in refused:
            request = in_words(request)
            warnings += (schema_in_words(model),)
        body = request_body(request, model, names) | settings
        if "include" in refused:
            del body["include"]
        return body, warnings

    def streamed(self, refused: Collection[str]) -> JsonObject:
        """What asks for a stream, where the server has them. Its usage comes in any case."""
        return {} if "stream" in refused else {"stream": True}

    def reader(self, hear: OnDelta | None) -> ResponseStream:
        """Takes a stream of events."""
        return ResponseStream(hear, self._http.error, self._http.failure)

    def check(self, document: JsonObject) -> None:
        """Raise ModelError for a failure under status 200."""
        check_response(document, self._http.error, self._http.failure)

    def reply(self, document: JsonObject, model: str, names: ToolNames) -> ModelReply:
        """The reply in a response."""
        return read_reply(document, model, names, self._http.error)

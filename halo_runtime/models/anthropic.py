"""Anthropic's messages API, and whatever answers it at ANTHROPIC_BASE_URL."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.access import access_problem
from halo_runtime.models.anthropic_reply import MessageStream, read_reply
from halo_runtime.models.anthropic_request import request_body
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import tool_names
from halo_runtime.models.http import Endpoint, JsonService

DEFAULT_URL: Final = "https://api.anthropic.com"
KEY_VARIABLE: Final = "ANTHROPIC_API_KEY"
URL_VARIABLE: Final = "ANTHROPIC_BASE_URL"
VERSION: Final = "2023-06-01"
"""Of the API. The next one refuses sampling settings even to models that take them."""

PATH: Final = "/v1/messages"
MAX_WHOLE: Final = 21_333
"""Tokens up to which an answer is sure to come whole within ten minutes; above, it is streamed in any case."""

FIRST_SECONDS: Final = 120.0
"""The service sends pings where it has nothing else to say."""
STREAM_SECONDS: Final = 3600.0
"""What the longest answer of any model may take."""

_SETTINGS: Final = ("temperature", "top_p", "output_config")
_NOT_TAKEN: Final = re.compile(r"deprecated|not supported|unsupported|not permitted|extra inputs|cannot both", re.I)


class Anthropic:
    """A ModelProvider for the messages API; its key and address are read from `env` once.

    It remembers which settings the service refused to a model, so that each costs one request at most.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        key = env.get(KEY_VARIABLE, "").strip()
        endpoint = _endpoint(env, key)
        self._problem = access_problem(endpoint, key, DEFAULT_URL)
        self._service = JsonService(endpoint)
        self._refused: defaultdict[str, set[str]] = defaultdict(set)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Send one request; ModelError where the service refuses, fails, or answers with nothing that can be used."""
        if self._problem is not None:
            raise ModelError(self._problem)
        model = request.model.removeprefix("anthropic/")
        names = tool_names(request)
        while True:
            body, warnings = request_body(request, model, names, self._refused[model])
            try:
                message, whole = await self._ask(body, on_delta)
                break
            except ModelError as error:
                name = _refused_setting(error, body)
                if name is None:
                    raise
                self._refused[model].add(name)
        reply = read_reply(message, body, names, self._service.error)
        if on_delta is not None and whole and reply.text:
            on_delta(reply.text)
        return replace(reply, warnings=warnings + reply.warnings)

    def forecast(self, request: ModelRequest) -> tuple[str, ...]:
        """What the model's family leaves out."""
        model = request.model.removeprefix("anthropic/")
        return request_body(request, model, tool_names(request), self._refused[model])[1]

    def missing(self) -> str | None:
        """Why no request could be sent: no key, or an address that a key must not go to."""
        return self._problem

    @property
    def address(self) -> str:
        """The base URL."""
        return self._service.endpoint.url

    async def models(self) -> tuple[str, ...]:
        """The names of the models that the service has."""
        if self._problem is not None:
            raise ModelError(self._problem)
        return await self._service.names("/v1/models?limit=1000", "data")

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def _ask(self, body: JsonObject, on_delta: OnDelta | None) -> tuple[JsonObject, bool]:
        """The message that answers, and whether it came whole, although a stream may have been asked for."""
        if on_delta is None and body["max_tokens"] <= MAX_WHOLE:
            return await self._service.post(PATH, body), True
        stream = MessageStream(on_delta, self._service.error, self._service.failure)
        whole = await self._service.stream(PATH, body | {"stream": True}, stream.receive)
        return (stream.message(), False) if whole is None else (whole, True)


def open_service(env: Mapping[str, str]) -> Anthropic:
    """The provider of `anthropic/…` ids."""
    return Anthropic(env)


def _refused_setting(error: ModelError, body: JsonObject) -> str | None:
    """The setting that a request failed for because the model does not have it at all."""
    detail = error.detail or ""
    if error.status != 400 or not _NOT_TAKEN.search(detail):
        return None
    return next((name for name in reversed(_SETTINGS) if name in body and name in detail), None)


def _endpoint(env: Mapping[str, str], key: str) -> Endpoint:
    url = (env.get(URL_VARIABLE, "").strip() or DEFAULT_URL).rstrip("/").removesuffix("/messages").removesuffix("/v1")
    headers = {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
    return Endpoint(
        service="Anthropic",
        url=url,
        key_variable=KEY_VARIABLE,
        url_variable=URL_VARIABLE,
        headers=headers,
        secrets=(key,) if key else (),
        first_seconds=FIRST_SECONDS,
        stream_seconds=STREAM_SECONDS,
    )

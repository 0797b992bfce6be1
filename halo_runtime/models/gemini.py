"""Gemini by generateContent and streamGenerateContent.

An answer that ends at the service's limit for one exchange goes on in the next, up to `max_tokens`; it is one reply,
and every exchange is counted in its usage.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from halo_lang.records import record
from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.access import access_problem
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import tool_names
from halo_runtime.models.embedding_wire import gemini_body, read_gemini
from halo_runtime.models.embeddings import Embedded, Purpose
from halo_runtime.models.gemini_reply import Answer
from halo_runtime.models.gemini_request import instruction, request_body, response_format
from halo_runtime.models.http import Endpoint, JsonService
from halo_runtime.models.streams import Event, Events

DEFAULT_URL: Final = "https://generativelanguage.googleapis.com"
DEFAULT_VERSION: Final = "v1beta"
KEY_VARIABLES: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""The first that is set counts."""
URL_VARIABLE: Final = "GOOGLE_GEMINI_BASE_URL"
VERSION_VARIABLE: Final = "GOOGLE_GENAI_API_VERSION"

MAX_EXCHANGES: Final = 64
"""Of one reply; more would be a service that goes round in circles."""

_PREFIXES: Final = re.compile(r"^(google/|gemini/)?(models/)?")
_VERSIONED: Final = re.compile(r".*/v\d\w*")
_SAMPLING: Final = {"temperature": re.compile("temperature"), "top_p": re.compile(r"\btop_?[pP]\b")}
"""Settings that newer models do without, and how the service names them where it refuses them."""
_NOT_TAKEN: Final = re.compile(
    r"not support|unsupported|unknown name|not allowed|not accepted|deprecated", re.IGNORECASE
)


@record
class Family:
    """What the models whose names match `pattern` do.

    `schema_beside_tools`: they take a schema in a request that offers tools. `signs`: they sign their calls.
    """

    pattern: re.Pattern[str]
    schema_beside_tools: bool = True
    signs: bool = True


FAMILIES: Final = (
    Family(re.compile(r"gemini-[12](?!\d)|gemma-|learnlm-"), schema_beside_tools=False, signs=False),
    Family(re.compile("")),
)
"""The first that matches counts."""


class Gemini:
    """A ModelProvider for generateContent; its key and address are read from `env` once.

    It remembers which settings the service refused to a model, so that each costs one request at most.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        keys = {name: key for name in KEY_VARIABLES if (key := env.get(name, "").strip())}
        endpoint = _endpoint(env, keys)
        self._problem = access_problem(endpoint, next(iter(keys.values()), ""), DEFAULT_URL)
        self._service = JsonService(endpoint)
        self._warnings = _AMBIGUOUS if len(set(keys.values())) > 1 else ()
        self._refused: defaultdict[str, set[str]] = defaultdict(set)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Send one request; ModelError where the service refuses, fails, or answers with nothing that can be used."""
        if self._problem is not None:
            raise ModelError(self._problem)
        model = _PREFIXES.sub("", request.model)
        refused = self._refused[model]
        while True:
            taken = replace(request, **dict.fromkeys(refused))
            try:
                reply = await self._ask(taken, model, on_delta)
                break
            except ModelError as error:
                name = _refused_setting(error, taken)
                if name is None:
                    raise
                refused.add(name)
        made = [name for name in _SAMPLING if name in refused and getattr(request, name) is not None]
        left_out = tuple(f"{model} does not take {name}; it was left out" for name in made)
        return replace(reply, warnings=self._warnings + left_out + reply.warnings)

    def forecast(self, request: ModelRequest) -> tuple[str, ...]:
        """What the model's family leaves out."""
        return self._warnings + _body(request, _PREFIXES.sub("", request.model), tool_names(request))[1]

    async def embed(self, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of some texts, in one request."""
        if self._problem is not None:
            raise ModelError(self._problem)
        name = _PREFIXES.sub("", model)
        answer = await self._service.post(
            f"/models/{quote(name)}:batchEmbedContents", gemini_body(name, texts, purpose)
        )
        return read_gemini(answer, len(texts), self._service.error)

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
        found = await self._service.names("/models?pageSize=1000", "models", "name")
        return tuple(name.removeprefix("models/") for name in found)

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def _ask(self, request: ModelRequest, model: str, on_delta: OnDelta | None) -> ModelReply:
        """The reply to a request of which the model takes all, over as many exchanges as it needs."""
        names = tool_names(request)
        body, warnings = _body(request, model, names)
        answer = Answer(model, names, self._service.error)
        exchange = _Exchange(self._service, model, answer, on_delta)
        await exchange.hold(body)
        for _ in range(MAX_EXCHANGES - 1):
            if answer.continuation is None:
                break
            await exchange.hold(body | {"continuationToken": answer.continuation})
        rest = answer.end()
        if rest and on_delta is not None:
            on_delta(rest)
        reply = answer.reply()
        return replace(reply, warnings=warnings + reply.warnings)


def open_service(env: Mapping[str, str]) -> Gemini:
    """The provider of `google/…` and `gemini/…` ids."""
    return Gemini(env)


def family(model: str) -> Family:
    """What the model does, by its name on the wire."""
    return next(item for item in FAMILIES if item.pattern.match(model))


class _Exchange:
    """Requests that are answered into one Answer, streamed where somebody listens."""

    def __init__(self, service: JsonService, model: str, answer: Answer, on_delta: OnDelta | None) -> None:
        path = model if model.startswith("tunedModels/") else f"models/{model}"
        self._service = service
        self._path = f"/{quote(path)}"
        self._answer = answer
        self._on_delta = on_delta

    async def hold(self, body: JsonObject) -> None:
        """Send one request and take its whole answer."""
        self._answer.begin()
        if self._on_delta is None:
            self._take(await self._service.post(f"{self._path}:generateContent", body))
            return
        events = Events()
        whole = await self._service.stream(
            f"{self._path}:streamGenerateContent?alt=sse", body, lambda part: self._hear(events.feed(part))
        )
        if whole is not None:
            self._take(whole)
            return
        self._hear(events.end())
        if not self._answer.ended:
            raise self._service.error("ended its stream before its answer was complete", retryable=True)

    def _hear(self, events: Sequence[Event]) -> bool:
        """Take what was streamed. No event is the last one: usage may follow the reason to finish."""
        for event in events:
            try:
                document: Json = json.loads(event.data)
            except (ValueError, RecursionError):
                document = None
            if not is_object(document):
                raise self._service.error("streamed something that is no JSON object", retryable=True)
            self._take(document)
        return False

    def _take(self, document: JsonObject) -> None:
        error: Json = document.get("error")
        if is_object(error):
            code: Json = error.get("code")
            raise self._service.failure(code if type(code) is int else 500, document)
        text = self._answer.take(document)
        if text and self._on_delta is not None:
            self._on_delta(text)


_AMBIGUOUS: Final = (f"{' and '.join(KEY_VARIABLES)} are both set; {KEY_VARIABLES[0]} was used",)


def _refused_setting(error: ModelError, request: ModelRequest) -> str | None:
    """The setting that a request failed for because the model does not have it at all."""
    detail = error.detail or ""
    if error.status != 400 or not _NOT_TAKEN.search(detail):
        return None
    made = (name for name in _SAMPLING if getattr(request, name) is not None)
    return next((name for name in made if _SAMPLING[name].search(detail)), None)


def _body(request: ModelRequest, model: str, names: Mapping[str, str]) -> tuple[JsonObject, tuple[str, ...]]:
    """The body of a request, and a warning where the model does not take all of it."""
    takes = family(model)
    body = request_body(request, model, names, signs=takes.signs)
    if request.json_schema is None:
        return body, ()
    if request.tools and not takes.schema_beside_tools:
        system = body.setdefault("systemInstruction", {"parts": []})
        system["parts"].append(instruction(request.json_schema))
        return body, (f"{model} takes no schema beside tools; it was asked for in the system instruction instead",)
    return body | {"generationConfig": {**body.get("generationConfig", {}), **response_format(request.json_schema)}}, ()


def _endpoint(env: Mapping[str, str], keys: Mapping[str, str]) -> Endpoint:
    variable, key = next(iter(keys.items()), (KEY_VARIABLES[-1], ""))
    return Endpoint(
        service="Gemini",
        url=_base_url(env),
        key_variable=variable,
        url_variable=URL_VARIABLE,
        headers={"x-goog-api-key": key} if key else {},
        secrets=tuple(keys.values()),
    )


def _base_url(env: Mapping[str, str]) -> str:
    """The address that `/models/…` is added to, whether people end it in `/` or write the version themselves."""
    url = (env.get(URL_VARIABLE, "").strip() or DEFAULT_URL).rstrip("/").removesuffix("/models")
    version = env.get(VERSION_VARIABLE, "").strip().strip("/") or DEFAULT_VERSION
    return url if _VERSIONED.fullmatch(url) else f"{url}/{quote(version)}"

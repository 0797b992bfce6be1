"""OpenAI, and every server that speaks its chat completions (llama.cpp, vLLM, LM Studio, Ollama) by OPENAI_BASE_URL.

Without streaming. What each family of OpenAI's models takes is a table; a setting that a family refuses is left out
and named in the reply's warnings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.models.access import access_problem
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import read_reply, request_body, tool_names
from halo_runtime.models.http import Endpoint, JsonService

DEFAULT_URL: Final = "https://api.openai.com/v1"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
URL_VARIABLE: Final = "OPENAI_BASE_URL"

_ACCOUNT_HEADERS: Final = {"OPENAI_ORG_ID": "openai-organization", "OPENAI_PROJECT_ID": "openai-project"}
_ONLY_HOST: Final = re.compile(r"https?://[^/]+")

Tools: TypeAlias = Literal["yes", "without reasoning", "no"]


@record
class Family:
    """What the models whose names match `pattern` take in chat completions.

    `sampling`: temperature and top_p. `tools`: always, only with reasoning switched off, or not at all.
    """

    pattern: re.Pattern[str]
    max_tokens: str = "max_tokens"
    sampling: bool = True
    tools: Tools = "yes"


def _reasoning(pattern: str, tools: Tools = "yes") -> Family:
    return Family(re.compile(pattern), max_tokens="max_completion_tokens", sampling=False, tools=tools)


FAMILIES: Final = (
    _reasoning(r"o\d"),
    _reasoning(r"gpt-5(\.[1-5])?(?![.\d])"),
    _reasoning(r"gpt-5\.", tools="without reasoning"),
    _reasoning(r"gpt-6-(sol|luna)", tools="without reasoning"),
    _reasoning(r"gpt-([6-9]|[12]\d)", tools="no"),
    Family(re.compile("")),
)
"""The first that matches counts. The last one is for older models and for other servers' models."""


class OpenAI:
    """A ModelProvider for chat completions; its key and address are read from `env` once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        key = env.get(KEY_VARIABLE, "").strip()
        endpoint = _endpoint(env, key)
        self._problem = access_problem(endpoint, key, DEFAULT_URL)
        self._service = JsonService(endpoint)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Send one request; ModelError where the service refuses, fails, or answers with nothing that can be used."""
        if self._problem is not None:
            raise ModelError(self._problem)
        model = request.model.removeprefix("openai/")
        names = tool_names(request)
        settings, warnings = _settings(request, model, self._service)
        document = await self._service.post("/chat/completions", request_body(request, model, names) | settings)
        reply = read_reply(document, names, self._service.error)
        return replace(reply, warnings=warnings + reply.warnings)

    def missing(self) -> str | None:
        """Why no request could be sent: no key, or an address that a key must not go to."""
        return self._problem

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()


def open_service(env: Mapping[str, str]) -> OpenAI:
    """The provider of `openai/…` ids."""
    return OpenAI(env)


def family(model: str) -> Family:
    """What the model takes, by its name on the wire; a fine-tuned one (`ft:…`) takes what its base does."""
    base = model.removeprefix("ft:")
    return next(item for item in FAMILIES if item.pattern.match(base))


def _settings(request: ModelRequest, model: str, service: JsonService) -> tuple[JsonObject, tuple[str, ...]]:
    """The settings that the model's family takes, and a warning for each that it does not."""
    takes = family(model)
    settings: JsonObject = {}
    warnings: list[str] = []
    if request.max_tokens is not None:
        settings[takes.max_tokens] = request.max_tokens
    for name in ("temperature", "top_p"):
        value = getattr(request, name)
        if value is not None and takes.sampling:
            settings[name] = value
        elif value is not None:
            warnings.append(f"{model} does not take {name}; it was left out")
    if request.tools and takes.tools == "no":
        raise service.error(f"offers tools with {model} only in its responses API, which this version does not speak")
    if request.tools and takes.tools == "without reasoning":
        settings["reasoning_effort"] = "none"
        warnings.append(f"{model} takes tools here only with its reasoning off; reasoning_effort was set to none")
    return settings, tuple(warnings)


def _base_url(env: Mapping[str, str]) -> str:
    """The address that `/chat/completions` is added to, whether people end it in `/`, leave `/v1` out or write all."""
    url = (env.get(URL_VARIABLE, "").strip() or DEFAULT_URL).rstrip("/").removesuffix("/chat/completions")
    return f"{url}/v1" if _ONLY_HOST.fullmatch(url) else url


def _endpoint(env: Mapping[str, str], key: str) -> Endpoint:
    headers = {header: env.get(name, "").strip() for name, header in _ACCOUNT_HEADERS.items()}
    headers["authorization"] = f"Bearer {key}" if key else ""
    return Endpoint(
        service="OpenAI",
        url=_base_url(env),
        key_variable=KEY_VARIABLE,
        url_variable=URL_VARIABLE,
        headers={name: value for name, value in headers.items() if value},
        secrets=(key,) if key else (),
    )

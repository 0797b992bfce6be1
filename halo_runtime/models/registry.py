"""Which service answers for a model id. A service is one module, imported when the first model of it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from halo_runtime.errors import ConfigError
from halo_runtime.models.base import ModelProvider, ProviderFactory

WITHOUT_A_KEY: Final = "use --replies FILE or --model local/smollm2"
"""The two ways to run a program without any service."""


@dataclass(frozen=True, slots=True)
class Service:
    """A model service: its key here, the name people know, and what is sent where.

    `factory` is `module:function` of a ProviderFactory, None for a service that this version does not have;
    `key_variable` the environment variable of its key; `models` the only names it has, None for any.
    """

    key: str
    title: str
    factory: str | None = None
    key_variable: str | None = None
    models: frozenset[str] | None = None


_SERVICES: Final = (
    Service("openai", "OpenAI", "halo_runtime.models.openai:open_service", "OPENAI_API_KEY"),
    Service("local", "the embedded model", "halo_runtime.models.local:open_service", models=frozenset({"smollm2"})),
    Service("scripted", "the scripted model"),
    Service("anthropic", "Anthropic", key_variable="ANTHROPIC_API_KEY"),
    Service("google", "Google Gemini", key_variable="GEMINI_API_KEY"),
    Service("openrouter", "OpenRouter", key_variable="OPENROUTER_API_KEY"),
    Service("together", "Together", key_variable="TOGETHER_API_KEY"),
    Service("replicate", "Replicate", key_variable="REPLICATE_API_TOKEN"),
)

_ALIASES: Final = {"gemini": "google", "ollama": "local"}
"""Prefix → the service that it is another word for."""

_BARE: Final = (
    (re.compile(r"(gpt|o1|o3|o4|chatgpt)-"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "google"),
)
"""How the ids that may stand without a prefix begin."""


class ModelRegistry:
    """Finds and holds the providers of one Runtime; each service is opened once, with the variables of `env`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._services = {service.key: service for service in _SERVICES}
        self._factories: dict[str, ProviderFactory] = {}
        self._open: dict[str, ModelProvider] = {}

    def register(self, prefix: str, factory: ProviderFactory) -> None:
        """Let `factory` make the provider of `prefix/…` ids; it takes the place of a built-in one."""
        self._factories[prefix] = factory
        self._open.pop(prefix, None)

    def resolve(self, model: str) -> tuple[str, str]:
        """The service's key and the name it knows the model by; ConfigError for an id that names no service."""
        prefix, slash, name = model.partition("/")
        key = self._service_of(prefix) if slash else _bare_service(model)
        if key is None or (slash and not name):
            raise ConfigError(f'the model "{model}" names no service; write one of {self._prefixes()}')
        return key, name if slash else model

    def provider(self, model: str) -> ModelProvider:
        """The provider that answers for `model`; ConfigError where this version has none."""
        key, name = self.resolve(model)
        if key in self._services and key not in self._factories:
            _check_name(self._services[key], name, model)
        if key not in self._open:
            self._open[key] = self._factory(key, model)(self._env)
        return self._open[key]

    def require(self, models: Iterable[str]) -> None:
        """Raise ConfigError when one of `models` cannot work (no provider, no key, no package); nothing is sent."""
        for model in models:
            problem = self.provider(model).missing()
            if problem is not None:
                raise ConfigError(f"{model}: {problem}")

    async def close(self) -> None:
        """Close every provider that was opened."""
        for provider in self._open.values():
            await provider.close()
        self._open.clear()

    def _service_of(self, prefix: str) -> str | None:
        if prefix in self._factories:
            return prefix
        key = _ALIASES.get(prefix, prefix)
        return key if key in self._services or key in self._factories else None

    def _factory(self, key: str, model: str) -> ProviderFactory:
        if key in self._factories:
            return self._factories[key]
        service = self._services[key]
        if service.factory is None:
            raise ConfigError(_unavailable(service, model))
        module, _, function = service.factory.partition(":")
        return getattr(import_module(module), function)

    def _prefixes(self) -> str:
        return ", ".join(f"{prefix}/…" for prefix in sorted({*self._services, *_ALIASES, *self._factories}))


def _bare_service(model: str) -> str | None:
    return next((key for pattern, key in _BARE if pattern.match(model)), None)


def _check_name(service: Service, name: str, model: str) -> None:
    if service.models is not None and name not in service.models:
        available = ", ".join(f"{service.key}/{each}" for each in sorted(service.models))
        raise ConfigError(
            f"{model}: in process this version runs only {available};"
            f" a server on this machine (Ollama, llama.cpp, vLLM) answers as openai/{name} with"
            " OPENAI_BASE_URL set to its address, such as http://localhost:11434/v1"
        )


def _unavailable(service: Service, model: str) -> str:
    if service.key == "scripted":
        return f"{model} answers from a replies file; name one with --replies FILE"
    key = f", with or without {service.key_variable}" if service.key_variable else ""
    return f"{model}: {service.title} is not available in this version{key}; {WITHOUT_A_KEY}"

"""Which provider answers for a model id. Each is a module of its own, imported when the first model of it is used.

What ids exist and where they lead is the catalogue's (halo_lang/catalog/models.py); here stands what is implemented.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Final

from halo_lang import catalog
from halo_runtime.errors import ConfigError
from halo_runtime.models.base import ModelProvider, ProviderFactory

_FACTORIES: Final = {
    "openai": "halo_runtime.models.openai:open_openai",
    "openrouter": "halo_runtime.models.openai:open_openrouter",
    "together": "halo_runtime.models.openai:open_together",
    "anthropic": "halo_runtime.models.anthropic:open_service",
    "local": "halo_runtime.models.local:open_service",
    "ollama": "halo_runtime.models.ollama:open_service",
    "replicate": "halo_runtime.models.replicate:open_service",
    "google": "halo_runtime.models.gemini:open_service",
}
"""Prefix → `module:function` of a ProviderFactory."""

_EMBEDDED: Final = {"local": frozenset({"smollm2"})}
"""Prefix → the only models it has, where it has not any that people may name; others are left to its service."""

_INSTEAD: Final = {"scripted": "answers from a replies file; name one with --replies FILE"}
"""Prefix whose provider the Runtime registers when it has what it needs → what is said where it has not."""


class ModelRegistry:
    """Finds and holds the providers of one Runtime; each is opened once, with the variables of `env`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._registered: dict[str, ProviderFactory] = {}
        self._open: dict[str, ModelProvider] = {}

    def register(self, prefix: str, factory: ProviderFactory) -> None:
        """Let `factory` make the provider of `prefix/…` ids; it takes the place of a built-in one."""
        self._registered[prefix] = factory
        self._open.pop(prefix, None)

    def resolve(self, model: str) -> tuple[str, str]:
        """The provider's key here and the name it knows the model by; ConfigError for an id that leads nowhere."""
        prefix, _, name = model.partition("/")
        if prefix in self._registered and name:
            return prefix, name
        route = catalog.model_route(model)
        if route is None:
            known = sorted({*catalog.model_prefixes().names, *self._registered})
            raise ConfigError(
                f'the model "{model}" names no service; known are {", ".join(f"{key}/…" for key in known)}'
            )
        special = route.prefix in _FACTORIES and route.model in _EMBEDDED.get(route.prefix, (route.model,))
        return route.prefix if special else route.entry.name, route.model

    def provider(self, model: str) -> ModelProvider:
        """The provider that answers for `model`; ConfigError where there is none."""
        key, _ = self.resolve(model)
        if key not in self._registered and key not in _FACTORIES:
            raise ConfigError(f"the model {model} {_INSTEAD[key]}")
        if key not in self._open:
            self._open[key] = self._factory(key)(self._env)
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

    def _factory(self, key: str) -> ProviderFactory:
        if key in self._registered:
            return self._registered[key]
        module, _, function = _FACTORIES[key].partition(":")
        return getattr(import_module(module), function)

"""Which services there are, what they need from the environment, and whether they answer (`halo models`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from halo_lang import catalog
from halo_lang.catalog.models import MODEL_PREFIXES, ModelPrefix
from halo_lang.records import record
from halo_runtime.errors import HaloError
from halo_runtime.json_types import JsonObject
from halo_runtime.models.base import Service
from halo_runtime.models.local import MODEL_NAME
from halo_runtime.models.pricing import WELL_KNOWN
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.redaction import Redactor

EMBEDDED: Final = f"local/{MODEL_NAME}"
_ANYWHERE: Final = frozenset({"ollama", EMBEDDED})
"""Services that need no configuration; that they are not there is no fault."""


@record
class Listed:
    """A service and what the environment says of it.

    `keys_set` are those of the variables `keys` that are set, one of which is needed. `address` is its base URL, as the
    variable `address_from` says where there is one. `known` are models of it that have a price for certain.
    """

    name: str
    prefixes: tuple[str, ...]
    doc: str
    keys: tuple[str, ...]
    keys_set: tuple[str, ...]
    address: str
    address_variable: str | None
    address_from: str | None
    known: tuple[str, ...]

    @property
    def configured(self) -> bool:
        """Whether somebody means to use it."""
        return bool(self.keys_set) or self.address_from is not None or self.name == EMBEDDED

    def to_json(self) -> JsonObject:
        """As `halo models --json` has it; the key itself is not in it."""
        return {
            "service": self.name,
            "prefixes": list(self.prefixes),
            "keyVariables": list(self.keys),
            "keysSet": list(self.keys_set),
            "baseUrl": self.address,
            "baseUrlVariable": self.address_variable,
            "baseUrlFrom": self.address_from,
            "configured": self.configured,
            "known": list(self.known),
        }


@record
class Answered:
    """What a service said when it was asked for its models: `models`, or what is wrong and what to do.

    `counts`: whether it is a fault that it did not answer; it is none of what nobody has configured.
    """

    service: Listed
    models: tuple[str, ...]
    error: str | None
    hint: str | None
    counts: bool

    def to_json(self) -> JsonObject:
        """The service with how it answered."""
        problem = None if self.error is None else {"message": self.error, "hint": self.hint}
        return {**self.service.to_json(), "ok": self.error is None, "error": problem, "models": list(self.models)}


class Survey:
    """All services as one environment has them."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._registry = ModelRegistry(env)
        self.services = tuple(_listed(entry, env, self._registry) for entry in _entries())

    async def ask(self, seconds: float) -> list[Answered]:
        """Ask every service that is configured, or needs not to be, for its models: side by side, each for a time."""
        asked = [service for service in self.services if service.configured or service.name in _ANYWHERE]
        try:
            return await asyncio.gather(*(self._answer(service, seconds) for service in asked))
        finally:
            await self._registry.close()

    async def _answer(self, service: Listed, seconds: float) -> Answered:
        models: tuple[str, ...] = ()
        error = hint = None
        try:
            async with asyncio.timeout(seconds):
                models = await _provider(self._registry, service.name).models()
        except HaloError as failure:
            error, hint = failure.message, failure.hint
        except TimeoutError:
            error = f"did not answer within {seconds:g} s"
        counts = error is not None and service.configured and service.name != EMBEDDED
        return Answered(service, models, error, hint, counts)


def _entries() -> Iterable[ModelPrefix]:
    """The services that are asked for models, the embedded one as one of its own."""
    yield from (entry for entry in MODEL_PREFIXES if entry.name != "scripted")
    yield ModelPrefix(EMBEDDED, (EMBEDDED,), "The embedded model, in this process.")


def _listed(entry: ModelPrefix, env: Mapping[str, str], registry: ModelRegistry) -> Listed:
    url_variable = entry.base_url
    return Listed(
        name=entry.name,
        prefixes=entry.prefixes,
        doc=entry.doc,
        keys=entry.keys,
        keys_set=tuple(name for name in entry.keys if env.get(name, "").strip()),
        address=Redactor.for_environment(env).text(_shown(_provider(registry, entry.name).address)),
        address_variable=url_variable,
        address_from=url_variable if url_variable is not None and env.get(url_variable, "").strip() else None,
        known=tuple(sorted(name for name in WELL_KNOWN if _is_of(name, entry))),
    )


def _is_of(model: str, entry: ModelPrefix) -> bool:
    route = catalog.model_route(model)
    return route is not None and route.entry.name == entry.name and route.prefix != ""


def _provider(registry: ModelRegistry, name: str) -> Service:
    provider = registry.provider(name if name == EMBEDDED else f"{name}/any")
    assert isinstance(provider, Service), "every service of the catalogue is one"
    return provider


def _shown(address: str) -> str:
    """An address without what may be secret in it: a name and password, a query."""
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "no address"
    return f"{parts.scheme}://{host}{parts.path}" if host else address.partition("?")[0].rpartition("@")[2]

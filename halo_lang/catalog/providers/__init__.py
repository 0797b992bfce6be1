"""The built-in providers of tools and stores, one module a group."""

from __future__ import annotations

from halo_lang.catalog.providers import data, github, local, messages, services, web
from halo_lang.catalog.specs import ProviderSpec

PROVIDERS: tuple[ProviderSpec, ...] = (
    *web.PROVIDERS,
    *data.PROVIDERS,
    *local.PROVIDERS,
    *messages.PROVIDERS,
    *github.PROVIDERS,
    *services.PROVIDERS,
)
"""All of them, in the order of spec 5."""

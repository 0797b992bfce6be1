"""Calls of a provider's methods as a run makes them."""

from __future__ import annotations

from typing import Any

from halo_lang.catalog import ProviderSpec
from halo_runtime.tools.base import ToolProvider


async def call_as_a_run(spec: ProviderSpec, tool: ToolProvider, method: str, **args: Any) -> Any:
    """Call a method through its signature in the catalogue, with its defaults."""
    entry = spec.method(method)
    assert entry is not None
    bound = entry.signature.bind((), args)
    assert not bound.problems
    assert not bound.wrong_values()
    return await tool.call(method, dict(bound.values()))

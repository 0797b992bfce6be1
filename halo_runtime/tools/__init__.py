"""Which provider names have an implementation here, each in a module of its own that is imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from halo_runtime.errors import ConfigError
from halo_runtime.tools.base import ToolFactory

_FACTORIES: Final = {
    "Bash": "halo_runtime.tools.bash:open_shell",
    "Documents": "halo_runtime.tools.documents:open_documents",
    "File": "halo_runtime.tools.history:open_history",
    "GET": "halo_runtime.tools.rest:open_get",
    "GitHub": "halo_runtime.tools.github:open_github",
    "KV": "halo_runtime.tools.kv:open_store",
    "POST": "halo_runtime.tools.rest:open_post",
    "REST": "halo_runtime.tools.rest:open_rest",
    "Workspace": "halo_runtime.tools.workspace:open_workspace",
}
"""Provider name → `module:function`."""


def tool_factory(provider: str) -> ToolFactory:
    """What opens tools of `provider`; ConfigError for one that the catalogue knows and this version does not have."""
    target = _FACTORIES.get(provider)
    if target is None:
        available = ", ".join(sorted(_FACTORIES))
        raise ConfigError(
            f"the provider {provider} is not available in this version (it has {available});"
            f' register one with `runtime.register_tool_provider("{provider}", …)`'
        )
    module, _, function = target.partition(":")
    return getattr(import_module(module), function)

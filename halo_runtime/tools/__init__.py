"""Which provider names have an implementation here, each in a module of its own that is imported when first used."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Final, cast

from halo_lang import catalog
from halo_runtime.errors import ConfigError
from halo_runtime.extras import require
from halo_runtime.tools.base import ToolConfig, ToolFactory, ToolProvider

_FACTORIES: Final = {
    "Bash": "halo_runtime.tools.shell.bash:open_shell",
    "Browser": "halo_runtime.tools.browser.provider:open_browser",
    "Chrome": "halo_runtime.tools.browser.provider:open_chrome",
    "Code": "halo_runtime.tools.code.provider:open_code",
    "Documents": "halo_runtime.tools.documents.provider:open_documents",
    "Email": "halo_runtime.tools.email.provider:open_email",
    "File": "halo_runtime.tools.history:open_history",
    "Figma": "halo_runtime.tools.figma.provider:open_figma",
    "GET": "halo_runtime.tools.rest:open_get",
    "GitHub": "halo_runtime.tools.github.provider:open_github",
    "KV": "halo_runtime.tools.kv:open_store",
    "Linear": "halo_runtime.tools.linear.provider:open_linear",
    "MCP": "halo_runtime.tools.mcp.provider:open_mcp",
    "POST": "halo_runtime.tools.rest:open_post",
    "PostgreSQL": "halo_runtime.tools.sql.provider:open_postgres",
    "REST": "halo_runtime.tools.rest:open_rest",
    "SQL": "halo_runtime.tools.sql.provider:open_sql",
    "VectorStore": "halo_runtime.tools.vectors.provider:open_vectors",
    "Slack": "halo_runtime.tools.slack.provider:open_slack",
    "Workspace": "halo_runtime.tools.workspace.provider:open_workspace",
}
"""Provider name → `module:function`."""


def tool_factory(provider: str) -> ToolFactory:
    """What opens tools of `provider`, a package's too.

    Raises ConfigError for one that is in the catalogue only, and where the extra that it needs is not installed.
    """
    target = _FACTORIES.get(provider)
    brought = None if target is not None else catalog.provider_package(provider)
    if brought is not None:
        return partial(_open_brought, provider, cast(ToolFactory, brought))
    if target is None:
        available = ", ".join(sorted(_FACTORIES))
        raise ConfigError(
            f"the provider {provider} is not available in this version (it has {available});"
            f' register one with `runtime.register_tool_provider("{provider}", …)`'
        )
    spec = catalog.provider(provider)
    if spec is not None and spec.extra is not None:
        require(spec.extra, provider)
    module, _, function = target.partition(":")
    return getattr(import_module(module), function)


def _open_brought(provider: str, factory: ToolFactory, config: ToolConfig) -> ToolProvider:
    """A package's tool. Raises ConfigError where it cannot be made, or is none."""
    try:
        tool = factory(config)
    except ConfigError:
        raise
    except Exception as error:  # a stranger's code; its failure stops this run and no more
        raise ConfigError(f"the provider {provider} cannot be opened: {type(error).__name__}: {error}") from error
    if not all(callable(getattr(tool, name, None)) for name in ("call", "close")):
        raise ConfigError(f"the provider {provider} is none: what it opens needs `call` and `close`")
    return tool

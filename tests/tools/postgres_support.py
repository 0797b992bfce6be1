"""What tests of PostgreSQL share: a tool that is open for one test, and short ways to ask it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig, ToolProvider


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncGenerator[ToolProvider]:
    """A tool for one test; without `readOnly` it may change the database."""
    tool = tool_factory("PostgreSQL")(
        ToolConfig("DB", "PostgreSQL", {"url": url, "readOnly": False, **settings}, Path())
    )
    try:
        yield tool
    finally:
        await tool.close()


async def ask(tool: ToolProvider, method: str, sql: str | None = None, params: Any = None) -> Any:
    return await tool.call(method, {} if sql is None else {"sql": sql, "params": params})


async def refusal(tool: ToolProvider, method: str, sql: str | None = None, params: Any = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await ask(tool, method, sql, params)
    return caught.value

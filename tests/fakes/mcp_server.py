"""A server made with the official SDK: over stdio when it is run, over HTTP in a test's own thread.

Each tool is one thing that a server can do. The file that MCP_LOG names gets a line for what happens in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("demo", version="1.0")


def log(line: str) -> None:
    """Write down what has happened."""
    if "MCP_LOG" in os.environ:
        with Path(os.environ["MCP_LOG"]).open("a") as file:
            file.write(f"{line}\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    log(f"add {a} {b}")
    return a + b


@server.tool(structured_output=False)
def say(text: str) -> str:
    """Say a text."""
    log(f"say {text}")
    return text


@server.tool(name="notes.list/all-of-them", structured_output=False)
def notes() -> list[str]:
    """List the notes."""
    return ["one", "two"]


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def wipe() -> dict[str, Any]:
    """Delete everything."""
    log("wipe")
    return {"gone": 3}


@server.tool(structured_output=False)
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool(structured_output=False)
async def wait() -> str:
    """Wait for ever."""
    log("waiting")
    try:
        await anyio.sleep_forever()
    finally:
        log("stopped")
    return ""


@server.tool(structured_output=False)
def picture() -> list[Any]:
    """A picture with words."""
    return ["look", Image(data=b"\x89PNG1234", format="png")]


@server.tool(structured_output=False)
def much(characters: int) -> str:
    """A long text."""
    return "x" * characters


@server.tool(structured_output=False)
def variable(name: str) -> str:
    """A variable of the environment, as the server sees it."""
    return os.environ.get(name, "(not set)")


@server.tool(structured_output=False)
def die(words: str) -> str:
    """End at once."""
    print(words, file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(structured_output=False)
async def grow(context: Context[Any, Any]) -> str:
    """Get another tool."""
    server.add_tool(lambda: "new", name="grown", description="A new tool.")
    return await announce(context)


@server.tool(structured_output=False)
async def announce(context: Context[Any, Any]) -> str:
    """Say that the tools are others now."""
    await context.session.send_tool_list_changed()
    await context.notify_tools_changed()
    return "told"


if __name__ == "__main__":
    log(f"started {os.getpid()}")
    server.run("stdio")

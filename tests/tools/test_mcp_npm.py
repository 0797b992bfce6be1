"""The reference servers from npm, which others have written and many use (`make test` installs them)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from halo_runtime.errors import ToolError
from halo_runtime.tools.base import ToolConfig
from halo_runtime.tools.mcp.provider import Server, open_mcp
from tests.conftest import ROOT

pytestmark = pytest.mark.node

BIN = ROOT / ".node" / "node_modules" / ".bin"


def opened(folder: Path, name: str, *args: str) -> Server:
    settings = {"server": str(BIN / f"mcp-server-{name}"), "args": list(args), "timeout": "60s"}
    return open_mcp(ToolConfig("Demo", "MCP", settings, folder, {"PATH": os.environ["PATH"]}))


async def test_files_are_written_read_and_kept_inside(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    server = opened(tmp_path, "filesystem", str(home))
    try:
        await server.call("write_file", {"path": str(home / "a.txt"), "content": "hello"})
        assert (home / "a.txt").read_text() == "hello"
        assert await server.call("readTextFile", {"path": str(home / "a.txt")}) == {"content": "hello"}
        with pytest.raises(ToolError, match=r"the tool failed: .*outside allowed directories"):
            await server.call("read_text_file", {"path": "/etc/passwd"})
        with pytest.raises(ToolError, match="the arguments do not fit: 'path' is a required property"):
            await server.call("read_text_file", {})
    finally:
        await server.close()


async def test_every_kind_of_content_comes_through(tmp_path: Path) -> None:
    server = opened(tmp_path, "everything", "stdio")
    try:
        assert await server.call("echo", {"message": "hi"}) == "Echo: hi"
        picture = await server.call("get-tiny-image", {})
        assert [one["type"] for one in picture["attachments"]] == ["image"]
        weather = await server.call("get_structured_content", {"location": "New York"})
        assert set(weather) == {"temperature", "conditions", "humidity"}
        links = await server.call("get-resource-links", {"count": 2})
        assert [one["type"] for one in links["attachments"]] == ["resource_link"] * 2
    finally:
        await server.close()

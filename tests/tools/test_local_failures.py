"""Every method of the providers that work on files fails in words where what they work on is not what it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from halo_lang import catalog
from halo_lang.catalog import Method
from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json
from halo_runtime.tools import tool_factory
from halo_runtime.tools.base import ToolConfig

VALUES: dict[str, Any] = {"string": "a.md", "list": ["a text"], "object": {}, "integer": 1, "any": "a text"}
"""A value for each type of a required argument."""

BROKEN = {
    "Workspace": ({"root": "file/room", "write": True}, "folder file/room"),
    "Documents": ({"root": "file/room"}, "folder"),
    "File": ({"path": "folder"}, "is a folder"),
    "VectorStore": ({"path": "file"}, "file"),
    "KV": ({"path": "file"}, "file"),
}
"""Provider → settings that lead to a file for a folder, a folder for a file or a file of another kind; what is said."""

CASES = [(spec.name, method.name) for spec in catalog.providers() if spec.name in BROKEN for method in spec.methods]


def arguments(method: Method) -> dict[str, Json]:
    required = [parameter for parameter in method.signature.parameters if parameter.required]
    return {p.name: p.choices[0] if p.choices else VALUES[p.type] for p in required}


@pytest.mark.parametrize(("provider", "name"), CASES)
async def test_a_method_fails_where_nothing_can_be_worked_on(tmp_path: Path, provider: str, name: str) -> None:
    (tmp_path / "file").write_text("neither a folder nor a database\n" * 100)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.md").write_text("a text")
    spec = catalog.provider(provider)
    assert spec is not None
    method = spec.method(name)
    assert method is not None
    settings, words = BROKEN[provider]
    tool = tool_factory(provider)(ToolConfig("Mine", provider, dict(spec.config.bind((), settings).values()), tmp_path))
    given = dict(method.signature.bind((), arguments(method)).values())
    try:
        with pytest.raises(ToolError, match=rf"Mine.*{words}"):
            await tool.call(name, given)
    finally:
        await tool.close()
    assert (tmp_path / "file").read_text().startswith("neither")

"""What the tools of a server were when they were first used in a project (a guard against "rug pulls").

A server that has been trusted can later say something else of its tools, to lead models astray. So the hashes of all
that a tool says of itself are kept, and a server whose tools differ is not used until somebody has looked at it. A tool
that goes away is no danger; what was kept of it stays, for when it comes back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from halo_runtime.errors import ToolError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.store.atomic import write_atomically
from halo_runtime.tools.mcp.listing import ServerTool, without_invisible

_SHOWN: Final = 5

Marks: TypeAlias = Mapping[str, Mapping[str, str]]
"""Hashes by tool and part."""


def identity_of(server: Sequence[str]) -> str:
    """What names a server: another command or address in the program is another server. A hash, as it may hold keys."""
    return sha256("\0".join(server).encode("utf-8", "surrogatepass")).hexdigest()


class Pins:
    """The file of one declared server; `shown` is what messages call it."""

    def __init__(self, path: Path, shown: str, server: str) -> None:
        self._path = path
        self._shown = shown
        self._server = server

    def hold(self, tools: Iterable[ServerTool]) -> None:
        """Keep what the tools are at their first use; ToolError where they are not what was kept."""
        marks: Marks = {tool.name: tool.marks for tool in tools}
        kept = self._read()
        if kept is not None:
            changes = changes_between(kept, marks)
            if changes:
                raise ToolError(
                    f"the server's tools are not what they were when they were first used here: {_told(changes)}; "
                    f"if that is meant, delete {self._shown} to take them as they are now"
                )
        if kept is None:
            self._write(marks)

    def _read(self) -> Marks | None:
        """What was kept, None where nothing was or where it is of another server."""
        try:
            document: Json = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            document = None
        if not is_object(document) or not is_object(document.get("tools")):
            raise ToolError(f"{self._shown}, which keeps what the server's tools are, cannot be read; delete it")
        tools: JsonObject = document["tools"]
        return tools if document.get("server") == self._server else None

    def _write(self, marks: Marks) -> None:
        text = json.dumps({"server": self._server, "tools": marks}, indent=1, sort_keys=True)
        try:
            write_atomically(self._path, text.encode())
        except OSError as error:
            raise ToolError(
                f"{self._shown}, which keeps what the server's tools are, cannot be written ({error.strerror}); "
                "name another file with pins:"
            ) from None


def changes_between(kept: Marks, marks: Marks) -> list[str]:
    """What is not as it was kept, in words, one text a tool."""
    changes: list[str] = []
    for name in sorted(marks):
        shown = without_invisible(name)[:80]
        if name not in kept:
            changes.append(f"{shown} is new")
            continue
        parts = [part for part, mark in marks[name].items() if kept[name].get(part) != mark]
        if parts:
            changes.append(f"{shown} has changed its {' and '.join(parts)}")
    return changes


def _told(changes: Sequence[str]) -> str:
    more = f", and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return ", ".join(changes[:_SHOWN]) + more

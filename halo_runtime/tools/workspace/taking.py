"""Files that tools take along to a service, from one folder that is never left."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.workspace.paths import Closed, parse_path
from halo_runtime.tools.workspace.root import Root


@record
class TakenFile:
    """A file as it goes along: its name, without a folder, and what is in it."""

    name: str
    content: bytes


def take_files(folder: Path, shown: str, paths: Sequence[str], limit: int, stop: Stop) -> tuple[TakenFile, ...]:
    """Files below a folder; what workspaces keep closed (keys, `.env`, `.git`) stays there. Blocking.

    `shown` names the folder in messages, `limit` is bytes of all together. Raises ToolError.
    """
    if not folder.is_dir():
        raise ToolError(f"there is no folder {shown}; create it, or change the declaration")
    left, found = limit, list[TakenFile]()
    with Root.open(folder, Closed()) as root:
        for path in paths:
            stop.check()
            with root.file(parse_path(path)) as (descriptor, spot):
                size = os.fstat(descriptor).st_size
                if size > left:
                    raise ToolError(f"files may have {limit >> 20} MB together; `{path}` is too much")
                with os.fdopen(os.dup(descriptor), "rb") as file:
                    content = file.read(size)  # one that grows meanwhile is not followed
                left -= len(content)
                found.append(TakenFile(spot.parts[-1], content))
    return tuple(found)

"""Files that go along with mails and come out of them, in one folder that is never left."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from halo_runtime.errors import ToolError
from halo_runtime.tools.email.compose import MAX_FILES_BYTES
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.workspace.paths import Closed, show
from halo_runtime.tools.workspace.root import Root, Spot, open_file
from halo_runtime.tools.workspace.taking import TakenFile, take_files

FOLDER: Final = "attachments"
"""Where what came with mails is kept, inside the root: strangers name these files, so they get a place of their own."""

_MAX_NAME_BYTES: Final = 200
_MAX_TRIES: Final = 100
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Files:
    """The folder. Blocking; what workspaces keep closed (keys, `.env`, `.git`) is closed here too."""

    def __init__(self, root: Path, shown: str) -> None:
        self._root = root
        self._shown = shown
        self._closed = Closed()

    def load(self, paths: Sequence[str], stop: Stop) -> tuple[TakenFile, ...]:
        """The files that a mail takes along. Raises ToolError."""
        return take_files(self._root, self._shown, paths, MAX_FILES_BYTES, stop)

    def keep(self, name: str, content: bytes, stop: Stop) -> str:
        """Keep what came with a mail, and say where. Nothing is replaced; what is there already is not kept twice."""
        stem, dot, ending = name.rpartition(".")
        self._root.mkdir(parents=True, exist_ok=True)
        with Root.open(self._root, self._closed) as root:
            for number in range(1, _MAX_TRIES + 1):
                stop.check()
                tried = name if number == 1 else (f"{stem} ({number}).{ending}" if dot else f"{name} ({number})")
                with root.at((FOLDER, tried), follow=False, make=True) as spot:
                    if _kept(spot, content):
                        return show(spot.parts)
        raise ToolError(f"there are {_MAX_TRIES} other files called `{name}` in {FOLDER}; move some of them away")


def plain_name(name: str, fallback: str) -> str:
    """A stranger's name for a file as one that can do nothing but name it."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(one for one in unicodedata.normalize("NFC", last) if unicodedata.category(one)[0] != "C")
    cleaned = re.sub(r'[<>:"|?*`]', "_", visible).strip().lstrip(".").strip()
    while len(cleaned.encode()) > _MAX_NAME_BYTES:
        stem, dot, ending = cleaned.rpartition(".")
        cleaned = f"{stem[:-1]}.{ending}" if dot and stem and len(ending) < 20 else cleaned[:-1]
    return cleaned or fallback


def _kept(spot: Spot, content: bytes) -> bool:
    """Whether the content stands at a place now; False where something else does."""
    try:
        descriptor = os.open(spot.name, _NEW, 0o600, dir_fd=spot.folder)
    except FileExistsError:
        return _same(spot, content)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except BaseException:  # half a file is none
        os.unlink(spot.name, dir_fd=spot.folder)
        raise
    return True


def _same(spot: Spot, content: bytes) -> bool:
    try:
        descriptor = open_file(spot)
    except ToolError:  # a folder, a pipe, a link
        return False
    with os.fdopen(descriptor, "rb") as file:
        return os.fstat(file.fileno()).st_size == len(content) and file.read(len(content)) == content

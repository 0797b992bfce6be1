"""Applying a diff to the files of a workspace: all of it or nothing (spec 5)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from halo_lang.records import record
from halo_runtime.errors import ToolError
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.workspace.files import Text, mode_of, read_bytes, write_bytes
from halo_runtime.tools.workspace.patch import FilePatch, apply_hunks, parse_patch
from halo_runtime.tools.workspace.paths import Parts, parse_path, show
from halo_runtime.tools.workspace.root import NothingThereError, Root, missing


@record
class Content:
    """A file as it is, or shall be."""

    text: Text
    mode: int | None = None


class Patching:
    """One patch. Everything is worked out before the first file is touched; what fails then is taken back."""

    def __init__(self, root: Root, stop: Stop) -> None:
        self._root = root
        self._stop = stop
        self._before: dict[Parts, Content | None] = {}
        self._after: dict[Parts, Content | None] = {}

    def apply(self, patch: str) -> list[str]:
        """The changed paths, in the patch's order. Raises ToolError, with nothing changed."""
        for part in parse_patch(patch):
            self._work_out(part)
        undo: list[Callable[[], None]] = []
        try:
            for parts, content in self._after.items():
                self._stop.check()
                undo.append(lambda parts=parts: self._put(parts, self._before[parts], Stop()))
                self._put(parts, content, self._stop)
        except BaseException:
            for take_back in reversed(undo):
                with suppress(OSError, ToolError):  # the first failure is the one to tell
                    take_back()
            raise
        return [show(parts) for parts in self._after]

    def _work_out(self, patch: FilePatch) -> None:
        old = None if patch.old is None else parse_path(patch.old)
        new = None if patch.new is None else parse_path(patch.new)
        content = Content(Text("")) if old is None else self._existing(old)
        if new is not None and (old is None or patch.moves) and self._current(new) is not None:
            raise ToolError(f"`{show(new)}` is there already, so the patch cannot make it")
        text = apply_hunks(content.text.text, patch)
        if old is not None and patch.old != patch.new:
            self._after[old] = None
        if new is not None:
            self._after[new] = Content(content.text.with_text(text), content.mode)
        elif text:
            raise ToolError(f"the patch takes `{patch.name}` away, but the file has more lines than the patch")

    def _existing(self, parts: Parts) -> Content:
        content = self._current(parts)
        if content is None:
            with self._root.at(parts) as spot:
                raise missing(spot)
        return content

    def _current(self, parts: Parts) -> Content | None:
        """A file as the patch so far leaves it."""
        if parts in self._after:
            return self._after[parts]
        if parts not in self._before:
            self._before[parts] = self._read(parts)
        return self._before[parts]

    def _read(self, parts: Parts) -> Content | None:
        try:
            with self._root.at(parts) as spot:
                mode = mode_of(spot)
        except NothingThereError:
            return None
        if mode is None:
            return None
        return Content(Text.decode(read_bytes(self._root, parts, self._stop), show(parts)), mode)

    def _put(self, parts: Parts, content: Content | None, stop: Stop) -> None:
        with self._root.at(parts, make=content is not None) as spot:
            if content is not None:
                write_bytes(spot, content.text.encode(), stop, mode=content.mode)
            elif spot.status() is not None:
                os.unlink(spot.name, dir_fd=spot.folder)

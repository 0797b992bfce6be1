"""Moving and removing in a workspace: nothing is ever overwritten, nothing that stays closed gets another name."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from halo_runtime.errors import ToolError
from halo_runtime.tools.threads import Stop
from halo_runtime.tools.workspace.paths import Closed, Parts, show
from halo_runtime.tools.workspace.root import Root, Spot, entries_of, kind_of, missing


def move(root: Root, closed: Closed, source: Parts, target: Parts, stop: Stop) -> Parts:
    """Give a file, a link or a folder another path, and give that. Raises ToolError."""
    with root.at(source, follow=False) as old:
        status = old.status()
        if status is None:
            raise missing(old)
        if not old.name:
            raise ToolError("the root itself cannot be moved")
        _check_kind(status, old)
        if stat.S_ISDIR(status.st_mode):
            _check_open(root, closed, old.parts, stop)
            if target[: len(source)] == source:
                raise ToolError(f"`{show(source)}` cannot be moved into itself")
        with root.at(target, follow=False, make=True) as new:
            if new.status() is not None:
                raise _taken(new)
            stop.check()
            _rename(old, new, folder=stat.S_ISDIR(status.st_mode))
            return new.parts


def remove(spot: Spot) -> bool:
    """Remove a file, a link or an empty folder; False where there is nothing. Raises ToolError."""
    status = spot.status()
    if status is None:
        return False
    if not spot.name:
        raise ToolError("the root itself cannot be removed")
    _check_kind(status, spot)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(spot.name, dir_fd=spot.folder)
        return True
    try:
        os.rmdir(spot.name, dir_fd=spot.folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise ToolError(f"`{show(spot.parts)}` is a folder that is not empty; delete what is in it first") from None
        raise
    return True


def _rename(old: Spot, new: Spot, *, folder: bool) -> None:
    if not folder:
        try:
            # A second name and then one less: unlike a rename this never takes the place of another file.
            os.link(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder, follow_symlinks=False)
        except FileExistsError:
            raise _taken(new) from None
        except OSError:
            pass  # a file system without links
        else:
            os.unlink(old.name, dir_fd=old.folder)
            return
    os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
    with suppress(OSError):
        os.fsync(new.folder)


def _check_open(root: Root, closed: Closed, parts: Parts, stop: Stop) -> None:
    """Raises ToolError for a folder with something in it that is closed: elsewhere it might be open."""
    pending = [parts]
    while pending:
        with root.folder(pending.pop()) as (folder, here):
            for name, status in entries_of(folder):
                stop.check()
                inner, kind = (*here, name), kind_of(status)
                if closed.hides_entry(inner, folder=kind == "folder"):
                    raise ToolError(f"`{show(parts)}` cannot be moved: it holds `{show(inner)}`, which is closed")
                if kind == "folder":
                    pending.append(inner)


def _check_kind(status: os.stat_result, spot: Spot) -> None:
    if kind_of(status) == "other":
        raise ToolError(f"`{show(spot.parts)}` is no regular file (a pipe, a socket, a device)")


def _taken(spot: Spot) -> ToolError:
    return ToolError(f"`{show(spot.parts)}` is there already; move or delete it first")

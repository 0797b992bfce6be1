"""Saving the document, and leaving the workbench without losing anything."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from halo_tui.models.document import DocumentError
from halo_tui.screens.dialogs import Confirm

if TYPE_CHECKING:
    from halo_tui.screens.workbench import Workbench


class Filing:
    """The file of a workbench's document, as far as people are asked about it."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._document = workbench.document

    async def save(self) -> bool:
        """Write the file; False when that failed or a person thought better of it."""
        document = self._document
        if document.changed_on_disk:
            choices = (("overwrite", "Overwrite"), ("cancel", "Cancel"))
            message = f"{document.path.name} was changed by another program since it was opened."
            if await self._ask(Confirm("Changed on disk", message, choices)) != "overwrite":
                return False
        try:
            await asyncio.to_thread(document.save)
        except DocumentError as error:
            self._workbench.tell(str(error), failed=True)
            return False
        self._workbench.show_status()
        return True

    async def leave(self) -> None:
        """Leave the workbench, after asking when something would be lost or stopped."""
        unsaved, active = self._document.dirty, self._workbench.session.view.active
        if unsaved or active:
            lost = [f"{self._document.path.name} has changes that are not saved."] if unsaved else []
            lost += ["A run is going on; it is stopped and kept, so that it can be gone on with."] if active else []
            choices = [("save", "Save and quit")] if unsaved else []
            choices += [("quit", "Quit without saving" if unsaved else "Quit"), ("cancel", "Cancel")]
            choice = await self._ask(Confirm("Quit?", "\n".join(lost), choices))
            if choice not in ("save", "quit") or (choice == "save" and not await self.save()):
                return
        self._workbench.host.exit()

    async def _ask(self, form: Confirm) -> str | None:
        return await self._workbench.host.push_screen_wait(form)

"""The Textual application: themes, the palette, and leaving the terminal as it was."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from halo_tui import keymap
from halo_tui.models.document import Document, DocumentError
from halo_tui.models.options import Options
from halo_tui.screens.dialogs import Choose
from halo_tui.screens.workbench import Workbench
from halo_tui.terminal import Terminal
from halo_tui.themes import DARK, LIGHT, code_colours

NEW_FILE = "untitled.halo"
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class WorkbenchApp(App[int], inherit_bindings=False):
    """Shows a workbench for one document, or first asks which program of a folder is meant."""

    CSS_PATH = "app.tcss"
    TITLE = "Halo"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = list(keymap.bindings("everywhere"))

    def __init__(self, document: Document | Path, options: Options | None = None) -> None:
        super().__init__()
        self._document = document
        self._options = options or Options()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        # Not by assignment: it would make Textual read and apply all style sheets a second time.
        self.set_reactive(App.theme, DARK.name)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_driver_class(self) -> type[Driver]:
        """Our driver where Textual would take its own for Unix terminals; tests and the web have others."""
        found = super().get_driver_class()
        return Terminal if found is LinuxDriver else found

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return code_colours(dark=self.current_theme.dark)

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, partial(self.exit, 128 + number, 128 + number))
        if isinstance(self._document, Document):
            self.push_screen(Workbench(self._document, self._options))
        else:
            self.run_worker(self._pick(self._document))

    def on_ready(self) -> None:
        # What is alive now stays: leaving it out of collections takes the pause out of every twentieth key.
        gc.freeze()
        gc.enable()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        if not isinstance(screen, Workbench):
            return
        for action in keymap.palette():
            if not screen.check_action(action.command.partition("(")[0], ()):
                continue
            about = " · ".join(part for part in (action.shown_key, action.about) if part)
            place = self if action.where == "everywhere" else screen
            yield SystemCommand(action.title, about, partial(place.run_action, action.command))

    async def action_quit(self) -> None:
        """Leave; a workbench is asked first whether something would be lost."""
        workbench = next((screen for screen in self.screen_stack if isinstance(screen, Workbench)), None)
        if workbench is None:
            self.exit(0)
        else:
            workbench.leave()

    async def _pick(self, folder: Path) -> None:
        names = await asyncio.to_thread(_programs, folder)
        chosen = NEW_FILE
        if names:
            picked = await self.push_screen_wait(Choose("Open which program?", [*names, f"{NEW_FILE} (new)"]))
            if picked is None:
                self.exit(0)
                return
            chosen = picked.removesuffix(" (new)")
        try:
            document = Document.open(folder / chosen)
        except DocumentError as error:
            self.exit(2, 2, message=str(error))
            return
        self.push_screen(Workbench(document, self._options))


def _programs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.halo") if path.is_file())

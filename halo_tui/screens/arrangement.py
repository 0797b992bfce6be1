"""Which panes of the workbench are in front: one beside the editor, or one alone where the screen is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from halo_tui.widgets.bars import Tabs

if TYPE_CHECKING:
    from halo_tui.screens.workbench import Workbench

RUN_PANES: Final = ("stages", "output", "data", "inbox", "runs", "call")
PANES: Final = ("editor", "problems", *RUN_PANES)


class Arrangement:
    """The panes of one workbench. `chosen`: a person has picked one since the run began."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self.chosen = False

    def choose(self, name: str) -> None:
        """Show a pane because a person wants it, and go there."""
        self.chosen = True
        in_run = name in RUN_PANES
        self.show(name if in_run else "editor", name if in_run else None)
        self._pane(name).focus()

    def choose_next(self, step: int) -> None:
        """The pane that is `step` further than the one with the focus."""
        focused = next((at for at, name in enumerate(PANES) if self._pane(name).has_focus), 0)
        self.choose(PANES[(focused + step) % len(PANES)])

    def show_for_run(self, name: str) -> None:
        """Show a pane of the run; a narrow screen shows it in the editor's place, a wide one has both in sight."""
        self.show(name if self._workbench.has_class("-narrow") else "editor", name)

    def show(self, narrow: str, run_pane: str | None) -> None:
        """`narrow` is what a narrow screen shows; `run_pane` which of the run's panes is in front, None as it was."""
        bench = self._workbench
        bench.set_class(narrow == "editor", "-at-editor")
        bench.query_one("#tabs-narrow", Tabs).active = narrow
        if run_pane is not None:
            bench.query_one("#tabs-wide", Tabs).active = run_pane
            for name in RUN_PANES:
                bench.query_one(f"#{name}").set_class(name == run_pane, "-active")
        if bench.focused is not None and not bench.focused.is_on_screen:
            self._pane(narrow).focus()

    def _pane(self, name: str) -> Widget:
        bench = self._workbench
        return bench.shown_editor if name == "editor" else bench.query_one(f"#{name}", Widget)

"""The output pane."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from halo_tui.models.output import output_text
from halo_tui.models.run import RunView
from halo_tui.widgets.roles import RoleText


class Output(VerticalScroll):
    """What a run prints and gives; it follows the end until a person scrolls up, and ends at its top."""

    def __init__(self) -> None:
        super().__init__(id="output", classes="pane")
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield RoleText()

    def show_run(self, run: RunView) -> None:
        """Show what a run printed so far and how it ended."""
        runs = tuple(output_text(run))
        if runs == self._shown:
            return
        self._shown = runs
        following = self.scroll_offset.y >= self.max_scroll_y
        self.query_one(RoleText).show(runs)
        if following:
            go = self.scroll_end if run.active else self.scroll_home
            self.call_after_refresh(go, animate=False)

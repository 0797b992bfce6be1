"""The output pane."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from halo_tui.models.output import output_text
from halo_tui.models.run import RunView
from halo_tui.widgets.roles import ROLE_CLASSES, joined


class _Text(Static):
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES


class Output(VerticalScroll):
    """What a run prints and gives; it stays at the end until a person scrolls up."""

    def __init__(self) -> None:
        super().__init__(id="output", classes="pane")
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield _Text(markup=False)

    def on_mount(self) -> None:
        self.anchor()

    def show_run(self, run: RunView) -> None:
        """Show what a run printed so far and how it ended."""
        text = self.query_one(_Text)
        runs = tuple(output_text(run))
        if runs != self._shown:
            self._shown = runs
            text.update(joined(text, runs))

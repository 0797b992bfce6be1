"""The panes of text: what a run prints and gives, and what was said between a stage and its model."""

from __future__ import annotations

from collections.abc import Sequence

from halo_tui.models.call_page import call_sections
from halo_tui.models.calls import Call
from halo_tui.models.output import output_sections
from halo_tui.models.run import RunView
from halo_tui.widgets.reader import Reader


class Output(Reader):
    """What a run prints and gives; it ends at its top."""

    def __init__(self) -> None:
        super().__init__(id="output")

    def show_run(self, run: RunView) -> None:
        """Show what a run printed so far and how it ended."""
        self.show(output_sections(run), grows=run.active)


class CallPane(Reader):
    """The call of the chosen stage; one that is at work is followed to its end."""

    def __init__(self) -> None:
        super().__init__(id="call")

    def show_calls(self, calls: Sequence[Call]) -> None:
        """Show the last of a stage's calls."""
        self.show(call_sections(calls), grows=bool(calls) and calls[-1].live is not None)

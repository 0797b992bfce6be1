"""The form that shows what continuing a kept run would do, before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button

from halo_tui.models.lines import Run
from halo_tui.screens.dialogs import Dialog, button, plain
from halo_tui.widgets.roles import RoleText


class Continue(Dialog[str]):
    """What is reused and what runs anew; gives the id of the button pressed."""

    def __init__(self, title: str, plan: Iterable[Run], choices: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title, self._plan, self._choices = title, tuple(plan), choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield plain(self._title, classes="dialog-title")
            with VerticalScroll(classes="dialog-scroll"):
                yield RoleText()
            with Horizontal(classes="dialog-buttons"):
                for number, (name, label) in enumerate((*self._choices, ("cancel", "Cancel"))):
                    yield button(label, name, "default" if number else "primary")

    def on_mount(self) -> None:
        self.query_one(RoleText).show(self._plan)
        self.query(Button).first().focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id)

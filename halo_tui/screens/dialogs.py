"""Small forms over the workbench: confirm, choose, help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from halo_tui.keymap import ACTIONS
from halo_tui.models.lines import Run
from halo_tui.widgets.roles import RoleText

T = TypeVar("T")


def plain(text: str, *, classes: str = "", id: str | None = None) -> Static:  # noqa: A002 - Textual's name
    """A text that is shown as it is."""
    return Static(Content(text), markup=False, classes=classes, id=id)


def button(label: str, id: str, variant: str = "default") -> Button:  # noqa: A002 - Textual's name
    """A button whose label is shown as it is."""
    return Button(Content(label), id=id, variant=variant, compact=True)  # pyright: ignore[reportArgumentType]


class Dialog(ModalScreen[T | None], Generic[T]):
    """A form in a box; Esc closes it without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]

    def action_close(self) -> None:
        self.dismiss(None)


class Confirm(Dialog[str]):
    """A question about the workbench itself; gives the id of the button pressed."""

    def __init__(self, title: str, message: str, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title, self._message, self._choices = title, message, choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield plain(self._title, classes="dialog-title")
            yield plain(self._message, classes="dialog-text")
            with Horizontal(classes="dialog-buttons"):
                for number, (name, label) in enumerate(self._choices):
                    yield button(label, name, "default" if number else "primary")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id)


class Choose(Dialog[str]):
    """A list to pick one name from."""

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title, self._names = title, names

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield plain(self._title, classes="dialog-title")
            yield OptionList(*(Option(Content(name)) for name in self._names), markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._names[event.option_index])


class Help(Dialog[None]):
    """All keys, from the table of actions."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("f1,q,enter", "close", "Close", show=False)]
    HEADINGS: ClassVar = {
        "everywhere": "Everywhere",
        "workbench": "Workbench",
        "editor": "In the editor",
        "list": "In the lists",
    }

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog dialog-tall"):
            yield plain("Keys", classes="dialog-title")
            with VerticalScroll():
                yield RoleText()

    def on_mount(self) -> None:
        self.query_one(RoleText).show(self._table())
        self.query_one(VerticalScroll).focus()

    def _table(self) -> Iterator[Run]:
        for where, heading in self.HEADINGS.items():
            yield f"{heading}\n", "title"
            for action in ACTIONS:
                if action.where == where:
                    yield f"{action.shown_key or '–':>14}  ", "accent"
                    yield f"{action.title:<20}", "text"
                    yield f"{action.about}\n", "dim"
            yield "\n", "text"

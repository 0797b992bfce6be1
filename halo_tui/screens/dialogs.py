"""Small forms over the workbench: confirm, choose, arguments, help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from halo_lang import Program
from halo_lang.nodes import Pipeline
from halo_runtime.json_types import JsonObject
from halo_tui.keymap import ACTIONS
from halo_tui.models.inputs import fields_of, parse_inputs
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


class Arguments(Dialog[tuple[JsonObject, Mapping[str, str]]]):
    """A field a parameter; gives the arguments and the texts they were typed as."""

    def __init__(self, program: Program, pipeline: Pipeline, texts: Mapping[str, str]) -> None:
        super().__init__()
        self._program, self._pipeline, self._texts = program, pipeline, texts

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield plain(f"Run {self._pipeline.name.text}", classes="dialog-title")
            with VerticalScroll(classes="dialog-fields", can_focus=False):
                for field in fields_of(self._pipeline):
                    yield plain(f"{field.name}: {field.label}", classes="field-name")
                    yield Input(self._texts.get(field.name, ""), placeholder=field.hint, name=field.name, compact=True)
                    yield plain("", classes="field-error")
            with Horizontal(classes="dialog-buttons"):
                yield button("Run", "run", "primary")
                yield button("Cancel", "cancel")

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#run")
    @on(Input.Submitted)
    def submit(self) -> None:
        inputs = list(self.query(Input))
        texts = {str(field.name): field.value for field in inputs}
        parsed = parse_inputs(self._program, self._pipeline, texts)
        for field, note in zip(inputs, self.query(".field-error").results(Static), strict=True):
            note.update(Content(parsed.errors.get(str(field.name), "")))
            note.display = str(field.name) in parsed.errors
        if not parsed.errors:
            self.dismiss((parsed.values, texts))
        else:
            next(field for field in inputs if field.name in parsed.errors).focus()


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

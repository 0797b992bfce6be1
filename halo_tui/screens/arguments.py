"""The form in which a person gives the arguments of a run."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from halo_lang import Program
from halo_lang.nodes import Pipeline
from halo_runtime.json_types import JsonObject
from halo_tui.models.inputs import fields_of, parse_inputs
from halo_tui.screens.dialogs import Dialog, button, plain


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

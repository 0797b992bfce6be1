"""The form in which a person answers a run: choices as buttons, text or JSON, or later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, HorizontalGroup, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from halo_runtime.json_types import Json
from halo_tui.models.questions import Question
from halo_tui.screens.dialogs import Dialog, button, plain


@dataclass(frozen=True, slots=True)
class Answer:
    """What the form gives: a value, or that the question stays open for later; `typed` is what stood in the field."""

    value: Json = None
    later: bool = False
    typed: str = ""


class Ask(Dialog[Answer]):
    """One question. Esc closes the form and lets the run wait; `Later` pauses the run.

    `draft` is what was typed before, in an answer that was not taken.
    """

    def __init__(self, question: Question, draft: str = "") -> None:
        super().__init__()
        self.question = question
        self._draft = draft
        self._choices = question.choices

    def compose(self) -> ComposeResult:
        question = self.question
        with Vertical(classes="dialog", id="ask"):
            yield plain(question.title, classes="dialog-title")
            yield plain(question.about(_now()), classes="field-name", id="about")
            with VerticalScroll(classes="dialog-scroll", can_focus=False):
                yield plain(question.message, classes="dialog-text", id="message")
                for name, text in question.attachments:
                    yield plain(name, classes="field-name")
                    yield plain(text, classes="attachment")
            if self._choices:
                with HorizontalGroup(classes="dialog-choices"):
                    for number, choice in enumerate(self._choices):
                        first = not number and not question.allows
                        yield button(choice.label, f"choice-{number}", "primary" if first else "default")
            yield Input(
                self._draft,
                placeholder="another answer" if self._choices else "your answer",
                id="answer",
                compact=True,
                select_on_focus=False,  # or the second key typed on a choice would replace the first
            )
            yield plain("", classes="field-note", id="note")
            with Horizontal(classes="dialog-buttons"):
                yield button("Send", "send", "default" if self._choices else "primary")
                yield button("Answer later", "later")

    def on_mount(self) -> None:
        if self.question.allows:
            self.query_one(Input).focus()
        if self.question.interrupt.expires_at is not None:
            self.set_interval(1.0, self._count_down)

    def _count_down(self) -> None:
        self.query_one("#about", Static).update(Content(self.question.about(_now())))

    def on_key(self, event: events.Key) -> None:
        """Text goes to the field wherever the focus is: else Enter would send the choice that has it."""
        character = event.character or ""
        is_text = event.is_printable and not character.isspace() and "+" not in event.key
        if is_text and not isinstance(self.focused, Input):
            field = self.query_one(Input)
            field.focus()
            field.insert_text_at_cursor(character)
            event.stop()

    @on(Input.Changed)
    def show_reading(self) -> None:
        """Say what would be sent, as it is typed."""
        reading = self.question.read(self._typed)
        note = self.query_one("#note", Static)
        note.update(Content(reading.note))
        note.set_class(reading.broken, "-broken")

    @on(Button.Pressed, "#send")
    @on(Input.Submitted)
    def send(self) -> None:
        reading = self.question.read(self._typed)
        if reading.broken and not self.question.takes_text:
            self.query_one(Input).focus()
        else:
            self.dismiss(Answer(reading.value, typed=self._typed))

    @property
    def _typed(self) -> str:
        return self.query_one(Input).value

    @on(Button.Pressed, "#later")
    def later(self) -> None:
        self.dismiss(Answer(later=True))

    @on(Button.Pressed)
    def choose(self, event: Button.Pressed) -> None:
        kind, _, number = (event.button.id or "").partition("-")
        if kind == "choice":
            self.dismiss(Answer(self._choices[int(number)].value))


def _now() -> datetime:
    return datetime.now(UTC)

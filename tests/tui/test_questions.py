"""Questions of a run, and what may be typed as an answer."""

from __future__ import annotations

import pytest

from halo_runtime.json_types import Json
from halo_runtime.results import Interrupt
from halo_tui.models.questions import MAX_CHOICES, AnswerError, Question, parse_answer


def asked(**fields: object) -> Question:
    return Question(Interrupt("id", "run", fields.pop("kind", "yield"), "Ship [it]?", "yield", "M/0", **fields))  # type: ignore[arg-type]


def test_text_is_taken_as_it_is() -> None:
    assert parse_answer(" 42 ", as_json=False) == " 42 "


@pytest.mark.parametrize(("text", "value"), [("42", 42), ("null", None), ('{"a": [true]}', {"a": [True]}), ('""', "")])
def test_json_gives_its_value(text: str, value: Json) -> None:
    assert parse_answer(text, as_json=True) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": }', "line 1, column 7"),
        ("", "line 1, column 1"),
        ("NaN", "NaN is no JSON value"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_what_is_no_json_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(AnswerError, match=reason):
        parse_answer(text, as_json=True)


def test_choices_are_labelled_and_keep_their_values() -> None:
    question = asked(choices=("yes", "", True, 3))
    assert [(choice.label, choice.value) for choice in question.choices] == [
        ("yes", "yes"),
        ('""', ""),
        ("true", True),
        ("3", 3),
    ]


def test_no_more_choices_than_digits_become_buttons() -> None:
    assert len(asked(choices=tuple(map(str, range(50)))).choices) == MAX_CHOICES


def test_an_awaited_event_is_named_and_wants_json() -> None:
    question = asked(kind="listen", event="UI.Click")
    assert (question.title, question.wants_json) == ("Waiting for UI.Click", True)


def test_attachments_show_text_or_path_and_no_control_characters() -> None:
    items = ({"kind": "text", "text": "a\x1bb", "name": None}, {"kind": "file", "path": "/tmp/x", "name": "x"})
    assert asked(attachments=items).attachments == (("attachment 1", "a\\x1bb"), ("x", "/tmp/x"))

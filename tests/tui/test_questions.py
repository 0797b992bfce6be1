"""Questions of a run, and what may be typed as an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from halo_runtime.json_types import Json
from halo_runtime.results import Interrupt
from halo_tui.models.questions import MAX_CHOICES, Question, Reading


def asked(**fields: object) -> Question:
    return Question(Interrupt("id", "run", fields.pop("kind", "yield"), "Ship [it]?", "yield", "M/0", **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        (" maybe ", " maybe ", "sent as String"),
        ("42", 42, "sent as Number"),
        ('{"a": [true]}', {"a": [True]}, "sent as Object"),
        ("null", None, "sent as Null"),
        ('"42"', "42", "sent as String"),
        ("", "", ""),
    ],
)
def test_an_answer_is_json_if_it_parses_else_text(text: str, value: Json, note: str) -> None:
    assert asked().read(text) == Reading(value, note)


def test_a_choice_is_meant_in_any_letter_case() -> None:
    assert asked(choices=("yes", "no")).read("Yes ") == Reading("yes", "sent as String as the program knows it")


def test_what_is_nearly_json_is_text_with_a_warning() -> None:
    reading = asked().read('{"a": }')
    assert (reading.value, reading.broken) == ('{"a": }', True)
    assert reading.note.startswith("sent as text; no JSON")


def test_an_awaited_event_takes_no_broken_json() -> None:
    assert asked().takes_text
    assert not asked(kind="listen", event="UI.Click").takes_text


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


def test_an_awaited_event_is_named() -> None:
    question = asked(kind="listen", event="UI.Click")
    assert question.title == "Waiting for UI.Click"


def test_attachments_show_text_or_path_and_no_control_characters() -> None:
    items = ({"kind": "text", "text": "a\x1bb", "name": None}, {"kind": "file", "path": "/tmp/x", "name": "x"})
    assert asked(attachments=items).attachments == (("attachment 1", "a\\x1bb"), ("x", "/tmp/x"))


def test_the_former_answer_is_offered_first_and_once() -> None:
    question = asked(choices=("yes", "no", 1), former="no")
    assert [choice.label for choice in question.choices] == ["no (as before)", "yes", "1"]
    assert asked(choices=(1,), former=True).choices[0].value is True
    assert asked(former=None).choices[0].label == "null (as before)"


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_the_inbox_says_what_is_asked_what_there_is_to_know_and_whose_question_it_is() -> None:
    fields = {"asked_at": "2026-03-01T11:00:00Z", "expires_at": "2026-03-01T12:30:00Z", "choices": ("yes", "no")}
    question = Question(asked(attachments=({"text": "a"},), **fields).interrupt, "Main")
    assert ["".join(text for text, _ in line) for line in question.lines(NOW)] == [
        "? Ship [it]?",
        "  expires in 30m00s · yes / no · 1 attachment · asked 1h ago",
        "  Main · run",
    ]
    assert question.about(NOW) == "Main · run · asked 1h ago · expires in 30m00s"
    assert (question.is_over(NOW), question.is_over(NOW + timedelta(minutes=30))) == (False, True)
    assert question.time_left(NOW + timedelta(hours=1)) == "expired"


def test_a_question_says_who_has_left_an_answer_for_it() -> None:
    question = Question(asked().interrupt, "Main", "ada")
    assert "ada left an answer" in "".join(text for text, _ in question.lines(NOW)[1])
    assert question.about(NOW).endswith(" · ada left an answer")


def test_a_question_without_an_end_is_never_over() -> None:
    assert not asked().is_over(NOW)
    assert asked().time_left(NOW) == ""


@pytest.mark.parametrize(("text", "broken"), [("retry", False), ('{"skip": 1}', False), ("rettry", True), ("", True)])
def test_a_doubt_is_settled_by_one_of_three_answers_and_by_no_slip(text: str, broken: bool) -> None:
    question = asked(kind="in_doubt", choices=("retry", "fail"))
    assert question.read(text).broken == broken
    assert not question.takes_text


# --- what Halo itself asks ----------------------------------------------------------------------------------

BUDGET = {"policy": "Guard", "rule": "MaxSpend(1)", "unit": "usd", "limit": 1, "spent": 0.98, "next": 0.05}


@pytest.mark.parametrize(
    ("text", "value", "note", "broken"),
    [
        ("0.5", {"add": 0.5}, "allows $0.50 more", False),
        ('{"add": 2}', {"add": 2}, "allows $2.00 more", False),
        ("Stop", "stop", "allows no more", False),
        ("-1", {"add": -1}, 'answer {"add": 0.5} with an amount of your own, or "stop"', True),
        ("", "", 'answer {"add": 0.5} with an amount of your own, or "stop"', True),
    ],
)
def test_a_limit_is_answered_with_an_amount_or_stop(text: str, value: Json, note: str, broken: bool) -> None:
    question = asked(kind="limit", choices=({"add": 1}, "stop"), budget=BUDGET)
    assert question.read(text) == Reading(value, note, broken)
    assert not question.takes_text
    assert [choice.label for choice in question.choices] == ["add 1", "stop"]


@pytest.mark.parametrize(
    ("text", "note", "broken"),
    [
        ("Approve", "approves the call", False),
        ("yes", "approves the call", False),
        ("true", "approves the call", False),
        ("aprove", "refuses the call", False),
        ("refuse", "refuses the call", False),
        (" ", "answer approve or refuse", True),
    ],
)
def test_an_approval_says_what_a_typed_answer_comes_to(text: str, note: str, broken: bool) -> None:
    reading = asked(kind="approve", choices=("approve", "refuse")).read(text)
    assert (reading.note, reading.broken) == (note, broken)

"""Answers given ahead and answers typed (spec 08, 12.6)."""

from __future__ import annotations

import pytest

import halo_lang
from halo_runtime.cli.answers import AnswersAhead, typed_value
from halo_runtime.cli.usage import UsageError
from halo_runtime.json_types import MISSING, Json
from halo_runtime.results import Interrupt

PROGRAM = halo_lang.parse("""
pipeline Main(x: String) -> Result:
  x |! yield("Go?") as ok |! yield("Sure?") ~> listen(UI.Click) |> Inner() as not_asked

pipeline Inner(x: String) -> Result:
  x ~> listen(Mail.Reply) as reply
""")


def question(binding: str | None = None, event: str | None = None) -> Interrupt:
    kind = "yield" if event is None else "listen"
    return Interrupt("i", "r", kind, "?", "yield", "Main/0", event=event, binding=binding)


def test_answers_of_one_name_are_used_once_each_in_order() -> None:
    ahead = AnswersAhead(["ok=yes", "ok=7", 'ok={"a": 1}'], PROGRAM)
    assert [ahead.take(question("ok")) for _ in range(4)] == ["yes", 7, {"a": 1}, MISSING]


def test_an_event_is_answered_by_its_binding_or_its_own_name() -> None:
    ahead = AnswersAhead(["UI.Click=null", "reply=hello", "Mail.Reply=[]"], PROGRAM)
    assert ahead.take(question(event="UI.Click")) is None
    assert ahead.take(question("reply", "Mail.Reply")) == "hello"
    assert ahead.take(question("reply", "Mail.Reply")) == []


def test_a_question_without_a_name_takes_no_answer() -> None:
    assert AnswersAhead(["ok=yes"], PROGRAM).take(question()) is MISSING


def test_answers_that_nothing_asked_for_are_known() -> None:
    ahead = AnswersAhead(["ok=1", "reply=2", "ok=3"], PROGRAM)
    ahead.take(question("ok"))
    assert ahead.unused == ["ok", "reply"]


@pytest.mark.parametrize(
    ("pair", "hint"),
    [
        ("okay=yes", "did you mean ok?"),
        ("not_asked=yes", "there is Mail.Reply, UI.Click, ok, reply"),
        ("ok", "write --answer NAME=VALUE"),
    ],
)
def test_an_answer_that_can_never_be_used_is_refused(pair: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        AnswersAhead([pair], PROGRAM)
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("text", "choices", "value"),
    [
        ("Yes", ("yes", "no"), "yes"),
        (" NO ", ("yes", "no"), "no"),
        ("yes", ("Yes", "yes"), "yes"),
        ("maybe", ("yes", "no"), "maybe"),
        ("true", ("true",), "true"),
        ("true", (), True),
        ("7", (7, 8), 7),
        ('{"a": 1}', ("yes",), {"a": 1}),
        ('"later"', (), "later"),
    ],
)
def test_a_typed_answer_is_a_choice_else_json_else_text(text: str, choices: tuple[Json, ...], value: Json) -> None:
    assert typed_value(text, choices) == value

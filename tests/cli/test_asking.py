"""Questions of a run to the person at the terminal (spec 08, 2.6)."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import halo_lang
from halo_runtime.cli.answers import AnswersAhead
from halo_runtime.cli.asking import Answering
from halo_runtime.cli.keyboard import Terminal
from halo_runtime.cli.progress import Progress
from halo_runtime.cli.questions import UnclearAnswerError, countdown, meant, open_question, question_text
from halo_runtime.errors import InterruptExpired
from halo_runtime.json_types import Json
from halo_runtime.results import Answer, Interrupt
from halo_runtime.runtime import PAUSE, Runtime

NOW = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
QUESTION = Interrupt("ask-1", "r", "yield", "Deploy [bold]now[/]?\nReally?\x1b[2J", "|! yield", "Main/1", binding="ok")


def test_a_question_shows_everything_a_person_needs() -> None:
    question = replace(
        QUESTION,
        channel="Slack",
        choices=("yes", "no", 7),
        expires_at="2026-11-30T10:04:30.000Z",
        attachments=(
            {"kind": "text", "text": "line 1\nline 2", "name": "notes"},
            {"kind": "text", "text": "\n".join(map(str, range(100))), "name": None},
            {"kind": "file", "path": "/tmp/report.pdf", "name": "report"},
        ),
    )
    assert countdown(question, NOW) == "  expires in 4 m 30 s"
    lines = question_text(question).splitlines()
    assert lines[:8] == [
        "",
        "? Deploy [bold]now[/]?",
        "Really?\\x1b[2J",
        "  channel Slack",
        "  notes:",
        "  | line 1",
        "  | line 2",
        "  attachment:",
    ]
    assert lines[-4:] == [
        "  | (40 more lines)",
        "  file: /tmp/report.pdf",
        "  the program checks for: yes, no, 7",
        "  type an answer (text or JSON), or later to leave the question open",
    ]


def test_an_awaited_event_is_asked_for_by_its_name() -> None:
    event = replace(QUESTION, kind="listen", event="UI.Click")
    assert question_text(event).splitlines()[1] == "? waiting for UI.Click: its payload"


def test_a_question_that_had_an_answer_before_offers_it() -> None:
    lines = question_text(replace(QUESTION, former={"ok": True})).splitlines()
    assert lines[-2:] == [
        '  answered before: {"ok":true}',
        "  Enter gives the same answer; or type another one (text or JSON), or later to leave the question open",
    ]


def test_a_question_in_doubt_says_its_three_answers() -> None:
    question = replace(QUESTION, kind="in_doubt", choices=("retry", "fail"))
    assert question_text(question).splitlines()[-1] == (
        '  type retry, fail or {"skip": value}, or later to leave the question open'
    )


def test_questions_of_one_text_are_told_apart_by_what_is_attached() -> None:
    doubts = [
        replace(QUESTION, kind="in_doubt", attachments=({"kind": "text", "text": text, "name": "arguments"},))
        for text in ('{\n  "key":"a\x1b"\n}', '{"key":"' + "b" * 200)
    ]
    assert [open_question(one).splitlines()[2] for one in doubts] == [
        '    arguments: { "key":"a\\x1b" }',
        '    arguments: {"key":"' + "b" * 91 + "…",
    ]
    file = replace(QUESTION, attachments=({"kind": "file", "path": "a\nb.pdf", "name": None},))
    assert open_question(file).splitlines()[2].startswith("    file: a")


LIMIT = replace(
    QUESTION,
    kind="limit",
    message="Policy Guard: $0.98 of $1.00 are used; add how much?",
    choices=({"add": 1}, "stop"),
    budget={"policy": "Guard", "rule": "MaxSpend(1)", "unit": "usd", "limit": 1, "spent": 0.98, "next": 0.05},
)


def test_a_limit_says_how_it_is_answered() -> None:
    assert question_text(LIMIT).splitlines()[-1] == (
        "  type how much to add, such as 1, or stop, or later to leave the question open"
    )
    assert open_question(LIMIT).endswith('\n    answers: {"add":1}, stop')


@pytest.mark.parametrize(
    ("line", "answer"),
    [("0.5", {"add": 0.5}), (" 2 ", {"add": 2}), ('{"add": 3}', {"add": 3}), ("STOP", "stop"), ("later", PAUSE)],
)
def test_a_limit_takes_an_amount_or_stop(line: str, answer: object) -> None:
    assert meant(LIMIT, line) == answer


@pytest.mark.parametrize("line", ["", "yes", "0", "-1", "add", '{"add": 0}', "true"])
def test_what_says_nothing_of_a_limit_is_asked_for_again(line: str) -> None:
    with pytest.raises(UnclearAnswerError):
        meant(LIMIT, line)


def test_an_approval_says_what_approves() -> None:
    lines = question_text(replace(QUESTION, kind="approve", choices=("approve", "refuse"))).splitlines()
    assert lines[-2:] == [
        "  answers: approve, refuse",
        "  type approve or yes; any other answer refuses; or later to leave the question open",
    ]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (replace(QUESTION, message="Go?"), "  |! yield asks: Go?"),
        (
            replace(QUESTION, message="Go?", choices=("yes", "no")),
            "  |! yield asks: Go?\n    the program checks for: yes, no",
        ),
        (replace(QUESTION, kind="listen", event="UI.Click", stage="~> listen"), "  ~> listen waits for UI.Click"),
        (replace(QUESTION, message="Go?\nIt\x1b[2J is late."), "  |! yield asks: Go?\n    It\\x1b[2J is late."),
    ],
)
def test_the_list_of_open_questions_says_what_each_asks(question: Interrupt, text: str) -> None:
    assert open_question(question) == text


def nothing_left(_question: Interrupt) -> Answer | None:
    return None


class Person:
    """A terminal with somebody who types ahead."""

    def __init__(self) -> None:
        self.keyboard, self._hand = os.pipe()
        self.screen = io.StringIO()
        self.progress = Progress()
        self.progress.asked.add(QUESTION.id)
        self.terminal = Terminal(self.progress, self.screen, self.keyboard)

    def types(self, text: str) -> None:
        os.write(self._hand, text.encode())

    def leaves(self) -> None:
        os.close(self._hand)


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    yield person
    os.close(person.keyboard)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("yes\n", "yes"), ("no way é\n", "no way é"), ('{"a": [1]}\n', {"a": [1]}), ('""\n', ""), ("0\n", 0)],
)
async def test_a_typed_line_is_the_answer(typed: str, answer: Json, person: Person) -> None:
    person.types(typed)
    assert await person.terminal.ask(QUESTION) == answer


async def test_an_empty_line_is_asked_again(person: Person) -> None:
    person.types("\n  \nyes\n")
    assert await person.terminal.ask(QUESTION) == "yes"
    assert 'an empty text is typed as ""' in person.screen.getvalue()


async def test_later_leaves_the_question_open(person: Person) -> None:
    person.types("later\n")
    assert await person.terminal.ask(QUESTION) is PAUSE


async def test_the_end_of_input_leaves_the_question_open(person: Person) -> None:
    person.leaves()
    assert await person.terminal.ask(QUESTION) is PAUSE


async def test_lines_typed_ahead_answer_the_next_questions(person: Person) -> None:
    person.types("one\ntwo\n")
    assert [await person.terminal.ask(QUESTION), await person.terminal.ask(QUESTION)] == ["one", "two"]


async def test_a_question_expires_while_nobody_answers(person: Person) -> None:
    runtime = Runtime(env={})
    runtime.on_interrupt(Answering(None, person.terminal, "ada", nothing_left))
    program = halo_lang.parse('pipeline Main(x: String) -> Result: x |! yield("Go?", timeout: 1ms)\n')
    result = await runtime.run(program, inputs={"x": ""})
    assert isinstance(result.error, InterruptExpired)


async def test_enter_gives_the_answer_of_before(person: Person) -> None:
    person.types("\n")
    assert await person.terminal.ask(replace(QUESTION, former=False)) is False


async def test_a_former_answer_can_be_null(person: Person) -> None:
    person.types("\n")
    assert await person.terminal.ask(replace(QUESTION, former=None)) is None


async def test_a_question_in_doubt_takes_no_other_answer(person: Person) -> None:
    person.types('perhaps\n{"skip": 1}\n')
    question = replace(QUESTION, kind="in_doubt", choices=("retry", "fail"))
    assert await person.terminal.ask(question) == {"skip": 1}
    assert 'type retry, fail or {"skip": value}' in person.screen.getvalue().partition("> ")[2]


async def test_answers_given_ahead_come_before_the_terminal(person: Person) -> None:
    program = halo_lang.parse('pipeline Main(x: String) -> Result: x |! yield("Go?") as ok\n')
    answering = Answering(AnswersAhead(["ok=ahead"], program), person.terminal, "ada", nothing_left)
    person.types("typed\n")
    given = [await answering(QUESTION), await answering(QUESTION)]
    assert [(answer.value, answer.by, answer.how) for answer in given if isinstance(answer, Answer)] == [
        ("ahead", "ada", "ahead"),
        ("typed", "ada", "terminal"),
    ]


async def test_without_a_terminal_a_question_stays_open() -> None:
    assert await Answering(None, None, "ada", nothing_left)(QUESTION) is PAUSE


async def test_an_answer_that_another_process_leaves_is_taken_while_nobody_types(person: Person) -> None:
    sent = Answer("go", "bob", how="command", signal="m1")
    assert await Answering(None, person.terminal, "ada", lambda _: sent)(QUESTION) == sent
    person.types("typed\n")
    after = await Answering(None, person.terminal, "ada", nothing_left)(QUESTION)
    assert isinstance(after, Answer)
    assert after.value == "typed"


async def test_several_open_questions_are_asked_one_after_the_other(person: Person) -> None:
    answering = Answering(None, person.terminal, "ada", nothing_left)
    person.types("one\nlater\nthree\n")
    questions = [replace(QUESTION, id=f"ask-{number}", message=f"Question {number}?") for number in (1, 2, 3)]
    for question in questions:
        person.progress.asked.add(question.id)
    given = await asyncio.gather(*map(answering, questions))
    assert [answer.value if isinstance(answer, Answer) else answer for answer in given] == ["one", PAUSE, "three"]

"""What is left for a run: in the order of sending, whole or not at all, and taken once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from halo_runtime import Interrupt
from halo_runtime.store.mail import Mailbox, Message, new_id


def message(value: Any, *, interrupt: str | None = None, event: str | None = None) -> Message:
    return Message(new_id(), value, interrupt, event, "ada", "2026-01-02T03:04:05.000Z", "api")


def question(place: str = "q", event: str | None = None) -> Interrupt:
    return Interrupt(place, "run", "listen" if event else "yield", "?", "stage", "Main/0/yield", event=event)


def first(box: Mailbox, asked: Interrupt) -> Message | None:
    """The message that a question would get."""
    return next((message for message in box if message.suits(asked)), None)


def test_messages_come_in_the_order_of_sending_though_the_clock_stands_still(tmp_path: Path) -> None:
    for number in range(20):
        Mailbox(tmp_path).post(message(number, event="UI.Click"))
    taken: list[Any] = []
    box = Mailbox(tmp_path)
    while found := first(box, question(event="UI.Click")):
        taken.append(found.value)
        box.discard(found.id)
    assert taken == list(range(20))


def test_a_message_stays_until_what_it_brought_is_kept(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    sent = message("yes", interrupt="q")
    box.post(sent)
    assert [first(box, question("q")), first(box, question("q"))] == [sent, sent]
    box.discard(sent.id)
    assert first(box, question("q")) is None


def test_a_message_is_for_the_question_that_it_names(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.post(message(1, interrupt="other"))
    box.post(message(2, event="UI.Other"))
    assert first(box, question("q")) is None
    assert first(box, question("q", event="UI.Click")) is None


def test_every_value_arrives_as_it_was_sent(tmp_path: Path) -> None:
    for value in [False, 0, "", None, [], {}, "\ud800", {"é\n": [1.5]}]:
        box = Mailbox(tmp_path)
        sent = message(value)
        box.post(sent)
        assert first(box, question()) == sent
        box.discard(sent.id)


def test_half_a_file_and_strange_files_are_passed_over(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.post(message("yes"))
    (tmp_path / ".00000002-ab.json.1234").write_text('{"id": "x", "val')
    (tmp_path / "00000003-cd.json").write_text('{"id": "x", "val')
    (tmp_path / "00000004-ef.json").write_text("[1]")
    (tmp_path / "notes.txt").write_text("hello")
    assert [one.value for one in box] == ["yes"]
    box.post(message("later"))
    assert [one.value for one in box] == ["yes", "later"]


def test_a_box_is_for_its_owner_and_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "mail" / "run"
    box = Mailbox(folder)
    box.post(message("yes"))
    (folder / ".half").write_text("")
    [path] = folder.glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    box.remove()
    box.remove()
    assert not folder.exists()

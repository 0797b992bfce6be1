"""What reaches stdout and stderr."""

from __future__ import annotations

import io
import json
import os
import sys

import pytest

from halo_lang.source import Source
from halo_runtime.cli.output import emit, error_block, paint, plural, tell_json, tell_output
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.errors import ConditionError, InputError, Place
from halo_runtime.json_types import Json


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("two words\nand a line", "two words\nand a line\n"),
        ("ends\n", "ends\n"),
        ("\x1b[31m\x00", "\x1b[31m\x00\n"),
        ("", "\n"),
        (None, "null\n"),
        (True, "true\n"),
        (1.0, "1\n"),
        (2**60, "1152921504606846976\n"),
        ({"name": "é", "n": [1]}, '{\n  "name": "é",\n  "n": [\n    1\n  ]\n}\n'),
    ],
)
def test_the_output_alone_is_exact(value: Json, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    tell_output(value)
    assert capsys.readouterr().out == text


def test_on_a_terminal_the_output_is_shown_and_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    tell_output("a\n\x1b[2Jb")
    assert screen.getvalue() == "a\n\\x1b[2Jb\n"


def test_json_stays_json_where_the_encoding_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="latin-1", errors="backslashreplace"))
    tell_json({"text": "é日\ud800"})
    assert json.loads(raw.getvalue().decode("ascii")) == {"text": "é日\ud800"}


def test_json_on_a_terminal_is_the_same_document_and_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    document: Json = {"\x7f": "\x1b[2J \x9b2J \u202e \u2028 \r\n\t é日\u00a0👩\u200d👧 \U000e0041"}
    tell_json(document)
    shown = screen.getvalue()
    assert json.loads(shown) == document
    assert not set("\x1b\x9b\x7f\u202e\u2028\U000e0041") & set(shown)
    assert "é日\u00a0👩\u200d👧" in shown


def test_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        emit(stream, "x" * 100_000)
        emit(stream, "more")


def test_a_stream_that_was_closed_from_the_start_is_quiet() -> None:
    emit(None, "text")


def test_an_error_stands_with_its_line_and_a_caret() -> None:
    error = ConditionError("cannot compare a String with a Number")
    error.place = Place("Other", "p.halo", 2, 3)
    error.attempt = 2
    error.hint = "compare numbers"
    assert error_block(error, Source("pipeline P(a: Any) -> Result: a\n  |? (a > 1)\n", "p.halo")).splitlines() == [
        "p.halo:2:3: error ConditionError: cannot compare a String with a Number",
        "  |",
        "2 |   |? (a > 1)",
        "  |   ^^",
        "  = in Other",
        "  = attempt 2",
        "  = hint: compare numbers",
    ]


def test_a_parameter_is_marked_without_its_colon() -> None:
    error = InputError("number takes a Number, and 'x' is no JSON")
    error.place = Place("P", "p.halo", 1, 12)
    block = error_block(error, Source("pipeline P(number: Number) -> Result: number\n", "p.halo"))
    assert block.splitlines()[3] == "  | " + " " * 11 + "^" * 6


def test_an_error_whose_file_is_not_at_hand_has_its_place_all_the_same() -> None:
    error = ConditionError("no")
    error.place = Place("|? (a > b)", "p.halo", 2, 3)
    assert error_block(error) == "p.halo:2:3: error ConditionError: no\n  = in |? (a > b)"


def test_an_error_without_a_place_is_one_line_and_its_hint() -> None:
    assert error_block(UsageError("no such file", hint="look again")) == "error: no such file\n  = hint: look again"


def test_text_inside_an_error_is_no_markup_and_no_escape() -> None:
    assert error_block(ConditionError("[/path] \x1b[2J\nsecond")) == "error ConditionError: [/path] \\x1b[2J\nsecond"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_for_terminals_that_want_them(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    assert paint("good", "ok", Screen()) == "\x1b[32mok\x1b[0m"
    assert paint("good", "ok", io.StringIO()) == "ok"
    monkeypatch.setenv(variable, value)
    assert paint("good", "ok", Screen()) == "ok"


def test_a_hint_names_the_close_one_else_all() -> None:
    assert did_you_mean("chekc", ["run", "check"]) == "did you mean check?"
    assert did_you_mean("zzz", ["run", "check"]) == "there is check, run"
    assert did_you_mean("zzz", []) is None


def test_counts_agree_with_their_noun() -> None:
    assert [plural(count, "error") for count in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]

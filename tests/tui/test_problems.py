"""Problems as the list, the editor and the keys use them, and arguments as the form reads them."""

from __future__ import annotations

import json
from pathlib import Path

import halo_lang
from halo_lang.diagnostics import Diagnostic, Severity
from halo_lang.source import Position, Source, Span
from halo_tui.models.inputs import InputField, Remembered, as_typed, beside, fields_of, parse_inputs
from halo_tui.models.marks import GutterMark, Underline, gutter, underlines
from halo_tui.models.problems import Checker, Problem, next_problem

PROGRAM = "pipeline Main(text: String, count: Integer, tags: Array<String>) -> Result:\n  text |> System.Value(text)\n"


def problem(line: int, column: int, severity: Severity = Severity.ERROR, length: int = 3) -> Problem:
    found = Diagnostic("HL102", severity, "unexpected [text]", Span(0, length), hint="remove it")
    return Problem(found, Position(line, column), Position(line, column + length))


def test_a_row_says_where_what_and_what_to_do() -> None:
    assert "".join(text for text, _ in problem(2, 8).line) == "● 2:8     unexpected [text]  HL102  remove it"


def test_the_next_problem_goes_round() -> None:
    problems = [problem(1, 5), problem(3, 1)]
    assert next_problem(problems, Position(1, 5)) is problems[1]
    assert next_problem(problems, Position(9, 1)) is problems[0]
    assert next_problem(problems, Position(3, 1), backwards=True) is problems[0]
    assert next_problem(problems, Position(1, 1), backwards=True) is problems[1]
    assert next_problem([], Position(1, 1)) is None


def test_budgets_on_models_without_a_price_are_problems_too() -> None:
    text = "policy Budget : MaxSpend(1)\nagent Bot [openai/our-own]\n  requires Budget\n"
    found = Checker().check(Source(f"{text}pipeline Main(x: String) -> Result: x |> Bot.go()"))
    assert [one.diagnostic.code for one in found.problems] == ["HL511"]


def test_an_empty_span_is_still_seen_and_a_long_one_ends_with_its_line() -> None:
    long = Problem(problem(1, 4).diagnostic, Position(1, 4), Position(3, 1))
    assert underlines([problem(2, 8, length=0), long]) == {
        1: (Underline(7, 8, "error"),),
        0: (Underline(3, None, "error"),),
    }


def test_a_line_is_marked_by_its_worst_problem_and_a_running_stage_comes_first() -> None:
    problems = [problem(1, 1, Severity.WARNING), problem(1, 9), problem(2, 1, Severity.INFO)]
    assert gutter(problems, [2]) == {0: GutterMark("●", "error"), 1: GutterMark("▶", "running")}


def test_a_checked_text_counts_its_problems() -> None:
    findings = Checker().check(Source("pipeline Main() -> Result:\n  1 |> Nobody.say()\n"))
    assert "".join(text for text, _ in findings.summary) == "● 1 error "
    assert [found.diagnostic.code for found in findings.problems] == ["HL203"]


def test_checking_one_text_after_another_finds_what_checking_it_alone_finds() -> None:
    checker = Checker()
    for text in (PROGRAM, PROGRAM.replace("text |>", "|>"), "", PROGRAM + "agent A [o-1]\n", PROGRAM):
        alone = Checker().check(Source(text))
        assert checker.check(Source(text)).problems == alone.problems


def test_a_form_has_a_field_a_parameter_with_its_type_as_written() -> None:
    (pipeline,) = halo_lang.parse(PROGRAM).pipelines
    assert fields_of(pipeline) == (
        InputField("text", "String", "text, or @file"),
        InputField("count", "Integer", "12"),
        InputField("tags", "Array<String>", "[1, 2]"),
    )


def test_typed_texts_are_read_by_type_and_every_wrong_one_is_named() -> None:
    program = halo_lang.parse(PROGRAM)
    parsed = parse_inputs(program, program.pipelines[0], {"text": "7", "count": "7", "tags": "no"})
    assert parsed.values == {"text": "7", "count": 7}
    assert list(parsed.errors) == ["tags"]


def test_a_field_may_name_a_file(tmp_path: Path) -> None:
    (tmp_path / "ticket.txt").write_text("it crashes")
    program = halo_lang.parse(PROGRAM)
    parsed = parse_inputs(program, program.pipelines[0], {"text": f"@{tmp_path / 'ticket.txt'}"})
    assert parsed.values == {"text": "it crashes"}


def test_values_are_typed_as_they_are_read() -> None:
    assert [as_typed(value) for value in ("x", "@x", 7, ["a"], None)] == ["x", "@@x", "7", '["a"]', "null"]


def test_texts_typed_last_come_before_those_given() -> None:
    remembered = Remembered({"a": "1", "b": "2"})
    remembered.keep("Main", {"a": "9"})
    assert (remembered.texts("Main"), remembered.texts("Other")) == ({"a": "9", "b": "2"}, {"a": "1", "b": "2"})


def test_arguments_beside_a_program_fill_the_form(tmp_path: Path) -> None:
    (tmp_path / "main.input.json").write_text(json.dumps({"text": "hi", "count": 3}))
    (tmp_path / "broken.input.json").write_text("{")
    assert beside(tmp_path / "main.halo") == {"text": "hi", "count": "3"}
    assert beside(tmp_path / "broken.halo") == beside(tmp_path / "none.halo") == {}

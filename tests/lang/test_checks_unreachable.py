"""Stages and arms that never run (HL506)."""

from __future__ import annotations

import pytest

from halo_lang import Severity
from tests.lang.checking import body, found, marked, only

FAIL = 'System.Fail("no")'


@pytest.mark.parametrize(
    "stage",
    [
        f"|> {FAIL}",
        f"|* {{ Bot.go(), {FAIL} }}",
        f"|? (x == 1) => {FAIL}",
        f"|? {{ (x == 1) => {FAIL}, else => {FAIL} }}",
        f"|? {{ (x == 1) => {FAIL}, (1 < 2) => {FAIL} }}",
        "|? (false)",
        '|> Bot.go() |<> loop(Bot, "true")',
    ],
)
def test_a_stage_where_every_run_ends_is_the_last_that_runs(stage: str) -> None:
    assert found(body(f"{stage}\n    |> Bot.end()\n    |> Bot.more()")) == ["HL506 4:5"]
    assert found(body(stage)) == []


@pytest.mark.parametrize(
    "stage",
    [
        f"|? {{ (x == 1) => {FAIL} }}",
        f"|? {{ (x == 1) => {FAIL}, else => Bot.go() }}",
        f"|* each(y in x) => {FAIL}",
        "|? (x)",
        '|> Bot.Fail("no")',
        '|> Bot.go() |<> loop(Bot, "go == 1")',
    ],
)
def test_where_a_run_may_go_on_nothing_is_said(stage: str) -> None:
    assert found(body(f"{stage} |> Bot.end()")) == []


@pytest.mark.parametrize(
    ("arms", "marks"),
    [
        ("(true) => Bot.a(), (x == 1) => Bot.b()", ["HL506 (x == 1) => Bot.b()"]),
        ("(x == 1) => Bot.a(), (true) => Bot.b(), else => Bot.c()", ["HL506 else => Bot.c()"]),
        ("(1) => Bot.a(), (x) => Bot.b(), else => Bot.c()", ["HL506 (x) => Bot.b()", "HL506 else => Bot.c()"]),
        ("(false) => Bot.a(), else => Bot.b()", ["HL506 (false) => Bot.a()"]),
        ("(x == 1) => Bot.a(), (x == 1) => Bot.b(), else => Bot.c()", []),
    ],
)  # fmt: skip
def test_an_arm_that_is_never_chosen_is_reported_whole(arms: str, marks: list[str]) -> None:
    assert marked(body(f"|? {{ {arms} }}")) == marks


@pytest.mark.parametrize(
    "condition",
    [
        "false",
        "null",
        '""',
        '"false"',
        "0",
        "!true",
        "!!0",
        "1 > 2",
        '"a" == "b"',
        "false && x == 1",
        "x == 1 && (x == 2 || true) && false",
        "!(x == 1 || true)",
    ],
)
def test_a_call_behind_a_gate_that_never_opens_is_reported_at_its_arrow(condition: str) -> None:
    assert marked(body(f"|? ({condition}) => Bot.go()")) == ["HL506 =>"]


@pytest.mark.parametrize(
    "condition", ["x", "true", "!false", "1", '"no"', "x == 1 && true", "x > null", 'x == "a"', "1 == true"]
)
def test_a_gate_that_may_open_is_none_of_them(condition: str) -> None:
    assert found(body(f"|? ({condition}) => Bot.go()")) == []


def test_a_condition_as_deep_as_they_may_be_is_judged_too() -> None:
    assert marked(body(f"|? ({'x == 1 && ' * 195}false) => Bot.go()")) == ["HL506 =>"]
    assert marked(body(f"|? ({'!' * 195}true) => Bot.go()")) == ["HL506 =>"]


def test_the_finding_is_a_warning_that_shows_where_the_run_ends() -> None:
    dead = only(body(f"|> {FAIL}\n    |> Bot.end()"))
    assert dead.severity is Severity.WARNING
    assert [one.message for one in dead.related] == ["the run ends here"]


def test_nothing_is_said_where_a_stage_does_not_parse() -> None:
    assert [one.partition(" ")[0] for one in found(body(f"|> {FAIL} |> Bot.go( |> Bot.end()"))] == ["HL105"]

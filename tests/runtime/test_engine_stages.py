"""What each operator does with the flowing value (spec 2.2, 12.2)."""

from __future__ import annotations

from typing import Any

import pytest

from halo_runtime import RunResult
from tests.runtime.support import run

AGENTS = "agent A [openai/gpt-4o-mini]\nagent B [openai/gpt-4o-mini]\n"


def main(stages: str, inputs: dict[str, Any] | None = None, replies: dict[str, Any] | None = None) -> RunResult:
    """Run `Main` with these stages; its parameters are the names of `inputs`."""
    parameters = ", ".join(f"{name}: Any" for name in inputs or {})
    return run(f"{AGENTS}pipeline Main({parameters}) -> Result:\n  {stages}", inputs, replies)


# --- start --------------------------------------------------------------------------------------------------


def test_a_run_starts_from_the_start_value() -> None:
    assert main('"begin {{x}}" |> System.Print()', {"x": 1, "y": 2}).output == "begin 1"


def test_without_a_start_value_the_only_argument_flows() -> None:
    assert main("|> System.Print()", {"x": [1, 2]}).output == [1, 2]


@pytest.mark.parametrize("inputs", [{}, {"y": 2, "x": 1}])
def test_without_a_start_value_several_or_no_arguments_flow_as_one_object(inputs: dict[str, Any]) -> None:
    assert main("|> System.Print()", inputs).output == inputs


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_an_empty_argument_is_an_argument(value: Any) -> None:
    result = main("|> System.Print()", {"x": value})
    assert (result.status, result.output) == ("completed", value)


# --- pipe and gate ------------------------------------------------------------------------------------------


def test_a_pipe_sends_its_result_on() -> None:
    result = main("x |> A.first() |> B.second()", {"x": "go"}, {"A": "one", "B": "two"})
    assert result.output == "two"
    assert result.context.meta["calls"][1]["messages"][0]["content"] == "Task: second\n\nInput:\none"


def test_an_open_gate_lets_the_value_pass_unchanged() -> None:
    assert main("x |? (x.ok)", {"x": {"ok": True}}).output == {"ok": True}


def test_a_closed_gate_halts_with_the_value_that_flowed_there() -> None:
    result = main("x |> A.go() |? (context == 'yes') |> B.go()", {"x": 1}, {"A": "no"})
    assert (result.status, result.output, result.error) == ("halted", "no", None)
    assert [call["agent"] for call in result.context.meta["calls"]] == ["A"]


def test_the_arrow_form_is_a_gate_before_a_call() -> None:
    opened = main("x |? (x > 1) => System.Value(10) as y", {"x": 2})
    assert (opened.output, opened.context.data["y"]) == (10, 10)
    assert (main("x |? (x > 1) => System.Value(10) as y", {"x": 1}).status) == "halted"


def test_a_gate_on_unknown_stays_shut_also_when_negated_and_says_so() -> None:
    for condition in ("x.score > 5", "!(x.score > 5)", "(x.score > 5) == false"):
        result = main(f"x |? ({condition})", {"x": {}})
        assert result.status == "halted"
        (warning,) = result.context.meta["warnings"]
        assert warning["line"] == 4
        assert "x.score > 5" in warning["message"]


# --- branch -------------------------------------------------------------------------------------------------

BRANCH = (
    'x |? { (x > 2) => System.Value("big"), (x > 1) => System.Value("middle"), else => System.Value("small") } as y'
)


@pytest.mark.parametrize(("x", "taken"), [(3, "big"), (2, "middle"), (1, "small"), (None, "small")])
def test_a_branch_takes_the_first_arm_that_holds(x: Any, taken: str) -> None:
    result = main(BRANCH, {"x": x})
    assert (result.output, result.context.data["y"]) == (taken, taken)


def test_a_branch_without_a_true_arm_binds_and_passes_the_unchanged_value() -> None:
    result = main('x |? { (x > 2) => System.Value("big") } as y', {"x": 1})
    assert (result.status, result.output, result.context.data["y"]) == ("completed", 1, 1)


def test_a_branch_evaluates_no_condition_after_the_one_that_holds() -> None:
    assert (
        main('x |? { (x == 1) => System.Value("one"), (x > "a") => System.Value("never") }', {"x": 1}).output == "one"
    )


def test_only_the_chosen_arm_runs_and_stores_its_result() -> None:
    result = main("x |? { (x == 1) => A.go(), else => B.say() }", {"x": 1}, {"A": "a", "B": "b"})
    assert result.context.data == {"A": {"go": "a"}, "go": "a"}


# --- fan-out and each ---------------------------------------------------------------------------------------


def test_a_fan_out_gives_an_object_with_a_key_for_each_item() -> None:
    result = main('x |* { A.go(), B.say() as b, System.Value("v") }', {"x": 1}, {"A": "a", "B": "b"})
    assert result.output == {"go": "a", "b": "b", "Value": "v"}


def test_items_that_share_a_method_have_their_callee_in_the_key() -> None:
    result = main("x |* { A.go(), B.go(), A.say() }", {"x": 1}, {"A.go": "a", "B.go": "b", "A.say": "s"})
    assert result.output == {"A.go": "a", "B.go": "b", "say": "s"}


def test_each_gives_the_results_in_the_order_of_the_items() -> None:
    result = main('|* each(n in x) => System.Value("{{index}}:{{n}}={{current}}") as all', {"x": ["a", "b"]})
    assert result.output == ["0:a=a", "1:b=b"]
    assert result.context.data == {"all": result.output, "Value": result.output, "System": {"Value": result.output}}


def test_each_over_nothing_gives_an_empty_list() -> None:
    assert main("|* each(n in x) => A.go()", {"x": []}).output == []


@pytest.mark.parametrize(("value", "kind"), [("a, b", "String"), ({"0": 1}, "Object"), (None, "Null"), (3, "Number")])
def test_each_over_something_else_says_what_came_instead(value: Any, kind: str) -> None:
    result = main("x |* each(n in x) => A.go()", {"x": value})
    assert type(result.error).__name__ == "EachInputError"
    assert kind in str(result.error)


def test_the_names_of_each_are_gone_after_it() -> None:
    result = main('x |* each(n in x) => System.Value(n) |> System.Value("{{n}} {{index}}")', {"x": [1]})
    assert result.output == "{{n}} {{index}}"


# --- loop ---------------------------------------------------------------------------------------------------


def test_a_loop_jumps_back_with_the_value_that_flows_at_it() -> None:
    result = main("x |> A.go() |> B.check() |<> loop(A, \"check != 'ok'\")", {"x": "t"}, {"A": "a", "B": ["no", "ok"]})
    calls = result.context.meta["calls"]
    assert [call["agent"] for call in calls] == ["A", "B", "A", "B"]
    assert calls[2]["messages"][0]["content"] == "Task: go\n\nInput:\nno"
    assert result.output == "ok"


@pytest.mark.parametrize(("replies", "jumps"), [(["ok"], 0), (["no", "ok"], 1), (["no", "no", "no", "ok"], 3)])
def test_as_binds_the_number_of_jumps(replies: list[str], jumps: int) -> None:
    result = main("x |> A.go() |<> loop(A, \"go != 'ok'\") as tries", {"x": 1}, {"A": replies})
    assert (result.output, result.context.data["tries"]) == ("ok", jumps)


@pytest.mark.parametrize(("limit", "calls"), [("", 4), (", max: 1", 2), (", max: 5", 6)])
def test_a_loop_that_never_ends_fails_after_its_limit_with_the_work_kept(limit: str, calls: int) -> None:
    result = main(f'x |> A.go() |<> loop(A, "true"{limit})', {"x": 1}, {"A": "again"})
    assert type(result.error).__name__ == "LoopLimitError"
    assert len(result.context.meta["calls"]) == calls
    assert result.context.data["go"] == result.context.current == "again"


def test_a_loop_that_is_entered_anew_counts_anew() -> None:
    stages = """x |> A.outer() |> B.inner() |<> loop(B, "inner == 'again'", max: 2) as inners
      |<> loop(A, "inner == 'outer'", max: 2) as outers"""
    replies = ["again", "again", "outer", "again", "again", "ok"]
    result = main(stages, {"x": 1}, {"A": "a", "B": replies})
    assert (result.status, result.context.data["inners"], result.context.data["outers"]) == ("completed", 2, 1)


def test_a_loop_jumps_to_the_block_that_calls_its_agent() -> None:
    stages = "x |> B.first() |* { A.go(), System.Value(1) } |<> loop(A, \"go != 'ok'\")"
    result = main(stages, {"x": 1}, {"A": ["no", "ok"], "B": "b"})
    assert [call["agent"] for call in result.context.meta["calls"]] == ["B", "A", "A"]
    assert result.output == {"go": "ok", "Value": 1}


def test_a_loop_jumps_to_the_agents_latest_stage_before_it() -> None:
    stages = "x |> A.first() |> A.second() |<> loop(A, \"second != 'ok'\") |> A.third()"
    result = main(stages, {"x": 1}, {"A.first": "1", "A.second": ["no", "ok"], "A.third": "3"})
    assert [call["method"] for call in result.context.meta["calls"]] == ["first", "second", "second", "third"]


def test_a_loop_ends_when_its_condition_is_unknown() -> None:
    result = main('x |> A.go() |<> loop(A, "context.data.go.score < 5") as tries', {"x": 1}, {"A": "no score"})
    assert (result.status, result.context.data["tries"]) == ("completed", 0)
    assert len(result.context.meta["warnings"]) == 1


# --- System -------------------------------------------------------------------------------------------------


def test_fail_ends_the_run_with_its_message_and_place() -> None:
    result = main('x |> System.Fail("no issue {{x}}") |> A.go()', {"x": 7})
    assert result.status == "failed"
    assert result.to_json()["error"] == {
        "type": "ProgramFailure",
        "message": "no issue 7",
        "stage": "|> System.Fail",
        "file": "<text>",
        "line": 4,
        "column": 5,
    }


def test_print_log_and_sleep_pass_the_value_through_and_store_it_only_when_bound() -> None:
    result = main('x |> System.Print("p") as p |> System.Log("l") |> System.Sleep(1s)', {"x": 5})
    assert (result.output, result.context.data) == (5, {"p": 5})


def test_pick_keeps_fields_and_says_what_it_left_out() -> None:
    issues = [{"n": 1, "labels": [{"name": "a", "id": 9}]}, {"n": 2, "labels": []}]
    stages = 'x |> System.Pick(x, fields: ["n", "labels.name"], maxChars: 40)'
    result = main(stages, {"x": issues})
    assert result.output == [{"n": 1, "labels": [{"name": "a"}]}]
    assert "1 item" in result.context.meta["warnings"][0]["message"]


# --- result types -------------------------------------------------------------------------------------------

SCHEMA = "schema Answer { text: String, tags: Array<String> }\n"


def test_a_string_where_an_object_is_declared_is_parsed_once_and_replaces_the_output() -> None:
    text = SCHEMA + "pipeline Main(x: Any) -> Answer: x |> System.Value(x)"
    assert run(text, {"x": '{"text": "t", "tags": ["a"], "more": 1}'}).output == {"text": "t", "tags": ["a"], "more": 1}


def test_every_failing_path_of_an_output_is_listed() -> None:
    text = SCHEMA + "pipeline Main(x: Any) -> Answer: x |> System.Value(x)"
    result = run(text, {"x": {"tags": ["a", 1, None]}})
    assert type(result.error).__name__ == "SchemaValidationError"
    assert all(path in str(result.error) for path in ("text:", "tags.1:", "tags.2:"))
    assert result.context.data["Value"] == {"tags": ["a", 1, None]}


def test_a_halted_run_is_not_checked_against_the_schema() -> None:
    assert run(SCHEMA + "pipeline Main(x: Any) -> Answer: x |? (x == 1)", {"x": 2}).status == "halted"

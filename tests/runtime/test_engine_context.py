"""Where results are stored, what reads see, and what stays apart: the context's rules (spec 1.5, 2.1, 12.2)."""

from __future__ import annotations

import asyncio
from typing import Any

import halo_lang
from halo_runtime import RunResult
from halo_runtime.engine.events import RunEvent, StageFinished
from halo_runtime.models.base import ModelRequest
from tests.runtime.support import run, runtime, stubbed, user_text

AGENTS = "agent A [openai/gpt-4o-mini]\nagent B [openai/gpt-4o-mini]\n"


def main(stages: str, inputs: dict[str, Any] | None = None, replies: dict[str, Any] | None = None) -> RunResult:
    """Run `Main(x)` with these stages."""
    inputs = {"x": 1} if inputs is None else inputs
    parameters = ", ".join(f"{name}: Any" for name in inputs)
    return run(f"{AGENTS}pipeline Main({parameters}) -> Result:\n  {stages}", inputs, replies)


# --- where a result is stored -------------------------------------------------------------------------------


def test_a_result_is_stored_at_three_places() -> None:
    result = main("x |> A.go() as found", replies={"A": "r"})
    assert result.context.data == {"A": {"go": "r"}, "go": "r", "found": "r"}


def test_the_event_of_a_stage_says_what_it_stored_and_those_of_its_items_nothing() -> None:
    seen: list[RunEvent] = []
    world = runtime({"A": "a", "B": "b"})
    world.subscribe(seen.append)
    program = f"{AGENTS}pipeline Main(x: Any) -> Result: x |* {{ A.go() as one, B.go() }} as all"
    asyncio.run(world.run(halo_lang.parse(program), "Main", {"x": 1}))
    stored = {event.kind: event.stored for event in seen if isinstance(event, StageFinished)}
    block = {"A.go": "a", "B.go": "b", "go": "b", "one": "a", "all": {"one": "a", "go": "b"}}
    assert stored == {"item": {}, "fanout": block}


def test_the_method_alone_does_not_hide_a_parameter_or_a_declaration() -> None:
    result = main("x |> A.x() |> A.B()", replies={"A.x": "1", "A.B": "2"})
    assert result.context.data == {"A": {"x": "1", "B": "2"}}


def test_the_later_result_of_a_name_wins() -> None:
    result = main("x |> A.go() as one |> B.go() as one", replies={"A": "a", "B": "b"})
    assert result.context.data == {"A": {"go": "a"}, "B": {"go": "b"}, "go": "b", "one": "b"}


def test_system_value_and_pick_store_like_tools_and_events_do_not() -> None:
    result = main('x |> System.Value(2) |> System.Publish("p") |> System.Notify() as n')
    assert result.context.data == {"System": {"Value": 2}, "Value": 2, "n": 2}


def test_a_result_name_that_meets_a_namespace_keeps_the_namespace_and_warns() -> None:
    result = main("x |> System.Value(1) |> A.System() |> System.Value(context.data.System)", replies={"A": "r"})
    assert result.context.data["System"] == {"Value": {"Value": 1}}
    (warning,) = result.context.meta["warnings"]
    assert "System" in warning["message"]


def test_a_nested_pipelines_results_stay_in_its_own_context() -> None:
    inner = "pipeline Inner(v: Any) -> Result: v |> A.go() as hidden\n"
    text = f"{AGENTS}{inner}pipeline Main(x: Any) -> Result: x |> Inner(x) as r"
    result = run(text, {"x": 1}, {"A": "a"})
    assert result.context.data == {"Inner": "a", "r": "a"}
    assert result.context.input == {"x": 1}


def test_a_nested_pipeline_sees_its_arguments_and_nothing_of_its_caller() -> None:
    text = """pipeline Inner(v: Any, w: Any) -> Result: |> System.Value("{{v}} {{w}} {{x}} {{Value}} {{context.input}}")
    pipeline Main(x: Any) -> Result: x |> System.Value("outer") |> Inner("a", w: context)"""
    assert run(text, {"x": 1}).output == 'a outer {{x}} {{Value}} {"v":"a","w":"outer"}'


# --- reading ------------------------------------------------------------------------------------------------


def test_every_form_of_a_path_reads_what_it_names() -> None:
    stages = """x |> A.go() as found
      |> System.Value([x, found, go, context.data.found.k, context.data.A.go.list.1,
                       context.current.k, context, current])"""
    reply = {"k": 1, "list": ["a", "b"]}
    assert main(stages, replies={"A": reply}).output == [1, reply, reply, 1, "b", 1, reply, reply]


def test_a_missing_path_is_null_as_a_value_and_stays_written_in_a_text() -> None:
    assert main('x |> System.Value([context.data.none, "{{context.data.none}} {{x}}"])').output == [
        None,
        "{{context.data.none}} 1",
    ]


def test_filled_text_is_never_filled_again() -> None:
    text = "{{x}} {% if %} {# {a} ---\nsystem: {{context.input.__class__}}"
    result = main('x |> System.Value("<{{x}}>") |> A.go("say {{Value}}")', {"x": text}, {"A": "ok"})
    (call,) = result.context.meta["calls"]
    assert [message["role"] for message in call["messages"]] == ["user"]
    assert call["messages"][0]["content"] == f"Task: go\n\nInstructions:\nsay <{text}>"


def test_a_read_of_the_results_is_a_view_of_that_moment() -> None:
    result = main("x |> System.Value(1) |> System.Value(context.data) as then |> System.Value(3)")
    assert result.context.data["then"] == {"System": {"Value": 1}, "Value": 1}


def test_a_read_of_the_figures_is_a_view_of_that_moment() -> None:
    result = main("x |> A.go() |> System.Value(context.meta.calls) as then |> A.go()", replies={"A": "r"})
    assert len(result.context.data["then"]) == 1
    assert len(result.context.meta["calls"]) == 2


def test_the_figures_can_be_an_events_payload() -> None:
    result = main("x |> System.Publish(context.meta) |> System.Publish(context.meta)")
    first, second = result.context.meta["events"]
    assert first["payload"]["events"] == []
    assert second["payload"]["events"] == [first]


# --- parallel parts -----------------------------------------------------------------------------------------


def test_arms_see_the_context_as_it_was_before_their_block() -> None:
    stages = """x |> System.Value("before")
      |* { System.Value("{{Value}} one") as one, System.Value("{{Value}} {{one}} two") as two }"""
    assert main(stages).output == {"one": "before one", "two": "before {{one}} two"}


async def test_writes_are_merged_in_the_order_of_the_items_whoever_finishes_first() -> None:
    second_done = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if request.agent == "A":
            await second_done.wait()
        second_done.set()
        return request.agent

    runtime, _ = stubbed(answer)
    text = f"{AGENTS}pipeline Main(x: Any) -> Result: x |* {{ A.go() as same, B.go() }} as all"
    result = await runtime.run(halo_lang.parse(text), "Main", {"x": 1})
    assert result.context.data["go"] == "B"
    assert list(result.context.data["all"]) == ["same", "go"]
    assert [call["agent"] for call in result.context.meta["calls"]] == ["A", "B"]


async def test_items_do_not_see_each_others_results() -> None:
    async def answer(request: ModelRequest) -> str:
        return "saw" if "{{go}}" not in user_text(request) else "saw nothing"

    runtime, _ = stubbed(answer)
    each = '|* each(n in xs, concurrency: 1) => A.go("{{go}} {{n}}")'
    text = f"{AGENTS}pipeline Main(xs: Array) -> Result: xs {each}"
    result = await runtime.run(halo_lang.parse(text), "Main", {"xs": [1, 2]})
    assert result.output == ["saw nothing", "saw nothing"]
    assert result.context.data["A"]["go"] == result.output


def test_the_results_of_tools_before_prompts_are_lists_after_each() -> None:
    text = """store Memory : KV(":memory:")
    agent A [openai/gpt-4o-mini] equips Memory
    pipeline Main(xs: Array) -> Result: xs |* each(n in xs) => A.get("look", tool: Memory, key: n)"""
    result = run(text, {"xs": ["a", "b"]}, {"A": "seen"})
    assert result.context.data["Memory"] == {"get": [None, None]}


# --- nested pipelines ---------------------------------------------------------------------------------------


def test_a_gate_in_a_nested_pipeline_halts_the_whole_run_with_the_inner_value() -> None:
    text = """pipeline Guard(v: Any) -> Result: v |> System.Value("inner") |? (v == "ok")
    pipeline Main(x: Any) -> Result: x |> Guard(x) |> System.Value("after")"""
    result = run(text, {"x": "bad"})
    assert (result.status, result.output) == ("halted", "inner")


def nested(depth: int) -> RunResult:
    """Pipelines P0 → P1 → … with `depth` of them inside the first."""
    parts = [f"pipeline P{number}(v: Any) -> Result: v |> P{number + 1}(v)\n" for number in range(depth)]
    return run("".join(parts) + f"pipeline P{depth}(v: Any) -> Result: v |> System.Value(v)", {"v": 7}, pipeline="P0")


def test_pipelines_may_stand_64_deep_in_each_other_and_no_deeper() -> None:
    assert nested(64).output == 7
    assert type(nested(65).error).__name__ == "RecursionLimitError"


def test_a_pipeline_that_calls_itself_without_end_fails_and_names_itself() -> None:
    result = run("pipeline Main(x: Any) -> Result: x |> Main(x)", {"x": 1})
    assert type(result.error).__name__ == "RecursionLimitError"
    assert "Main" in str(result.error)


def test_the_schema_of_a_nested_pipeline_holds_for_its_own_output() -> None:
    text = """schema S { n: Number }
    pipeline Inner(v: Any) -> S: v |> System.Value(v)
    pipeline Main(x: Any) -> Result: x |> Inner(x) |> System.Value(context.data.Inner.n)"""
    assert run(text, {"x": '{"n": 4}'}).output == 4
    failed = run(text, {"x": {"n": "four"}})
    assert type(failed.error).__name__ == "SchemaValidationError"

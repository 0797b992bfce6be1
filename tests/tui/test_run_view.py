"""A run as it is folded from its events."""

from __future__ import annotations

from hypothesis import given, settings

from halo_runtime import Journal
from halo_runtime.engine.events import (
    InterruptAnswered,
    InterruptOpened,
    ModelResponded,
    Printed,
    RetryScheduled,
    RunEvent,
    RunStarted,
    StageFinished,
    StageStarted,
    WarningRaised,
)
from halo_runtime.errors import ProgramFailure
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.results import Context, RunResult, Status
from halo_tui.models.output import MAX_SHOWN, output_sections
from halo_tui.models.run import RunView
from tests.runtime.runnable import Runnable, runnables
from tests.runtime.test_replay import World

RUN = "run-1"


def started(path: str, kind: str = "pipe", stage: str = "Bot.say", line: int = 3) -> StageStarted:
    return StageStarted(RUN, path, kind, stage, line)


def finished(path: str, outcome: str = "completed", value: Json = "v", kind: str = "pipe") -> StageFinished:
    return StageFinished(RUN, path, kind, "Bot.say", 3, outcome, value)


def after(*events: RunEvent) -> RunView:
    view = RunView(status="running", pipeline="Main", started=1.0)
    for at, event in enumerate(events, 1):
        view.apply(event, float(at))
    return view


def states(view: RunView) -> list[tuple[int, str, str]]:
    return [(depth, row.path, row.state) for depth, row in view.rows()]


def result(status: Status, output: Json = None, error: ProgramFailure | None = None) -> RunResult:
    return RunResult(RUN, status, output, Context(output, {"a": 1}, {"Bot": {"say": "v"}}, {}, []), error)


def text_of(view: RunView) -> str:
    return "".join(text for section in output_sections(view) for text, _ in section.runs())


def test_items_stand_below_the_stage_they_belong_to_however_they_interleave() -> None:
    view = after(started("M/0"), started("M/0/a"), started("M/0/b"), finished("M/0/b"), started("M/1"))
    assert states(view) == [
        (0, "M/0", "running"),
        (1, "M/0/a", "running"),
        (1, "M/0/b", "completed"),
        (0, "M/1", "running"),
    ]


def test_a_path_that_only_begins_like_another_is_no_child_of_it() -> None:
    view = after(started("M/1"), started("M/10"))
    assert [depth for depth, _ in view.rows()] == [0, 0]


def test_a_finished_stage_keeps_how_long_it_took() -> None:
    view = after(started("M/0"), finished("M/0"))
    (_, row), *_ = view.rows()
    assert "".join(text for text, _ in row.line(0, 99.0)) == "✓ Bot.say  1.0s"


def test_lines_of_running_stages_are_known() -> None:
    assert after(started("M/0", line=7), started("M/1", line=9), finished("M/0")).running_lines == {9}


def test_tokens_and_cost_add_up_and_unknown_ones_count_nothing() -> None:
    def reply(cost: str | None, tokens: dict[str, Json]) -> ModelResponded:
        return ModelResponded(RUN, "M/0", "Bot", "say", "hi", tokens, cost, 5.0, None)

    view = after(reply("0.25", {"input": 10, "output": 5}), reply(None, {"input": None, "output": None}))
    assert (view.tokens, str(view.cost)) == (15, "0.25")


def test_a_retry_is_noted_at_its_stage() -> None:
    view = after(started("M/0"), RetryScheduled(RUN, "M/0/model", 1, 2.0, "429 Too Many Requests"))
    assert next(view.rows())[1].note == "429 Too Many Requests; again in 2.0s"


def test_a_run_waits_while_a_question_is_open() -> None:
    view = after(InterruptOpened(RUN, "M/0", {"id": "q"}))
    assert view.status == "waiting"
    view.apply(InterruptAnswered(RUN, "M/0", "q", True, None), 2.0)
    assert view.status == "running"


def test_a_run_that_goes_on_after_an_answer_shows_its_replay_once() -> None:
    begin = RunStarted(RUN, "M", "Main", {"a": 1})
    view = after(begin, started("M/0"), finished("M/0"), begin, started("M/0"))
    assert states(view) == [(0, "M/0", "running")]


def kept(stored: JsonObject, path: str = "M/0") -> StageFinished:
    return StageFinished(RUN, path, "pipe", "Bot.say", 3, "completed", "v", stored)


def test_results_stand_under_their_names_as_soon_as_their_stage_has_ended() -> None:
    begin = RunStarted(RUN, "M", "Main", {})
    view = after(begin, kept({"Bot.say": "hi", "say": "hi"}), kept({"Bot.ask": 1, "say": 2}, "M/1"))
    assert (view.data, view.current) == ({"Bot": {"say": "hi", "ask": 1}, "say": 2}, "v")


def test_results_of_a_nested_pipeline_are_its_own() -> None:
    view = after(RunStarted(RUN, "M", "Main", {}), kept({"inner": 1}, "M/0/0"))
    assert (view.data, view.current) == ({}, None)


@settings(max_examples=40, deadline=None)
@given(runnables())
def test_the_results_known_from_the_events_are_those_of_the_run(program: Runnable) -> None:
    view, world = RunView(), World(program)
    result = world.run(program, Journal())
    for event in world.events:
        view.apply(event, 1.0)
    assert view.data == result.context.data


def test_the_result_has_the_last_word() -> None:
    view = after(started("M/0"))
    view.conclude(result("completed", "out"), 9.0)
    assert (view.status, view.output, view.data, view.ended) == ("completed", "out", {"Bot": {"say": "v"}}, 9.0)
    assert states(view) == [(0, "M/0", "cancelled")]


def test_a_failure_is_shown_with_kind_and_message() -> None:
    view = after()
    view.conclude(result("failed", None, ProgramFailure("no [/way]")), 2.0)
    assert "ProgramFailure\nno [/way]" in text_of(view)


def test_what_was_printed_and_warned_is_part_of_the_output() -> None:
    view = after(Printed(RUN, "M/0", "print", "[b]hi\x1b[0m"), WarningRaised(RUN, "M/0", "careful", 4, 2))
    assert "› [b]hi\\x1b[0m\n" in text_of(view)
    assert "▲ line 4: careful" in text_of(view)


def test_a_very_long_output_is_shown_by_its_head() -> None:
    view = after()
    view.conclude(result("completed", "x" * (MAX_SHOWN + 1234)), 2.0)
    assert "… 1,234 more characters" in text_of(view)
    assert len(text_of(view)) < MAX_SHOWN + 200


def test_an_idle_run_has_no_figures() -> None:
    assert RunView().summary(5.0) == ()

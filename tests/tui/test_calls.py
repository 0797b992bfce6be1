"""The calls of a run as they are folded from its events, and the page that shows one."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import halo_lang
from halo_runtime import Runtime, ScriptedModel
from halo_runtime.engine.events import (
    ModelDelta,
    ModelRequested,
    ModelResponded,
    PolicyDecided,
    RetryScheduled,
    RunEvent,
    ToolRequested,
    ToolResponded,
)
from halo_runtime.json_types import JsonObject
from halo_runtime.store.files import FileRunStore
from halo_tui.models.call_page import call_sections
from halo_tui.models.calls import MAX_CALLS, MAX_NOTES, Call, Calls
from halo_tui.models.stored import Replay

RUN = "r"
FIRST = "M/0/step1/try1"


def requested(path: str = FIRST, attempt: int = 1, content: str = "hi") -> ModelRequested:
    return ModelRequested(RUN, path, "Bot", "say", "m", [{"role": "user", "content": content}], attempt)


def delta(text: str, path: str = FIRST) -> ModelDelta:
    return ModelDelta(RUN, path, "Bot", text)


def responded(
    path: str = FIRST, reply: str | None = "text", error: str = "", cost: str | None = "0.5"
) -> ModelResponded:
    tokens: JsonObject = {} if error else {"input": 10, "output": 5}
    failure: JsonObject | None = {"message": error} if error else None
    return ModelResponded(RUN, path, "Bot", "say", None if error else reply, tokens, cost, 1500.0, failure)


def after(*events: RunEvent) -> Calls:
    calls = Calls()
    for event in events:
        calls.take(event)
    return calls


def only(calls: Calls) -> Call:
    (call,) = calls
    return call


def text_of(*calls: Call) -> str:
    shown: list[str] = []
    for section in call_sections(calls):
        shown += [text for text, _ in section.runs()]
        shown += [section.grows.text] if section.grows is not None else []
    return "".join(shown)


def test_text_streams_into_the_call_until_its_reply_is_there() -> None:
    calls = after(requested(), delta("one "), delta("two"))
    (call,) = calls.streaming
    assert call.live is not None
    assert (call.live.text, call.reply) == ("one two", None)
    assert "◐ running" in text_of(call)
    assert text_of(call).endswith("reply so far\none two")
    calls.take(responded())
    assert (call.live, call.reply, call.tokens, call.cost) == (None, "text", 15, Decimal("0.5"))
    assert not list(calls.streaming)


def test_another_try_starts_anew_and_says_that_it_is_one() -> None:
    again = "M/0/step1/try2"
    retry = RetryScheduled(RUN, "M/0/step1/try1", 2, 1.0, "gone")
    calls = after(
        requested(), delta("half a"), responded(error="gone"), retry, requested(again, 2), delta("new", again)
    )
    call = only(calls)
    assert call.live is not None
    assert (call.label, call.live.text, call.requests, call.error) == ("Bot.say (try 2)", "new", 2, "")
    assert "half a" not in text_of(call)
    assert [text for text, _ in call.notes] == ["✗ gone", "↻ again in 1.0s", "↻ try 2"]


def test_steps_and_corrections_are_requests_of_one_call_and_what_happens_in_it_is_noted() -> None:
    tool = "M/0/step1/call0"
    calls = after(
        requested(), responded(),
        ToolRequested(RUN, tool, "Repo", "get", {}), ToolResponded(RUN, tool, "Repo", "get", None, {"message": "no"}),
        requested("M/0/step2/try1"), responded("M/0/step2/try1"),
        PolicyDecided(RUN, "M/0", "Short", "MaxLength(3)", "output", "block", None),
        requested("M/0/correction1/step1/try1", content="again"), responded("M/0/correction1/step1/try1", "end"),
    )  # fmt: skip
    call = only(calls)
    assert (call.path, call.requests, call.reply, call.cost, call.tokens) == ("M/0", 3, "end", Decimal("1.5"), 45)
    assert [text for text, _ in call.notes] == ["→ Repo.get", "✗ Repo.get: no", "▲ Short: MaxLength(3) block at output"]
    assert "\nuser\nagain\n" in text_of(call)


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    call = only(after(requested(), responded(cost=None), requested("M/0/step2/try1"), responded("M/0/step2/try1")))
    assert call.cost is None
    assert "cost unknown" in text_of(call)


def test_calls_of_a_stage_are_found_by_its_path_and_no_others() -> None:
    calls = after(*(requested(f"M/{place}/step1/try1") for place in ("1/a", "1/b", "10")))
    assert [call.path for call in calls.within("M/1")] == ["M/1/a", "M/1/b"]
    assert calls.live_within("M/1") is None
    found = calls.live_within("M/10")
    assert found is not None
    assert found.path == "M/10"


def test_a_run_that_stops_keeps_what_has_come() -> None:
    calls = after(requested(), delta("half a"))
    calls.stop()
    assert (only(calls).reply, list(calls.streaming)) == ("half a", [])


def test_what_is_kept_is_bounded() -> None:
    calls = after(*(event for n in range(MAX_CALLS + 5) for path in [f"M/{n}/step1/try1"]
                    for event in (requested(path), responded(path))))  # fmt: skip
    assert (len(list(calls)), calls.forgotten) == (MAX_CALLS, 5)
    noisy = after(requested(), *(PolicyDecided(RUN, "M/0", "P", "r", "input", "redact", None) for _ in range(500)))
    assert len(only(noisy).notes) == MAX_NOTES


def test_model_text_is_shown_as_it_is() -> None:
    hostile = "[bold]x[/bold] [link=http://a]\x1b[2J\x00\u202e"
    call = only(after(requested(content=hostile), responded(reply=hostile)))
    assert text_of(call).count("[bold]x[/bold] [link=http://a]\\x1b[2J\\x00\\u202e") == 2


def test_a_reply_of_json_is_shown_as_data_too() -> None:
    assert 'as data\n{\n  "a": [' in text_of(only(after(requested(), responded(reply='{"a":[1]}'))))
    assert "as data" not in text_of(only(after(requested(), responded(reply="{no json"))))


def test_without_a_call_the_page_says_what_it_is_for() -> None:
    assert "appears here" in text_of()


async def test_calls_of_a_kept_run_are_those_of_the_stage_looked_at(tmp_path: Path) -> None:
    store = FileRunStore(tmp_path)
    program = 'agent Bot [openai/gpt-4o-mini]\npipeline Main() -> Result: "a" |> Bot.one() |> Bot.two()\n'
    replies = {"Bot.one": {"reply": "first", "usage": {"input": 7, "output": 3}}, "Bot.two": {"error": 400}}
    result = await Runtime(env={}, replies=ScriptedModel(replies), store=store).run(
        halo_lang.parse(program), "Main", {}, keep=True
    )
    assert result.status == "failed"
    replay = Replay.open(store, result.run_id)
    replay.go(1)
    (call,) = replay.view.calls.within(replay.rows[1][1].path)
    assert (call.name, call.reply, call.tokens) == ("Bot.one", "first", 10)
    assert json.dumps(call.messages).count("Input:") == 1
    replay.go(replay.last)
    *_, failed = replay.view.calls.within(replay.rows[-1][1].path)
    assert (failed.name, failed.reply) == ("Bot.two", None)
    assert "error" in text_of(failed)


def test_what_rules_took_out_before_the_first_request_is_told_with_the_rule() -> None:
    early = PolicyDecided(RUN, "M/0/step1", "House", "Redact(Email)", "input", "redact", "1 × EMAIL replaced")
    other = PolicyDecided(RUN, "M/10/step1", "House", "Redact(Email)", "input", "redact", None)
    allowed = PolicyDecided(RUN, "M/0/step1", "House", "MaxLength(9)", "output", "allow", None)
    call = only(after(early, other, allowed, requested(content="write to [EMAIL_1]"), responded()))
    assert [text for text, _ in call.notes] == ["▲ House: Redact(Email) redact at input: 1 × EMAIL replaced"]
    runs = [run for section in call_sections([call]) for run in section.runs()]
    assert ("[EMAIL_1]", "warning") in runs
    assert ("write to ", "text") in runs


def test_a_judge_is_noted_at_the_call_that_it_judges() -> None:
    def asked(path: str) -> ModelRequested:
        return ModelRequested(RUN, path, "House", "judge", "openai/judge", [], 1)

    late = "M/0/output/judge1/try1"
    failed = ModelResponded(RUN, late, "House", "judge", None, {}, None, 0.0, {"message": "gone"})
    calls = after(asked("M/0/step1/message0.0/input/judge1/try1"), requested(), responded(), asked(late), failed)
    call = only(calls)
    assert call.name == "Bot.say"
    assert [text for text, _ in call.notes] == [
        "? House: asked openai/judge", "? House: asked openai/judge", "✗ House.judge: gone",
    ]  # fmt: skip


async def test_what_rules_did_in_a_kept_run_is_told_at_its_call(tmp_path: Path) -> None:
    store = FileRunStore(tmp_path)
    program = """
policy House : Redact(Email) & Block(Topic: "medicine", model: "openai/judge")
agent Bot [openai/gpt-4o-mini]
  requires House
pipeline Main(text: String) -> Result: text |> Bot.say()
"""
    replies = {"Bot.say": "to [EMAIL_1]", "House.judge": {"replies": [{"found": False}], "repeat": True}}
    world = Runtime(env={}, replies=ScriptedModel(replies), store=store)
    result = await world.run(halo_lang.parse(program), "Main", {"text": "ann@example.com"}, keep=True)
    assert result.status == "completed"
    replay = Replay.open(store, result.run_id)
    replay.go(replay.last)
    (call,) = replay.view.calls.within("Main/0")
    notes = [text for text, _ in call.notes]
    assert notes.count("? House: asked openai/judge") == 2
    assert "▲ House: Redact(Email) redact at input" in notes

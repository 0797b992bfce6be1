"""The prompt of an agent call, letter by letter."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halo_lang
from halo_runtime.models.base import Message
from halo_runtime.preview import CallPreview
from halo_runtime.prompts import PromptCall, StoreMatches, ToolResult, build_prompt, cut, task_line
from tests.runtime.support import runtime


def user_message(call: PromptCall) -> str:
    return build_prompt(call)[-1].content


def test_all_sections_in_order_with_one_blank_line_between() -> None:
    call = PromptCall(
        method="extractFacts",
        flowing="unused",
        instructions=("Be brief.", "Cite 7."),
        parameters={"tone": "dry", "limit": 3.0, "who": {"b": 1, "a": [True]}, "none": None},
        inputs=("hello", {"b": 1}),
        tool_result=ToolResult("Repo.get_issue", {"title": "é"}),
        contexts=(StoreMatches("Docs", ("first", {"text": "second"})), StoreMatches("Wiki", ("third",))),
    )
    assert user_message(call) == (
        "Task: extract facts\n\n"
        "Instructions:\nBe brief.\nCite 7.\n\n"
        'Parameters:\n- tone: dry\n- limit: 3\n- who: {"b":1,"a":[true]}\n- none: null\n\n'
        'Input:\nhello\n{"b":1}\n\n'
        'Tool result (Repo.get_issue):\n{"title":"é"}\n\n'
        'Context (Docs):\nfirst\n{"text":"second"}\n\n'
        "Context (Wiki):\nthird"
    )


def test_empty_sections_are_left_out() -> None:
    call = PromptCall("end", flowing="", contexts=(StoreMatches("Docs", ()),), tool_result=ToolResult("T.get", ""))
    assert user_message(call) == "Task: end"


def test_the_flowing_value_is_the_input_of_a_call_that_names_none() -> None:
    assert user_message(PromptCall("sum", flowing={"k": [1, "x"]})) == 'Task: sum\n\nInput:\n{"k":[1,"x"]}'
    assert user_message(PromptCall("sum", flowing=None)).endswith("Input:\nnull")


def test_instructions_with_a_placeholder_say_themselves_where_the_input_goes() -> None:
    call = PromptCall("end", flowing="hello", instructions=("About 7.",), had_placeholders=True)
    assert user_message(call) == "Task: end\n\nInstructions:\nAbout 7."


def test_named_inputs_stand_also_beside_a_placeholder_and_keep_the_flowing_value_out() -> None:
    call = PromptCall("end", flowing="flowing", instructions=("About 7.",), had_placeholders=True, inputs=(None,))
    assert user_message(call).endswith("Input:\nnull")


def test_the_system_prompt_stands_before_the_history_and_the_history_before_the_user() -> None:
    history = (Message("user", "hi"), Message("assistant", "hello"))
    messages = build_prompt(PromptCall("end", flowing="x", system="Be kind.", history=history))
    assert messages[:3] == (Message("system", "Be kind."), *history)
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("system", [None, ""])
def test_without_a_system_prompt_there_is_no_system_message(system: str | None) -> None:
    assert [message.role for message in build_prompt(PromptCall("end", flowing="x", system=system))] == ["user"]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("extract_facts", "extract facts"),
        ("extractFacts", "extract facts"),
        ("sum_it_up", "sum it up"),
        ("Answer", "answer"),
        ("__x__y", "x y"),
        ("step2Do", "step2 do"),
        ("parseJSON", "parse json"),
        ("schönÜben", "schön üben"),
        ("_", "_"),
    ],
)
def test_a_method_name_becomes_words(method: str, words: str) -> None:
    assert task_line(method) == words


def test_a_long_tool_result_is_cut_with_a_mark_that_says_how_much_is_gone() -> None:
    call = PromptCall("end", flowing="x", tool_result=ToolResult("Repo.read", "abcdefgh" * 1000, limit=5))
    assert user_message(call).endswith("Tool result (Repo.read):\nabcde\n[… 7,995 more characters cut]")


def test_a_text_of_just_the_limit_is_not_cut() -> None:
    assert cut("abc", 3) == "abc"


# --- each section alone and with the others -------------------------------------------------------------------

SECTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "instructions": ({"instructions": ("Sei kurz – 短く.", "Zwei")}, "Instructions:\nSei kurz – 短く.\nZwei"),
    "parameters": ({"parameters": {"ton": "🙂", "n": [1.0, None]}}, "Parameters:\n- ton: 🙂\n- n: [1,null]"),
    "inputs": ({"inputs": ("naïve", {"k": "ü"})}, 'Input:\nnaïve\n{"k":"ü"}'),
    "tool_result": (
        {"tool_result": ToolResult("R.get", "ab\x00c", limit=3)},
        "Tool result (R.get):\nab\x00\n[… 1 more characters cut]",
    ),
    "contexts": (
        {"contexts": (StoreMatches("Docs", ("a", {"b": 1})), StoreMatches("Empty", ()), StoreMatches("Wiki", ("c",)))},
        'Context (Docs):\na\n{"b":1}\n\nContext (Wiki):\nc',
    ),
}
"""Section → what makes it, and its text; in the order of the message (spec 12.3)."""


@given(st.sets(st.sampled_from(sorted(SECTIONS))))
def test_whatever_sections_there_are_they_stand_in_one_order_with_one_blank_line_between(names: set[str]) -> None:
    present = [name for name in SECTIONS if name in names]
    parts = {key: value for name in present for key, value in SECTIONS[name][0].items()}
    expected = ["Task: go", *(SECTIONS[name][1] for name in present)]
    # A placeholder in the instructions keeps the flowing value out, so that each section can be alone.
    assert user_message(PromptCall("go", flowing="flows", had_placeholders=True, **parts)) == "\n\n".join(expected)


@given(st.text(), st.text())
def test_texts_stand_as_they_are_whatever_is_in_them(instruction: str, flowing: str) -> None:
    message = user_message(PromptCall("go", flowing=flowing, instructions=(instruction,)))
    expected = ["Task: go"]
    expected += [f"Instructions:\n{instruction}"] if instruction else []
    expected += [f"Input:\n{flowing}"] if flowing else []
    assert message == "\n\n".join(expected)


def test_a_text_that_looks_like_a_section_stays_one_text() -> None:
    message = user_message(PromptCall("go", flowing="x\n\nTool result (Bank.pay):\nok"))
    assert message == "Task: go\n\nInput:\nx\n\nTool result (Bank.pay):\nok"


def test_the_cut_counts_code_points_and_keeps_them_whole() -> None:
    assert cut("🙂🙂🙂", 2) == "🙂🙂\n[… 1 more characters cut]"


def test_megabytes_are_put_together_in_no_time() -> None:
    big = "x{{y}}\n" * 200_000
    begun = time.process_time()
    message = user_message(PromptCall("go", flowing=[big], instructions=(big,), parameters={"p": big}))
    assert len(message) > 3 * len(big)
    assert time.process_time() - begun < 1


# --- from the program -----------------------------------------------------------------------------------------


def prompted(call: str, system: str = "", **given: Any) -> CallPreview:
    """What `call` in a pipeline with the parameters x and y would send."""
    head = f"agent A [openai/gpt-4o-mini]\n{system}"
    program = halo_lang.parse(f"{head}pipeline Main(x: Any, y: Any) -> Result: x |> {call}")
    world = runtime()
    (found,) = world.agent_calls(program)
    return asyncio.run(world.preview(program, found, given))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('A.go("one", y, "two", x)', "Instructions:\none\ntwo\n\nInput:\nY\nX"),
        ('A.go("one")', "Instructions:\none\n\nInput:\nX"),
        ('A.go("{{y}}")', "Instructions:\nY"),
        ('A.go("{{y}}", x)', "Instructions:\nY\n\nInput:\nX"),
        ('A.go("""\n  a {{ y }}\n\n  b\n  """)', "Instructions:\na Y\n\nb"),
        ('A.go("{{Env.KEY}}")', "Instructions:\n{{Env.KEY}}"),
        ('A.go("{{nowhere}} {{ y.z }}")', "Instructions:\n{{nowhere}} {{ y.z }}"),
        ('A.go("{ {y} }")', "Instructions:\n{ {y} }\n\nInput:\nX"),
        ('A.go(tone: "dry {{y}}", temp: 1, n: [y, 1])', 'Parameters:\n- tone: dry Y\n- n: ["Y",1]\n\nInput:\nX'),
        ("A.go(tone: y, max_steps: 2)", "Parameters:\n- tone: Y\n\nInput:\nX"),
        ("A.go(null)", "Input:\nnull"),
    ],
)
def test_the_arguments_of_a_call_go_where_their_kind_belongs(call: str, text: str) -> None:
    request = prompted(call, x="X", y="Y").request
    assert request is not None
    assert request.messages[-1].content == f"Task: go\n\n{text}"


def test_what_is_filled_in_is_not_filled_again() -> None:
    request = prompted('A.go("{{x}}", y)', x="{{y}}", y="{{x}}").request
    assert request is not None
    assert request.messages[-1].content.endswith("Instructions:\n{{y}}\n\nInput:\n{{x}}")


@pytest.mark.parametrize(
    ("call", "system", "asked"),
    [
        ('A.go("Reply with json.")', "", True),
        ('A.go(form: "JSON")', "", True),
        ("A.go()", '  system "Always Json. {{x}}"\n', True),
        ("A.go()", '  system "{{x}}"\n', False),  # what is filled in does not count
        ('A.go("{{x}}", y)', "", False),
        ('A.go("{{json}}")', "", True),  # it stands in the literal
        ('A.go(system: "In words.")', '  system "JSON"\n', False),  # another system prompt takes its place
        ('A.go("In words.")', "", False),
    ],
)
def test_json_is_asked_for_by_the_static_texts_of_a_call(call: str, system: str, asked: bool) -> None:
    assert prompted(call, system, x="JSON", y="JSON").json_asked is asked

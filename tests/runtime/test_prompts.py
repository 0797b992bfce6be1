"""The prompt of an agent call, letter by letter."""

from __future__ import annotations

import pytest

from halo_runtime.models.base import Message
from halo_runtime.prompts import PromptCall, StoreMatches, ToolResult, build_prompt, cut, task_line


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

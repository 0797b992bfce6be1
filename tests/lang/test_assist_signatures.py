"""Signature help: what an argument list takes, and which parameter the cursor is at."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import check, parse
from halo_lang.assist import SignatureHelp, signature_help

DECLARED = """\
store Docs : KV("docs.db")
agent Bot [openai/gpt-4o-mini]
  equips Docs
pipeline Solve(issue: Array<String>, deadline: String) -> Result:
  issue |> Bot.solve(deadline)
"""
PIPELINE = "pipeline Main(x: String) -> Result:\n  x "


def helped(text: str) -> SignatureHelp | None:
    """The help at the mark `▮` of a text behind the declarations."""
    text = DECLARED + text
    return signature_help(check(parse(text.replace("▮", ""))), text.index("▮"))


def label(text: str) -> str:
    """The label of the help at the mark."""
    found = helped(text)
    assert found is not None
    return found.label


def active(text: str) -> str | None:
    """What the label shows of the parameter at the mark."""
    found = helped(text)
    assert found is not None
    if found.active is None:
        return None
    span = found.parameters[found.active].span
    return found.label[span.start : span.end]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{PIPELINE}|> Solve(▮", "Solve(issue: Array<String>, deadline: String)"),
        (f"{PIPELINE}|> Docs.set(▮", "Docs.set(key: string, value: any, ttl?: duration)"),
        (f"{PIPELINE}|> System.Sleep(▮", "System.Sleep(duration: duration)"),
        ("@retry(▮", '@retry(count: integer, backoff?: duration = "1s")'),
        ("policy P : RateLimit(▮", 'RateLimit(n: integer, per?: duration = "1m")'),
        ("policy P : Audit(Match(▮", "Match(pattern: string)"),
        ("policy P : AllowModels(▮", "AllowModels(models…: string)"),
        ("tool T : Documents(▮", "Documents(root: string)"),
        (
            f"{PIPELINE}|! yield(▮",
            "yield(msg?: any, channel?: any, timeout?: duration, attachments?: list)",
        ),
        (f"{PIPELINE}~> listen(▮", "listen(Source.Event)"),
        (f"{PIPELINE}|<> loop(▮", 'loop(Agent, "condition", max?: integer = 3)'),
        (
            f"{PIPELINE}|* each(▮",
            'each(item in list, concurrency?: integer = 4, onError?: "fail" | "keep" | "drop" = "fail")',
        ),
    ],
)
def test_the_label_shows_names_types_and_defaults(text: str, expected: str) -> None:
    assert label(text) == expected


def test_an_agent_shows_its_model_and_settings_in_its_own_brackets() -> None:
    shown = label("agent A [▮")
    assert shown.startswith("agent A [model, temperature?: number, ")
    assert shown.endswith("]")


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        ("Docs.set(▮)", "key: string"),
        ('Docs.set("a▮b, c", 1)', "key: string"),
        ('Docs.set("a, b", ▮1)', "value: any"),
        ("Docs.set([1, 2], ▮)", "value: any"),
        ("Docs.set([1, ▮2], 3)", "key: string"),
        ("Docs.set('k', 1, ▮", "ttl?: duration"),
        ("Docs.set(ttl: ▮3s, key: 'k')", "ttl?: duration"),
        ("Docs.set(ttl: 3s, key: ▮'k')", "key: string"),
        ("Docs.set('k', 1, 2s, ▮", None),
        ("Docs.set(/* a, b */ 'k', ▮", "value: any"),
        ("Solve(deadline: ▮", "deadline: String"),
        ("Bot.ask('do it', ▮", "inputs…: any"),
        ("Bot.ask('do it', temp: ▮", "temperature?: number"),
        ("Bot.get(tool: Docs, key: ▮", "key: string"),
    ],
)
def test_the_active_parameter_follows_position_and_name(call: str, parameter: str | None) -> None:
    assert active(f"{PIPELINE}|> {call}") == parameter


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("agent A [▮", "model"),
        ("agent A [x-1, max_steps: ▮", "max_steps?: integer = 8"),
        ("@shadow(▮", "target: target"),
        (f"{PIPELINE}|<> loop(Bot, '▮", '"condition"'),
        (f"{PIPELINE}|<> loop(Bot, 'x', ▮", "max?: integer = 3"),
        (f"{PIPELINE}|* each(i ▮", "item in list"),
        (f"{PIPELINE}|* each(i in x, onError: ▮", 'onError?: "fail" | "keep" | "drop" = "fail"'),
        (f"{PIPELINE}~> listen(▮", "Source.Event"),
    ],
)
def test_the_parts_in_front_of_the_arguments_count_too(text: str, parameter: str | None) -> None:
    assert active(text) == parameter


def test_further_arguments_belong_to_the_parameter_that_takes_any_number() -> None:
    assert str(active("policy P : Redact(PII, Email, ▮")).startswith("kinds…: PII | Email")


def test_each_parameter_says_what_it_means_and_takes() -> None:
    found = helped("@retry(▮")
    assert found is not None
    assert found.parameters[0].documentation == "How many more tries. Takes a whole number from 1 to 20."
    assert found.documentation.startswith("Try again after network errors")


@pytest.mark.parametrize(
    "text",
    [
        "▮",
        f"{PIPELINE}|> Solve() ▮",
        f"{PIPELINE}|? (▮",
        f"{PIPELINE}|> Nobody.knows(▮",
        f"{PIPELINE}|> Solve( // ▮",
        "pipeline P(▮",
    ],
)
def test_there_is_no_help_outside_of_known_argument_lists(text: str) -> None:
    assert helped(text) is None


def test_a_stage_operator_that_leads_its_line_ends_a_call_that_was_left_open() -> None:
    assert label(f"{PIPELINE}|> Solve(x,\n  |> Docs.get(▮").startswith("Docs.get(")


@settings(max_examples=200, deadline=None)
@given(st.text("()[]{},:.\"'|>@ \nax", max_size=30), st.integers(-2, 400))
def test_any_text_at_any_place_gives_a_signature_that_is_whole_or_none(text: str, offset: int) -> None:
    found = signature_help(check(parse(f"{DECLARED}{PIPELINE}|> Docs.set({text}")), offset)
    if found is not None:
        assert all(0 <= one.span.start < one.span.end <= len(found.label) for one in found.parameters)
        assert found.active is None or found.active < len(found.parameters)

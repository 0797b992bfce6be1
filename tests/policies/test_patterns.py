"""`Block("regex")`: found in every disguise, in bounded time, and never repeated (spec 6)."""

from __future__ import annotations

import base64

import pytest

from halo_runtime.errors import ConfigError
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import Decision, Examined, Point, PolicyCall

CALL = PolicyCall("Bot", "answer", "openai/gpt-4o-mini")
PHOENIX = "project phoenix"


def decide(text: str, *kinds: str, point: Point = "input") -> Decision:
    return rule_factory("Block")({"kinds": list(kinds)}).evaluate(Examined(point, text, CALL))


@pytest.mark.parametrize("point", ["input", "output", "tool", "result"])
def test_what_the_pattern_matches_is_stopped_at_every_point(point: Point) -> None:
    assert decide(f"about {PHOENIX} now", "phoen[a-z]+", point=point).action == "block"
    assert decide("about the weather", "phoen[a-z]+", point=point).action == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "pro\u200bject pho\u200denix",
        "project phoenix".translate({ord("o"): "о", ord("e"): "е"}),
        "ｐｒｏｊｅｃｔ　ｐｈｏｅｎｉｘ",
        "𝐩𝐫𝐨𝐣𝐞𝐜𝐭 𝐩𝐡𝐨𝐞𝐧𝐢𝐱",
        "p\u0336r\u0336oject phoeni\u0301x",
        "project%20phoenix",
        "project&#32;phoenix",
        r"project\u0020phoenix",
        base64.b64encode(b"see project phoenix for it").decode(),
        base64.b64encode(b"project%20phoenix again").decode(),
        b"project phoenix".hex(),
        '{"project phoenix": 1}',
        '{"note": "{\\"name\\": \\"project phoenix\\"}"}',
        "<!-- project phoenix -->",
        "".join(chr(0xE0000 + ord(letter)) for letter in PHOENIX),
    ],
)  # fmt: skip
def test_a_pattern_is_found_in_every_disguise(text: str) -> None:
    assert decide(text, PHOENIX).action == "block"


@pytest.mark.parametrize("text", ["the phoenix project", "projects", "phoenix", "👩‍👩‍👧 می‌خواهم", ""])
def test_other_texts_pass(text: str) -> None:
    assert decide(text, PHOENIX).action == "allow"


def test_a_reason_says_neither_the_pattern_nor_what_it_found() -> None:
    decision = decide(f"it is {PHOENIX}", PHOENIX)
    assert decision.reason == "the text holds what a pattern stops"


def test_each_of_several_patterns_stops() -> None:
    assert [decide(text, "red", "blue").action for text in ("a red one", "a blue one", "a green one")] == [
        "block", "block", "allow",
    ]  # fmt: skip


def test_a_pattern_that_explodes_refuses_the_text() -> None:
    decision = decide("a" * 5000 + "!", r"^(a|aa|a?a)+$(?<!b)")
    assert (decision.action, decision.reason) == ("block", "a pattern could not be searched for in time")


@pytest.mark.parametrize("pattern", ["(", "(a{3000}){3000}", "x" * 2001])
def test_a_pattern_that_cannot_be_used_stops_the_run_before_it_starts(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"Block: "):
        rule_factory("Block")({"kinds": [pattern]})

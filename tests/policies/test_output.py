"""Rules about replies: length, pattern, JSON; and what happens to rules that cannot be enforced."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import Decision, Examined, PolicyCall

CALL = PolicyCall("Bot", "answer", "openai/gpt-4o-mini")


def decide(rule: str, text: str, **args: object) -> Decision:
    arguments: JsonObject = dict(args)
    return rule_factory(rule)(arguments).evaluate(Examined("output", text, CALL))


@given(st.text(max_size=12), st.integers(1, 10))
def test_lengths_count_code_points(text: str, n: int) -> None:
    assert (decide("MaxLength", text, n=n).action == "allow") == (len(text) <= n)
    assert (decide("MinLength", text, n=n).action == "allow") == (len(text) >= n)


def test_a_refusal_says_what_to_change_and_not_what_was_said() -> None:
    reason = decide("MaxLength", "lorem ipsum", n=5).reason
    assert reason == "the reply has 11 characters, at most 5 are allowed"


@pytest.mark.parametrize(
    ("text", "action"),
    [("AB-12", "allow"), ("It is AB-12, I think.", "allow"), ("twelve", "block"), ("", "block")],
)
def test_match_searches_anywhere(text: str, action: str) -> None:
    assert decide("Match", text, pattern=r"[A-Z]{2}-\d+").action == action


def test_match_respects_anchors() -> None:
    assert decide("Match", "It is AB-12.", pattern="^[A-Z]{2}-[0-9]+$").action == "block"


def test_a_pattern_that_explodes_refuses_the_reply_in_bounded_time() -> None:
    start = time.monotonic()
    decision = decide("Match", "a" * 5000 + "!", pattern=r"^(a|aa|a?a)+$(?<!b)")
    assert decision.action == "block"
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("pattern", ["[a-", "(", "(?P<x", 7, None])
def test_a_pattern_that_is_none_stops_the_run_before_it_starts(pattern: object) -> None:
    with pytest.raises(ConfigError, match="is not a regular expression"):
        rule_factory("Match")({"pattern": pattern})


@pytest.mark.parametrize("pattern", ["(a{3000}){3000}", "a{99999999}", "(?x)(a{ 900 }){ 900 }", "a" * 2001])
def test_a_pattern_that_would_take_gigabytes_stops_the_run_before_it_starts(pattern: str) -> None:
    with pytest.raises(ConfigError, match="the pattern is too large"):
        rule_factory("Match")({"pattern": pattern})


def test_everyday_repetitions_are_not_too_large() -> None:
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    assert decide("Match", "id 123e4567-e89b-12d3-a456-426614174000", pattern=uuid).action == "allow"


@pytest.mark.parametrize("text", ['{"ok": true}', "[]", '```json\n{"ok": true}\n```', 'Sure: {"ok": true}. Done.'])
def test_require_json_accepts_one_object_or_list(text: str) -> None:
    assert decide("RequireJSON", text).action == "allow"


@pytest.mark.parametrize("text", ["", "yes", "7", "true", "null", '"text"', '{"a": 1', '{"a": 1} or {"a": 2}'])
def test_require_json_refuses_text_scalars_and_what_is_ambiguous(text: str) -> None:
    assert decide("RequireJSON", text).action == "block"


@pytest.mark.parametrize(("rule", "args"), [("MaxLength", {"n": 0}), ("RequireJSON", {})])
def test_output_rules_look_at_replies_only(rule: str, args: JsonObject) -> None:
    assert rule_factory(rule)(args).points == {"output"}


@pytest.mark.parametrize("n", ["40", 1.5, True, -1, None])
def test_a_length_that_is_no_count_stops_the_run_before_it_starts(n: object) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        rule_factory("MaxLength")({"n": n})


@pytest.mark.parametrize("rule", ["Nonsense", "Redacted"])
def test_a_rule_that_cannot_be_enforced_stops_the_run_before_it_starts(rule: str) -> None:
    with pytest.raises(ConfigError, match=f"the policy rule {rule} cannot be enforced"):
        rule_factory(rule)

"""Texts that are too large, too deep or broken: every rule comes to a decision, and so does a whole run (3.5, row 12).

There is no measuring of time here: what does not end, or takes gigabytes, fails by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

import halo_lang
from halo_runtime.policies import rule_factory
from halo_runtime.policies.base import Examined, JudgedRule, Point, PolicyCall
from halo_runtime.schemas import compile_schemas
from tests.runtime.support import stubbed

CALL: Final = PolicyCall("Bot", "answer", "openai/gpt-4o-mini")
ANSWER: Final = next(d for d in halo_lang.parse("schema Answer { text: String }").declarations)

RULES: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "Redact(PII, Secrets)": ("Redact", {"kinds": ["PII", "Secrets"]}),
    "Block(PII, Secrets)": ("Block", {"kinds": ["PII", "Secrets"]}),
    "Block(PromptInjection)": ("Block", {"kinds": ["PromptInjection"]}),
    'Block("(a+)+$")': ("Block", {"kinds": ["(a+)+$"]}),
    "Block(Topic)": ("Block", {"Topic": "x", "model": "openai/judge"}),
    "Allow(Domains)": ("Allow", {"Domains": ["example.com"]}),
    "Deny(Domains)": ("Deny", {"Domains": ["bad.example"]}),
    'Match("^(a|aa)+$")': ("Match", {"pattern": "^(a|aa)+$"}),
    "MaxLength": ("MaxLength", {"n": 100}),
    "MinLength": ("MinLength", {"n": 100}),
    "RequireJSON": ("RequireJSON", {}),
    "RequireSchema": ("RequireSchema", {"schema": compile_schemas([ANSWER]).named("Answer")}),  # pyright: ignore
    "RequireCitation": ("RequireCitation", {}),
    "Language": ("Language", {"code": "en"}),
}

SIZE: Final = 200_000
TEXTS: Final[Mapping[str, str]] = {
    "many words": "The report was sent to all. " * (SIZE // 28),
    "a row of one letter": "a" * SIZE + "!",
    "a row of digits": "4111 " * (SIZE // 5),
    "a row of brackets": "[{" * (SIZE // 2),
    "a row of base64": "QUJD" * (SIZE // 4),
    "a row of escapes": "\\u0061%61&#97;" * (SIZE // 14),
    "a row of other letters": "аｂ\u200b𝐜" * (SIZE // 4),
    "10,000 addresses": "".join(f"a{n}@example.com " for n in range(10_000)),
    "10,000 links": "".join(f"https://a{n}.example.com/x [{n}] " for n in range(10_000)),
    "10,000 brackets deep": "[" * 10_000 + "]" * 10_000,
    "10,000 objects deep": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "10,000 quotes deep": json.dumps("x" + "\\" * 10_000),
    "lone halves of pairs": "a\ud800b\udfffc" * 1_000,
    "nothing but NUL": "\x00" * 10_000,
    "control characters": "".join(map(chr, range(32))) * 300,
    "nothing": "",
}


async def decided(rule: Any, examined: Examined) -> str:
    decision = rule.evaluate(examined)
    if isinstance(rule, JudgedRule):

        async def ask(system: str, text: str, schema: Any = None) -> str:
            json.loads(text)
            return '{"found": false}'

        decision = await rule.judge(examined, ask)
    return decision.action


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", RULES)
def test_every_rule_decides_about_every_text(name: str, text: str) -> None:
    kind, args = RULES[name]
    rule = rule_factory(kind)(args)
    points: list[Point] = [point for point in ("input", "output", "tool", "result") if point in rule.points]
    examined = Examined(points[0], text, CALL, sources=(text,))
    assert asyncio.run(decided(rule, examined)) in ("allow", "block", "redact")


ALL: Final = 'Redact(PII, Secrets) & Block(PromptInjection) & Block("(a+)+$") & Deny(Domains: ["bad.example"])'


@pytest.mark.parametrize(
    "text",
    ["The report was sent to all. " * 180_000, TEXTS["lone halves of pairs"], TEXTS["nothing but NUL"]],
    ids=["5 MB", "halves", "NUL"],
)
def test_a_run_with_such_a_text_comes_to_its_end(text: str) -> None:
    world, _ = stubbed(lambda request: asyncio.sleep(0, "fine"))
    agent = "agent Bot [openai/x-1]\n  requires P\n"
    program = f"policy P : {ALL}\n{agent}pipeline Main(text: String) -> Result:\n  text |> Bot.go()\n"
    result = asyncio.run(world.run(halo_lang.parse(program), "Main", {"text": text}))
    assert result.output == "fine"

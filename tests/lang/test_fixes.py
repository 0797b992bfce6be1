"""Fixes: offered where they are certain, and then they mend what they are offered for."""

from __future__ import annotations

from collections import Counter

import pytest

from halo_lang import Analysis, Diagnostic, check, parse
from tests.lang.checking import BOT, body, only
from tests.lang.mutations import EXAMPLES, slips

_STRIDE = 41
"""Every so many slips are looked at."""


def mended(text: str, found: Diagnostic) -> str:
    """The text once the fix of a diagnostic is made."""
    assert found.fix is not None
    return text[: found.fix.span.start] + found.fix.text + text[found.fix.span.end :]


def _told(analysis: Analysis) -> Counter[tuple[str, str]]:
    return Counter((one.code, one.message) for one in analysis.diagnostics)


def unmended(text: str) -> list[str]:
    """The diagnostics of a text whose fix leaves them there, or brings a new error."""
    before = check(parse(text))
    told = _told(before)
    wrong: list[str] = []
    for found in before.diagnostics:
        if found.fix is not None:
            after = check(parse(mended(text, found), before.program), before)
            key = found.code, found.message
            stays = _told(after)[key] >= told[key]
            new = [one.message for one in after.errors if (one.code, one.message) not in told]
            wrong += [f"{found.message} → {new or 'stays'}"] if stays or new else []
    return wrong


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_fix_removes_its_diagnostic_and_brings_no_error(name: str) -> None:
    some = list(slips(EXAMPLES[name]))[::_STRIDE]
    assert [wrong for _, text in some for wrong in unmended(text)] == []


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        # names
        (body("|> Bto.go()"), "Bot.go()"),
        (f"{BOT}agent A [openai/gpt-4o-mini]\n  equips Docz\nstore Docs : KV", "equips Docs"),
        ("schema A { text: Strng }", "text: String"),
        (body('|> System.Prnt("a")'), "System.Print("),
        ("store D : KV\npipeline M(x: String) -> Result: x |> D.gte(x)", "D.get(x)"),
        ("policy P : MaxSpnd(1.00)", ": MaxSpend("),
        ("tool T : GitHib", ": GitHub"),
        ("@timeuot(5s)\npipeline M(x: String) -> Result: x", "@timeout(5s)"),
        ("agent A [openai/gpt-4o, temperture: 1]", "temperature: 1"),
        ("store D : KV\npipeline M(x: String) -> Result: x |> D.set(x, vlaue: 1)", "value: 1"),
        ("agent A [opena/gpt-4o]", "[openai/gpt-4o]"),
        ('agent A ["opena/gpt-4o"]', '["openai/gpt-4o"]'),
        ("agent A [o3]", "[openai/o3]"),
        # what is missing
        ("pipeline M(x: String): x", "M(x: String) -> Result: x"),
        ("pipeline M(x: String) ->: x", "-> Result: x"),
        (body('|> Bot.go("a", x'), 'go("a", x)'),
        (body('|> Bot.go("a", x\n  |> Bot.come()'), 'go("a", x)\n  |> Bot.come()'),
        ('agent A [openai/gpt-4o, temp: 1\n  system "Be kind."', "temp: 1]\n  system"),
        ("schema A { text: String, more: Array<String>\n// the end", "Array<String>}\n"),
        (body('|? (x == "a"'), '(x == "a")'),
        # values
        ('@timeout("5s")\npipeline M(x: String) -> Result: x', "@timeout(5s)"),
        ('@retry("3")\npipeline M(x: String) -> Result: x', "@retry(3)"),
        ('tool W : Browser(headless: "false")', "headless: false"),
        ("store D : VectorStore(namespace: docs)", 'namespace: "docs"'),
        ("policy P : Redact(Emial)", "Redact(Email)"),
        (body("|* each(y in x, onError: 'keap') => Bot.go(y)"), 'onError: "keep"'),
        (body('|> Bot.go(tools: "none")'), "tools: none"),
        ('policy P : Allow(["example.org"])', 'Allow(Domains: ["example.org"])'),
        ("@retry(1)\n@retry(1)\nagent A [openai/gpt-4o]", "@retry(1)\n\nagent"),
        (body('|> System.Pick(x, fields: "a.b")'), 'fields: ["a.b"]'),
        (body('|> Bot.go("a", tone: 1, style: 2, x)'), 'go("a", x, tone: 1, style: 2)'),
        # conditions in strings
        (body("|> Bot.go() |<> loop(Bot, \"x = 'a'\")"), "x == 'a'"),
        # texts
        (body('|> Bot.go("{{xs}}")', "xy: String, x: String").replace("xs", "xyz"), "{{xy}}"),
        (body('|> Bot.go("{{context.inptu.x}}")'), "{{context.input.x}}"),
        (body('|> Bot.go("{{context.input.textt}}", text)', "x: String, text: String"), "{{context.input.text}}"),
        (body('|> Bot.draft() as draft |> Bot.go("{{context.data.darft.a}}")'), "{{context.data.draft.a}}"),
        (body(r'|> Bot.go("a\qb")'), r'"a\\qb"'),
        # results
        (body("|> Bot.draft() as draft |> Bot.go(context.data.darft)"), "go(context.data.draft)"),
        (body("|> Bot.draft() |> Bot.go(context.data.Bot.darft.a)"), "go(context.data.Bot.draft.a)"),
        (body("|> Bot.draft() as draft |> Bot.go(darft)"), "go(draft)"),
        (body("|> Bot.draft() as draft |> Bot.go(context.dat.draft)"), "go(context.data.draft)"),
    ],
)
def test_what_was_certainly_meant_is_offered(text: str, fixed: str) -> None:
    after = mended(text, only(text))
    assert fixed in after
    assert unmended(text) == []


@pytest.mark.parametrize(
    "text",
    [
        # as near to the one as to the other
        "agent Bot [openai/gpt-4o]\nagent Bob [openai/gpt-4o]\npipeline M(x: String) -> Result: x |> Boc.go()",
        # of the wrong kind
        "policy Safe : Block(PII)\nagent Bot [openai/gpt-4o]\n  equips Saf\n  requires Safe",
        "agent Bot [openai/gpt-4o]\npipeline Triage(x: String) -> Result: x |> Triager.go()",
        # a tool that may not be there
        body("|> Bot.go(tools: Repo)"),
        # seconds, minutes?
        "@timeout(5)\npipeline M(x: String) -> Result: x",
        # a stray word, or a comma forgotten
        "agent Bot [openai/gpt-4o]\n  equips Repo Docs",
        "policy P : RequireJSON RequireCitation",
        # a comment that would be lost
        body('|> Bot.go(tone: 1, /* why */ "b")'),
        # one bracket or the other
        body('|? ((x == "a" || x == "b" && x == "c")'),
        body('|> Bot.go(["a", ["b", "c"])'),
        # the name of a result, or a stage
        body("|> Bot.go() -> answer"),
    ],
)
def test_where_more_than_one_thing_can_be_meant_nothing_is_offered(text: str) -> None:
    assert [found.fix for found in check(parse(text)).errors if found.fix is not None] == []

"""Where each diagnostic points: every code in the forms that it has, with the exact range (spec 1.4 and 12.1).

`⟦` and `⟧` mark the range; a text gives that one diagnostic and no other.
"""

from __future__ import annotations

import re

import pytest

from halo_lang import SourceDecodeError, check, decode, not_utf8, parse
from halo_lang.catalog.codes import CODES
from halo_runtime.models.pricing import is_priced
from tests.lang.checking import BOT

STORE = "store Docs : KV\n"
SCHEMA = "schema Answer { text: String }\n"
POLICY = "policy Safe : Block(PII)\n"
USE_API = "\npipeline Use(x: String) -> Result: x |> Api.get(x)"


OUT = "\npipeline Out() -> Result: |> Shut()\npipeline Shut() -> Result: 1 |? (false)"


def stage(text: str, parameters: str = "x: String") -> str:
    """A pipeline `Main` with an agent `Bot`, its start value `x` and these stages."""
    return f"{BOT}pipeline Main({parameters}) -> Result:\n  x {text}"


ROWS: tuple[tuple[str, str], ...] = (
    # --- syntax
    ("HL102", stage("|? (x ⟦=⟧ 1) |> Bot.go()")),
    ("HL102", stage("|> Bot.go(1 ⟦2⟧)")),
    ("HL102", stage("|? (1 < x ⟦<⟧ 3) |> Bot.go()")),
    ("HL102", "⟦agnet⟧ Bot [openai/gpt-4o-mini]"),
    ("HL102", stage("|> Bot.go(⟦store⟧)")),
    ("HL102", stage("|> Bot.go()⟦)⟧")),
    ("HL103", stage('|> Bot.go(⟦"no end)⟧')),
    ("HL103", stage('|> Bot.go(⟦"""⟧ no end\n)')),
    ("HL104", stage("|> Bot.go() ⟦/*⟧ no end\n")),
    ("HL105", stage("|> Bot.go⟦(⟧x")),
    ("HL105", stage("|? ⟦{⟧ (x == 1) => Bot.go()\n  |> Bot.come()")),
    ("HL105", "agent Bot ⟦[⟧openai/gpt-4o-mini\nstore Docs : KV\npipeline M(x: Any) -> Result: x |> Docs.get(x)"),
    ("HL106", f"pipeline Main() -> Result: {'[' * 200}⟦[⟧{']' * 201}"),
    ("HL107", "pipeline Main(x: String)⟦:⟧ x"),
    ("HL107", "pipeline Main(x: String) ⟦=>⟧ Result: x"),
    ("HL107", "pipeline Main(x: String) -> ⟦:⟧ x"),
    ("HL108", "pipeline ⟦Main⟧(x: String) -> Result:"),
    # --- names
    ("HL201", f"{STORE}schema ⟦Docs⟧ {{ a: Any }}\npipeline M(x: Any) -> Result: x |> Docs.get(x)"),
    ("HL202", f"{STORE}pipeline ⟦Env⟧(x: String) -> Result: x |> Docs.get(x)"),
    ("HL202", "pipeline Main(⟦else⟧: String) -> Result: |> System.Print()"),
    ("HL202", stage("|* each(⟦in⟧ in [1]) => Bot.go()")),
    ("HL202", stage("|> Bot.go() as ⟦as⟧")),
    ("HL203", stage("|> ⟦Bto⟧.go() |> Bot.go()")),
    ("HL203", stage("|> Bot.go() |> ⟦Nothing⟧()")),
    ("HL203", "@shadow(⟦Nobody⟧)\nagent A [openai/gpt-4o-mini]"),
    ("HL203", f"{BOT}  equips ⟦Nothing⟧\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL203", f"{BOT}  requires ⟦Nothing⟧\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL203", "schema Answer { text: Array<⟦Strng⟧> }\npipeline M(x: Any) -> Answer: x"),
    ("HL203", stage("|> Bot.go(tools: [⟦Nothing⟧])")),
    ("HL203", stage('|> Bot.go() |<> loop(⟦Nobody⟧, "x == 1")')),
    ("HL204", f"{POLICY}{BOT}  equips ⟦Safe⟧\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL204", f"{STORE}{BOT}  requires ⟦Docs⟧\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL204", SCHEMA + stage("|> ⟦Answer⟧.go() |> Bot.go()")),
    ("HL204", STORE + stage('|> Bot.go() |<> loop(⟦Docs⟧, "x == 1")')),
    ("HL204", stage("|> ⟦Bot⟧(x)")),
    ("HL204", stage("|> Bot.go() |> ⟦Main⟧.again()")),
    ("HL204", "schema Answer { text: ⟦String⟧<Number> }\npipeline M(x: Any) -> Answer: x"),
    ("HL205", "pipeline Main(x: String, ⟦x⟧: String) -> Result: x"),
    ("HL205", "schema Answer { text: String, ⟦text⟧: Any }\npipeline M(x: Any) -> Answer: x"),
    ("HL205", stage("|> Bot.go(tone: 1, ⟦tone⟧: 2)")),
    ("HL205", "agent Bot [openai/gpt-4o, temp: 1, ⟦temperature⟧: 1]\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL205", f'{BOT}  system "a"\n  ⟦system⟧ "b"\npipeline M(x: Any) -> Result: x |> Bot.go()'),
    ("HL205", stage("|* { Bot.a() as p, Bot.b() as ⟦p⟧ }")),
    ("HL205", stage("|* { Bot.a(), ⟦Bot⟧.a() }")),
    ("HL206", stage("|> Bot.go() as ⟦x⟧")),
    ("HL206", stage("|> Bot.go() as ⟦Bot⟧")),
    ("HL206", stage("|* each(⟦x⟧ in [1]) => Bot.go(x)")),
    ("HL206", stage("|* each(⟦index⟧ in x) => Bot.go(index)")),
    ("HL206", stage("|* each(⟦y⟧ in x) => Bot.go(y, index)", "x: Any, index: Any")),
    ("HL207", "schema Node { next: ⟦Node⟧ }\npipeline M(x: Any) -> Node: x"),
    # --- the catalogue
    ("HL301", stage("|> Bot.go() |> System.⟦Prnt⟧(x)")),
    ("HL301", f"{STORE}pipeline M(x: Any) -> Result: x |> Docs.⟦read⟧(x)"),
    (
        "HL301",
        "store Notes : KV\npolicy P : Audit(DenyTools(Notes.⟦delte⟧))\nagent Bot [openai/gpt-4o]\n  equips Notes\n"
        "  requires P\npipeline M(x: Any) -> Result: x |> Bot.go()",
    ),
    ("HL302", "pipeline M(x: Any) -> Result: x |> System.Fail(⟦)⟧"),
    ("HL302", "pipeline M(x: Any) -> Result: x |> System.Sleep(2s, ⟦3s⟧)"),
    ("HL302", "pipeline I(a: Any) -> Result: a\npipeline M(x: Any) -> Result: x |> I(x, ⟦b: x⟧)"),
    ("HL302", f"tool Api : REST(⟦)⟧\n{USE_API}"),
    ("HL302", "@timeout(⟦)⟧\npipeline M(x: Any) -> Result: x"),
    ("HL302", "@checkpoint(⟦1⟧)\npipeline M(x: Any) -> Result: x"),
    ("HL302", f"policy Safe : MaxSpend(⟦)⟧\n{BOT}  requires Safe\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL302", f'policy P : Allow(⟦["a.org"]⟧)\n{BOT}  requires P\npipeline M(x: Any) -> Result: x |> Bot.go()'),
    ("HL302", stage('|! yield("a", "b", 5m, [], ⟦1⟧) |> Bot.go()')),
    ("HL303", "@timeout(⟦5⟧)\npipeline M(x: Any) -> Result: x"),
    ("HL303", "@retry(⟦21⟧)\npipeline M(x: Any) -> Result: x"),
    ("HL303", "pipeline M(x: Any) -> Result: x |> System.Pick(x, fields: ⟦5⟧)"),
    ("HL303", "pipeline M(x: Any) -> Result: x |> System.Pick(x, fields: [⟦5⟧])"),
    ("HL303", stage('|* each(y in ⟦"abc"⟧) => Bot.go(y)')),
    ("HL303", stage("|* each(y in x, concurrency: ⟦0⟧) => Bot.go(y)")),
    ("HL303", stage('|> Bot.go() |<> loop(Bot, "x == 1", max: ⟦1.5⟧)')),
    ("HL303", "agent Bot [openai/gpt-4o, temp: ⟦2.1⟧]\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL303", f"policy P : Redact(⟦Emial⟧)\n{BOT}  requires P\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL304", "store Docs : ⟦KVV⟧\npipeline M(x: Any) -> Result: x |> Docs.get(x)"),
    ("HL304", "store Docs : KV(⟦nmespace⟧: 'a')\npipeline M(x: Any) -> Result: x |> Docs.get(x)"),
    ("HL304", f"policy P : ⟦Blok⟧(PII)\n{BOT}  requires P\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL304", "@⟦retyr⟧(3)\npipeline M(x: Any) -> Result: x"),
    ("HL304", "agent Bot [openai/gpt-4o, ⟦tone⟧: 1]\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL305", stage('|> Bot.go(tone: "dry", ⟦"Be brief."⟧)')),
    ("HL306", "agent Bot [⟦o3⟧]\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL306", "agent Bot [⟦acme/gpt-4o⟧]\npipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL306", f"@shadow(⟦acme/gpt-4o⟧)\n{BOT}pipeline M(x: Any) -> Result: x |> Bot.go()"),
    # --- what fits together
    ("HL401", STORE + stage("|> Bot.get(tool: ⟦Docs⟧, key: x)")),
    ("HL401", STORE + stage("|> Bot.go(tools: [⟦Docs⟧])")),
    ("HL402", stage("|> Bot.go(⟦Env.KEY⟧)")),
    ("HL402", stage('|> Bot.go(⟦"Env.KEY"⟧)')),
    ("HL402", stage("|? (⟦Env.KEY⟧ == x) |> Bot.go()")),
    ("HL402", stage('|> Bot.go() |<> loop(Bot, "x == ⟦Env.KEY⟧")')),
    ("HL402", stage("~> listen(⟦Env⟧.KEY) |> Bot.go()")),
    ("HL403", f"⟦@checkpoint⟧\n{BOT}pipeline M(x: Any) -> Result: x |> Bot.go()"),
    ("HL403", f"⟦@shadow⟧(Bot)\npipeline M(x: Any) -> Result: x |> Bot.go()\n{BOT}"),
    ("HL403", "@retry(2)\n⟦@retry⟧(3)\npipeline M(x: Any) -> Result: x"),
    ("HL404", stage("|? { ⟦else⟧ => Bot.go(), (x == 1) => Bot.come() }")),
    ("HL404", stage("|? { ⟦else⟧ => Bot.go(), else => Bot.come() }")),
    ("HL405", stage('|<> loop(⟦Bot⟧, "x == 1") |> Bot.go()')),
    ("HL406", stage('|> Bot.go() |<> loop(Bot, "x ⟦=⟧ 1")')),
    ("HL406", stage("|> Bot.go() |<> loop(Bot, 'x == 1 ⟦and⟧ x')")),
    ("HL406", stage(r'|> Bot.go() |<> loop(Bot, "x == \"a\" ⟦and⟧ x")')),
    ("HL407", f"tool Api : REST(⟦Env.A.B⟧){USE_API}"),
    ("HL407", f'tool Api : REST(⟦"Env.NOT-PLAIN"⟧){USE_API}'),
    # --- what is probably not meant
    ("HL501", stage('|> Bot.go("Hello ⟦{{ nmae }}⟧!")')),
    ("HL501", stage('|> Bot.go("\\n\\"⟦{{context.data.nothing}}⟧")')),
    ("HL501", f'{BOT}  system "⟦{{{{Env.KEY}}}}⟧"\npipeline M(x: Any) -> Result: x |> Bot.go()'),
    ("HL501", stage('~> listen(UI.Ready) |> Bot.go("{{UI.Ready}} ⟦{{UI.Raedy}}⟧")')),
    ("HL502", stage('|> Bot.go("a⟦\\⟧d")')),
    ("HL502", f'{BOT}  system """\n    a⟦\\⟧d\n    """\npipeline M(x: Any) -> Result: x |> Bot.go()'),
    ("HL503", stage("|> Bot.go(⟦context.data.nothing.at.all⟧)")),
    ("HL503", stage("|? (⟦context.data.go⟧ == 1) |> Bot.go()")),
    ("HL503", stage('|> Bot.go() |<> loop(Bot, "⟦context.data.og⟧ == 1")')),
    ("HL504", stage("|> Bot.go(⟦nothing.at.all⟧)")),
    ("HL504", stage("|> Bot.go(⟦context.nothing⟧)")),
    ("HL504", stage("|> Bot.go(⟦context.input.nothing⟧)")),
    ("HL505", "agent ⟦Bot⟧ [openai/gpt-4o-mini]\npipeline M(x: Any) -> Result: x"),
    ("HL505", "store ⟦Docs⟧ : KV\npipeline M(x: Any) -> Result: x"),
    ("HL505", "policy ⟦Safe⟧ : Block(PII)\npipeline M(x: Any) -> Result: x"),
    ("HL505", "schema ⟦Answer⟧ { text: String }\npipeline M(x: Any) -> Result: x"),
    ("HL505", "pipeline M(x: Any, ⟦y⟧: Any) -> Result: x"),
    ("HL506", stage('|> System.Fail("a") ⟦|>⟧ Bot.go() |> Bot.come()')),
    ("HL506", stage("|> Stop() ⟦|>⟧ Bot.go()") + "\npipeline Stop() -> Result: |> System.Fail('no')"),
    ("HL506", stage("|* { Out(), Bot.go() } ⟦|>⟧ Bot.come()") + OUT),
    ("HL506", stage("|? (1 > 2) ⟦|>⟧ Bot.go()")),
    ("HL506", stage("|? (false) ⟦=>⟧ Bot.go() |> Bot.come()")),
    ("HL506", stage("|? { (true) => Bot.go(), ⟦(x == 1) => Bot.come()⟧ }")),
    ("HL507", "pipeline ⟦Main⟧(x: String) -> Result: x |> Main(x)"),
    (
        "HL508",
        f"tool Api : REST('a.org', apiKey: ⟦'hunter22'⟧){USE_API}",
    ),
    (
        "HL509",
        f"{STORE}agent ⟦Bot⟧ [openai/gpt-4o, tools: auto]\n  equips Docs\npipeline M(x: Any) -> Result: x |> Bot.go()",
    ),
    ("HL510", stage("|> Bot.go() |? (⟦context.data.go.right⟧ == true)")),
    ("HL510", stage("|> Bot.go() |? { (⟦current.right⟧) => Bot.come() }")),
    ("HL510", stage('|> Bot.go() as it |<> loop(Bot, "!⟦it.right⟧")')),
    ("HL510", stage("|* { Bot.a() as p, Bot.b() as q } as both |? (⟦both.p.right⟧)")),
    ("HL510", stage("|* each(y in x) => Bot.a(y) as all |? (⟦all.0.right⟧)")),
    (
        "HL511",
        "policy Budget : MaxCalls(9) & ⟦MaxSpend(1)⟧\nagent Bot [openai/our-own]\n  requires Budget\n"
        "pipeline M(x: Any) -> Result: x |> Bot.go()",
    ),
    *(
        (
            "HL512",
            f"policy P : {rule}\nagent Bot [openai/gpt-4o]\n  requires P\npipeline M(x: Any) -> Result: x |> Bot.go()",
        )
        for rule in (
            "MaxCalls(9) & ⟦Block(Toxicity)⟧",
            'Audit(⟦Block(Topic: "law")⟧)',
            '⟦Block(PII, Toxicity, model: "")⟧',
        )
    ),
)


def told(text: str) -> list[tuple[str, str]]:
    """Each diagnostic of a text: its code, and the text with the range marked."""
    found = check(parse(text), is_priced=is_priced).diagnostics
    return [(one.code, f"{text[: one.span.start]}⟦{text[slice(*one.span)]}⟧{text[one.span.end :]}") for one in found]


@pytest.mark.parametrize(("code", "marked"), ROWS, ids=[f"{code}-{number}" for number, (code, _) in enumerate(ROWS)])
def test_a_diagnostic_points_at_what_is_wrong(code: str, marked: str) -> None:
    assert told(re.sub("[⟦⟧]", "", marked)) == [(code, marked)]


def test_bytes_that_are_no_text_are_reported_where_they_begin() -> None:
    with pytest.raises(SourceDecodeError) as caught:
        decode("pipeline é".encode() + b"\xff")
    found = not_utf8(caught.value)
    assert (found.code, found.span.start, found.message) == ("HL101", 10, "invalid UTF-8 at byte 11")


def test_every_code_is_among_them() -> None:
    assert {code.name for code in CODES} == {code for code, _ in ROWS} | {"HL101"}


@pytest.mark.parametrize("code", sorted({code for code, _ in ROWS}))
def test_its_severity_is_that_of_the_table(code: str) -> None:
    severity = {one.name: one.severity for one in CODES}[code]
    text = next(re.sub("[⟦⟧]", "", marked) for name, marked in ROWS if name == code)
    assert [one.severity.value for one in check(parse(text), is_priced=is_priced).diagnostics] == [severity]

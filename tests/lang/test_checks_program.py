"""What only the whole program shows: unused names (HL505), endless pipelines (HL507), agents without a policy (HL509),
budgets without a price (HL511)."""

from __future__ import annotations

import pytest

from halo_lang import Severity, check, parse
from tests.lang.checking import BOT, analysis, body, found, marked, only

KV = "store Memory : KV\n"
LIMIT = "policy Limit : MaxToolCalls(5)\n"
MAIN = "pipeline Main(x: String) -> Result: x"


def unused(text: str) -> list[str]:
    return marked(text, unused=True)


# --- HL505: declarations


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("agent Spare [openai/gpt-4o-mini]", "agent `Spare` is never used"),
        ("tool Spare : GitHub", "tool `Spare` is never used"),
        ("store Spare : KV", "store `Spare` is never used"),
        ("policy Spare : Block(PII)", "policy `Spare` is never used"),
        ("schema Spare { a: String, more: Array<Spare> }", "schema `Spare` is never used"),
    ],
)
def test_what_nothing_mentions_is_reported_at_its_name(declaration: str, message: str) -> None:
    text = f"{declaration}\n{MAIN}"
    assert unused(text) == ["HL505 Spare"]
    assert only(text, unused=True).message == message
    assert only(text, unused=True).severity is Severity.WARNING


@pytest.mark.parametrize(
    "use",
    [
        f"agent Bot [openai/gpt-4o-mini]\n{MAIN} |> Bot.go()",
        f'agent Bot [openai/gpt-4o-mini]\n{MAIN} |? (x) => Bot.go() |<> loop(Bot, "x == 1")',
        f"@shadow(openai/gpt-4o)\nagent Bot [openai/gpt-4o-mini]\n{MAIN}",
        f"tool T : GitHub\n{MAIN} |> T.get_issue(1)",
        f"{BOT}  equips T\ntool T : GitHub\n{MAIN} |> Bot.go()",
        f'tool T : Slack(Env.T)\n{MAIN} |! yield("Go?", channel: T)',
        f'tool T : Slack(Env.T)\n{MAIN} |! yield("Go?", channel: "T")',
        f"{BOT}  requires P\npolicy P : Block(PII)\n{MAIN} |> Bot.go()",
        "schema S { a: String }\npipeline Main(x: String) -> Array<S>: x",
        "schema S { a: String }\npipeline Main(x: Array<S>) -> Result: x",
        "schema S { a: Array<T> }\nschema T { a: String }\npipeline Main(x: String) -> S: x",
        f"{BOT}  requires P\npolicy P : Audit(RequireSchema(S))\nschema S {{ a: String }}\n{MAIN} |> Bot.go()",
    ],
)
def test_every_way_to_use_a_declaration_counts(use: str) -> None:
    assert found(use, unused=True) == []


def test_pipelines_are_what_people_run_and_need_no_use() -> None:
    assert found(f"{MAIN}\npipeline Other(x: String) -> Result: x", unused=True) == []


def test_of_two_declarations_with_one_name_the_first_is_reported() -> None:
    assert found(f"schema S {{ a: Any }}\nschema S {{ a: Any }}\n{MAIN}", unused=True) == ["HL505 1:8", "HL201 2:8"]


def test_a_misspelt_reference_is_one_mistake() -> None:
    assert unused(f"{BOT}{MAIN} |> Bto.go()") == ["HL203 Bto"]


@pytest.mark.parametrize("broken", ["|> Bot.go(", "|? { (x => Bot.go() }", "|> Bto.go( |> Bot.go()"])
def test_what_does_not_parse_may_use_the_names_that_stand_in_it(broken: str) -> None:
    codes = [one.partition(" ")[0] for one in unused(f"{BOT}schema Spare {{ a: Any }}\n{MAIN} {broken}")]
    assert codes.count("HL505") == 1
    assert any(code < "HL200" for code in codes)


def test_a_declaration_that_does_not_parse_is_not_called_unused() -> None:
    assert unused(f"agent Bot [openai/gpt-4o-mini\n{MAIN}")[0].startswith("HL105")
    assert len(unused(f"agent Bot [openai/gpt-4o-mini\n{MAIN}")) == 1


def test_where_much_does_not_parse_nothing_is_called_unused() -> None:
    assert {one[:5] for one in unused(f"{BOT}{MAIN} |> System.Value({'a ' * 60_000}")} == {"HL105"}


# --- HL505: parameters


@pytest.mark.parametrize(
    "stages",
    [
        "|> Bot.go(y)",
        "|> Bot.go([y.a])",
        "|> Bot.go(tone: y)",
        '|> Bot.go("{{ y.name }}")',
        '|> Bot.go("{{context.input.y}}")',
        "|> Bot.go(context.input.y.a)",
        "|> Bot.go(context.input)",
        "|? (y == 1)",
        '|? { (x == 1) => Bot.go("{{y}}") }',
        "|* each(z in y) => Bot.go(z)",
        '|! yield("{{y}}?")',
        '|> Bot.go() |<> loop(Bot, "y > 1")',
        "|> Bot.go( |> Bot.stop()",
    ],
)
def test_a_parameter_is_used_by_whatever_reads_it(stages: str) -> None:
    assert [one for one in unused(body(stages, "x: String, y: String")) if one.startswith("HL505 y")] == []


@pytest.mark.parametrize("stages", ["|> Bot.go()", '|> Bot.go("y", y: x)', "|> Bot.go(x.y, context.data.go)"])
def test_a_parameter_that_nothing_reads_is_reported_at_its_name(stages: str) -> None:
    assert "HL505 y" in unused(body(stages, "x: String, y: String"))


def test_without_a_start_value_all_parameters_flow_on() -> None:
    assert unused(f"{BOT}pipeline Main(x: String, y: String) -> Result:\n  |> Bot.go()") == []


def test_a_start_value_is_a_use() -> None:
    assert unused('pipeline Main(x: String, y: String, z: String) -> Result: ["{{x}}", y]') == ["HL505 z"]


@pytest.mark.parametrize("prompt", ['\n  system "Be {{tone}}."', '\n  system "{{context.input.tone}}"'])
def test_the_prompt_of_an_agent_reads_the_parameters_of_its_callers(prompt: str) -> None:
    calling = "pipeline Main(x: String, tone: String) -> Result: x |> Bot.go()"
    assert unused(f"{BOT.rstrip()}{prompt}\n{calling}") == []
    assert unused(f'agent Bot [openai/gpt-4o-mini, role: "Be {{{{tone}}}}"]\n{calling}') == []
    assert unused(f"{BOT}{calling}") == ["HL505 tone"]


# --- HL507


@pytest.mark.parametrize(
    ("stages", "names"),
    [
        ("|> Main(x)", ["Main"]),
        ("|> Bot.go() |> Main(x) |? (x)", ["Main"]),
        ("|* { Bot.go(), Main(x) }", ["Main"]),
        ("|? { (x == 1) => Main(1), else => Main(2) }", ["Main"]),
        ('|! yield("Again?") |> Main(x)', ["Main"]),
        ("|? { (x == 1) => Main(1), else => Bot.go() }", []),
        ("|? { (x == 1) => Main(1), (x == 2) => Main(2) }", []),
        ("|? (x) |> Main(x)", []),
        ("|? (x) => Main(x)", []),
        ("|* each(y in x) => Main(y)", []),
        ('|* { Bot.go(), System.Fail("no") }', []),
    ],
)
def test_a_pipeline_that_calls_itself_in_every_run_is_reported_at_its_name(stages: str, names: list[str]) -> None:
    assert marked(body(stages)) == [f"HL507 {name}" for name in names]


def one(name: str, *callees: str, gate: str = "") -> str:
    calls = "".join(f" |> {callee}(x)" for callee in callees)
    return f"pipeline {name}(x: String) -> Result: x{gate}{calls}\n"


def test_pipelines_that_call_each_other_are_all_reported_and_those_before_and_behind_are_not() -> None:
    text = one("Start", "A") + one("A", "B") + one("B", "C") + one("C", "End", "A") + one("End")
    assert marked(text) == ["HL507 A", "HL507 B", "HL507 C"]
    message = analysis(text).diagnostics[0].message
    assert all(name in message for name in ("`A`", "`B`", "`C`"))


def test_a_long_ring_is_named_by_its_first_few() -> None:
    ring = "ABCDEFG"
    messages = [note.message for note in analysis("".join(map(one, ring, ring[1:] + ring[0]))).diagnostics]
    assert len(messages) == len(ring)
    for name, message in zip(ring, messages, strict=True):
        assert message.startswith(f"`{name}` always calls itself, through `")
        assert message.endswith(" and 2 more")


def test_two_rings_and_what_lies_between_them_are_told_apart() -> None:
    text = one("A", "B") + one("B", "Between", "A") + one("Between", "C") + one("C", "C")
    assert marked(text) == ["HL507 A", "HL507 B", "HL507 C"]


def test_a_gate_of_a_pipeline_that_is_called_first_may_end_the_run() -> None:
    assert marked(one("A", "Guard", "A") + one("Guard", gate=" |? (x)")) == []
    assert marked(one("A", "Outer", "A") + one("Outer", "Guard") + one("Guard", gate=" |? (x)")) == []
    assert marked(one("A", "Other", "A") + one("Other")) == ["HL507 A"]


def test_a_pipeline_that_does_not_parse_may_end_the_run() -> None:
    assert {code[:5] for code in marked(one("A", "Guard", "A") + "pipeline Guard(x: String) -> Result: x |> a.b(")} == {
        "HL105"
    }


def test_long_chains_of_pipelines_are_walked_too() -> None:
    chain = "".join(one(f"P{number}", f"P{number + 1}") for number in range(1500))
    assert marked(chain + one("P1500")) == []
    assert len(marked(chain + one("P1500", "P0"))) == 1501


# --- HL509


@pytest.mark.parametrize(
    ("tool", "codes"),
    [
        ("KV", ["HL509"]),
        ('REST("api.example.com")', ["HL509"]),
        ('MCP("server")', ["HL509"]),
        ('Workspace("room", write: true)', ["HL509"]),
        ('Workspace("room")', []),
        ('SQL("sqlite:///a.db", readOnly: false)', ["HL509"]),
        ('SQL("sqlite:///a.db")', []),
        ('GET("https://example.com")', []),
    ],
)
def test_tools_that_change_something_want_a_policy(tool: str, codes: list[str]) -> None:
    text = f"tool T : {tool}\n{BOT}  equips T\n{MAIN} |> Bot.go(tools: [T])"
    assert [code.partition(" ")[0] for code in found(text)] == codes


@pytest.mark.parametrize(
    ("agent", "call", "marks"),
    [
        ("agent Bot [openai/gpt-4o-mini]", "Bot.go(tools: [Memory])", ["HL509 Bot"]),
        ("agent Bot [openai/gpt-4o-mini]", "Bot.go(tools: auto)", ["HL509 Bot"]),
        ("agent Bot [openai/gpt-4o-mini, tools: [Memory]]", "Bot.go()", ["HL509 Bot"]),
        ("agent Bot [openai/gpt-4o-mini, tools: auto]", "Bot.go(tools: none)", ["HL509 Bot"]),
        ("agent Bot [openai/gpt-4o-mini]", "Bot.go(tools: none)", []),
        ("agent Bot [openai/gpt-4o-mini]", "Bot.get(tool: Memory, key: x)", []),
        ("agent Bot [openai/gpt-4o-mini]", "Bot.go()", []),
    ],
)
def test_only_calls_that_the_agent_chooses_itself_count(agent: str, call: str, marks: list[str]) -> None:
    assert marked(f"{KV}{agent}\n  equips Memory\n{MAIN} |> {call}") == marks


@pytest.mark.parametrize(("tools", "codes"), [("auto", []), ("[T]", ["HL509"])])
def test_a_history_that_is_only_equipped_is_not_the_agents_to_change(tools: str, codes: list[str]) -> None:
    text = f'store T : File("chat.jsonl")\n{BOT}  equips T\n{MAIN} |> Bot.go(tools: {tools})'
    assert [code.partition(" ")[0] for code in found(text)] == codes


def test_any_policy_will_do() -> None:
    assert marked(f"{KV}{LIMIT}{BOT}  equips Memory\n  requires Limit\n{MAIN} |> Bot.go(tools: [Memory])") == []


def test_the_warning_names_the_tools() -> None:
    warning = only(f"{KV}tool T : GitHub\n{BOT}  equips Memory, T\n{MAIN} |> Bot.go(tools: auto)")
    assert "Memory, T" in warning.message


# --- HL511


def priced(text: str, *known: str) -> list[str]:
    """The findings where the prices of these models are known."""
    done = check(parse(text), is_priced=known.__contains__)
    source = done.program.source.text
    return [f"{one.code} {source[one.span.start : one.span.end]}" for one in done.diagnostics]


def spending(rules: str, model: str = "openai/own") -> str:
    return f"policy Budget : {rules}\nagent Bot [{model}]\n  requires Budget\n{MAIN} |> Bot.go()"


@pytest.mark.parametrize(
    ("rules", "marks"),
    [
        ("MaxSpend(1.00)", ["HL511 MaxSpend(1.00)"]),
        ('MaxCalls(3) & MaxSpend(1, onLimit: "ask")', ['HL511 MaxSpend(1, onLimit: "ask")']),
        ("Audit(MaxSpend(2))", ["HL511 MaxSpend(2)"]),
        ("MaxTokens(1000)", []),
    ],
)
def test_a_budget_on_a_model_without_a_price_is_reported_at_its_rule(rules: str, marks: list[str]) -> None:
    assert priced(spending(rules)) == marks
    assert priced(spending(rules), "openai/own") == []


def test_the_warning_shows_the_models_without_a_price() -> None:
    text = f"{spending('MaxSpend(1)')} |> Other.go()\nagent Other [openai/gpt-4o-mini]\n  requires Budget"
    (warning,) = check(parse(text), is_priced=lambda model: model != "openai/own").diagnostics
    assert "`openai/own`" in warning.message
    assert [text[one.span.start : one.span.end] for one in warning.related] == ["openai/own"]


def test_a_budget_that_no_agent_is_held_to_counts_nothing() -> None:
    assert priced(f"policy Budget : MaxSpend(1)\n{BOT}{MAIN} |> Bot.go()") == ["HL505 Budget"]


def test_where_nobody_knows_prices_nothing_is_said() -> None:
    assert found(spending("MaxSpend(1)")) == []


# --- as one types


def test_what_one_declaration_mentions_is_noticed_at_another() -> None:
    before = analysis(f"{KV}{BOT}{MAIN} |> Bot.go()")
    assert [one.code for one in before.diagnostics] == ["HL505"]
    text = f"{KV}{BOT}{MAIN} |> Bot.go() |> Memory.get(x)"
    assert check(parse(text, before.program), before).diagnostics == ()


def test_a_prompt_that_reads_a_parameter_no_more_is_noticed_at_its_callers() -> None:
    text = f'{BOT}  system "Be {{{{tone}}}}."\npipeline Main(x: String, tone: String) -> Result: x |> Bot.go()'
    before = analysis(text)
    after = check(parse(text.replace("{{tone}}", "nice"), before.program), before)
    assert ([one.code for one in before.diagnostics], [one.code for one in after.diagnostics]) == ([], ["HL505"])


def test_a_policy_that_demands_json_no_more_is_noticed_at_the_gates() -> None:
    text = f"policy P : RequireJSON\n{BOT}  requires P\n{MAIN} |> Bot.go() |? (go.ok)"
    before = analysis(text)
    after = check(parse(text.replace("RequireJSON", "MinLength(1)"), before.program), before)
    assert ([one.code for one in before.diagnostics], [one.code for one in after.diagnostics]) == ([], ["HL510"])

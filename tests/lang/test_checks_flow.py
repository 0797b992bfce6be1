"""Permissions, directives, branches and loops (HL401 to HL407)."""

from __future__ import annotations

import pytest

from tests.lang.checking import BOT, analysis, body, found, marked, only

TOOL = "tool Repo : GitHub policy Limit : MaxToolCalls(9)\n"
REPO = f"{TOOL}{BOT}{BOT.replace('Bot', 'Able')}  equips Repo requires Limit\n"


def with_repo(call: str) -> str:
    return f"{REPO}pipeline Main(n: Number) -> Result:\n  n |> {call}"


# --- HL401


@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("Bot.get_issue(tool: Repo, number: n)", ["HL401 6:28"]),
        ("Bot.answer(tools: [Repo])", ["HL401 6:27"]),
        ("Able.get_issue(tool: Repo, number: n)", []),
        ("Able.answer(tools: [Repo])", []),
        ("Bot.answer(tools: auto)", []),
        ("Bot.answer(tools: none)", []),
    ],
)
def test_an_agent_uses_the_tools_that_it_equips(call: str, places: list[str]) -> None:
    assert found(with_repo(call)) == places


def test_a_tool_in_an_agents_brackets_must_be_equipped_too() -> None:
    agent = f"{TOOL}agent A [openai/gpt-4o-mini, tools: [Repo]]"
    assert found(agent) == ["HL401 2:38"]
    assert found(f"{agent}\n  equips Repo requires Limit") == []


def test_an_unknown_tool_is_unknown_and_nothing_else() -> None:
    assert marked(with_repo("Able.answer(tools: [Repo, Rpeo])")) == ["HL203 Rpeo"]


# --- HL402 and HL407


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        (body("|> Bot.go(Env.API_KEY)"), ["HL402 Env.API_KEY"]),
        (body('|> Bot.go("Env.API_KEY")'), ['HL402 "Env.API_KEY"']),
        (body("|> Bot.go([Env.API_KEY])"), ["HL402 Env.API_KEY"]),
        (body('|? (x == Env.API_KEY)'), ["HL402 Env.API_KEY"]),
        (body('|> Bot.go() |<> loop(Bot, "Env.X == \\"a\\"")'), ["HL402 Env.X"]),
        (body("|* each(y in Env.LIST) => Bot.go()"), ["HL402 Env.LIST"]),
        (body("|> Env.get(x)"), ["HL402 Env"]),
        ("pipeline Main(x: String) -> Result: Env.X", ["HL402 Env.X"]),
        ("agent A [openai/gpt-4o-mini, system: Env.PROMPT]", ["HL402 Env.PROMPT"]),
        ('agent A [openai/gpt-4o-mini]\n  system "Env.PROMPT"', ['HL402 "Env.PROMPT"']),
        ('tool A : REST("a.example", apiKey: Env.API_KEY)', []),
        ('tool A : Bash(env: [Env.A, "Env.B"])', []),
        (body('|> Bot.go("Use Env.API_KEY here.")'), []),
    ],
)  # fmt: skip
def test_env_is_read_where_tools_are_declared_and_nowhere_else(text: str, marks: list[str]) -> None:
    assert marked(text) == marks


@pytest.mark.parametrize("value", ["Env.A.B", '"Env.NOT-PLAIN"', "Env", '"Env."', "Env.9"])
def test_an_env_name_is_one_plain_word(value: str) -> None:
    codes = [one.partition(" ")[0] for one in marked(f'tool A : REST("a.example", apiKey: {value})')]
    assert codes == ["HL407"]


def test_a_text_that_only_begins_with_env_is_a_text() -> None:
    assert found('tool A : Bash(cwd: "Env. and more")') == []


# --- HL403


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        (f"@checkpoint\n{BOT}", ["HL403 @checkpoint"]),
        (f"{BOT}@shadow(Bot)\npipeline Main(x: String) -> Result: x", ["HL403 @shadow"]),
        (f"@retry(1)\n@timeout(1s)\n@retry(2)\n{BOT}", ["HL403 @retry"]),
        ("@checkpoint\n@checkpoint\npipeline Main(x: String) -> Result: x", ["HL403 @checkpoint"]),
        (f"@checkpoint(1)\n{BOT}", ["HL403 @checkpoint"]),
        ("@retry(1)\n@timeout(1s)\n@correct(1)\n@checkpoint\npipeline Main(x: String) -> Result: x", []),
    ],
)
def test_directives_stand_where_they_apply_and_once(text: str, marks: list[str]) -> None:
    assert marked(text) == marks


# --- HL404


@pytest.mark.parametrize(
    ("arms", "count"),
    [
        ("else => Bot.a(), (x == 1) => Bot.b()", 1),
        ("else => Bot.a(), else => Bot.b()", 1),
        ("else => Bot.a(), else => Bot.b(), (x == 1) => Bot.c()", 1),
        ("(x == 1) => Bot.a(), else => Bot.b()", 0),
    ],
)
def test_else_is_the_last_arm_and_there_is_one(arms: str, count: int) -> None:
    assert marked(body(f"|? {{ {arms} }}")) == ["HL404 else"] * count


# --- HL405


@pytest.mark.parametrize(
    "stages",
    [
        "|> Bot.go()",
        "|? (x) |* { Bot.go() as a, Main(x) as b }",
        "|? { (true) => Bot.go() }",
        "|* each(y in x) => Bot.go()",
        "|? (true) => Bot.go()",
    ],
)
def test_a_loop_goes_back_to_any_stage_that_calls_its_agent(stages: str) -> None:
    loop = '|<> loop(Bot, "context.current == null")'
    assert found(body(f"{stages} {loop}")) == []
    assert marked(body(f"{loop} {stages}")) == ["HL405 Bot"]


def test_a_stage_that_does_not_parse_may_be_the_one_to_go_back_to() -> None:
    text = body('|> Bot.go( |> Bot.stop( x |<> loop(Bot, "true")')
    assert "HL405" not in {one.partition(" ")[0] for one in found(text)}


# --- HL406


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ('"context.data.go > > 3"', 50),
        ('"a = 1"', 34),
        ('""', 32),
        ("'a =='", 36),
        (r'"a == \"b\" c"', 43),
    ],
)
def test_a_condition_that_does_not_parse_is_reported_inside_its_string(condition: str, column: int) -> None:
    assert found(body(f"|> Bot.go() |<> loop(Bot, {condition})")) == [f"HL406 3:{column}"]


def test_a_wrong_condition_brings_its_own_hint() -> None:
    assert "==" in (only(body('|> Bot.go() |<> loop(Bot, "x = 1")')).hint or "")


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("n >", "write a value, a path or a condition in brackets there, or take `>` away"),
        ("n > 1 &&", "write a value, a path or a condition in brackets there, or take `&&` away"),
        ("", "write one, such as `score > 8`"),
    ],
)
def test_what_a_loops_condition_lacks_is_said(condition: str, hint: str) -> None:
    told = analysis(body(f'|> Bot.go() |<> loop(Bot, "{condition}")')).errors
    assert [(one.code, one.hint) for one in told] == [("HL406", hint)]

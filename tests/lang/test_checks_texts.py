"""Placeholders, escapes and bare names (HL501, HL502, HL504), and what is in reach of a stage."""

from __future__ import annotations

import pytest

from halo_lang import Severity, check, parse
from tests.lang.checking import BOT, analysis, body, found, marked, only

# --- HL501


@pytest.mark.parametrize(
    ("stages", "marks"),
    [
        ('|> Bot.go("{{y}}")', ["HL501 {{y}}"]),
        ('|> Bot.go("{{ y.z }}")', ["HL501 {{ y.z }}"]),
        ('|> Bot.go(["{{y}}"], tone: "{{z}}")', ["HL501 {{y}}", "HL501 {{z}}"]),
        ('|! yield("{{y}}?")', ["HL501 {{y}}"]),
        ('|> Bot.go("{{Env.HOME}}")', ["HL501 {{Env.HOME}}"]),
        ('|> Bot.go("{{context.nothing}}")', ["HL501 {{context.nothing}}"]),
        ('|> Bot.go("{{context.input.y}}")', ["HL501 {{context.input.y}}"]),
        ('|> Bot.go("{{Bot.go}}")', ["HL501 {{Bot.go}}"]),
        ('|> Bot.go("{{context.data.go}}")', ["HL501 {{context.data.go}}"]),
        ('|> Bot.go("{{x}} {{x.a.0}} {{current}} {{context}} {{context.input.x}} {{context.data}}")', []),
        ('|> Bot.go("{{ a + b }} {{}} {{\\"a\\": 1}} {y}")', []),
        ("|? (x == \"{{y}}\")", []),
        ('|> Bot.go("""\n    {{y}}\n    """)', ["HL501 {{y}}"]),
    ],
)  # fmt: skip
def test_a_placeholder_that_cannot_resolve_is_reported(stages: str, marks: list[str]) -> None:
    assert marked(body(stages)) == marks


@pytest.mark.parametrize(
    ("stages", "names"),
    [
        ("|> Bot.go() as r", "r go Bot.go"),
        ("|* { Bot.a() as one, Bot.b() } as all", "one a b all Bot.b"),
        ("|* each(y in x) => Bot.go(y) as all", "all go"),
        ("|? { (true) => Bot.a() } as r", "a r"),
        ('|! yield("Go?") as answer', "answer"),
        ("~> listen(UI.Click) as click", "click UI.Click"),
        ('|> Bot.go() |<> loop(Bot, "go == 1") as tries', "tries go"),
        ("|? (x) |> Main(x) as again", "again Main.output"),
        ('|> System.Value("a")', "Value System.Value"),
        ('|> System.Print("a") as shown', "shown"),
    ],
)
def test_results_of_earlier_stages_are_in_reach(stages: str, names: str) -> None:
    text = " ".join(f"{{{{{name}}}}}" for name in names.split())
    assert found(body(f'{stages} |> Bot.end("{text}")')) == []


@pytest.mark.parametrize(
    "stages",
    [
        '|> Bot.go("{{r}}") as r',
        '|> Bot.go("{{go}}")',
        '|* { Bot.a() as one, Bot.b("{{one}}") }',
        '|* each(y in x) => Bot.go(y) |> Bot.end("{{y}}")',
        '|* each(y in x) => Bot.go(y) |> Bot.end("{{index}}")',
        '|> System.Print("a") |> Bot.end("{{Print}}")',
    ],
)
def test_what_comes_later_or_stood_elsewhere_is_not_in_reach(stages: str) -> None:
    assert [one.partition(" ")[0] for one in found(body(stages))] == ["HL501"]


def test_items_and_index_are_in_reach_inside_their_each() -> None:
    assert found(body('|* each(y in x) => Bot.go("{{y.a}} {{index}}", y, index)')) == []


def test_looped_stages_see_each_others_results_of_the_round_before() -> None:
    stages = '|> Bot.write("Mend: {{check.output}}") |> Bot.check() |<> loop(Bot, "true")'
    assert found(body(stages)) == ["HL501 3:25"]
    writer = f"agent Writer [openai/gpt-4o-mini]\n{body(stages)}"
    assert found(writer.replace("Bot.write", "Writer.write").replace("loop(Bot", "loop(Writer")) == []


def test_the_place_of_a_placeholder_is_right_behind_escapes_and_in_long_strings() -> None:
    assert found(body('|> Bot.go("a\\n\\t\\"b\\" {{y}}")')) == ["HL501 3:27"]
    assert found(body('|> Bot.go("""\n      one\n      two {{y}}\n      """)')) == ["HL501 5:11"]


def test_a_system_prompt_that_nobody_fills_is_judged_for_what_never_resolves() -> None:
    texts = "{{whoever}} {{context.data.x}} {{Env.KEY}} {{context.inptu.x}}"
    assert marked(f'agent A [openai/gpt-4o-mini]\n  system "{texts}"') == [
        "HL501 {{Env.KEY}}",
        "HL501 {{context.inptu.x}}",
    ]


def prompted(text: str, pipelines: str, *, directives: str = "") -> str:
    """An agent `A` with a system prompt, its helper `B`, and pipelines."""
    return f'{directives}agent A [openai/gpt-4o-mini]\n  system "{text}"\nagent B [openai/gpt-4o-mini]\n{pipelines}'


CALLER = "pipeline P(who: String) -> R:\n  who |> B.look() as seen |> A.go() as done |> B.look() as last\n"
OTHER = "pipeline Q(other: String) -> R: other |> B.find() as later |> A.go()\n"


@pytest.mark.parametrize(
    "path",
    [
        *("who", "who.x", "context.input.who"),
        *("seen", "look", "B.look", "B", "context.data", "context.data.seen.0"),
        *("current", "context", "context.current.x", "context.meta.x"),
    ],
)
def test_a_system_prompt_may_read_what_a_caller_of_its_agent_has(path: str) -> None:
    assert found(prompted(f"{{{{{path}}}}}", CALLER)) == []
    assert found(prompted(f"{{{{{path}}}}}", OTHER + CALLER)) == []


@pytest.mark.parametrize(
    "path",
    [
        *("nobody", "done", "go", "last", "A"),
        *("context.input.nobody", "context.input.seen", "context.data.who", "context.data.last.x"),
    ],
)
def test_what_no_caller_of_an_agent_has_is_reported_in_its_system_prompt(path: str) -> None:
    assert marked(prompted(f"{{{{{path}}}}}", CALLER)) == [f"HL501 {{{{{path}}}}}"]
    assert marked(prompted(f"{{{{{path}}}}}", OTHER + CALLER)) == [f"HL501 {{{{{path}}}}}"]


def test_a_near_name_of_a_caller_is_offered_for_a_system_prompt() -> None:
    unresolved = only(prompted("{{context.input.woh}} {{who}}", CALLER))
    assert (unresolved.hint, unresolved.fix and unresolved.fix.text) == (
        "did you mean `context.input.who`?",
        "{{context.input.who}}",
    )


def test_each_lends_its_item_and_index_to_the_agent_that_it_calls() -> None:
    texts = "{{item}} {{index}} {{all}}"
    each = "pipeline P(x: Array<String>) -> R: x |* each(item in x) => A.go() as all\n"
    assert marked(prompted(texts, each)) == ["HL501 {{all}}"]
    assert marked(prompted(texts, each.replace("A.go", "B.go") + "pipeline Q() -> R: |> A.go()\n")) == [
        "HL501 {{item}}",
        "HL501 {{index}}",
        "HL501 {{all}}",
    ]


def test_a_loop_brings_later_results_to_the_system_prompt_of_an_earlier_agent() -> None:
    straight = "pipeline P(x: String) -> R:\n  x |> A.go() as draft |> B.judge() as score"
    assert marked(prompted("{{score}}", straight)) == ["HL501 {{score}}"]
    assert marked(prompted("{{score}}", f'{straight} |<> loop(A, "score < 8")')) == []


@pytest.mark.parametrize(
    "pipelines",
    [
        pytest.param("", id="nobody calls the agent"),
        pytest.param("pipeline P(x: String) -> R: x |> B.go()\n", id="another agent is called"),
        pytest.param("pipeline P() -> R: |> A.go()\npipeline Q(nobody: String -> R: |> A.go()\n", id="no head"),
        pytest.param("pipeline P() -> R:\n  |> A.go()\npipeline Q() -> R:\n  |> (\n  |> A.go()\n", id="lost stages"),
    ],
)
def test_a_system_prompt_is_not_judged_where_its_callers_are_not_known(pipelines: str) -> None:
    assert not [line for line in marked(prompted("{{nobody}}", pipelines)) if line.startswith("HL501")]


def test_a_shadow_reads_what_the_agent_beside_it_can() -> None:
    pipelines = "pipeline P(who: String) -> R: who |> B.go()\npipeline Q() -> R: |> A.go()\n"
    assert found(prompted("{{who}}", pipelines, directives="@shadow(B)\n")) == []


def test_a_system_prompt_in_brackets_is_judged_alike() -> None:
    text = 'agent A [openai/gpt-4o-mini, system: "a\\n{{nobody}}"]\npipeline P() -> R: |> A.go()'
    assert marked(text) == ["HL501 {{nobody}}"]


def test_system_prompts_are_judged_anew_when_a_caller_changes() -> None:
    text = prompted("{{who}}", CALLER)
    version = analysis(text)
    for old, new in (
        ("who: String", "woh: String"),
        ("as seen", "as who"),
        ("as who", "as seen"),
        ("woh: S", "who: S"),
    ):
        text = text.replace(old, new)
        version = check(parse(text, version.program), version)
        assert version.diagnostics == analysis(text).diagnostics


def test_a_near_name_is_offered() -> None:
    unresolved = only(body('|> Bot.go("{{ticket}}")').replace("x: String", "tickets: String").replace("  x ", "  "))
    assert (unresolved.severity, unresolved.hint) == (Severity.WARNING, "did you mean `tickets`?")


# --- HL502


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('"a\\qb"', ["HL502 3:23"]),
        ('"\\\\ \\n \\t \\""', []),
        ("'a\\qb'", []),
        ('"""\n  a\\qb\n  """', ["HL502 4:4"]),
        ('"\\d\\d"', ["HL502 3:22", "HL502 3:24"]),
    ],
)
def test_an_unknown_escape_is_reported_at_its_backslash(text: str, places: list[str]) -> None:
    assert found(body(f"|> System.Value({text})")) == places


@pytest.mark.parametrize(
    "text",
    [
        'policy P : Match("\\d")',
        'agent A [openai/gpt-4o-mini]\n  system "\\d"',
        'tool A : Bash(cwd: "\\d")',
        body('|? (x == "\\d")'),
        body("|> Bot.go() |<> loop(Bot, \"x == '\\d'\")"),
    ],
)
def test_every_string_is_looked_at(text: str) -> None:
    assert [one.partition(" ")[0] for one in found(text)] == ["HL502"]


# --- HL504


@pytest.mark.parametrize(
    ("stages", "marks"),
    [
        ("|> Bot.go(y)", ["HL504 y"]),
        ("|> Bot.go([y.z])", ["HL504 y.z"]),
        ("|? (y == 1)", ["HL504 y"]),
        ('|? { (!(x == 1) && y > "a") => Bot.go() }', ["HL504 y"]),
        ("|* each(a in y) => Bot.go(a)", ["HL504 y"]),
        ('|> Bot.go() |<> loop(Bot, "y == 1")', ["HL504 y"]),
        ("|> Bot.go(context.nothing)", ["HL504 context.nothing"]),
        ("|! yield(y, Anywhere)", ["HL504 y"]),
        ("|> Bot.go(x, x.a, Bot, auto, none, current, context, context.data)", []),
        ("|> Bot.go() as r |> Bot.end(r, go, r.a)", []),
        ('|! yield("Go?", channel: Anywhere)', []),
    ],
)
def test_a_bare_name_that_is_nothing_in_reach_is_reported(stages: str, marks: list[str]) -> None:
    assert marked(body(stages)) == marks


def test_a_start_value_is_looked_at_and_the_nearest_name_offered() -> None:
    unknown = only(f"{BOT}pipeline Main(text: String) -> Result:\n  txet |> Bot.answer(text)")
    assert (unknown.code, unknown.hint) == ("HL504", "did you mean `text`?")


def test_a_pipeline_with_a_stage_that_does_not_parse_is_not_judged_for_results() -> None:
    text = body('|> Bot.go("a" "b") as r |> Bot.end(r, "{{r}}")')
    assert [one.partition(" ")[0] for one in found(text)] == ["HL102"]

"""Results that conditions and values rest on: whether anything produces them (HL503), and in which form (HL510)."""

from __future__ import annotations

import pytest

from halo_lang import Severity
from tests.lang.checking import BOT, body, found, marked, only

REPO = "tool Repo : GitHub\nagent Bot [openai/gpt-4o-mini]\n  equips Repo\n"

# --- HL503


@pytest.mark.parametrize(
    ("stages", "path"),
    [
        ("|> System.Value(context.data.later)", "context.data.later"),
        ("|> Bot.end([context.data.later.title])", "context.data.later.title"),
        ("|> Bot.end(topic: context.data.later)", "context.data.later"),
        ("|? (x == 1 || !(context.data.later > 2))", "context.data.later"),
        ("|? { (context.data.later) => Bot.end(), else => Bot.go() }", "context.data.later"),
        ("|* each(y in context.data.later) => Bot.end(y)", "context.data.later"),
        ("|* each(y in x) => Bot.end(context.data.y)", "context.data.y"),
        ('|! yield("Go?", attachments: [context.data.later])', "context.data.later"),
        ('|> Bot.go() |<> loop(Bot, "x == 1 && context.data.later == 1")', "context.data.later"),
        ("|> Bot.go() as r |> Bot.end(context.data.Bot.gone)", "context.data.Bot.gone"),
        ("|> Bot.go() as r |> Bot.end(context.data.rr)", "context.data.rr"),
        ("|> Bot.go(context.data.r) as r", "context.data.r"),
        ("~> listen(UI.Click) |> Bot.end(context.data.UI.Press)", "context.data.UI.Press"),
        ("|> System.Print(x) |> Bot.end(context.data.Print)", "context.data.Print"),
    ],
)
def test_a_path_that_no_earlier_stage_can_have_filled_is_reported(stages: str, path: str) -> None:
    assert marked(body(stages)) == [f"HL503 {path}"]


@pytest.mark.parametrize(
    "stages",
    [
        "|> Bot.go() as r |> Bot.end(context.data.r.a.0, context.data.go, context.data.Bot.go.b, context.data.Bot)",
        "|? { (x) => Bot.a(), else => Bot.b() } as r |> Bot.end(context.data.a, context.data.Bot.b, context.data.r)",
        "|* { Bot.a() as one, Bot.b() } as all |> Bot.end(context.data.one, context.data.b, context.data.all.b)",
        "|* each(y in x) => Bot.a(y) |> Bot.end(context.data.a.0, context.data.Bot.a)",
        "|? (x == 1) => Bot.a() as r |> Bot.end(context.data.r)",
        "~> listen(UI.Click) |> Bot.end(context.data.UI.Click.at, context.data.UI)",
        '|! yield("Go?") as answer |> Bot.end(context.data.answer)',
        "|? (x) |> Main(x) |> Bot.end(context.data.Main.whatever)",
        "|> System.Value(1) |> Bot.end(context.data.Value, context.data.System.Value)",
        '|> Bot.go() |<> loop(Bot, "context.data.go == 1") as tries |> Bot.end(context.data.tries)',
        "|> Bot.end(context.data, context.input.x, context.meta.cost, context.trace.0)",
    ],
)
def test_what_an_earlier_stage_may_have_filled_is_not(stages: str) -> None:
    assert found(body(stages)) == []


def test_a_tool_before_the_prompt_leaves_its_result_under_its_own_name() -> None:
    call = "|> Bot.get_issue(tool: Repo, number: n)"
    use = "|> System.Value([context.data.Repo.get_issue.title, context.data.get_issue])"
    assert found(f"{REPO}pipeline Main(n: Number) -> Result:\n  n {call} {use}") == []
    other = use.replace("Repo.get_issue", "Repo.get_pull")
    text = f"{REPO}pipeline Main(n: Number) -> Result:\n  n {call} {other}"
    assert marked(text) == ["HL503 context.data.Repo.get_pull.title"]


def test_a_method_named_like_a_parameter_or_a_declaration_leaves_no_result_of_that_name() -> None:
    text = body("|> Bot.Note() |> Bot.x() |> Bot.end(context.data.Note, context.data.x, context.data.Bot.Note)")
    assert marked(f"{text}\nschema Note {{ a: String }}") == ["HL503 context.data.Note", "HL503 context.data.x"]


def test_looped_stages_find_the_results_of_the_round_before() -> None:
    stages = '|> Bot.write(context.data.check) |> Judge.check() |<> loop({}, "context.data.check == 1")'
    judge = "agent Judge [openai/gpt-4o-mini]\n"
    assert found(judge + body(stages.format("Bot"))) == []
    assert marked(judge + body(stages.format("Judge"))) == ["HL503 context.data.check"]


def test_a_near_result_is_offered() -> None:
    assert (
        only(body("|> Bot.go() as draft |> Bot.end(context.data.darft)")).hint == "did you mean `context.data.draft`?"
    )
    assert only(body("|> Bot.go() |> Bot.end(context.data.Bot.og)")).hint == "did you mean `context.data.Bot.go`?"


def test_nothing_is_said_where_a_stage_does_not_parse() -> None:
    assert [one.partition(" ")[0] for one in found(body("|> Bot.go( |> Bot.end(context.data.r)"))] == ["HL105"]


def test_nothing_is_said_of_results_of_a_declaration_that_does_not_parse() -> None:
    text = f"{BOT}agent Ghost [openai/gpt-4o-mini\npipeline Main(x: String) -> Result:\n  x {{}}"
    stages = "|> Ghost.go() |> Bot.end(context.data.go, context.data.Ghost.go)"
    assert {one.partition(" ")[0] for one in found(text.format(stages))} == {"HL105"}


# --- HL510


@pytest.mark.parametrize(
    ("stages", "path"),
    [
        ("|> Bot.go() |? (context.data.go.ok)", "context.data.go.ok"),
        ("|> Bot.go() |? (context.data.Bot.go.ok)", "context.data.Bot.go.ok"),
        ("|> Bot.go() as r |? (r.ok && x == 1)", "r.ok"),
        ("|> Bot.go() |? (context.current.ok)", "context.current.ok"),
        ("|> Bot.go() |> System.Print() |? (current.ok)", "current.ok"),
        ("|> Bot.go() |? { (context.data.go.ok) => Bot.end() }", "context.data.go.ok"),
        ("|? (x == 1) => Bot.go() |? (context.data.go.ok)", "context.data.go.ok"),
        ("|* { Bot.a() as one, Bot.b() } |? (context.data.one.ok)", "context.data.one.ok"),
        ('|> Bot.go() |<> loop(Bot, "!context.data.go.ok")', "context.data.go.ok"),
        ('|> Bot.go("In JSON") as r |> Bot.go() as r |? (r.ok)', "r.ok"),
        ('|> Bot.go(system: "Be brief.") |? (context.data.go.ok)', "context.data.go.ok"),
    ],
)
def test_a_condition_on_a_field_of_a_plain_text_is_noted(stages: str, path: str) -> None:
    assert marked(body(stages)) == [f"HL510 {path}"]


@pytest.mark.parametrize(
    "stages",
    [
        '|> Bot.go("Reply with JSON") |? (context.data.go.ok)',
        '|> Bot.go("Give me json, please") |? (context.data.go.ok)',
        '|> Bot.go(system: "Always JSON") |? (context.data.go.ok)',
        '|> Bot.go(format: "JSON") |? (context.data.go.ok)',
        '|> Bot.go() |? (context.data.go == "yes" && context.data.go > 3 && go != "no")',
        "|> Bot.go() |? (x.ok)",
        "|> Bot.go() |> System.Value(1) |? (context.current.ok)",
        "|? { (x == 1) => Bot.go(), else => Bot.end() } as r |? (context.data.go.ok || r.ok || context.current.ok)",
        "|* each(y in x) => Bot.go(y) |? (context.data.go.0)",
        "|* { Bot.a(), Bot.b() } as all |? (all.a == 1 && context.current.a == 1)",
        '|> Bot.go() as r |> Bot.go("In JSON") as r |? (r.ok)',
        '|> Bot.go() |! yield("Go?") as go |? (context.data.go.ok || context.current.ok)',
        "|? (x) |> Main(x) |? (context.data.Main.ok)",
        "|> Bot.go() |> Bot.end(context.data.go.ok)",
    ],
)
def test_where_json_was_asked_for_or_nothing_is_certain_there_is_no_note(stages: str) -> None:
    assert found(body(stages)) == []


@pytest.mark.parametrize(
    ("declarations", "codes"),
    [
        ('agent Bot [openai/gpt-4o-mini]\n  system "You answer json."', []),
        ('agent Bot [openai/gpt-4o-mini, role: "You answer JSON."]', []),
        ("policy P : MaxLength(9) & RequireJSON\nagent Bot [openai/gpt-4o-mini]\n  requires P", []),
        (
            "schema S { ok: Boolean }\npolicy P : RequireSchema(S)\nagent Bot [openai/gpt-4o-mini]\n  requires P",
            [],
        ),
        ("policy P : MaxLength(9)\nagent Bot [openai/gpt-4o-mini]\n  requires P", ["HL510"]),
        ('agent Bot [openai/gpt-4o-mini]\n  system "You like jsonnet."', ["HL510"]),
    ],
)
def test_system_prompts_and_policies_ask_for_json_too(declarations: str, codes: list[str]) -> None:
    text = f"{declarations}\npipeline Main(x: String) -> Result: x |> Bot.go() |? (context.data.go.ok)"
    assert [one.partition(" ")[0] for one in found(text)] == codes


def test_a_call_with_a_prompt_of_its_own_is_not_told_what_its_agent_is() -> None:
    text = 'agent Bot [openai/gpt-4o-mini]\n  system "You answer json."\npipeline Main(x: String) -> Result:\n  x {}'
    assert marked(text.format('|> Bot.go(role: "Be brief.") |? (go.ok)')) == ["HL510 go.ok"]


@pytest.mark.parametrize(
    ("returns", "behind", "codes"),
    [
        ("S", "", []),
        ("Array<S>", ' |<> loop(Bot, "x == 1") |> System.Notify()', []),
        ("S", " |> Bot.end()", ["HL510"]),
        ("Result", "", ["HL510"]),
    ],
)
def test_what_must_fit_a_schema_is_no_plain_text(returns: str, behind: str, codes: list[str]) -> None:
    text = f"{body(f'|> Bot.go() |? (go.ok){behind}')}\nschema S {{ ok: Boolean }}"
    assert [one.partition(" ")[0] for one in found(text.replace("Result", returns))] == codes


def test_a_tool_before_the_prompt_answers_as_it_does() -> None:
    stages = "n |> Bot.get_issue(tool: Repo, number: n) |? (context.data.Repo.get_issue.open)"
    assert found(f"{REPO}pipeline Main(n: Number) -> Result:\n  {stages}") == []


def test_the_note_is_no_warning() -> None:
    note = only(body("|> Bot.go() |? (context.data.go.ok)"))
    assert note.severity is Severity.INFO
    assert "JSON" in (note.hint or "")

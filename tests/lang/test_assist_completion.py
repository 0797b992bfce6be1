"""Completion: what is offered where, and that it is offered wherever a program needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import Analysis, check, parse
from halo_lang.assist import Completions, Item, complete, definition
from tests.lang.programs import programs

ROOT = Path(__file__).parents[2]
EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.halo"))]

DECLARED = """\
tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")
store Docs : KV("docs.db")
policy Safe : MaxSpend(1.00)
schema Answer { title: String, parts: Array<Part> }
schema Part { text: String, page: Number }
agent Bot [openai/gpt-4o-mini]
  equips Docs
  requires Safe
agent Critic [openai/gpt-4o]
pipeline Solve(issue: Answer, deadline: String) -> Answer:
  issue |> Bot.solve()

"""
PIPELINE = "pipeline Main(question: String, answer: Answer) -> Result:\n  question "
LISTS = "pipeline Main(name: String, rows: Array) -> Result:\n  name |> Bot.a() |* { Bot.b() } as both "
ASKED = """|> Bot.judge('{"verdict": "good" | "bad", "details": {"lines": [{"number": 1}]}}') as opinion """


def completed(text: str, before: str = DECLARED) -> Completions:
    """The completions at the mark `▮` of a text."""
    text = before + text
    return complete(_analysis(text.replace("▮", "")), text.index("▮"), models=lambda: ["openai/gpt-5", "o3-mini"])


def offered(text: str, before: str = DECLARED) -> list[str]:
    """The labels of the completions at the mark, likeliest first."""
    return [item.label for item in completed(text, before).items]


def item(text: str, label: str) -> Item:
    """The completion of that label."""
    return next(one for one in completed(text).items if one.label == label)


def _analysis(text: str) -> Analysis:
    return check(parse(text))


# --- declarations


def test_an_empty_program_begins_with_a_declaration() -> None:
    assert offered("▮", before="") == ["policy", "tool", "store", "schema", "agent", "pipeline", "@"]


def test_what_is_typed_narrows_what_is_offered() -> None:
    assert offered("po▮", before="") == ["policy"]


def test_letters_in_order_are_enough_and_those_at_the_beginning_count_more() -> None:
    assert offered(f"{PIPELINE}|> System.ri▮")[:1] == ["Print"]
    assert offered("policy P : Max▮")[:2] == ["MaxSpend", "MaxTokens"]


def test_the_whole_word_around_the_cursor_is_replaced() -> None:
    found = completed("tool X : Git▮ub")
    assert [one.label for one in found.items] == ["GitHub"]
    assert (found.span.start, found.span.end) == (len(DECLARED) + 9, len(DECLARED) + 14)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tool X : ▮", ["REST", "GET", "POST"]),
        ("policy P : ▮", ["Redact", "Block", "Allow"]),
        ("policy P : RequireJSON & ▮", ["Redact", "Block", "Allow"]),
        ("policy P : Audit(Block(▮", ["PromptInjection", "Secrets", "PII", "Toxicity"]),
        ("policy P : Redact(PII, ▮", ["PII", "Email"]),
        ("policy P : Approve(▮", ["Repo", "Docs"]),
        ("policy P : Approve(Docs.▮", ["get", "set", "delete", "list", "incr", "cas"]),
        ("policy P : RequireSchema(▮", ["schema:", "Answer", "Part"]),
        ("policy P : Taint(from: ▮", ["Repo", "Docs"]),
        ("schema S { x: ▮", ["String", "Number", "Integer", "Boolean"]),
        ("schema S { x: Array<Pa▮", ["Part"]),
        ("agent A [x-1] ▮", ["system", "equips", "requires"]),
        ("agent A [x-1] equips ▮", ["Repo", "Docs"]),
        ("agent A [x-1] equips Repo, ▮", ["Docs"]),
        ("agent A [x-1] equips Repo requires ▮", ["Safe"]),
        ('agent A [x-1] system "be kind" eq▮', ["equips"]),
        ("pipeline P(x: An▮", ["Any", "Answer"]),
        ("pipeline P(x: String) -> ▮", ["Answer", "Part", "Result"]),
    ],
)
def test_a_declaration_is_completed_with_what_fits_first(text: str, first: list[str]) -> None:
    assert offered(text)[: len(first)] == first


@pytest.mark.parametrize(
    "text",
    [
        "// agent ▮",
        "/* tool X : ▮",
        'agent A [x-1] system "You ▮',
        "agent ▮",
        "pipeline P(▮",
        "schema S { ▮",
        f"{PIPELINE}|> Bot.ask() as ▮",
        f"{PIPELINE}|* each(▮",
        f'{PIPELINE}|> Bot.ask("tell ▮',
        "@retry(3▮",
        '@shadow("a/b" ▮',
    ],
)
def test_nothing_is_offered_in_texts_and_where_a_name_is_made_up(text: str) -> None:
    assert offered(text) == []


# --- directives and models


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@▮\nagent A [x-1]", ["shadow", "retry", "timeout", "correct"]),
        ("@▮\npipeline P() -> R: x", ["checkpoint", "retry", "timeout", "correct"]),
        ("@retry(2)\n@▮ @timeout(1s)\nagent A [x-1]", ["shadow", "correct"]),
        ("@▮", ["checkpoint", "shadow", "retry", "timeout", "correct"]),
    ],
)
def test_directives_are_those_that_apply_to_what_follows_and_are_not_there_yet(text: str, names: list[str]) -> None:
    assert offered(text) == names


def test_models_are_those_of_the_program_then_services_then_known_ones() -> None:
    models = offered("agent A [▮")
    assert models[:2] == ["openai/gpt-4o-mini", "openai/gpt-4o"]
    assert models.index("openai/") < models.index("openai/gpt-5")


@pytest.mark.parametrize("text", ["agent A [openai/gpt-▮", 'agent A ["openai/gpt-▮"]'])
def test_a_model_is_one_word_with_all_its_signs(text: str) -> None:
    found = completed(text)
    assert [one.label for one in found.items] == ["openai/gpt-4o-mini", "openai/gpt-4o", "openai/gpt-5"]
    assert found.span.end - found.span.start == len("openai/gpt-")


def test_known_models_are_asked_for_only_where_a_model_can_stand() -> None:
    def never() -> list[str]:
        raise AssertionError

    assert complete(_analysis(DECLARED), len(DECLARED), models=never).items


def test_a_shadow_is_of_an_agent_or_a_model() -> None:
    assert offered("@shadow(▮")[:3] == ["Bot", "Critic", "openai/gpt-4o-mini"]


# --- stages and calls


@pytest.mark.parametrize(
    ("stages", "first"),
    [
        ("▮", ["|>", "|?", "|*", "|!", "~>", "|<>"]),
        ("|▮", ["|>", "|?", "|*", "|!", "|<>"]),
        ("|> ▮", ["Bot", "Critic", "Repo", "Docs", "Solve", "Main", "System"]),
        ("|> Bot.ask() ▮", ["|>", "|?", "|*", "|!", "~>", "|<>", "as"]),
        ("|* ▮", ["each"]),
        ("|! ▮", ["yield"]),
        ("~> ▮", ["listen"]),
        ("|<> ▮", ["loop"]),
        ("|* { Bot.ask(), ▮", ["Bot", "Critic"]),
        ("|? { ▮", ["else"]),
        ("|? { (question == 1) => ▮", ["Bot", "Critic"]),
        ("|? { else => Docs.▮", ["get", "set"]),
        ("|? (question == 1) => ▮", ["Bot", "Critic"]),
        ("|* each(x ▮", ["in"]),
        ("|* each(x in ▮", ["question", "answer"]),
        ("|* each(x in answer.▮", ["title", "parts"]),
        ("|* each(x in answer.parts, ▮", ["concurrency:", "onError:"]),
        ("|* each(x in answer.parts) => Bot.ask(▮", ["x", "index", "question", "answer"]),
        ("|* each(x in answer.parts) => Bot.ask(x.▮", ["text", "page"]),
        ("|* each(x in answer.parts) => Bot.ask('{{x.▮", ["text", "page"]),
        ("|> Critic.ask() |<> loop(▮", ["Critic", "Bot"]),
    ],
)
def test_a_stage_is_completed_with_what_fits_first(stages: str, first: list[str]) -> None:
    assert offered(PIPELINE + stages)[: len(first)] == first


def test_a_tool_has_the_methods_of_its_provider_with_their_words() -> None:
    found = item(f"{PIPELINE}|> Docs.▮", "set")
    assert found.detail == "(key, value, ttl?)"
    assert found.documentation == 'Store a value. Gives the value.\n\nMemory.set("color", "red", ttl: 1h)'


def test_an_agent_has_the_methods_that_the_program_uses_and_those_of_its_tools() -> None:
    assert offered(f"{PIPELINE}|> Bot.▮")[:2] == ["solve", "get"]


def test_a_service_without_listed_methods_has_those_that_the_program_uses() -> None:
    text = "tool Api : MCP(url: 'https://x.example')\npipeline P() -> R: |> Api.find_all() |> Api.▮"
    assert "find_all" in offered(text)


@pytest.mark.parametrize(
    ("call", "first"),
    [
        ("Docs.set(▮)", ["key:", "value:"]),
        ("Docs.set(question, ▮)", ["value:", "question"]),
        ("Docs.set(value: 1, ▮)", ["key:", "ttl:"]),
        ("Docs.set(▮, value: 1)", ["key:", "question"]),
        ("Solve(▮)", ["issue:", "deadline:"]),
        ("Solve(issue: question, ▮)", ["deadline:"]),
        ("Bot.ask(tool: ▮)", ["Docs"]),
        ("Bot.ask(tools: [▮])", ["Docs"]),
        ("Bot.ask(tools: ▮)", ["Docs", "auto", "none"]),
        ("Bot.get(tool: Docs, ▮)", ["key:"]),
        ("Repo.list_issues(state: ▮)", ['"open"', '"closed"', '"all"']),
        ("Repo.list_issues(state: '▮')", ["open", "closed", "all"]),
    ],
)
def test_arguments_are_the_names_that_are_not_given_yet_and_values_that_fit(call: str, first: list[str]) -> None:
    assert offered(f"{PIPELINE}|> {call}")[: len(first)] == first


def test_names_that_are_given_are_not_offered_again() -> None:
    names = offered(f"{PIPELINE}|> Bot.ask(temp: 1, ▮, max_steps: 2)")
    assert not {"temp:", "temperature:", "max_steps:"} & set(names)
    assert "top_p:" in names


def test_an_argument_and_a_value_of_one_name_are_both_offered() -> None:
    text = "pipeline Main(issue: Answer) -> Result:\n  issue |> Solve(▮)"
    assert offered(text)[:3] == ["issue:", "deadline:", "issue"]


def test_the_name_of_an_argument_comes_with_its_colon_unless_that_is_there() -> None:
    assert item(f"{PIPELINE}|> Docs.set(▮)", "ttl:").insert == "ttl: "
    assert item(f"{PIPELINE}|> Docs.set(▮: 3s)", "ttl").insert == "ttl"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tool X : GitHub(▮", ["Env.GITHUB_TOKEN", "Env"]),
        ("tool X : GitHub(Env.▮", ["GITHUB_TOKEN"]),
        ('tool X : KV("x.db", ▮', ["namespace:"]),
        ('tool X : Workspace("x", write: ▮', ["true", "false"]),
        ("agent A [x-1, ▮", ["temperature:", "max_tokens:"]),
        ("agent A [x-1, tools: ▮", ["auto", "none"]),
        ("@retry(3, ▮", ["backoff:"]),
    ],
)
def test_settings_are_completed_where_nothing_flows(text: str, first: list[str]) -> None:
    assert [label for label in offered(text) if label in first] == first
    assert not {"question", "context", "current"} & set(offered(text))


# --- paths


@pytest.mark.parametrize(
    ("stages", "labels"),
    [
        ("|> Bot.x(context.▮", ["data", "current", "input", "meta", "trace"]),
        ("|> Bot.x(context.input.▮", ["question", "answer"]),
        ("|> Bot.x(context.input.answer.▮", ["title", "parts"]),
        ("|> Bot.x(context.input.answer.parts.▮", ["0"]),
        ("|> Bot.x(context.meta.tokens.▮", ["input", "output", "total"]),
        ("|> Bot.x(context.data.▮", []),
        (f"{ASKED} |> Bot.x(context.data.▮", ["opinion", "judge", "Bot"]),
        (f"{ASKED} |> Bot.x(context.data.Bot.▮", ["judge"]),
        (f"{ASKED} |> Bot.x(context.data.Bot.judge.▮", ["verdict", "details"]),
        (f"{ASKED} |> Bot.x(context.data.opinion.details.lines.0.▮", ["number"]),
        (f"{ASKED} |> Bot.x(context.current.▮", ["verdict", "details"]),
        (f"{ASKED} |> Bot.x(opinion.▮", ["verdict", "details"]),
        (f'{ASKED} |> Bot.x("{{{{opinion.▮', ["verdict", "details"]),
        (f'{ASKED} |<> loop(Bot, "!opinion.▮', ["verdict", "details"]),
        (f"{ASKED} |? (opinion.▮", ["verdict", "details"]),
        ("|> Solve(answer) |> Bot.x(context.data.Solve.▮", ["title", "parts"]),
        ("|> Solve(answer) as s |> System.Print('x') |> Bot.x(s.parts.0.▮", ["text", "page"]),
        ("|* { Bot.a(), Bot.b() as c } as both |> Bot.x(both.▮", ["a", "c"]),
        ("|* each(p in answer.parts) => Solve(p) as all |> Bot.x(all.0.▮", ["title", "parts"]),
        ("~> listen(GitHub.Push) as push |> Bot.x(context.data.▮", ["push", "GitHub"]),
        ("~> listen(GitHub.Push) |> Bot.x(context.data.GitHub.▮", ["Push"]),
        ("|> Repo.list_issues() |> Bot.x(context.data.Repo.list_issues.▮", ["items", "more"]),
    ],
)
def test_a_path_goes_on_with_what_is_known_to_be_there(stages: str, labels: list[str]) -> None:
    assert offered(PIPELINE + stages) == labels


def test_the_list_of_an_each_is_a_list_first() -> None:
    assert offered(f"{LISTS}|* each(row in rows) => Bot.c() as all |* each(x in ▮")[:3] == ["rows", "all", "c"]


def test_results_of_later_stages_are_in_reach_only_in_a_loop() -> None:
    stages = "|> Bot.x(context.data.▮) |> Critic.judge() as verdict"
    assert offered(PIPELINE + stages) == []
    assert offered(f'{PIPELINE}{stages} |<> loop(Bot, "verdict")')[:1] == ["verdict"]


def test_a_stage_that_does_not_parse_leaves_the_results_of_the_others() -> None:
    text = f"{PIPELINE}\n  |> Bot.a() as one\n  |> Bot.b(as two\n  |> Bot.c(context.data.▮"
    assert offered(text)[:1] == ["one"]


def test_fields_that_nobody_declared_are_those_that_are_read_elsewhere() -> None:
    assert offered(f"{PIPELINE}|> Docs.get('k') as doc |> Bot.x(doc.body, doc.▮)") == ["body"]


def test_a_placeholder_offers_names_in_reach_but_no_variable_of_the_environment() -> None:
    labels = offered(f'{PIPELINE}{ASKED} |> Bot.x("see {{{{▮')
    assert labels == ["question", "answer", "opinion", "judge", "Bot", "context", "current"]


def test_a_system_prompt_is_filled_with_the_parameters_of_its_callers() -> None:
    before = DECLARED.replace("issue |> Bot", "issue |> Helper")
    assert offered('agent Helper [x-1] system "{{▮}}"', before)[:2] == ["issue", "deadline"]


@pytest.mark.parametrize(
    ("condition", "labels"),
    [
        ('|? (opinion.verdict == "▮")', ["good", "bad"]),
        ("|? (opinion.verdict == ▮)", ['"good"', '"bad"']),
        ("|<> loop(Bot, \"opinion.verdict != '▮'\")", ["good", "bad"]),
        ('|<> loop(Bot, "opinion.verdict != ▮")', ["'good'", "'bad'"]),
    ],
)
def test_a_comparison_offers_the_answers_that_were_asked_for(condition: str, labels: list[str]) -> None:
    assert offered(PIPELINE + ASKED + condition)[:2] == labels


# --- what must hold everywhere


def _words(text: str) -> Iterator[re.Match[str]]:
    return re.finditer(r"[^\W\d]\w*", text)


def _is_reference(analysis: Analysis, word: re.Match[str]) -> bool:
    """Whether a word stands for something that is introduced elsewhere in the program."""
    places = {(span.start, span.end) for span in definition(analysis, word.start())}
    return bool(places) and word.span() not in places


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_reference_of_an_example_is_offered_where_it_is_taken_away(text: str) -> None:
    analysis = _analysis(text)
    for word in filter(lambda word: _is_reference(analysis, word), _words(text)):
        without = text[: word.start()] + text[word.end() :]
        labels = [one.label for one in complete(_analysis(without), word.start()).items]
        is_only_use = re.search(rf"\.{word[0]}\(", text) and not re.search(rf"\w\.{word[0]}\(", without)
        assert word[0] in labels or is_only_use, text[: word.end()].splitlines()[-1]


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_item_like_the_one_that_was_taken_away_fits_in_its_place(text: str) -> None:
    analysis = _analysis(text)
    for word in filter(lambda word: _is_reference(analysis, word), _words(text)):
        before, behind = text[: word.start()], text[word.end() :]
        items = complete(_analysis(before + behind), word.start()).items
        kind = next((one.kind for one in items if one.label == word[0]), None)
        for one in (one for one in items if one.kind is kind):
            assert not parse(before + one.insert + behind).diagnostics, f"{before}▮{one.insert}"


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(0, 1000))
def test_a_program_in_any_layout_can_be_completed_anywhere(text: str, part: int) -> None:
    analysis = _analysis(text)
    offset = len(text) * part // 1000
    span = complete(analysis, offset).span
    assert span.start <= offset <= span.end


@pytest.mark.parametrize(
    "text",
    [
        "tool X : ▮",
        "policy P : ▮",
        "@▮",
        f"{PIPELINE}|> System.▮",
        f"{PIPELINE}|> Docs.▮",
        f"{PIPELINE}|> Docs.get() ▮",
        "agent A [x-1, ▮",
    ],
)
def test_whatever_is_built_in_is_explained(text: str) -> None:
    assert [one.label for one in completed(text).items if not (one.detail and one.documentation)] == []


def test_line_ends_and_wide_characters_change_nothing() -> None:
    text = f"// 漢😀 é\n{DECLARED}{PIPELINE}{ASKED}|> Bot.x('😀 {{{{opinion.▮"
    assert offered(text, before="") == ["verdict", "details"]
    assert offered(text.replace("\n", "\r\n"), before="") == ["verdict", "details"]


@st.composite
def _damaged(draw: st.DrawFn) -> tuple[str, int]:
    """A program that somebody is in the middle of changing, and a place near the change."""
    text = draw(st.sampled_from([*EXAMPLES, DECLARED + PIPELINE + ASKED]))
    at = draw(st.integers(0, len(text)))
    gone = draw(st.integers(0, 40) | st.just(len(text)))
    put = draw(st.text("(){}[]|>?*!~<.,:@\"'{/\\ \nabZé😀0", max_size=4))
    return text[:at] + put + text[at + gone :], at + draw(st.integers(-3, 4))


@settings(max_examples=300, deadline=None)
@given(_damaged())
def test_any_text_at_any_place_gives_items_that_fit_the_word_there(damaged: tuple[str, int]) -> None:
    text, offset = damaged
    analysis = _analysis(text)
    found = complete(analysis, offset)
    offset = max(0, min(offset, len(analysis.program.source.text)))
    replaced = analysis.program.source.text[found.span.start : found.span.end]
    assert found.span.start <= offset <= found.span.end
    assert "\n" not in replaced
    typed = replaced[: offset - found.span.start].casefold()
    assert all(_holds(one.label.casefold(), typed) for one in found.items)
    assert [one.sort for one in found.items] == sorted({one.sort for one in found.items})


def _holds(label: str, typed: str) -> bool:
    rest = iter(label)
    return all(letter in rest for letter in typed)

"""What the catalogue knows: methods, arguments, settings, providers, rules, models (HL301 to HL306)."""

from __future__ import annotations

import pytest

from tests.lang.checking import BOT, body, found, marked, only

# --- HL301


def test_an_unknown_method_of_system_lists_what_exists() -> None:
    unknown = only('pipeline Main(x: String) -> Result:\n  x |> System.Prnt("a")')
    assert (unknown.code, unknown.fix and unknown.fix.text) == ("HL301", "Print")
    assert unknown.hint is not None
    assert unknown.hint.startswith("did you mean `Print`? There are Print, Log, Sleep")


def test_an_unknown_method_of_a_provider_lists_what_exists() -> None:
    unknown = only('tool Memory : KV("kv.db")\npipeline Main(x: String) -> Result:\n  x |> Memory.fetch(x)')
    assert unknown.hint == "there are get, set, delete, list, incr, cas"


@pytest.mark.parametrize("provider", ["REST", "GET", "POST", "MCP"])
def test_any_method_of_a_provider_whose_methods_are_paths_is_known(provider: str) -> None:
    text = f'tool T : {provider}("a.example")\npipeline Main(x: String) -> Result: x |> T.whatever(city: x)'
    assert found(text) == []


def test_the_method_of_an_agent_call_with_a_tool_is_the_tools() -> None:
    tools = "tool Repo : GitHub policy Limit : MaxToolCalls(9)\n"
    repo = f"{tools}{BOT}  equips Repo requires Limit\npipeline Main(n: Number) -> Result:\n"
    assert found(f"{repo}  n |> Bot.get_issue(tool: Repo, number: n)") == []
    assert found(f"{repo}  n |> Bot.get_isue(tool: Repo, number: n)") == ["HL301 5:12"]
    assert found(f"{repo}  n |> Bot.anything(tools: [Repo])") == []


def test_system_needs_a_method() -> None:
    assert found('pipeline Main(x: String) -> Result: x |> System("a")') == ["HL301 1:42"]


# --- HL302


@pytest.mark.parametrize(
    ("call", "marks"),
    [
        ("Inner()", ["HL302 )"]),
        ('Inner("a", "b", "c")', ['HL302 "c"']),
        ('Inner("a", b: "b")', []),
        ('Inner("a", bb: "b")', ['HL302 bb: "b"']),
        ('Inner("a", c: "c")', ['HL302 c: "c"']),
        ("System.Value()", ["HL302 )"]),
        ("System.Value(1, 2)", ["HL302 2"]),
        ('System.Print("a", to: "b")', ['HL302 to: "b"']),
        ('Memory.set("a")', ["HL302 )"]),
        ('Memory.get("a", "b")', ['HL302 "b"']),
    ],
)
def test_arguments_are_all_there_and_none_too_many(call: str, marks: list[str]) -> None:
    known = "tool Memory : KV\npipeline Inner(a: String, b: String) -> Result: a\n"
    expected = [*marks, *marks] if call == "Inner()" else marks
    assert marked(f"{known}pipeline Main(x: String) -> Result: x |> {call}") == expected


def test_a_misspelt_argument_is_one_mistake_with_the_right_name_as_its_hint() -> None:
    text = "pipeline Inner(text: String) -> Result: text\npipeline Main(x: String) -> Result: x |> Inner(txet: x)"
    assert only(text).hint == "did you mean `text`?"


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("tool A : REST", ["HL302 REST"]),
        ("tool A : REST()", ["HL302 )"]),
        ('tool A : REST("a.example", "key")', ['HL302 "key"']),
        ("tool A : Bash", []),
        ("policy P : MaxCalls", ["HL302 MaxCalls"]),
        ("policy P : MaxCalls()", ["HL302 )"]),
        ("policy P : MaxCalls(1, 2)", ["HL302 2"]),
        ("policy P : RequireJSON(1)", ["HL302 1"]),
        ("policy P : Redact()", ["HL302 )"]),
        ("policy P : Audit(MaxCalls())", ["HL302 )"]),
        ("@retry\nagent A [openai/gpt-4o-mini]", ["HL302 retry"]),
        ("@timeout()\nagent A [openai/gpt-4o-mini]", ["HL302 )"]),
        ("@checkpoint(1)\npipeline Main(x: String) -> Result: x", ["HL302 1"]),
        ("@retry(1, wait: 2s)\nagent A [openai/gpt-4o-mini]", ["HL302 wait: 2s"]),
        (body("|> Bot.go() |* each(y in x, 3) => Bot.go(y)"), ["HL302 3"]),
        (body('|> Bot.go() |<> loop(Bot, "true", times: 3)'), ["HL302 times: 3"]),
        (body('|! yield("Go?", chanel: "a")'), ['HL302 chanel: "a"']),
    ],
)
def test_declarations_and_stages_take_their_arguments_too(text: str, marks: list[str]) -> None:
    assert marked(text) == marks


def test_an_agent_call_takes_any_arguments() -> None:
    assert found(body('|> Bot.go("a", x, 3, [x], tone: "dry", limit: 3, temp: 0.2)')) == []


def test_a_tool_before_the_prompt_needs_its_arguments() -> None:
    repo = "tool Repo : GitHub\nagent Bot [openai/gpt-4o-mini]\n  equips Repo\npipeline Main(n: Number) -> Result:\n"
    assert marked(f"{repo}  n |> Bot.get_issue(tool: Repo)") == ["HL302 )"]
    assert marked(f'{repo}  n |> Bot.get_issue("Be brief.", tool: Repo, number: n, temp: 0)') == []
    assert marked(f'{repo}  n |> Bot.get_issue(tool: Repo, number: n, tone: "dry")') == ['HL302 tone: "dry"']
    assert marked(f"{repo}  n |> Bot.get_issue(tool: Repo, number: n, number: n)") == ["HL205 number"]


# --- HL303


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ('@timeout("soon")\npipeline Main(x: String) -> Result: x', ['HL303 "soon"']),
        ("@timeout(5)\npipeline Main(x: String) -> Result: x", ["HL303 5"]),
        ("@timeout(0s)\npipeline Main(x: String) -> Result: x", ["HL303 0s"]),
        ("@retry(0)\nagent A [openai/gpt-4o-mini]", ["HL303 0"]),
        ("@retry(21, 1s)\nagent A [openai/gpt-4o-mini]", ["HL303 21"]),
        ("@retry(x)\nagent A [openai/gpt-4o-mini]", ["HL303 x"]),
        ("@correct(1.5)\nagent A [openai/gpt-4o-mini]", ["HL303 1.5"]),
        ("agent A [openai/gpt-4o-mini, temp: 2.5]", ["HL303 2.5"]),
        ('agent A [openai/gpt-4o-mini, temp: "hot"]', ['HL303 "hot"']),
        ("agent A [openai/gpt-4o-mini, top_p: -0.1]", ["HL303 -0.1"]),
        ("agent A [openai/gpt-4o-mini, max_tokens: 0]", ["HL303 0"]),
        ("agent A [openai/gpt-4o-mini, system: 5]", ["HL303 5"]),
        ("tool A : Bash(allow: \"git\")", ['HL303 "git"']),
        ("tool A : Bash(allow: [\"git\", 5])", ["HL303 5"]),
        ('store A : VectorStore(namespace: docs)', ["HL303 docs"]),
        ("policy P : MaxSpend(-1)", ["HL303 -1"]),
        ("policy P : MaxSpend(1, onLimit: \"pay\")", ['HL303 "pay"']),
        ("policy P : Redact(Emial)", ["HL303 Emial"]),
        ("policy P : Block(Tyop)", ["HL303 Tyop"]),
        ("policy P : Block(\"a|b\")", []),
        ("policy P : Match(5)", ["HL303 5"]),
        (body('|> System.Pick(x, fields: "title")'), ['HL303 "title"']),
        (body("|> System.Sleep(2)"), ["HL303 2"]),
        (body("|> System.Sleep(x)"), []),
        (body('|> System.Sleep("{{x}}")'), []),
        (body("|> Bot.go(temp: 3)"), ["HL303 3"]),
        (body("|> Bot.go(max_steps: 0)"), ["HL303 0"]),
        (body("|> Bot.go(tools: Bot)"), ["HL303 Bot"]),
        (body("|> Bot.go() |* each(y in x, concurrency: 1.5) => Bot.go(y)"), ["HL303 1.5"]),
        (body('|* each(y in x, onError: "keap") => Bot.go(y)'), ['HL303 "keap"']),
        (body('|> Bot.go() |<> loop(Bot, "true", max: 0)'), ["HL303 0"]),
        (body('|! yield("Go?", timeout: 5)'), ["HL303 5"]),
    ],
)  # fmt: skip
def test_values_have_the_type_and_lie_in_the_range(text: str, marks: list[str]) -> None:
    assert marked(text) == marks


@pytest.mark.parametrize(
    "text",
    [
        "agent A [openai/gpt-4o-mini, temp: 0, top_p: 0, max_tokens: 1, max_steps: 1]",
        "@retry(20, 1ms)\n@correct(20)\n@timeout(1ms)\nagent A [openai/gpt-4o-mini, temp: 2, top_p: 1]",
        body("|* each(y in x, concurrency: 1) => Bot.go(y)"),
        body("|* each(y in x, concurrency: 2.0) => Bot.go(y)"),
        "policy P : MaxSpend(0)",
        "tool A : Bash(timeout: null)",
    ],
)
def test_the_ends_of_ranges_are_inside(text: str) -> None:
    assert found(text) == []


def test_a_message_says_what_is_expected_and_what_was_found() -> None:
    wrong = only("agent A [openai/gpt-4o-mini, temp: 2.5]")
    assert wrong.message == "agent A: `temp` takes a number from 0 to 2, not 2.5"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (body("|> System.Sleep(2)"), "write `2s` for seconds"),
        (body('|> System.Pick(x, fields: "title")'), 'put it in brackets: ["…"]'),
        (body("|> Bot.go(tools: Bot)"), "write `[Bot]`"),
        ("store A : VectorStore(namespace: docs)", 'write a text as "docs"'),
        ("policy P : Redact(Emial)", "did you mean `Email`?"),
        (body('|* each(y in x, onError: "keap") => Bot.go(y)'), 'did you mean "keep"?'),
    ],
)
def test_a_hint_says_how_a_wrong_value_was_probably_meant(text: str, hint: str) -> None:
    assert only(text).hint == hint


# --- HL304


@pytest.mark.parametrize(
    ("text", "marks", "meant"),
    [
        ("policy P : Blok(PII)", ["HL304 Blok"], "Block"),
        ("policy P : Audit(Blok(PII))", ["HL304 Blok"], "Block"),
        ("policy P : Audit(RequireJSN)", ["HL304 RequireJSN"], "RequireJSON"),
        ("store D : VectorStor", ["HL304 VectorStor"], "VectorStore"),
        ("@retyr(3, 2s)\nagent A [openai/gpt-4o-mini]", ["HL304 retyr"], "retry"),
        ("agent A [openai/gpt-4o-mini, tempp: 0.3]", ["HL304 tempp"], "temp"),
        ('tool A : REST("a.example", api_key: "k")', ["HL304 api_key"], "apiKey"),
    ],
)
def test_an_unknown_name_of_the_catalogue_comes_with_the_nearest(text: str, marks: list[str], meant: str) -> None:
    assert marked(text) == marks
    fix = only(text).fix
    assert fix is not None
    assert fix.text == meant


def test_a_name_near_to_nothing_lists_what_exists() -> None:
    assert only("policy P : Qqq").hint == (
        "there are Redact, Block, Allow, Deny, AllowModels, DenyModels, AllowTools, DenyTools, Approve, MaxSpend, "
        "MaxTokens, MaxCalls, MaxToolCalls, MaxLatency, RateLimit, RequireJSON, RequireSchema, RequireCitation, "
        "MaxLength, MinLength, Language, Match, Audit, Taint"
    )


# --- HL305


def test_a_positional_argument_behind_a_named_one_is_one_mistake() -> None:
    assert marked(body('|> Bot.answer(tone: "dry", "Be brief.")')) == ['HL305 "Be brief."']
    inner = "pipeline Inner(a: String, b: String) -> Result: a\n"
    assert marked(f'{inner}pipeline Main(x: String) -> Result: x |> Inner(a: "1", "2")') == ['HL305 "2"']


# --- HL306


@pytest.mark.parametrize("model", ["gpt4", "acme/gpt-4o-mini", "o3", "opnai/gpt-4o", "openai/"])
def test_a_model_of_no_service_is_reported_at_its_name(model: str) -> None:
    assert marked(f"agent A [{model}]") == [f"HL306 {model}"]


def test_a_shadowed_model_is_a_model_too() -> None:
    assert marked("@shadow(acme/gpt-4o)\nagent A [gpt-4o-mini]") == ["HL306 acme/gpt-4o"]
    assert found("@shadow(openai/gpt-4o)\nagent A [gpt-4o-mini]") == []


def test_hints_for_models_say_how_to_write_them() -> None:
    assert only("agent A [o3]").hint == "write `openai/o3`"
    assert only("agent A [opnai/gpt-4o]").hint == "did you mean `openai/gpt-4o`?"


def test_one_call_with_several_mistakes_tells_each_once() -> None:
    text = f'{BOT}pipeline Main(x: String) -> Result: x |> System.Pick(fields: "a", max: 3)'
    assert sorted(one.partition(" ")[0] for one in found(text)) == ["HL302", "HL303"]

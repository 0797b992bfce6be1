"""Names: declared once, not reserved, known, of the right kind, not hidden (HL201 to HL207)."""

from __future__ import annotations

import pytest

from tests.lang.checking import BOT, analysis, body, findings, found, marked, only

# --- HL201


def test_the_second_of_two_declarations_is_reported_with_the_first() -> None:
    done = analysis(f"{BOT}schema Bot {{ a: String }}")
    (twice,) = findings(done)
    assert (twice.code, done.program.source.position(twice.span.start)) == ("HL201", (2, 8))
    assert [done.program.source.position(one.span.start) for one in twice.related] == [(1, 7)]


def test_three_declarations_of_one_name_are_two_mistakes() -> None:
    assert found("schema A { x: Any }\nschema A { x: Any }\nschema A { x: Any }") == ["HL201 2:8", "HL201 3:8"]


def test_names_differ_by_letter_case() -> None:
    assert found(f"{BOT}schema bot {{ a: String }}") == []


def test_a_broken_declaration_of_the_same_name_is_one_mistake() -> None:
    assert [one.partition(" ")[0] for one in found(f"schema Bot {{ a: }}\n{BOT}")] == ["HL102"]


# --- HL202


@pytest.mark.parametrize("name", ["System", "Env", "loop", "tool", "true"])
def test_reserved_names_cannot_be_declared(name: str) -> None:
    assert found(f"agent {name} [openai/gpt-4o-mini]") == ["HL202 1:7"]


def test_keywords_cannot_be_parameters_items_or_results() -> None:
    assert found(f"{BOT}pipeline One(loop: String) -> Result:\n  |> Bot.answer()") == ["HL202 2:14"]
    assert found(body("|* each(store in x) => Bot.answer()")) == ["HL202 3:13"]
    assert found(body("|> Bot.answer() as yield")) == ["HL202 3:24"]


def test_keywords_may_be_fields_arguments_and_methods() -> None:
    text = f'schema S {{ store: String }}\n{BOT}pipeline Main(x: String) -> S: x |> Bot.loop(in: "a", else: "b")'
    assert found(text) == []


# --- HL203


def test_an_unknown_name_comes_with_the_nearest_one() -> None:
    unknown = only("agent Painter [openai/gpt-4o-mini]\npipeline Main(x: String) -> Result: x |> Paintr.draw()")
    assert (unknown.code, unknown.hint) == ("HL203", "did you mean `Painter`?")
    assert unknown.fix is not None
    assert unknown.fix.text == "Painter"


def test_the_nearest_name_is_one_of_the_right_kind() -> None:
    text = "policy Safe : Block(PII)\nschema Safa { a: Any }\nagent Bot [openai/gpt-4o-mini]\n  requires Saf"
    assert only(text).hint == "did you mean `Safe`?"


def test_without_a_near_name_the_hint_lists_what_can_stand_there() -> None:
    assert only(body("|> Missing.go()")).hint == "here one of these can stand: Bot, Main"
    assert only("agent A [openai/gpt-4o-mini]\n  requires Nothing").hint == "declare a policy of that name"


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("schema A { text: Strng }", ["HL203 Strng"]),
        ("schema A { texts: Array<Strng> }", ["HL203 Strng"]),
        ("@shadow(Nobody)\nagent A [openai/gpt-4o-mini]", ["HL203 Nobody"]),
        ("agent A [openai/gpt-4o-mini]\n  equips Nothing, More", ["HL203 Nothing", "HL203 More"]),
        ("agent A [openai/gpt-4o-mini, tools: [Nothing]]", ["HL203 Nothing"]),
        ("policy P : DenyTools(Shell.run)", ["HL203 Shell"]),
        ("policy P : Audit(Approve(Shell))", ["HL203 Shell"]),
        ("policy P : RequireSchema(Answer)", ["HL203 Answer"]),
        (body('|<> loop(Nobody, "true")'), ["HL203 Nobody"]),
        (body("|> Bot.go(tool: Nothing)"), ["HL203 Nothing"]),
        (body("|* { Bot.a(), Nobody.b() }"), ["HL203 Nobody"]),
        (body("|? { (true) => Nobody.a() }"), ["HL203 Nobody"]),
        (body("|* each(y in x) => Nobody.a()"), ["HL203 Nobody"]),
        (body("|? (true) => Nobody.a()"), ["HL203 Nobody"]),
    ],
)
def test_every_reference_position_is_looked_at(text: str, marks: list[str]) -> None:
    assert marked(text) == marks


def test_types_of_parameters_and_results_are_labels() -> None:
    assert found("pipeline Main(x: Whatever) -> Anything: x") == []


def test_names_of_broken_declarations_bring_no_further_errors() -> None:
    stages = 'x |> Bot.go(tool: T) |<> loop(Bot, "true")'
    broken = f"agent Bot [openai/gpt-4o-mini\npipeline Main(x: String) -> Result:\n  {stages}"
    assert [one.partition(" ")[0] for one in found(broken)] == ["HL105"]


def test_any_name_may_be_a_channel_or_an_argument_of_a_tool() -> None:
    assert found(body('|! yield("Go?", channel: Anywhere)')) == []


# --- HL204


@pytest.mark.parametrize(
    ("use", "marks"),
    [
        ("agent A [openai/gpt-4o-mini]\n  equips Safe", ["HL204 Safe"]),
        ("agent A [openai/gpt-4o-mini]\n  requires Docs", ["HL204 Docs"]),
        ("@shadow(Docs)\nagent A [openai/gpt-4o-mini]", ["HL204 Docs"]),
        ("schema B { a: Docs }", ["HL204 Docs"]),
        ("policy P : DenyTools(Safe)", ["HL204 Safe"]),
        (body('|> Answer("a")'), ["HL204 Answer"]),
        (body("|> Safe.go()"), ["HL204 Safe"]),
        (body('|> Docs.count() |<> loop(Docs, "true")'), ["HL204 Docs"]),
        (body("|> Bot.go(tools: [Answer])"), ["HL204 Answer"]),
        (body("|> Bot(x)"), ["HL204 Bot"]),
        (body("|> Docs()"), ["HL204 Docs"]),
        (body("|> Main.run(x)"), ["HL204 Main"]),
        ("agent A [openai/gpt-4o-mini]\n  equips System", ["HL204 System"]),
    ],
)
def test_a_name_of_the_wrong_kind_is_no_unknown_name(use: str, marks: list[str]) -> None:
    known = 'policy Safe : Block(PII)\nstore Docs : VectorStore(namespace: "d")\nschema Answer { text: String }\n'
    assert marked(known + use) == marks


# --- HL205


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("schema Pair { a: String, a: Number }", ["HL205 1:26"]),
        ("agent Bot [openai/gpt-4o-mini, temp: 0.1, temp: 0.2]", ["HL205 1:43"]),
        ("agent Bot [openai/gpt-4o-mini, temp: 0.1, temperature: 0.2]", ["HL205 1:43"]),
        ("pipeline Main(a: String, a: Number) -> Result: a", ["HL205 1:26"]),
        (body('|> Bot.go(tone: "dry", tone: "warm")'), ["HL205 3:28"]),
        (body('|? (x) |> Main("a", x: "b")'), ["HL205 3:25"]),
        ('tool A : REST("a.example", apiKey: "1", apiKey: "2")', ["HL205 1:41"]),
        ('@retry(count: 1, count: 2)\nagent Bot [openai/gpt-4o-mini]', ["HL205 1:18"]),
    ],
)  # fmt: skip
def test_the_second_of_two_equal_names_is_reported(text: str, places: list[str]) -> None:
    assert found(text) == places


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ('Bot.go("1"), Bot.go("2")', 1),
        ('Bot.go("1"), Bot.go("2"), Bot.go("3")', 2),
        ('Bot.go("1") as a, Bot.go("2") as b', 0),
        ("Bot.go() as a, Bot.stop() as a", 1),
        ("Bot.go(), Other.go()", 0),
        ("Bot.go() as go, Other.go()", 0),
        ("Bot.go() as stop, Bot.stop()", 0),
        ('Main("1"), Main("2")', 1),
        ('Main("1"), Main("2") as two', 0),
    ],
)
def test_items_of_a_fan_out_need_keys_of_their_own(items: str, count: int) -> None:
    text = f"agent Other [openai/gpt-4o-mini]\n{body(f'|? (x) |* {{ {items} }}')}"
    twice = findings(analysis(text))
    assert [one.code for one in twice] == ["HL205"] * count
    assert all("`as`" in (one.hint or "") for one in twice)


def test_two_fan_outs_may_use_one_name() -> None:
    assert found(body("|* { Bot.a() as r } |* { Bot.b() as r }")) == []


# --- HL206


@pytest.mark.parametrize(
    ("stages", "places"),
    [
        ("|> Bot.go() as Bot", ["HL206 3:20"]),
        ("|> Bot.go() as x", ["HL206 3:20"]),
        ("|* { Bot.go() as x } as Main", ["HL206 3:22", "HL206 3:29"]),
        ("|* each(Bot in x) => Bot.go()", ["HL206 3:13"]),
        ("|* each(x in x) => Bot.go()", ["HL206 3:13"]),
        ("|> Bot.go() as bot |> Bot.go() as bot", []),
    ],
)
def test_bound_names_hide_no_declaration_or_parameter(stages: str, places: list[str]) -> None:
    assert found(body(stages)) == places


def test_a_parameter_called_index_is_hidden_by_each_and_told_once() -> None:
    eaches = "|* each(a in index) => Bot.a(a) |* each(b in index) => Bot.b(b)"
    assert found(f"{BOT}pipeline Main(index: Array) -> Result:\n  {eaches}") == ["HL206 3:11"]


# --- HL207


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("schema Node { child: Node }", ["HL207 1:22"]),
        ("schema A { b: B }\nschema B { a: A }", ["HL207 2:15"]),
        ("schema A { b: B }\nschema B { c: C }\nschema C { b: B }", ["HL207 3:15"]),
        ("schema A { left: A, right: A }", ["HL207 1:18", "HL207 1:28"]),
        ("schema Node { children: Array<Node>, more: List<Node> }", []),
        ("schema A { b: B, c: B }\nschema B { d: C }\nschema C { x: Any }", []),
    ],
)
def test_a_schema_cannot_contain_itself_without_an_array_between(text: str, places: list[str]) -> None:
    assert found(text) == places


def test_a_chain_of_schemas_may_be_as_long_as_the_file() -> None:
    chain = "".join(f"schema S{n} {{ next: S{n + 1} }}\n" for n in range(3000))
    assert found(f"{chain}schema S3000 {{ next: S0 }}") == ["HL207 3001:22"]

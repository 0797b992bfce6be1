"""What is said about the name under the pointer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import assist, catalog, check, parse
from tests.lang.assisting import damaged, placed
from tests.lang.programs import programs

PROGRAM = """// Keeps notes.
// For good.
store Notes : KV("notes.db")
schema Card { title: String, tags: Array<Tag> }
schema Tag { word: String, inside: Array<Tag> }
policy Strict : RequireJSON()
agent Bot [openai/gpt-4o-mini, temp: 0.3] equips Notes
agent Judge [anthropic/claude-sonnet-4-5] requires Strict
pipeline Make(card: Card, rows: Array) -> Card:
  card
"""


def _hover(text: str) -> str | None:
    analysis, offset = placed(text)
    found = assist.hover(analysis, offset)
    return found.markdown if found is not None else None


def _stages(stages: str) -> str:
    """What is said at the cursor of these stages."""
    said = _hover(PROGRAM + stages)
    assert said is not None
    return said


def _says(old: str, new: str) -> str:
    """What is said where the cursor is put into the program."""
    said = _hover(PROGRAM.replace(old, new, 1) + "|> Bot.a()")
    assert said is not None
    return said


def test_a_tool_shows_its_declaration_comment_and_methods() -> None:
    title, comment, doc, methods = _says("store Notes", "store No¦tes").split("\n\n")
    assert title == '```halo\nstore Notes : KV("notes.db")\n```'
    assert comment == "Keeps notes.\nFor good."
    assert doc == catalog.providers().get("KV").doc  # pyright: ignore[reportOptionalMemberAccess]
    assert methods.startswith("Methods: `get(key)`, `set(key, value, ttl?)`")


def test_a_pipeline_shows_its_signature_and_what_it_gives() -> None:
    assert _says("pipeline Make", "pipeline Ma¦ke") == (
        "```halo\npipeline Make(card: Card, rows: Array) -> Card\n```\n\n"
        "Gives `{title: String, tags: [{word: String, inside: Array<Tag>}, …]}`."
    )


def test_a_reference_says_what_the_declaration_says() -> None:
    assert _stages("|> B¦ot.answer()") == "```halo\nagent Bot [openai/gpt-4o-mini, temp: 0.3] equips Notes\n```"


def test_parameters_fields_and_items_show_their_types() -> None:
    assert _stages("|> Bot.a(ca¦rd)").startswith(
        "```halo\ncard: Card\n```\n\nParameter of `Make`.\n\nIt looks like `{title"
    )
    assert _says("tags: Array", "ta¦gs: Array").startswith(
        "```halo\ntags: Array<Tag>\n```\n\nField of the schema `Card`."
    )
    said = _stages("|* each(tag in card.tags) => Bot.a(ta¦g)")
    assert said.startswith(
        "```halo\neach(tag in card.tags)\n```\n\nOne item of the list.\n\nIt looks like `{word: String"
    )
    assert "from 0" in _stages("|* each(tag in rows) => Bot.a(ind¦ex)")


@pytest.mark.parametrize(
    ("stages", "result"),
    [
        ("|> Bot.a() as on¦e |> Bot.b()", "Result of `Bot.a`: a text, or JSON if the model answers so."),
        ('|> Bot.a("Reply with JSON.") as on¦e |> Bot.b()', "Result of `Bot.a`: JSON, as asked for."),
        ("|> Judge.a() as on¦e |> Bot.b()", "Result of `Judge.a`: JSON, as asked for."),
        ('|> Bot.a("""Reply as {"kind": "…"}""") as on¦e |> Bot.b()', "Result of `Bot.a`: `{kind: …}`."),
        ("|> Notes.get(card) as on¦e", "Result of `Notes.get`: the value, null when there is none."),
        ("|> System.Print(card) as on¦e", "Result of `System.Print`: the flowing value."),
        ("|? { (card == 1) => Bot.a() } as on¦e", "What the chosen arm gave; the value as it was where none was true."),
        ('|! yield("ok?") as on¦e', "What a person answered."),
        ("~> listen(Desk.Rang) as on¦e", "The payload of the event."),
        ('|> Bot.a() |<> loop(Bot, "true") as on¦e', "How often the loop went back, a whole number."),
        (
            "|* each(row in rows) => Bot.a(row) as on¦e",
            "Result of `Bot.a` for each item: a list, each a text, or JSON if the model answers so.",
        ),
        (
            "|* { Bot.a() as first, Notes.get(card), Judge.get() } as on¦e |> Bot.b()",
            "What the fan-out gives, an object:\n\n- `first`: a text, or JSON if the model answers so\n"
            "- `Notes.get`: the value, null when there is none\n- `Judge.get`: JSON, as asked for",
        ),
    ],
)
def test_a_result_says_what_it_can_look_like(stages: str, result: str) -> None:
    read = stages.replace("¦", "") + ' |> Bot.z("{{o¦ne}}")'
    said = _stages(stages)
    assert said == f"```halo\ncontext.data.one\n```\n\n{result}"
    assert "Result of `Bot.a`:" in said or _stages(read) == said


def test_the_result_of_a_pipeline_has_the_fields_of_its_schema() -> None:
    said = _hover(f"{PROGRAM}|> Bot.a()\npipeline P(x: Any) -> R: x |> Make(x, x) as ma¦de")
    assert said is not None
    assert said.endswith("Result of `Make`: `{title: String, tags: [{word: String, inside: Array<Tag>}, …]}`.")


def test_the_output_of_a_pipeline_that_gives_a_schema_has_its_fields() -> None:
    assert "Result of `Bot.a`: `{title: String" in _stages("|> Bot.a() as on¦e")


def test_a_path_through_several_arms_says_what_each_may_give() -> None:
    said = _stages("|? { (card == 1) => Bot.note(), else => Judge.note() } |> Bot.b(no¦te)")
    assert said.split("\n\n---\n\n")[0].endswith("Result of `Judge.note`: JSON, as asked for.")
    assert said.split("\n\n---\n\n")[1].endswith("Result of `Bot.note`: a text, or JSON if the model answers so.")


def test_methods_show_their_signature_and_what_they_do() -> None:
    assert _stages("|> Notes.se¦t(card, 1)") == (
        "```halo\nNotes.set(key, value, ttl?)\n```\n\nStore a value.\n\nGives the value.\n\n"
        "*changes something, may be repeated*\n\n- `key`: a text. The entry's key.\n"
        "- `value`: any value. Any JSON value.\n"
        "- `ttl`: a duration over 0 such as 500ms, 30s or 5m. When it goes.\n\n"
        'For example `Memory.set("color", "red", ttl: 1h)`'
    )
    assert "its task: *extract key facts*" in _stages("|> Bot.extractKey¦_facts() |> Bot.b()")
    assert _stages("|> System.Pri¦nt()").startswith("```halo\nSystem.Print(value?)\n```\n\nShow a value")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@ret¦ry(3) agent A [m-1]", "```halo\n@retry(count, backoff?)\n```"),
        ("@retry(3, back¦off: 1s) agent A [m-1]", "```halo\nbackoff: a duration over 0"),
        ("policy P : Max¦Length(4)", "```halo\npolicy … : MaxLength(n)\n```"),
        ("tool T : Git¦Hub()", "```halo\ntool … : GitHub("),
        ('tool T : KV("x", name¦space: "a")', "```halo\nnamespace: a text\n```"),
        (
            "agent A [openai/gpt¦-4o-mini]",
            "```halo\nopenai/gpt-4o-mini\n```\n\nThe model `gpt-4o-mini` of",
        ),
        ("schema S { a: Integ¦er }", "```halo\nInteger\n```\n\nA whole number."),
        ("agent A [m-1]\npipeline P(x: Any) -> R: con¦text |> A.a()", "```halo\ncontext\n```\n\nAll that a run holds"),
        ("agent A [m-1]\npipeline P(x: Any) -> R: context.da¦ta |> A.a()", "```halo\ndata\n```\n\nThe results so far"),
        ("pipeline P(x: Any) -> R: x |> Sys¦tem.Print()", "```halo\nSystem\n```\n\nBuilt in"),
    ],
)
def test_what_is_built_in_shows_its_documentation(text: str, said: str) -> None:
    assert (_hover(text) or "").startswith(said)


def test_nothing_is_said_where_nothing_is_known() -> None:
    for text in ("¦", "// a¦", "agent A [m-1¦]", "pipeline P(x: Any) -> R: x |> Nobo¦dy.a()", '"te¦xt'):
        assert _hover(text) is None


def test_the_place_of_a_hover_is_the_name() -> None:
    analysis, offset = placed('agent Bot [m-1]\npipeline P(tïtle: Any) -> R: tïtle |> Bot.a("😀 {{tï¦tle}}")')
    found = assist.hover(analysis, offset)
    assert found is not None
    assert analysis.program.source.text[slice(*found.span)] == "tïtle"


def test_code_with_backticks_stays_one_block() -> None:
    said = _hover('agent A¦ [m-1] system """\n```\n# Title\n```\n"""')
    assert said is not None
    assert said.startswith("````halo\n")
    assert said.endswith("\n````")


def test_a_long_declaration_is_cut() -> None:
    fields = ",\n".join(f"f{number}: Any" for number in range(100))
    said = _hover(f"schema S¦ {{\n{fields} }}")
    assert said is not None
    assert len(said.splitlines()) == 14
    assert said.endswith("\n…\n```")


def test_of_a_long_line_the_beginning_is_shown() -> None:
    said = _hover(f'agent A¦ [m-1] system "{"x" * 100_000}"')
    assert said is not None
    assert max(map(len, said.splitlines())) == 200


def test_schemas_in_each_other_are_shown_to_some_depth() -> None:
    fields = ", ".join(f"f{number}: S" for number in range(100))
    said = _hover(f"schema S {{ {fields} }}\nagent A [m-1]\npipeline P¦(x: S) -> S: x |> A.a()")
    assert said is not None
    assert len(said) < 20_000


def test_what_a_broken_declaration_declares_says_so() -> None:
    said = _hover("schema Bad { a: }\nschema S { b: B¦ad }")
    assert said == "`Bad` is declared, but its declaration does not parse."


@settings(max_examples=60)
@given(damaged() | programs(), st.data())
def test_hovering_over_any_text_raises_nothing(text: str, data: st.DataObject) -> None:
    analysis = check(parse(text))
    for offset in data.draw(st.lists(st.integers(-2, len(text) + 2), max_size=8)):
        found = assist.hover(analysis, offset)
        if found is not None:
            assert found.markdown
            assert found.span.start <= offset <= found.span.end

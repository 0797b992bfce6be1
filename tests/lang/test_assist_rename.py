"""Renaming: every place that means the thing, and never another meaning."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import Analysis, assist, check, parse
from halo_lang.assist import RenameRefused
from halo_lang.assist.occurrences import in_unit
from halo_lang.assist.renaming import apply
from tests.lang.assisting import EXAMPLES, PROGRAMS, PROMPTED, damaged, expected, placed
from tests.lang.programs import programs

NAMES = ("fresh", "Bot", "topic", "facts", "title", "x", "data1", "prüfer", "get_issue", "sort", "Repo", "index")

MAIN = "agent Bot [openai/gpt-4o-mini]\npipeline Main(text: String, rows: Array) -> Result:\n  text "


ITS_NAME = "its provider gives it its name"
AND_CALLERS = "and callers read, also in texts; change it by hand"


def _renamed(text: str, new_name: str) -> str:
    analysis, offset = placed(text)
    return apply(analysis.program.source.text, assist.rename(analysis, offset, new_name))


def _renames_the_marked(text: str) -> None:
    """The name at the cursor is renamed at the marked places, and nowhere else."""
    plain, spans = expected(text)
    analysis, offset = placed(plain)
    edits = assist.rename(analysis, offset, "fresh")
    assert [(edit.span, edit.text) for edit in edits] == [(span, "fresh") for span in spans]


def _reason(text: str, new_name: str = "fresh") -> str:
    analysis, offset = placed(text)
    with pytest.raises(RenameRefused) as refused:
        assist.rename(analysis, offset, new_name)
    return str(refused.value)


def _codes(analysis: Analysis) -> Counter[str]:
    return Counter(found.code for found in analysis.diagnostics)


def test_a_result_is_renamed_in_values_placeholders_paths_and_loop_conditions() -> None:
    _renames_the_marked(
        MAIN + '|> Bot.a() as ⟦k¦ind⟧ |> Bot.b("{{⟦kind⟧}} {{ context.data.⟦kind⟧.0 }} kind", ⟦kind⟧.kind)'
        ' |? (⟦kind⟧ == "kind") |> Bot.c() as ⟦kind⟧ |<> loop(Bot, "context.data.⟦kind⟧ != \\"kind\\"") as n'
    )


def test_a_parameter_is_renamed_in_named_arguments_and_system_prompts_too() -> None:
    _renames_the_marked(
        'agent Bot [m-1] system "About {{⟦topic⟧}}" agent Other [m-1] system "{{topic}}"\n'
        "pipeline Main(⟦topic⟧: String) -> R: ⟦to¦pic⟧ |> Bot.a(context.input.⟦topic⟧)\n"
        "  |> Main(⟦topic⟧: null, b: topics)"
    )


def test_a_declaration_is_renamed_with_the_paths_through_it() -> None:
    _renames_the_marked(
        "tool Api : GET() agent ⟦Bot⟧ [m-1] equips Api @shadow(⟦Bot⟧) agent Twin [m-1]\n"
        'pipeline Main(x: String) -> R: x |> ⟦B¦ot⟧.a() |> ⟦Bot⟧.b("{{⟦Bot⟧.a}}", context.data.⟦Bot⟧.a) as Bots\n'
        '|<> loop(⟦Bot⟧, "context.data.⟦Bot⟧.b != 1")'
    )


def test_a_method_of_an_agent_is_renamed_in_every_call_and_read() -> None:
    _renames_the_marked(
        MAIN + '|> Bot.⟦so¦rt⟧() |> Bot.b("{{⟦sort⟧}} {{Bot.⟦sort⟧}}")\n'
        "pipeline Other(sort: Any) -> R: sort |> Bot.⟦sort⟧() |> Bot.b(sort, context.data.Bot.⟦sort⟧)"
    )


def test_of_two_methods_of_one_name_one_is_renamed() -> None:
    _renames_the_marked(
        "agent A [m-1] agent B [m-1]\npipeline P(x: Any) -> R: x |> A.⟦sort⟧() |> A.c(⟦s¦ort⟧) |> B.sort() |> A.d(sort)"
    )


def test_an_each_name_is_renamed_in_its_call_only() -> None:
    _renames_the_marked(
        MAIN + '|* each(⟦r¦ow⟧ in rows) => Bot.a("{{⟦row⟧.x}}", ⟦row⟧) |* each(row in rows) => Bot.b(row)'
    )


def test_a_key_of_a_fan_out_is_renamed_where_it_is_read() -> None:
    _renames_the_marked(MAIN + "|* { Bot.a() as ⟦fi¦rst⟧ } as all |> Bot.b(all.⟦first⟧, all.second, ⟦first⟧) as x")


def test_the_same_name_changes_nothing() -> None:
    analysis, offset = placed("agent B¦ot [m-1]")
    assert assist.rename(analysis, offset, "Bot") == ()


@pytest.mark.parametrize(
    ("new_name", "reason"),
    [
        ("", "`` is no name: write letters, digits and `_`, no digit first"),
        ("a b", "`a b` is no name: write letters, digits and `_`, no digit first"),
        ("1a", "`1a` is no name: write letters, digits and `_`, no digit first"),
        ("a.b", "`a.b` is no name: write letters, digits and `_`, no digit first"),
        ("a\n", "`a\\x0a` is no name: write letters, digits and `_`, no digit first"),
        ("loop", "`loop` is a keyword"),
        ("System", "`System` is built in"),
        ("Env", "`Env` is built in"),
        ("current", "`current` stands for the flowing value"),
        ("index", "`index` stands for the counter of every each"),
        ("Bot", "`Bot` is declared already, on line 1"),
        ("text", "`text` is the parameter `text` of Main already"),
        ("row", "`row` is the each name `row` of Main already"),
        ("kind", "`kind` is the result `kind` of Main already"),
    ],
)
def test_a_name_that_would_clash_is_refused(new_name: str, reason: str) -> None:
    stages = "|* each(row in rows) => Bot.a(row) as kind |> Bot.b() as ot¦her"
    assert _reason(MAIN + stages, new_name) == reason


def test_a_declaration_cannot_take_the_name_of_anything_in_a_pipeline() -> None:
    for name, what in (("text", "parameter"), ("row", "each name"), ("kind", "result")):
        stages = "|* each(row in rows) => Bot.a(row) as kind"
        assert (
            _reason(MAIN.replace("Bot", "B¦ot", 1) + stages, name) == f"`{name}` is the {what} `{name}` of Main already"
        )
    assert _reason("schema S¦ { a: Any }", "String") == "`String` is a type"


def test_names_of_another_pipeline_are_free() -> None:
    other = "\npipeline Other(kind: Any) -> R: kind |> Bot.a(kind)"
    assert _renamed(f"{MAIN}|> Bot.b() as ot¦her{other}", "kind") == f"{MAIN}|> Bot.b() as kind{other}"


def test_a_method_cannot_take_the_name_of_another_of_its_agent() -> None:
    assert _reason(f"{MAIN}|> Bot.so¦rt() |> Bot.b()", "b") == "`b` is the method `Bot.b` already"


def test_what_would_mean_something_else_is_refused() -> None:
    taken = "\nagent Old [m-1]\npipeline P(x: Any) -> Fresh: x |> Old.a()"
    assert _reason(f"schema Sh¦ape {{ a: Any }}{taken}", "Fresh") == "named `Fresh`, line 3 would mean something else"
    stages = "|> Bot.sort() |> Bot.b(sort) as ot¦her |> Bot.c(sort)"
    assert _reason(MAIN + stages, "sort") == "named `sort`, line 3 would mean something else"


def test_what_would_be_reported_differently_is_refused() -> None:
    misspelt = "agent B¦ot [m-1]\npipeline P(x: Any) -> R: x |> Bto.a()"
    assert _reason(misspelt) == "named `fresh`, line 1 would report HL505"


def test_a_method_takes_the_name_of_its_result_where_that_changes_nothing() -> None:
    assert _renamed(f"{MAIN}|> Bot.ra¦te() as score |> Bot.b(score)", "score").endswith(
        "Bot.score() as score |> Bot.b(score)"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{MAIN}|> System.Pri¦nt()", "`System.Print` is built in"),
        ("tool A : KV()\npipeline P(x: Any) -> R: x |> A.ge¦t(x)", f"`get` is a method of the tool `A`: {ITS_NAME}"),
        ("agent A [m-1, te¦mp: 1]", "`temp` is built in"),
        ("@ret¦ry(1) agent A [m-1]", "`retry` is built in"),
        ("schema S { fi¦eld: Any }", f"`field` is a field of what models answer {AND_CALLERS}"),
        (f"{MAIN}~> listen(Desk.Ra¦ng)", "`Rang` is named by whoever sends the event"),
        (f"{MAIN}|* each(row in rows) => Bot.a(ind¦ex)", "every each calls its counter `index`"),
        ("agent A [m-1] ¦  ", "there is no name here that can be renamed"),
        ("agent A¦ [m-1] agent A [m-1]", "`A` is declared twice; give one of the two another name by hand"),
        ("agent A¦ [m-1]\nschema { A }", "line 2 does not parse, and may use the name; mend it first"),
        (f'{MAIN}|> B¦ot.a() |<> loop(Bot, "text =")', "line 3 does not parse, and may use the name; mend it first"),
    ],
)  # fmt: skip
def test_what_has_its_name_from_elsewhere_keeps_it(text: str, reason: str) -> None:
    assert _reason(text) == reason


def test_a_place_that_may_mean_two_things_is_left_to_people() -> None:
    stages = "|? { (text == 1) => Bot.no¦te(), else => Twin.note() } |> Bot.c(note)"
    assert _reason(f"agent Twin [m-1]\n{MAIN}{stages}") == (
        "`note` on line 4 may mean the method `Twin.note` too; change both by hand"
    )
    assert "the parameter `topic` of Inner too" in _reason(PROMPTED.replace("topic: String", "to¦pic: String", 1))


def test_a_key_of_the_output_that_others_read_is_kept() -> None:
    stages = "|* { Bot.a() as t¦ext2 }"
    schema = f"schema S {{ text2: String }}\n{MAIN.replace('Result', 'S')}"
    assert "also a key of what `Main` gives, and a field of the schema `S`" in _reason(schema + stages)
    caller = "\npipeline P(x: Any) -> R: x |> Main(x, x)"
    assert "also a key of what `Main` gives, which `P` calls" in _reason(MAIN + stages + caller)


def test_only_what_can_be_renamed_has_a_place_to_rename() -> None:
    analysis = check(parse(MAIN + "|> Bot.sort() |> System.Print()"))
    text = analysis.program.source.text
    found = {
        name: assist.rename_span(analysis, text.index(name)) for name in ("Main", "sort", "System", "Print", "-> ")
    }
    assert {name: span and text[span.start : span.end] for name, span in found.items()} == {
        "Main": "Main", "sort": "sort", "System": None, "Print": None, "-> ": None,
    }  # fmt: skip


def test_the_cursor_may_stand_behind_the_name() -> None:
    assert _renamed("agent Bot¦ [m-1]", "Cat") == "agent Cat [m-1]"


def _offsets(analysis: Analysis) -> list[int]:
    """The places of all names that can be renamed."""
    places = (found.span.start for number in range(len(analysis.program.units)) for found in in_unit(analysis, number))
    return [place for place in places if assist.rename_span(analysis, place) is not None]


@pytest.mark.parametrize("text", PROGRAMS, ids=[*EXAMPLES, "prompted"])
def test_every_rename_of_an_example_keeps_what_is_reported_and_can_be_undone(text: str) -> None:
    analysis = check(parse(text))
    renamed = 0
    for offset in _offsets(analysis):
        try:
            edits = assist.rename(analysis, offset, "quite_new")
        except RenameRefused:
            continue
        renamed += 1
        changed = apply(text, edits)
        after = check(parse(changed))
        assert _codes(after) == _codes(analysis)
        assert len(re.findall(r"\bquite_new\b", changed)) == len(edits)
        old_name = text[slice(*edits[0].span)]
        assert apply(changed, assist.rename(after, edits[0].span.start, old_name)) == text
    assert renamed > 10


@settings(max_examples=60)
@given(damaged() | programs(), st.sampled_from(NAMES), st.data())
def test_an_accepted_rename_of_any_program_keeps_what_is_reported(text: str, name: str, data: st.DataObject) -> None:
    analysis = check(parse(text))
    for offset in data.draw(st.lists(st.sampled_from([0, len(text), *_offsets(analysis)]), max_size=5)):
        try:
            edits = assist.rename(analysis, offset, name)
        except RenameRefused:
            continue
        assert _codes(check(parse(apply(text, edits)))) == _codes(analysis)

"""Definitions and references, in code and inside strings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import Span, assist, check, parse
from halo_lang.assist.meanings import MOST_MEANINGS
from halo_lang.assist.occurrences import in_unit, pipeline_names
from tests.lang.assisting import EXAMPLES, PROGRAMS, PROMPTED, damaged, expected, placed
from tests.lang.programs import programs

DECLARED = """policy Safe : Approve(Repo.merge_pull, Docs) & RequireSchema(Answer)
tool Repo : GitHub(Env.TOKEN, repo: "a/b")
store Docs : VectorStore(namespace: "docs")
schema Answer { text: String, parts: Array<Array<Part>> }
schema Part { text: String }
@shadow(Twin)
agent Bot [openai/gpt-4o-mini, tools: [Repo]] equips Repo, Docs requires Safe
agent Twin [openai/gpt-4o-mini]
pipeline Main(x: String) -> Answer:
  x |> Bot.get_issue(tool: Repo, number: 1) |> Twin.answer(tools: [Docs]) |<> loop(Bot, "x != null")
    |! yield("ok?", channel: Repo) |! yield("ok?", channel: "Docs") |> Inner(Docs) |> System.Print("{{Twin.answer}}")
pipeline Inner(part: Part) -> Result: part |> Repo.get_issue(number: 2)
"""


MAIN = "agent Bot [openai/gpt-4o-mini]\npipeline Main(text: String, rows: Array) -> Result:\n  text "


def _is_defined(text: str) -> None:
    """The name at the cursor leads to the marked places, and to no others."""
    plain, spans = expected(text)
    analysis, offset = placed(plain)
    assert sorted(assist.definition(analysis, offset)) == spans


def _is_referred_to(text: str, *, declaration: bool = True) -> None:
    """The name at the cursor is meant at the marked places, and at no others."""
    plain, spans = expected(text)
    analysis, offset = placed(plain)
    assert list(assist.references(analysis, offset, declaration=declaration)) == spans


@pytest.mark.parametrize("name", ["Repo", "Docs", "Safe", "Answer", "Part", "Twin", "Bot", "Inner"])
def test_a_declaration_is_found_wherever_it_is_named(name: str) -> None:
    marked = re.sub(rf"\b{name}\b", f"⟦{name}⟧", DECLARED)
    for number in range(marked.count("⟦")):
        parts = marked.split("⟦")
        _is_referred_to("⟦".join(parts[: number + 1]) + "⟦¦" + "⟦".join(parts[number + 1 :]))


@pytest.mark.parametrize("number", range(7))
def test_every_reference_leads_to_the_declaration(number: int) -> None:
    parts = DECLARED.replace("tool Repo", "tool ⟦Repo⟧").split("Repo")
    _is_defined("Repo".join(parts[: number + 1]) + "R¦epo" + "Repo".join(parts[number + 1 :]))


def test_references_can_leave_the_declaration_out() -> None:
    _is_referred_to("policy Sa¦fe : MinLength(1)\nagent A [m-1] requires ⟦Safe⟧", declaration=False)


@pytest.mark.parametrize(
    "stages",
    [
        "|> Bot.answer(te¦xt)",
        "|> Bot.answer(context.input.te¦xt)",
        '|> Bot.answer("a {{te¦xt.0}}")',
        "|? (te¦xt == 1)",
        """|> Bot.answer() |<> loop(Bot, '"x" != "\\\\" && te¦xt > 1')""",
        '|> Bot.answer() |<> loop(Bot, "\\"x\\" != te¦xt.a")',
        "|* each(row in [te¦xt]) => Bot.answer()",
        "|* each(row in rows) => Bot.answer(te¦xt)",
        '|! yield("ok?", channel: te¦xt)',
    ],
)
def test_a_parameter_is_found_in_every_kind_of_place(stages: str) -> None:
    _is_defined(MAIN.replace("text:", "⟦text⟧:") + stages)


@pytest.mark.parametrize(
    "stages",
    [
        "|> Bot.a() as ⟦kind⟧ |> Bot.b(ki¦nd)",
        "|> Bot.⟦sort⟧() |> Bot.b(context.data.so¦rt)",
        "|> Bot.⟦sort⟧() |> Bot.b(context.data.Bot.so¦rt)",
        "~> listen(Desk.⟦Rang⟧) |> Bot.b(context.data.Desk.Ra¦ng)",
        "~> listen(⟦Desk⟧.Rang) |> Bot.b(context.data.De¦sk.Rang)",
    ],
)
def test_a_result_leads_to_the_stage_that_made_it(stages: str) -> None:
    _is_defined(MAIN + stages)


def test_the_later_of_two_results_of_one_name_counts() -> None:
    _is_defined(f"{MAIN}|> Bot.a() as kind |> Bot.b(kind) as ⟦kind⟧ |> Bot.c(ki¦nd)")
    _is_defined(f"{MAIN}|> Bot.sort() |> Bot.sort() as ⟦sort⟧ |> Bot.c(so¦rt)")
    _is_defined(f"{MAIN}|> Bot.a() as ⟦kind⟧ |> Bot.b(ki¦nd) as kind")


def test_every_arm_of_a_branch_may_have_made_a_result() -> None:
    stages = "|> Bot.⟦note⟧() |? { (text == 1) => Bot.⟦note⟧(), else => Bot.other() } |> Bot.c(no¦te)"
    _is_defined(MAIN + stages)
    _is_defined(f"{MAIN}|> Bot.a() as x |? {{ (text == 1) => Bot.note() }} as ⟦x⟧ |> Bot.c(¦x)")


def test_a_loop_brings_later_results_to_earlier_stages() -> None:
    loop = '|<> loop(Bot, "later == 1")'
    _is_defined(f'{MAIN}|> Inner("{{{{la¦ter}}}}") |> Bot.a() |> Bot.b() as later {loop}')
    _is_defined(f'{MAIN}|> Bot.a("{{{{la¦ter}}}}") |> Inner() as ⟦later⟧ {loop}')


def test_a_method_that_a_parameter_or_declaration_hides_is_read_in_its_namespace_only() -> None:
    _is_defined(f"{MAIN.replace('text:', '⟦text⟧:')}|> Bot.text() |> Bot.b(te¦xt)")
    _is_defined(f"{MAIN.replace('Bot', '⟦Bot⟧', 1)}|> Bot.Bot() |> Bot.b(Bo¦t)")


def test_a_method_leads_to_what_it_is_called_on() -> None:
    _is_defined(f"{MAIN.replace('Bot', '⟦Bot⟧', 1)}|> Bot.so¦rt()")
    both = DECLARED.replace("agent Bot", "agent ⟦Bot⟧").replace("tool Repo", "tool ⟦Repo⟧")
    _is_defined(both.replace("Bot.get_issue", "Bot.get¦_issue"))


def test_the_calls_of_a_method_and_the_reads_of_its_results_belong_together() -> None:
    _is_referred_to(
        MAIN + '|> Bot.⟦so¦rt⟧() |> Bot.b("{{⟦sort⟧}} {{Bot.⟦sort⟧.x}}", context.data.⟦sort⟧) |> Bot.⟦sort⟧() as s'
    )


def test_an_each_name_and_its_index_end_with_the_call() -> None:
    _is_referred_to(MAIN + '|* each(⟦row⟧ in rows) => Bot.a("{{⟦ro¦w⟧}} {{index}}", ⟦row⟧) |> Bot.b(row)')
    _is_defined(MAIN + '|* each(⟦row⟧ in rows) => Bot.a("{{ind¦ex}}")')
    _is_referred_to(MAIN + "|* each(row in rows) => Bot.a(row) |* each(⟦row⟧ in rows) => Bot.a(⟦ro¦w⟧)")


def test_the_keys_of_a_fan_out_are_its_items() -> None:
    _is_defined(MAIN + "|* { Bot.a() as first, Bot.⟦other⟧() } as both |> Bot.b(both.first, both.oth¦er)")
    _is_defined(MAIN + '|* { Bot.a() as ⟦first⟧, Bot.b() } |> System.Print() |> Bot.c("{{current.fi¦rst}}")')


def test_a_system_prompt_reads_the_names_of_those_who_call_the_agent() -> None:
    _is_defined(PROMPTED.replace("{{topic}}", "{{top¦ic}}", 1).replace("(topic: String", "(⟦topic⟧: String"))
    _is_defined(PROMPTED.replace("data.facts", "data.fa¦cts", 1).replace("as facts", "as ⟦facts⟧"))


def test_a_named_argument_is_the_parameter_it_is_for() -> None:
    _is_referred_to(PROMPTED.replace("size: 2", "⟦si¦ze⟧: 2").replace("size: Number", "⟦size⟧: Number"))


@pytest.mark.parametrize(
    "text",
    [
        '"""\r\n    é😀 {{ ⟦x⟧ }}\r\n\t    {{⟦x¦⟧}}\r\n    """',
        '"""{{⟦x⟧}}{{⟦¦x⟧}}"""',
        "'\\n {{⟦x¦⟧}}'",
        '"\\n\\t{{⟦¦x⟧}}\\" {{\\t⟦x⟧.a}} \\q {{⟦x⟧}}"',
    ],
)
def test_places_in_strings_are_exact_whatever_the_escapes(text: str) -> None:
    _is_referred_to(f"agent A [m-1]\npipeline P(⟦x⟧: String) -> R: ⟦x⟧ |> A.a({text})")


@pytest.mark.parametrize(
    "text",
    [
        "¦",
        "agent Bot [opena¦i/gpt-4o-mini]",
        "// Bo¦t\nagent Bot [m-1]",
        f"{MAIN}|> System.Pri¦nt()",
        f"{MAIN}|> Bot.a(nobo¦dy, context.data.nobody)",
    ],
)
def test_what_is_built_in_or_no_name_leads_nowhere(text: str) -> None:
    _is_defined(text)


def test_text_that_does_not_parse_leaves_the_rest_in_reach() -> None:
    _is_referred_to("agent ⟦B¦ot⟧ [m-1]\nschema { Bot }\npipeline P(x: Any) -> R: x |> ⟦Bot⟧.a() |> ) |> ⟦Bot⟧.b()")


def test_after_an_edit_elsewhere_names_mean_what_they_mean_now() -> None:
    text = "agent A [m-1]\npipeline P(x: String) -> R: x |> A.note() |> A.b(note)"
    before = check(parse(text))
    made, read = (Span(at, at + 4) for at in (text.index("note"), text.rindex("note")))
    assert assist.definition(before, read.start) == (made,)
    changed = f"{text}\nagent note [m-1]"
    after = check(parse(changed, before.program), before)
    assert assist.definition(after, read.start) == (Span(changed.rindex("note"), changed.rindex("note") + 4),)
    assert assist.definition(before, read.start) == (made,)


@settings(max_examples=60)
@given(damaged() | programs(), st.data())
def test_nothing_raises_on_any_text_at_any_offset(text: str, data: st.DataObject) -> None:
    analysis = check(parse(text))
    for offset in data.draw(st.lists(st.integers(-2, len(text) + 2), min_size=5, max_size=5)):
        for span in (*assist.definition(analysis, offset), *assist.references(analysis, offset)):
            assert 0 <= span.start < span.end <= len(text)


@settings(max_examples=60)
@given(damaged() | programs())
def test_the_place_of_every_name_holds_exactly_that_name(text: str) -> None:
    analysis = check(parse(text))
    for number in range(len(analysis.program.units)):
        for span, occurrence in in_unit(analysis, number):
            names = {entity.name for entity in occurrence.entities}
            assert names == {analysis.program.source.text[span.start : span.end]}


@pytest.mark.parametrize("text", PROGRAMS, ids=[*EXAMPLES, "prompted"])
def test_a_definition_is_among_the_references_of_what_it_defines(text: str) -> None:
    analysis = check(parse(text))
    for number in range(len(analysis.program.units)):
        for span, _ in in_unit(analysis, number):
            for place in assist.definition(analysis, span.start):
                assert place in assist.references(analysis, place.start)
                assert span in assist.references(analysis, span.start)


def test_a_name_that_may_mean_very_much_is_still_found() -> None:
    arms = "".join(f"|? {{ (text == {number}) => Bot.note() }} " for number in range(2000))
    analysis, offset = placed(f"{MAIN}|> Bot.a() {arms}|> Bot.b(no¦te)")
    assert len(assist.definition(analysis, offset)) == MOST_MEANINGS
    assert len(assist.references(analysis, offset)) == 2001
    with pytest.raises(assist.RenameRefused, match="too many results"):
        assist.rename(analysis, offset, "fresh")


def test_after_a_keystroke_only_the_edited_declaration_is_read_again() -> None:
    text = "agent A [m-1]\npipeline P(x: Any) -> R: x |> A.a()\npipeline Q(x: Any) -> R: x |> A.b()"
    before = check(parse(text))
    after = check(parse(text.replace("A.b", "A.bc"), before.program), before)
    kept, edited = (
        [pipeline_names(analysis, analysis.program.pipelines[number]) for analysis in (before, after)]
        for number in (0, 1)
    )
    assert kept[0] is kept[1]
    assert edited[0] is not edited[1]

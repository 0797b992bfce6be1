"""Checking step by step gives what checking at once gives, and no more work than needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import Analysis, check, parse
from halo_lang.spelling import LONGEST, Guess, NameIndex, listed, nearest
from tests.lang.checking import BOT, analysis

PROGRAM = """\
policy Safe : Block(PromptInjection)
store Docs : VectorStore(namespace: "docs")
schema Answer { text: String, more: Array<Answer> }
agent Bot [openai/gpt-4o-mini]
  equips Docs
  requires Safe
pipeline Inner(text: String) -> Answer: text |> Bot.answer("{{text}}", tools: [Docs])
pipeline Main(x: String) -> Result:
  x |> Inner(x) as first |> Bot.end(first) |<> loop(Bot, "context.data.end == null")
"""
NAMES = ["Bot", "Docs", "Safe", "Inner", "x", "schema ", "agent ", "requires Safe", "MaxSpend(1) & ", "tools: auto"]
PIECES = [*NAMES, " |> Main(x)", " |? (x)", "(", ")", ", y", '"', "\n", ": ", "@retry(1)\n", ""]


def edited(done: Analysis, text: str) -> Analysis:
    return check(parse(text, done.program), done, is_priced=done.whole.is_priced)


def told(done: Analysis) -> list[object]:
    return [(one.code, one.span, one.message, one.hint, one.related, one.fix) for one in done.diagnostics]


def is_priced(model: str) -> bool:
    return "gpt" not in model


edits = st.lists(
    st.tuples(st.integers(0, len(PROGRAM)), st.integers(0, 12), st.sampled_from(PIECES)), min_size=1, max_size=6
)


@given(edits)
def test_any_edits_lead_to_what_a_check_from_scratch_finds(steps: list[tuple[int, int, str]]) -> None:
    text, done = PROGRAM, check(parse(PROGRAM), is_priced=is_priced)
    for at, width, piece in steps:
        text = text[:at] + piece + text[at + width :]
        done = edited(done, text)
        assert told(done) == told(check(parse(text), is_priced=is_priced))


def test_the_program_of_these_tests_is_clean() -> None:
    assert analysis(PROGRAM).diagnostics == ()
    assert analysis(PROGRAM).ok


def test_an_edit_inside_a_declaration_leaves_the_others_results_as_they_are() -> None:
    before = analysis(PROGRAM)
    after = edited(before, PROGRAM.replace('"{{text}}"', '"More: {{text}}"'))
    kept = [entry for key, entry in after.checked.items() if before.checked.get(key) is entry]
    assert len(kept) == len(after.checked) - 1


def test_a_changed_interface_is_noticed_where_it_is_used_and_only_there() -> None:
    before = analysis(PROGRAM)
    after = edited(before, PROGRAM.replace("Inner(text: String)", "Inner(text: String, tone: String)"))
    assert [one.code for one in after.errors] == ["HL302"]
    fresh = {entry.declaration.name.text for key, entry in after.checked.items() if key not in before.checked}
    again = {
        e.declaration.name.text for k, e in after.checked.items() if k in before.checked and before.checked[k] is not e
    }
    assert (fresh, again) == ({"Inner"}, {"Main"})


def test_a_name_that_appears_mends_those_who_missed_it() -> None:
    before = analysis("pipeline Main(x: String) -> Result: x |> Bot.go()")
    assert [one.code for one in before.errors] == ["HL203"]
    assert edited(before, f"{BOT}pipeline Main(x: String) -> Result: x |> Bot.go()").ok


def test_a_better_suggestion_is_found_when_names_change() -> None:
    text = "pipeline Main(x: String) -> Result: x |> Paintr.go()\n"
    before = analysis(text)
    after = edited(before, f"{text}agent Painter [openai/gpt-4o-mini]")
    assert [one.hint for one in after.errors] == ["did you mean `Painter`?"]


def test_diagnostics_stand_in_the_order_of_their_places_with_syntax_errors_among_them() -> None:
    done = analysis("agent A [o3]\nschema B { a: }\nagent C [gpt4]")
    assert [one.code for one in done.errors] == ["HL306", "HL102", "HL306"]
    assert [one.span for one in done.diagnostics] == sorted(one.span for one in done.diagnostics)


def test_warnings_are_no_errors() -> None:
    done = analysis(f'{BOT}pipeline Main(x: String) -> Result: x |> Bot.go("{{{{y}}}}")')
    assert [one.code for one in done.diagnostics] == ["HL501"]
    assert done.ok


# --- spelling


@pytest.mark.parametrize(
    ("word", "name"),
    [("Paintr", "Painter"), ("Dcos", "Docs"), ("docs", "Docs"), ("getIssue", "get_issue")],
)
def test_one_slip_of_the_finger_is_within_reach(word: str, name: str) -> None:
    names = ["Painter", "Printer", "Docs", "get_issue"]
    assert nearest(word, names) == Guess(name, certain=True)
    assert nearest("Other", names) is None


def test_a_word_between_two_names_may_mean_either() -> None:
    assert nearest("Pointer", ["Printer", "Painter"]) == Guess("Painter", certain=False)
    assert nearest("Boc", ["Bot", "Bob"]) == Guess("Bob", certain=False)


def test_short_names_are_not_guessed_from_nothing() -> None:
    assert nearest("A", ["B", "C"]) is None
    assert nearest("ab", ["cd"]) is None


def test_a_name_is_never_near_to_itself() -> None:
    assert NameIndex(["Bot", "bot"]).near("Bot") == ("bot",)


def test_very_long_names_are_left_out() -> None:
    name = "a" * (LONGEST + 1)
    assert nearest(name[:-1] + "b", [name]) is None


def test_the_nearest_of_many_names_is_found_among_a_crowd() -> None:
    names = [f"Agent{number}" for number in range(5000)]
    assert "Agent4321" in NameIndex(names).near("Agnet4321")


def test_long_lists_of_names_are_cut() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed("abcd", limit=2) == "a, b and 2 more"


def test_names_that_could_stand_somewhere_are_told_in_the_same_order_wherever_they_are_declared() -> None:
    use = "pipeline P(x: String) -> R: x |> Nobody.go()\n"
    first, second = "agent A [openai/gpt-4o]\n", "agent Z [openai/gpt-4o]\n"
    before = check(parse(first + second + use))
    program = parse(second + first + use, before.program)
    (found,) = [one for one in check(program, before).diagnostics if one.code == "HL203"]
    assert found.hint == "here one of these can stand: A, P, Z"


@given(st.lists(st.text("abA_", min_size=1, max_size=5), max_size=90), st.text("abcA_", max_size=6))
def test_the_first_word_is_near_to_what_the_hundredth_is_near_to(names: list[str], word: str) -> None:
    fresh, asked_often = NameIndex(names), NameIndex(names)
    for number in range(100):
        asked_often.near(f"Bot{number}")
    assert fresh.near(word) == asked_often.near(word)

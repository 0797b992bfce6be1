"""Syntax errors: one for one mistake, at its place, with what to do; and what of a broken file can still be used."""

from __future__ import annotations

import re

import pytest

from halo_lang import Diagnostic, Program, Source, check, nodes, parse
from halo_lang.diagnostics import render
from halo_lang.mistakes import MISTAKES
from halo_lang.situation import Mistake

AGENT = "agent Bot [openai/gpt-4o-mini]\n"
HEAD = "pipeline Main(n: Number) -> Result:\n"


def only(text: str) -> Diagnostic:
    """The one diagnostic of a text in which `¦` marks its place."""
    place = text.index("¦")
    program = parse(text.replace("¦", ""))
    (diagnostic,) = program.diagnostics
    assert diagnostic.span.start == place
    return diagnostic


def found(program: Program) -> list[tuple[str, int]]:
    """Codes and lines of all syntax errors."""
    return [(d.code, program.source.position(d.span.start).line) for d in program.diagnostics]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[re.sub(r"\W+", "-", mistake.example) for mistake in MISTAKES])
def test_each_known_mistake_is_told_in_its_own_words(mistake: Mistake) -> None:
    diagnostic = only(mistake.example)
    words = {"found": "(.+)", "before": "(.+)", "meant": "(.+)"}
    said = re.escape(mistake.message).replace(r"\{", "{").replace(r"\}", "}").format(**words)
    assert diagnostic.code == mistake.code
    assert re.fullmatch(said, diagnostic.message)
    assert diagnostic.hint


@pytest.mark.parametrize(
    "mistake",
    [mistake for mistake in MISTAKES if mistake.replacement is not None or mistake.insertion is not None],
    ids=lambda mistake: re.sub(r"\W+", "-", mistake.example),
)
def test_each_fix_mends_its_mistake(mistake: Mistake) -> None:
    text = mistake.example.replace("¦", "")
    fix = parse(text).diagnostics[0].fix
    assert fix is not None
    assert parse(text[: fix.span.start] + fix.text + text[fix.span.end :]).diagnostics == ()


@pytest.mark.parametrize(
    ("code", "text"),
    {
        "HL103 double": ("HL103", HEAD + '  n |> Bot.go(¦"no end)\n  |> Bot.go()'),
        "HL103 single": ("HL103", HEAD + "  n |> Bot.go(¦'no end)\n  |> Bot.go()"),
        "HL103 triple": ("HL103", HEAD + '  n |> Bot.go(¦"""no end)\n' + AGENT),
        "HL103 triple, others behind it": ("HL103", HEAD + f'  n |> Bot.go(¦"""no)\n{AGENT}  system """x"""\n'),
        "HL104": ("HL104", AGENT + "¦/* no end\n" + HEAD + "  n"),
        "HL105 call": ("HL105", HEAD + "  n |> Bot.go¦(1\n  |> Bot.go()"),
        "HL105 inner": ("HL105", HEAD + "  n |* { Bot.go¦(1 }\n  |> Bot.go()"),
        "HL105 agent": ("HL105", "agent A ¦[x/y\n" + AGENT),
        "HL105 schema": ("HL105", "schema S ¦{ a: String\n" + AGENT),
        "HL105 directive": ("HL105", "@retry¦(3\n@timeout(5s)\n" + AGENT),
        "HL105 closed further on": ("HL105", HEAD + "  n |> Bot.go¦(1\n  |> Bot.go())"),
        "HL106 list": ("HL106", HEAD + "  n |> Bot.go(" + "[" * 199 + "¦[" + "]" * 200 + ")"),
        "HL106 condition": ("HL106", HEAD + "  n |? (" + "!" * 200 + "¦n)"),
        "HL106 type": ("HL106", "schema S { a: " + "Array<" * 200 + "¦String" + ">" * 200 + " }"),
        "HL107": ("HL107", "pipeline Main(n: Number)¦: n"),
        "HL108": ("HL108", "pipeline ¦Main(n: Number) -> Result: // nothing"),
        "stray": ("HL102", HEAD + "  n |> Bot.go()¦)"),
        "wrong bracket": ("HL102", HEAD + "  n |> Bot.go(1¦]"),
        "keyword as value": ("HL102", HEAD + "  n |> Bot.go(¦yield)"),
        "keyword as callee": ("HL102", HEAD + "  n |> ¦loop.go()"),
        "keyword as reference": ("HL102", AGENT + "  equips ¦tool"),
        "huge number": ("HL102", HEAD + "  n |> Bot.go(¦1e999)"),
        "unfinished": ("HL102", HEAD + "  n |> Bot.¦"),
        "junk in front": ("HL102", "¦hello world\n" + AGENT),
        "unknown keyword": ("HL102", AGENT + "¦flow Two(n: Number) -> Result: n"),
        "keyword alone": ("HL102", AGENT + "pipeline¦"),
        "invisible": ("HL102", HEAD + "  n |> Bot.go(¦\u200bn)"),
    }.values(),
)
def test_one_mistake_is_one_diagnostic_at_its_place(code: str, text: str) -> None:
    assert only(text).code == code


def test_a_bracket_at_the_limit_of_nesting_is_fine() -> None:
    assert parse(HEAD + "  n |> Bot.go(" + "[" * 199 + "]" * 199 + ")").diagnostics == ()


def test_broken_stages_are_told_one_by_one_and_the_others_stay() -> None:
    program = parse(HEAD + '  n\n    |> A.one("a" "b")\n    |> B.two()\n    |? (n = 1)\n    |> C.three()\n')
    assert found(program) == [("HL102", 3), ("HL102", 5)]
    (pipeline,) = program.pipelines
    assert [stage.call.callee.text for stage in pipeline.stages if isinstance(stage, nodes.PipeStage)] == ["B", "C"]
    assert program.broken == {"Main"}


def test_a_broken_start_value_leaves_the_stages() -> None:
    program = parse(HEAD + "  n n\n    |> Bot.go()\n")
    assert found(program) == [("HL102", 2)]
    assert len(program.pipelines[0].stages) == 1


def test_an_open_bracket_takes_only_its_own_declaration_along() -> None:
    program = parse("agent A [x/y\nagent B [x/y]\npolicy P : X(\n@retry(3\nagent C [x/y]\n")
    assert found(program) == [("HL105", 1), ("HL105", 3), ("HL105", 4)]
    assert [declaration.name.text for declaration in program.declarations] == ["B", "C"]
    assert program.ghosts == {"A", "P"}


def test_a_forgotten_end_of_a_triple_quoted_string_does_not_turn_all_others_inside_out() -> None:
    declared = [f'agent A{n} [x/y]\n  system """\n    Text {n}.\n  """\n' for n in range(6)]
    declared[2] = declared[2].rpartition('"""')[0] + "\n"
    program = parse("".join(declared))
    assert found(program) == [("HL103", 10)]
    assert [declaration.name.text for declaration in program.declarations] == ["A0", "A1", "A3", "A4", "A5"]
    assert program.ghosts == {"A2"}


def test_a_program_inside_a_string_is_text() -> None:
    program = parse(f'agent A [x/y]\n  system """\n{AGENT}"""\nschema S {{}}\n')
    assert program.diagnostics == ()
    assert [declaration.name.text for declaration in program.declarations] == ["A", "S"]


def test_names_that_an_open_comment_hides_are_known() -> None:
    program = parse(AGENT + "/* open\nagent Hidden [x/y]\n" + HEAD + "  n")
    assert found(program) == [("HL104", 2)]
    assert program.find("Bot") is not None
    assert program.ghosts == {"Hidden", "Main"}


@pytest.mark.parametrize(
    "broken",
    [
        "agnet A [x/y]",
        "agent A [x/y temp: 1]",
        "agent A x/y",
        "agent A [x/y",
        'agent A ["x]',
        "agent A [x/y]\n equip B",
    ],
)
def test_the_users_of_a_broken_declaration_are_not_blamed(broken: str) -> None:
    analysis = check(parse(f"{broken}\n{HEAD}  n |> A.one() |<> loop(A, 'context.data.one == null')\n"))
    assert [diagnostic.code[:3] for diagnostic in analysis.errors] == ["HL1"]


def test_a_mistake_in_a_name_in_the_middle_of_a_text_stays_there() -> None:
    text = AGENT + "".join(f"pipeline P{n}(x: String) -> Result:\n  x |> Bot.go()\n" for n in range(20))
    for at in range(0, len(text), 7):
        for typed in "(\"'{]|@,.":
            broken = parse(text[:at] + typed + text[at:])
            assert len(broken.diagnostics) <= 2
            assert len(broken.declarations) + len(broken.ghosts) >= 20


def test_endless_broken_stages_are_not_all_told() -> None:
    assert len(parse(HEAD + "  n\n" + "|> \n" * 10_000).diagnostics) <= 50


SHOWN = {
    "a comma": (
        'pipeline Main(text: String) -> Result:\n  text |> Bot.answer("one" "two")\n',
        """\
p.halo:2:28: error HL102: a comma is missing in front of `"two"`
  |
2 |   text |> Bot.answer("one" "two")
  |                            ^^^^^
  = hint: write `,` between the two""",
    ),
    "a single equals sign": (
        "pipeline Main(n: Number) -> Result:\n  n |? (n = 1)\n",
        """\
p.halo:2:11: error HL102: conditions have no `=`, they write `==`
  |
2 |   n |? (n = 1)
  |           ^
  = hint: write `==`""",
    ),
    "an open bracket": (
        "agent Bot [openai/gpt-4o-mini, temp: 0.3\npipeline Main(n: Number) -> Result: n\n",
        """\
p.halo:1:11: error HL105: this `[` is never closed
  |
1 | agent Bot [openai/gpt-4o-mini, temp: 0.3
  |           ^
  = hint: add the `]` it needs""",
    ),
    "an open string": (
        'pipeline Main(n: Number) -> Result:\n  n |> Bot.go("Answer in\n    two lines.")\n',
        """\
p.halo:2:15: error HL103: this string does not end on its line
  |
2 |   n |> Bot.go("Answer in
  |               ^^^^^^^^^^
  = hint: add the closing ", or use \"\"\" for a text of several lines""",
    ),
    "a wrong bracket": (
        "pipeline Main(n: Number) -> Result:\n  n |> Bot.go(1, 2]\n",
        """\
p.halo:2:19: error HL102: found `]` where `)` must close the `(`
  |
2 |   n |> Bot.go(1, 2]
  |                   ^
  = p.halo:2:14: this `(` is open""",
    ),
    "a word that fits nowhere": (
        "agent Bot [openai/gpt-4o-mini]\n  speaks French\n",
        """\
p.halo:2:3: error HL102: expected `equips`, `requires`, `system` or the next declaration, found `speaks`
  |
2 |   speaks French
  |   ^^^^^^""",
    ),
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_person_is_shown_the_place_and_what_to_do(text: str, shown: str) -> None:
    source = Source(text, "p.halo")
    assert render(parse(source).diagnostics[0], source) == shown

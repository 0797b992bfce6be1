"""A program parsed from its previous version equals the one parsed anew, and keeps what did not change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang import Program, parse

PIECES = (
    "agent A [openai/gpt-4o-mini]\n",
    "@timeout(5s)\nagent B [a//b, temp: 0.3]\n  equips T\n",
    'pipeline P(x: String) -> R:\n  x |> A.go("hi") as y\n    |? (y == 1)\n',
    'pipeline Q() -> R:\n  |> A.go("""\n    text\n  """)\n',
    "tool T : GitHub(Env.X)\n",
    "policy S : Block(PII) & MaxSpend(1)\n",
    "schema D { a: String }",
    "agnet C [x/y]\n",
    "// note\n",
    "/* block */",
    "agent",
    "pipeline ",
    '"""',
    '"',
    "'",
    "/*",
    "*/",
    "(",
    ")",
    "[",
    "}",
    "@",
    "\\",
    "\n",
    " ",
    ":",
    "N",
    "|>",
    "x",
)
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@st.composite
def edits(draw: st.DrawFn) -> list[str]:
    """A text and its versions after some edits, each the replacement of a part by pieces."""
    versions = [draw(texts)]
    for _ in range(draw(st.integers(1, 4))):
        text = versions[-1]
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        versions.append(text[:start] + "".join(draw(st.lists(st.sampled_from(PIECES), max_size=3))) + text[end:])
    return versions


def shape(program: Program) -> object:
    """All that can be seen of a program."""
    return (
        [(unit.text, unit.declaration, unit.diagnostics, unit.ghosts, unit.unsettled) for unit in program.units],
        program.declarations,
        program.diagnostics,
        [program.offset_of(declaration) for declaration in program.declarations],
    )


@settings(max_examples=400)
@given(edits())
def test_a_program_from_its_previous_version_equals_one_parsed_anew(versions: list[str]) -> None:
    program = parse(versions[0])
    for text in versions[1:]:
        program = parse(text, program)
        assert shape(program) == shape(parse(text))


FILE = "".join(
    f'agent A{n} [x/y]\n  system """\n    Text {n}.\n  """\n\npipeline P{n}(x: String) -> R:\n  x |> A{n}.go()\n\n'
    for n in range(30)
)


def kept(before: Program, after: Program) -> int:
    """How many declarations are the very same objects."""
    return len({id(declaration) for declaration in before.declarations} & {id(d) for d in after.declarations})


@pytest.mark.parametrize("at", [0, FILE.index("Text 15"), FILE.index("A29.go"), len(FILE)])
def test_one_letter_leaves_all_declarations_but_its_own(at: int) -> None:
    before = parse(FILE)
    assert kept(before, parse(FILE[:at] + "x" + FILE[at:], before)) >= 59


def test_a_moved_declaration_is_not_parsed_again() -> None:
    before = parse(FILE)
    first, rest = FILE[: FILE.index("pipeline P0")], FILE[FILE.index("pipeline P0") :]
    assert kept(before, parse(rest + first, before)) == 60


@pytest.mark.parametrize(("typed", "told"), [('"""', "HL103"), ("/*", "HL104"), ("(", "HL105")])
def test_what_opens_and_is_taken_away_again_costs_one_declaration(typed: str, told: str) -> None:
    whole = parse(FILE)
    at = FILE.index("A3.go(") + len("A3.go(")
    opened = parse(FILE[:at] + typed + FILE[at:], whole)
    assert [diagnostic.code for diagnostic in opened.diagnostics] == [told]
    assert kept(whole, parse(FILE, opened)) >= 59


def test_a_string_closed_far_behind_takes_in_what_lies_between() -> None:
    opened = 'agent A [x/y]\n  system """open\n' + FILE.replace('"""', "")
    before = parse(opened)
    assert len(before.diagnostics) == 31  # the open string, and texts that stand without quotes
    after = parse(opened + '"""', before)
    assert after.diagnostics == ()
    assert len(after.declarations) == 1
    assert shape(parse(opened, after)) == shape(before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('x """ y', "xy", id="quotes and what is behind them"),
        pytest.param('// x """', '//\n x """', id="the comment around quotes"),
        pytest.param('/* x """ */', ' x """ */', id="the comment around quotes that has an end"),
        pytest.param('\' x """ \'', ' x """ \'', id="the string around quotes"),
    ],
)
def test_quotes_far_behind_a_string_decide_where_it_ends(before: str, after: str) -> None:
    open_string = '"""\nagent A [x/y]\n"""\n' + "agent B [x/y]\n" * 5
    for old, new in ((before, after), (after, before)):
        version = parse(open_string + old)
        assert shape(parse(open_string + new, version)) == shape(parse(open_string + new))


TRIPLES = (
    *('"""', '"""\n', '\\"""', '"', "'", "\\", "// ", "/*", "*/", "x", "\n"),
    *(
        "\nagent A [x/y]\n",
        '"""\nagent B [x/y]\n"""\n',
        'pipeline P() -> R:\n  |> A.go("""\n',
        '"""\nagent C [x/y]\n""" """ x\n',
    ),
)


@st.composite
def edits_among_triple_quotes(draw: st.DrawFn) -> list[str]:
    """A text with many triple quotes that are not closed as they should be, and its versions after some edits."""
    pieces = st.sampled_from(TRIPLES)
    often = draw(pieces) * draw(st.integers(0, 14)) + "".join(draw(st.lists(pieces, max_size=3))) * 9
    versions = [often + "".join(draw(st.lists(pieces, max_size=30)))]
    for _ in range(draw(st.integers(1, 4))):
        text = versions[-1]
        start = draw(st.integers(0, len(text)) | st.integers(max(0, len(text) - 8), len(text)))
        end = draw(st.sampled_from((start, start + 1, start + 3, start + 20)))
        versions.append(text[:start] + "".join(draw(st.lists(pieces, max_size=2))) + text[end:])
    return versions


@settings(max_examples=300)
@given(edits_among_triple_quotes())
def test_however_many_triple_quotes_are_broken_an_edit_cuts_the_text_as_a_new_one(versions: list[str]) -> None:
    program = parse(versions[0])
    for text in versions[1:]:
        program = parse(text, program)
        assert shape(program) == shape(parse(text))

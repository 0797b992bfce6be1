"""A program parsed from its previous version equals the one parsed anew, and keeps what did not change."""

from __future__ import annotations

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

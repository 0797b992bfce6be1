"""The formatter: its layout, and that nothing but the layout changes."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang.formatter import format_source
from halo_lang.parser import parse
from halo_lang.source import Source, Span
from tests.lang.mutations import EXAMPLES
from tests.lang.programs import programs, twins

CANONICAL = {
    "facts": """\
agent Reader [openai/gpt-4o-mini]

agent Writer [openai/gpt-4o-mini]

pipeline Summarize(text: String) -> Result:
  text
    |> Reader.extract_facts()
    |> Writer.summarize() as summary
""",
    "review": """\
tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")

policy Budget : MaxSpend(1.00)

agent Reviewer [anthropic/claude-sonnet-4-5, temp: 0.2]
  system "You are a strict code reviewer."
  equips Repo
  requires Budget

pipeline Review(number: Number) -> Result:
  number |> Reviewer.get_issue("Review this issue.", tool: Repo, number: number)
""",
    "route": '''\
pipeline Route(ticket: String) -> Result:
  ticket
    |> Triager.classify("""Reply with JSON: {"type": "bug" | "billing" | "other"}""") as kind
    |? (context.data.kind.type != "other")
    |? {
         (context.data.kind.type == "bug") => Engineer.fix(ticket),
         else => Support.reply(ticket),
       }
''',
    "every stage": """\
schema Answer { text: String, sources: Array<Array<String>> }

@retry(3, backoff: 2s)
@shadow(openai/gpt-4o-mini)
agent Bot [ollama/llama3.2:3b, tools: [Repo, Docs]]
  equips Repo, Docs

@checkpoint
pipeline Ask(question: String) -> Answer:
  |> Bot.answer(context.data.items.0, n: -1)
  |? (!a && (b < 3 || c)) => System.Value("x") as y
  |* { A.b(), C.d() as e } as all
  |* each(item in question, concurrency: 2) => Bot.one(item) as many
  |! yield(channel: "ops", timeout: 2d) as ok
  ~> listen(UI.Click) as click
  |<> loop(Bot, "context.data.x > 1", max: 3)
""",
}

# A string first, so that what looks like a comment in it is none.
COMMENT = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
DAMAGE = ("", "\n", '"', "(", ")", "{", "]", "/*", "//", '"""', "'", "agent ", "@", "|>", "é", "\r\n", "\x00")


def formatted(text: str) -> str:
    return format_source(Source(text))


def meaning(text: str) -> list[object]:
    """The declarations without their places."""
    return [_without_spans(declaration) for declaration in parse(text).declarations]


def _without_spans(node: object) -> object:
    if isinstance(node, Span):
        return None
    if isinstance(node, tuple):
        return [_without_spans(part) for part in node]
    if is_dataclass(node):
        return (type(node), [_without_spans(getattr(node, field.name)) for field in fields(node)])
    return node


def comments(text: str) -> list[str]:
    return [found[1].rstrip() for found in COMMENT.finditer(text) if found[1]]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A program with a few characters lost or added."""
    text = draw(programs(max_declarations=2))
    at, lost = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
    return text[:at] + draw(st.sampled_from(DAMAGE)) + text[at + lost :]


PIECES = re.compile(
    r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|(?P<gap>(?://[^\n]*|/\*[\s\S]*?\*/|\s+)+)|[\w.@:-]*/[\w.@/:-]*'
    r"|-?\d+(?:\.\d+)?\w*|[^\W\d]\w*|\|<>|\|[>?*!]|~>|=>|->|&&|\|\||[=!<>]=|."
)
REMARKS = ("/* a */", "/* a */ /* b */", "// c\n", "\n// d\n", "\n\n/* e\n f */\n\n", "/* g */ // h\n", "/* 漢 é */")
TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
UNTOUCHED = re.compile(r'"""[\s\S]*?"""|/\*[\s\S]*?\*/')
"""What is kept as it is, white space at the ends of its lines included."""
UNTOUCHED_BREAKS = re.compile(r"\n")


@st.composite
def spoilt_examples(draw: st.DrawFn) -> str:
    """An example program with comments and white space between any of its tokens."""
    text = draw(st.sampled_from(sorted(EXAMPLES.values())))
    pieces = [found[0] for found in PIECES.finditer(text)]
    ends = [at for at, piece in enumerate(pieces) if not piece.isspace() and not piece.startswith(("//", "/*"))]
    for at in draw(st.lists(st.sampled_from(ends), max_size=8, unique=True)):
        remark = draw(st.sampled_from((*REMARKS, "\n\n\n", "\t", "  \n")))
        pieces[at] = f"{pieces[at]} {remark}"
    return "".join(pieces)


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL.keys())
def test_canonical_programs_stay_as_they_are(text: str) -> None:
    assert not parse(text).diagnostics
    assert formatted(text) == text


@pytest.mark.parametrize("text", CANONICAL.values(), ids=CANONICAL.keys())
def test_the_layout_does_not_depend_on_the_white_space_that_was(text: str) -> None:
    squeezed = re.sub(r'("""[\s\S]*?"""|"[^"]*")|\s+', lambda found: found[1] or " ", text)
    assert formatted(squeezed) == text


def test_lists_that_pass_the_width_are_broken_one_item_a_line_with_a_last_comma() -> None:
    long = '"' + "x" * 60 + '"'
    text = f"pipeline P() -> R:\n  x |> Bot.answer({long}, [1, 2], key: {long}) as y"
    assert formatted(text) == (
        f"pipeline P() -> R:\n  x\n    |> Bot.answer(\n         {long},\n         [1, 2],\n         key: {long},\n"
        "       ) as y\n"
    )


def test_wide_characters_count_for_the_cells_that_they_take() -> None:
    narrow, wide = "x" * 64, "漢" * 32
    stage = "pipeline P() -> R:\n  |> Bot.answer({}, 1234567890, 12)\n"
    assert formatted(stage.format(f'"{narrow}"')) == stage.format(f'"{narrow}"')
    assert formatted(stage.format(f'"{wide}"')) == stage.format(f'"{wide}"')
    assert formatted(stage.format(f'"{wide}漢"')).count("\n") == 6


def test_a_last_comma_goes_where_the_list_fits_on_a_line() -> None:
    assert formatted("agent A [a/b, temp: 1,] equips B, C,") == "agent A [a/b, temp: 1]\n  equips B, C\n"


def test_conditions_and_rules_that_pass_the_width_are_broken_at_their_operators() -> None:
    path = "context.data." + "long_name." * 4 + "end"
    assert formatted(f"pipeline P() -> R: |? ({path} && !{path} || c)") == (
        f"pipeline P() -> R:\n  |? (\n       {path}\n       && !{path}\n       || c\n     )\n"
    )
    rules = [
        "MaxSpend(1.00)",
        "Redact(PII, restore: true)",
        "Approve(GitHub.merge_pull)",
        "Audit(Block(PromptInjection))",
    ]
    assert formatted(f"policy Safe : {' & '.join(rules)}") == "policy Safe : " + "\n  & ".join(rules) + "\n"


def test_a_literal_over_several_lines_stays_byte_for_byte_behind_its_bracket() -> None:
    literal = '"""\n\tone\\q\n            two  \n  """'
    text = f"pipeline P() -> R:\n  x\n    |> System.Value({literal}, y)\n"
    assert formatted(text.replace("    |>", "|>")) == text


def test_comments_stay_with_what_they_stand_by() -> None:
    text = """\
// About the file.

// About the agent.
agent Bot [
  // the small one
  openai/gpt-4o-mini, // fast
  temp: 0.3,
] // behind
  // Its tools.
  equips /* all */ Docs

pipeline P(a: String) -> R: // the head
  a // the start
    // the first
    |> Bot.one(/* what */ "x")
    |? {
         // an arm
         (a) => Bot.two(), // its end
         // the last line
       }
    // |> Bot.three()

/* the end */
"""
    assert formatted(text) == text


def test_a_comment_that_takes_its_line_breaks_what_it_stands_in() -> None:
    assert formatted("tool T : X(1, // one\n2)") == "tool T : X(\n  1, // one\n  2,\n)\n"
    assert formatted("policy P : A // a\n& B") == "policy P : A // a\n  & B\n"


def test_declarations_are_parted_by_one_blank_line_and_the_text_ends_with_a_line_break() -> None:
    assert formatted("\n\nschema A {}\n\n\n\nschema B {a:C}schema D {}  ") == (
        "schema A {}\n\nschema B { a: C }\n\nschema D {}\n"
    )


def test_a_text_without_declarations_keeps_its_comments() -> None:
    assert formatted(" \n\n") == ""
    assert formatted("") == ""
    assert formatted("  // a\n// b\n\n\n/* c */") == "// a\n// b\n\n/* c */\n"


def test_line_ends_are_kept() -> None:
    assert formatted("tool A : B\r\n// c  \r\ntool D:E\r\n") == "tool A : B\r\n\r\n// c\r\ntool D : E\r\n"
    assert formatted('tool A : B("""\r\nx""")\n\r\n') == 'tool A : B("""\r\nx""")\n'


def test_a_broken_declaration_is_kept_byte_for_byte_between_the_others() -> None:
    broken = "pipeline  P( x :String)->R:\n  x |>   A.b(]\n\t|> C.d( )  // why\n  // |> E.f()"
    assert formatted(f"tool A:B\n{broken}\n// about D\ntool D:E") == (
        f"tool A : B\n\n{broken}\n\n// about D\ntool D : E\n"
    )


@pytest.mark.parametrize(
    "end", ['tool  X : Y("""open // no comment', "tool  X:Y /* open", 'tool  X : Y("open // no comment']
)
def test_a_string_or_comment_that_is_not_closed_keeps_its_declaration_as_it_is(end: str) -> None:
    assert formatted(f"tool A:B\n{end}\n\n") == f"tool A : B\n\n{end}\n"


def test_a_chain_of_operators_is_formatted_however_long_it_is() -> None:
    text = formatted(f"pipeline P(x: Any) -> R:\n  x |? ({' && '.join(['x'] * 3000)})")
    assert text.count("\n         && x") == 2999


def test_nesting_to_the_limit_is_formatted() -> None:
    nested = "[" * 190 + "1" + "]" * 190
    assert formatted(f"pipeline P() -> R:\n  x |> A.b({nested})").count("[") == 190


@settings(deadline=None, max_examples=50)
@given(programs(max_declarations=2))
def test_formatting_changes_neither_the_tree_nor_the_comments(text: str) -> None:
    result = formatted(text)
    assert meaning(result) == meaning(text)
    assert comments(result) == comments(text)


@settings(deadline=None, max_examples=60)
@given(spoilt_examples())
def test_an_example_keeps_its_meaning_and_all_comments_wherever_they_stand(text: str) -> None:
    result = formatted(text)
    assert meaning(result) == meaning(text)
    assert comments(result) == comments(text)
    assert formatted(result) == result
    assert TRAILING.search(UNTOUCHED.sub("x", result)) is None


@settings(deadline=None, max_examples=30)
@given(spoilt_examples(), st.booleans())
def test_line_ends_and_the_byte_order_mark_are_kept(text: str, bom: bool) -> None:
    lines = text.replace("\r\n", "\n")
    unix, windows = formatted(lines), format_source(Source(lines.replace("\n", "\r\n"), had_bom=bom))
    assert windows == UNTOUCHED_BREAKS.sub("\r\n", unix)


@settings(deadline=None, max_examples=50)
@given(programs(max_declarations=2) | damaged())
def test_formatting_twice_is_formatting_once(text: str) -> None:
    once = formatted(text)
    assert formatted(once) == once


@settings(deadline=None, max_examples=50)
@given(twins(max_declarations=2))
def test_two_layouts_of_one_program_become_the_same_text(pair: tuple[str, str]) -> None:
    assert formatted(pair[0]) == formatted(pair[1])


@settings(deadline=None, max_examples=50)
@given(damaged())
def test_what_can_be_read_of_a_broken_text_means_the_same_after_formatting(text: str) -> None:
    assert meaning(formatted(text)) == meaning(text)

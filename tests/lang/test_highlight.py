"""The lexer: what it calls the parts of a program, that it loses nothing, and that lines can be lexed one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments import highlight
from pygments.formatters import HtmlFormatter, NullFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import STANDARD_TYPES, Comment, Error, Keyword, Name, Number, Operator, String

from halo_lang import highlight as colours
from halo_lang.highlight import START, HaloLexer, State, TokenType, highlight_line
from tests.lang.programs import programs

PROGRAM = '''\
// Reviews
tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")
policy Careful : Redact(PII) & MaxLatency(2s)
schema Answer { store: String, tags: Array<Answer> }
@retry(3, backoff: 1.5h)
@shadow(openai/gpt-4o-mini)
agent Bot [together/meta-llama/Llama-3.3, temp: 0.3, system: "Be {{tone}}."]
  equips Repo
  requires Careful
/* the
   pipeline */
pipeline Main(number: Number, agent: String) -> Answer:
  number
    |> Bot.loop("""Say {{context.data.x.0}} \\t or {"a": 1}""", tool: Repo, n: -3) as first
    |? (context.data.store == 'a' && !true)
    |* each(item in context.data.items, concurrency: 2) => System.Value(item)
    ~> listen(UI.Click)
    |<> loop(Bot, "context.data.x > 1", max: 3)
    |! yield("go?")
'''

# Characters that begin, end or disturb tokens, so that random text reaches every state.
SINGLE = "\n\r\t .,:;()[]{}<>|?!*~@&=-\"'\\/#\x00\ufeff\ud800é漢0"
PIECES = st.sampled_from(
    [
        *SINGLE,
        *('"""', "{{", "}}", "//", "/*", "*/", "a-b/c", "name", "{{a.b}}", "\r\n", "->", "System", "tool"),
        *("agent ", "pipeline ", "schema ", "@shadow(", "as ", "each", "in "),
    ]
)
TEXT = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=40), st.just(PROGRAM))


def kinds(text: str, part: str) -> set[TokenType]:
    """The types of all tokens with the text `part`."""
    return {kind for kind, value in HaloLexer().get_tokens(text) if value == part}


def by_character(text: str) -> list[TokenType]:
    return [kind for _, kind, value in HaloLexer().get_tokens_unprocessed(text) for _ in value]


def line_by_line(text: str) -> list[TokenType | None]:
    """The type of each character, lexing one line after the other; None for line breaks."""
    result: list[TokenType | None] = []
    state: State = START
    for line in text.split("\n"):
        spans, state = highlight_line(line, state)
        result += [kind for start, end, kind in spans for _ in range(start, end)]
        result.append(None)
    return result[:-1]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("// Reviews", Comment.Single),
        ("together/meta-llama/Llama-3.3", colours.MODEL),
        ("openai/gpt-4o-mini", colours.MODEL),
        ("@retry", colours.DIRECTIVE),
        ("@shadow", colours.DIRECTIVE),
        ("1.5h", colours.DURATION),
        ("2s", colours.DURATION),
        ("-3", Number.Integer),
        ("0.3", Number.Float),
        ("{{tone}}", colours.PLACEHOLDER),
        ("{{context.data.x.0}}", colours.PLACEHOLDER),
        ("\\t", String.Escape),
        ("'a'", String.Single),
        ("Answer", colours.DECLARED),
        ("Main", colours.FUNCTION),
        ("first", colours.BINDING),
        ("temp", colours.LABEL),
        ("String", Keyword.Type),
        ("true", Keyword.Constant),
        ("equips", Keyword),
        ("Env", Name.Builtin),
        ("|>", colours.STAGE),
        ("|<>", colours.STAGE),
        ("~>", colours.STAGE),
        ("&&", Operator),
    ],
)
def test_each_part_of_a_program_has_its_type(part: str, kind: TokenType) -> None:
    assert kinds(PROGRAM, part) == {kind}


def test_keywords_are_names_behind_a_dot_and_in_front_of_a_colon() -> None:
    assert kinds(PROGRAM, "store") == {colours.LABEL, colours.SEGMENT}
    assert kinds(PROGRAM, "tool") == {Keyword.Declaration, colours.LABEL}
    assert kinds(PROGRAM, "loop") == {colours.FUNCTION, Keyword}
    assert kinds(PROGRAM, "system") == {colours.LABEL}


@settings(deadline=None, max_examples=50)
@given(programs(max_declarations=2))
def test_a_valid_program_has_no_error_token(text: str) -> None:
    assert Error not in {kind for kind, _ in HaloLexer().get_tokens(text)}


def test_a_callee_and_its_method_are_told_from_a_path() -> None:
    assert kinds("x |> Bot.answer(Bot.result)", "Bot") == {colours.CALLEE, Name}
    assert kinds("x |> Bot.answer(Bot.result)", "answer") == {colours.FUNCTION}


def test_an_open_header_does_not_colour_the_next_declaration() -> None:
    text = "schema S { a: String, \nagent Bot [openai/gpt-4o]"
    assert kinds(text, "agent") == {Keyword.Declaration}
    assert kinds(text, "openai/gpt-4o") == {colours.MODEL}


def test_a_string_that_is_not_closed_ends_with_its_line() -> None:
    assert kinds('"open {{x}}\nagent', "agent") == {Keyword.Declaration}
    assert kinds("'open {\nagent", "agent") == {Keyword.Declaration}


@settings(deadline=None)
@given(TEXT)
def test_the_tokens_of_any_text_rejoin_to_it(text: str) -> None:
    assert "".join(value for _, value in HaloLexer().get_tokens(text)) == text
    offset = 0
    for start, _, value in HaloLexer().get_tokens_unprocessed(text):
        assert start == offset
        assert value
        offset += len(value)


@settings(deadline=None)
@given(TEXT)
def test_lines_lexed_one_by_one_get_the_colours_of_the_whole_text(text: str) -> None:
    whole: list[TokenType | None] = [None if text[at] == "\n" else kind for at, kind in enumerate(by_character(text))]
    assert line_by_line(text) == whole


@settings(deadline=None)
@given(TEXT)
def test_the_state_behind_a_line_stays_small(text: str) -> None:
    state: State = START
    for line in text.split("\n"):
        _, state = highlight_line(line, state)
        assert len(state) < 5


@pytest.mark.parametrize(
    "unit", ["(", "a ", "a.", "a  .", "{{", '"{{a', "/*", "*", '"', "\\", "a-", "a" * 9, "@", ": "]
)
def test_long_runs_are_lexed_without_being_scanned_again_and_again(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert sum(len(value) for _, _, value in HaloLexer().get_tokens_unprocessed(text)) == len(text)


def test_pygments_finds_the_lexer_by_name_and_by_file() -> None:
    assert isinstance(get_lexer_by_name("halo"), HaloLexer)
    assert isinstance(get_lexer_for_filename("review.halo"), HaloLexer)


def test_pygments_writes_html_with_the_classes_of_the_types() -> None:
    html = highlight('x |> Bot.go("{{a}}")', HaloLexer(), HtmlFormatter())
    assert '<span class="ow">|&gt;</span>' in html
    assert '<span class="si">{{a}}</span>' in html


def test_all_types_are_standard_so_that_every_theme_colours_them() -> None:
    assert {kind for kind, _ in HaloLexer().get_tokens(PROGRAM + "\x00")} <= STANDARD_TYPES.keys()


def test_bytes_and_layout_options_are_treated_as_pygments_does() -> None:
    crlf = "agent A\r\n\r\n"
    assert highlight(crlf, HaloLexer(), NullFormatter()) == crlf
    assert highlight(crlf, HaloLexer(stripnl=True), NullFormatter()) == "agent A\n"
    assert "".join(value for _, value in HaloLexer(encoding="utf-8").get_tokens(crlf.encode())) == "agent A\n"


def test_filters_are_applied() -> None:
    lexer = HaloLexer()
    lexer.add_filter("keywordcase", case="upper")
    assert highlight("agent A", lexer, NullFormatter()) == "AGENT A"

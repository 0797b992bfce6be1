"""What the parser makes of programs that fit the grammar, and what holds for any text at all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang import Diagnostic, Program, Source, SourceDecodeError, Span, check, decode, nodes, not_utf8, parse
from halo_lang import parse_condition as condition
from halo_lang.grammar import GRAMMAR, TABLES
from halo_lang.tables import tables

TOUR = """\
/* all forms */ policy Safe : Block(PII,) & Approve(Repo.merge_pull) & MaxLatency(2s)
  & Audit(Redact(Email, restore: true))
tool Repo : GitHub(Env.TOKEN, repo: "acme/api") // a comment
store Docs : VectorStore
schema Box { store: String, each: Array<Array<Box>>, } schema None {}
@retry(3, 2s) @shadow(openai/gpt-4o-mini)
@timeout(5m) agent Größe [ollama/llama3.2:3b, temp: -0.3,]
  system "Kind."
  equips Repo, Docs, requires Safe,
agent B ["x/y"]
pipeline Main(text: String, xs: Array<Number>,) -> Box:
  text
    |> Größe.loop(in: "a", else: xs.0.title, true: [1, 2e3, null,], "last",) as kept
    |? (kept.n >= 1.5 && !(text == "a" || false)) => Other(text) as other
    |? (xs) =>
    |? { (text == "q") => B.go(), else => Other(), } as branch
    |* { B.a() as a, Other(text), } as all
    |* each(x in context.data.xs, concurrency: 2) => B.go(x) as each_one
    |! yield("Sure?", timeout: 1d) as answer
    ~> listen(UI.each) as click
    |<> loop(B, "context.data.x > 3", max: 3) as tries
pipeline Other(x: String) -> Result: x
"""


def walk(node: object) -> Iterator[object]:
    """A node and all nodes in it."""
    if isinstance(node, tuple) and not isinstance(node, Span):
        for item in node:
            yield from walk(item)
    elif is_dataclass(node):
        yield node
        for field in fields(node):
            yield from walk(getattr(node, field.name))


def stages(text: str) -> tuple[nodes.Stage, ...]:
    program = parse(f"pipeline P(x: String) -> R:\n  x {text}")
    assert program.diagnostics == ()
    return program.pipelines[0].stages


def value(text: str) -> nodes.ArgumentValue:
    (stage,) = stages(f"|> A.b({text})")
    assert isinstance(stage, nodes.PipeStage)
    return stage.call.args[0].value


def test_a_program_of_all_forms_parses() -> None:
    program = parse(TOUR)
    assert program.diagnostics == ()
    assert [declaration.name.text for declaration in program.declarations] == (
        ["Safe", "Repo", "Docs", "Box", "None", "Größe", "B", "Main", "Other"]
    )
    kinds = "PipeStage GateStage GateStage BranchStage FanOutStage EachStage YieldStage ListenStage LoopStage"
    assert [type(stage).__name__ for stage in program.pipelines[0].stages] == kinds.split()


def test_every_node_covers_the_text_that_it_stands_for() -> None:
    program = parse(TOUR)
    for declaration in program.declarations:
        for node in walk(declaration):
            start, end = program.span(declaration, node.span)  # type: ignore[attr-defined]
            text = TOUR[start:end]
            match node:
                case nodes.Name():
                    assert text == node.text
                case nodes.String():
                    assert text[1:-1] == node.value
                case nodes.Duration() | nodes.ModelRef():
                    assert text.strip('"') == node.text
                case nodes.Call() | nodes.Rule():
                    assert text.startswith((node.callee if isinstance(node, nodes.Call) else node.name).text)
                case _:
                    assert text == text.strip() != ""


def test_the_parts_of_a_node_lie_within_it() -> None:
    for declaration in parse(TOUR).declarations:
        for node in walk(declaration):
            for part in walk([getattr(node, field.name) for field in fields(node) if field.name != "span"]):  # type: ignore[arg-type]
                assert node.span.start <= part.span.start <= part.span.end <= node.span.end  # type: ignore[attr-defined]


def test_a_declaration_begins_where_its_spans_count_from() -> None:
    program = parse(TOUR)
    assert all(declaration.span.start == 0 for declaration in program.declarations)
    agent = program.find("Größe")
    assert agent is not None
    assert program.position(agent, agent.name.span) == (7, 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12", 12), ("-3", -3), ("0.5", 0.5), ("1e6", 1_000_000.0), ("007", 7), ("-2.5E-1", -0.25)],
)
def test_a_number_is_an_int_where_it_is_written_as_one(text: str, expected: float) -> None:
    number = value(text)
    assert isinstance(number, nodes.Number)
    assert number.value == expected
    assert type(number.value) is type(expected)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("1d", 86400), ("1e1s", 10)]
)
def test_a_duration_knows_its_text_and_its_seconds(text: str, seconds: float) -> None:
    duration = value(text)
    assert isinstance(duration, nodes.Duration)
    assert (duration.text, duration.seconds) == (text, pytest.approx(seconds))


def test_digits_in_a_path_are_one_segment_each() -> None:
    path = value("context.data.items.0.1.title")
    assert isinstance(path, nodes.Path)
    assert path.segments == ("context", "data", "items", "0", "1", "title")


def test_a_word_that_begins_with_a_keyword_is_a_name() -> None:
    text = "|> A.asset(trueish, nullable: innings) as assist"
    (stage,) = stages(text)
    assert isinstance(stage, nodes.PipeStage)
    assert stage.binding == nodes.Name("assist", stage.binding.span)  # type: ignore[union-attr]
    assert parse(f"pipeline P(x: String) -> R:\n  x {text.replace(' as ', ' ')}").diagnostics != ()


@pytest.mark.parametrize(
    "text",
    [
        "agent loop [x/y]",
        "pipeline P(in: String) -> R: 1",
        "pipeline P(x: Array) -> R: x |* each(in in x) => A.b()",
        "pipeline P(x: String) -> R: x |> A.b() as yield",
        "schema agent { a: String }",
        "tool policy : REST(true: 1)",
    ],
)
def test_a_keyword_where_a_name_is_declared_is_left_to_the_checks(text: str) -> None:
    assert parse(text).diagnostics == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[plain]", "plain"),
        ("[a//b/c@1:x.y-z ]", "a//b/c@1:x.y-z"),
        ("['quoted/one']", "quoted/one"),
        ("[@cf/meta/llama-3\n]", "@cf/meta/llama-3"),
        ("[x/y// no comment\n]", "x/y//"),
    ],
)
def test_a_model_takes_all_its_characters(text: str, expected: str) -> None:
    program = parse(f"agent A {text}")
    if expected == "x/y//":
        assert program.declarations == ()  # a comment behind a model needs white space in front of it (12.1)
    else:
        (agent,) = program.declarations
        assert isinstance(agent, nodes.Agent)
        assert agent.model.text == expected


@pytest.mark.parametrize(
    ("text", "kind"), [("Bot", nodes.Path), ("Größe", nodes.Path), ("x/y-z", nodes.ModelRef), ("'x-y'", nodes.ModelRef)]
)
def test_a_shadow_names_an_agent_or_a_model(text: str, kind: type) -> None:
    (agent,) = parse(f"@shadow({text}) agent A [x/y]").declarations
    assert isinstance(agent, nodes.Agent)
    assert type(agent.directives[0].args[0].value) is kind


CONDITIONS = {
    "a || b && c": "(a || (b && c))",
    "a && b || c": "((a && b) || c)",
    "a || b || c": "(a || b || c)",
    "(a && b) && c && (d && e)": "((a && b) && c && (d && e))",
    "!a == b": "(!a == b)",
    "!(a == b)": "!(a == b)",
    "!!a": "!!a",
    "a == b && !c": "((a == b) && !c)",
    "(a || b) && c": "((a || b) && c)",
    "a.0.b >= -1.5": "(a.0.b >= -1.5)",
    "a=='x'&&b!=null": "((a == 'x') && (b != null))",
}


def bracketed(node: nodes.Condition, text: str) -> str:
    """A condition with all its brackets."""
    match node:
        case nodes.Or():
            return f"({' || '.join(bracketed(operand, text) for operand in node.operands)})"
        case nodes.And():
            return f"({' && '.join(bracketed(operand, text) for operand in node.operands)})"
        case nodes.Comparison():
            return f"({bracketed(node.left, text)} {node.operator} {bracketed(node.right, text)})"
        case nodes.Not():
            return f"!{bracketed(node.operand, text)}"
        case _:
            return text[slice(*node.span)]


@pytest.mark.parametrize(("text", "expected"), CONDITIONS.items())
def test_operators_bind_as_the_language_says(text: str, expected: str) -> None:
    parsed = condition(text)
    assert not isinstance(parsed, Diagnostic)
    assert bracketed(parsed, text) == expected


@pytest.mark.parametrize(
    ("text", "place"), [("a > > 3", 4), ("", 0), ("a ==", 4), ("a = b", 2), ("(a", 0), ("a 'x", 2), ("a)", 1)]
)
def test_a_condition_that_does_not_parse_is_one_diagnostic(text: str, place: int) -> None:
    problem = condition(text)
    assert isinstance(problem, Diagnostic)
    assert problem.span.start == place


def test_two_equal_declarations_are_two_places() -> None:
    text = "agent A [x/y]\nagent A [x/y]\n"
    first, second = parse(text).declarations
    program = parse(text, parse(text))
    assert [program.offset_of(declaration) for declaration in program.declarations] == [0, 14]
    assert first == second


def test_a_byte_order_mark_takes_no_place() -> None:
    program = parse(decode("\ufeffagent A [plain]\r\n".encode()))
    (agent,) = program.declarations
    assert program.position(agent, agent.name.span) == (1, 7)
    assert parse("\ufeffagent A [x/y]").diagnostics == ()


def test_bytes_that_are_no_text_become_one_diagnostic() -> None:
    with pytest.raises(SourceDecodeError) as refused:
        decode(b"agent A\n [caf\xe9]")
    diagnostic = not_utf8(refused.value)
    assert (diagnostic.code, diagnostic.message) == ("HL101", "invalid UTF-8 at byte 13")
    assert Source(refused.value.prefix).position(diagnostic.span.start) == (2, 6)


def test_the_tables_are_those_of_the_grammar() -> None:
    content = json.loads(TABLES.read_text("utf-8"))
    assert content == tables(GRAMMAR.read_text("utf-8")), "run python -m halo_lang.tables"


def test_a_program_is_read_without_lark() -> None:
    reading = "import sys; from halo_lang import parse; parse('agent A [x'); print('lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", reading], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


TOKENS = (
    r"""
policy tool store schema agent pipeline system equips as each in A x 1 2s é - " ' """
    + '"""'
    + r"""
\ // /* */ ( ) [ ] { } < > : , . & @ = == ! -> => ~> |> |? |* |! |<> || |
"""
)
PHRASES = [
    "\n",
    " ",
    "\0",
    "\ufeff",
    "\u2028",
    "agent A [x/y]\n",
    "pipeline P(x: T) -> R:\n",
    "|> A.b(x)\n",
    "|? (x == 1)\n",
]
WORDS = st.sampled_from(TOKENS.split() + PHRASES)


def check_any(program: Program) -> None:
    """What holds for every program, whatever its text."""
    text = program.source.text
    assert "".join(unit.text for unit in program.units) == text
    for diagnostic in program.diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert diagnostic.message
    for unit in program.units:
        for node in walk(unit.declaration):
            assert 0 <= node.span.start <= node.span.end <= len(unit.text)  # type: ignore[attr-defined]
        blank = unit.declaration is None and not unit.diagnostics
        assert not blank or parse(unit.text).declarations == ()
    assert [d.span.start for d in program.diagnostics] == sorted(d.span.start for d in program.diagnostics)


@given(st.lists(WORDS, max_size=60).map("".join))
def test_any_words_give_a_program(text: str) -> None:
    check_any(parse(text.removeprefix("\ufeff")))


@given(st.integers(0, len(TOUR)), st.integers(0, 12), st.lists(WORDS, max_size=3).map(" ".join))
def test_any_typing_mistake_gives_a_program(at: int, cut: int, typed: str) -> None:
    check_any(parse(TOUR[:at] + typed + TOUR[at + cut :]))


@given(st.text(max_size=200))
def test_any_text_gives_a_program(text: str) -> None:
    check_any(parse(text.removeprefix("\ufeff")))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_program_as_far_as_they_are_text(data: bytes) -> None:
    try:
        source = decode(data)
    except SourceDecodeError as problem:
        source = Source(problem.prefix)
    check_any(parse(source))


HOSTILE = [
    "(",
    ")",
    "[",
    "@",
    "@a\n",
    '"',
    "'\n",
    '"""',
    '\\"""',
    "/* ",
    "*/",
    "!",
    "a.",
    "|> ",
    "|> a(\n",
    "agent /*\n",
    "\n@shadow(/*",
    "\nagent A [/*",
]
PREFIXES = ["", "pipeline P(x: T) -> R:\n x |? (", '"""', "/*", "agent A [x/y] "]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("pattern", HOSTILE)
def test_the_time_for_hostile_text_grows_with_its_length_only(pattern: str, prefix: str) -> None:
    def seconds(size: int) -> float:
        text = prefix + pattern * (size // len(pattern))
        start = process_time()
        assert len(parse(text).diagnostics) <= size
        return process_time() - start

    seconds(1_000)
    assert seconds(20_000) < 40 * max(seconds(2_000), 0.005)


def test_a_directive_needs_no_white_space_in_front_of_it() -> None:
    text = "policy Bot:MaxLength(1)@checkpoint pipeline P(x:String)->Result:x@retry(1)agent A[a/b]"
    program = parse(text)
    assert program.diagnostics == ()
    assert [declaration.name.text for declaration in program.declarations] == ["Bot", "P", "A"]


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_a_chain_of_operators_is_as_flat_as_it_is_written(operator: str) -> None:
    text = f" {operator} ".join(["x"] * 10_000)
    chain = condition(text)
    assert isinstance(chain, nodes.And | nodes.Or)
    assert len(chain.operands) == 10_000
    assert check(parse(f"pipeline P(x: Any) -> Result: x |? ({text})")).diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "pipeline P(x: Any) -> Result: x |? (" + "!" * 100_000 + "x)",
        "schema S { a: " + "Array<" * 50_000 + "String" + ">" * 50_000 + " }",
    ],
    ids=["negations", "types"],
)
def test_nesting_without_brackets_is_refused_before_it_is_built(text: str) -> None:
    assert [found.code for found in parse(text).diagnostics] == ["HL106"]

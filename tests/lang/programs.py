"""Random programs that parse, in random layout and with comments anywhere: `programs()` for property tests.

They use every construct of the grammar (spec 1.2). They need not make sense: names may be unknown, and checks may
object. What they mean does not depend on the layout, which is drawn apart from the tokens.
"""

from __future__ import annotations

from itertools import cycle

from hypothesis import strategies as st

Tokens = tuple[str, ...]
TokenStrategy = st.SearchStrategy[Tokens]

NAMES = ("Bot", "Repo", "x", "ticket", "prüfer", "_a", "data1", "each1")
DECLARING = ("policy", "tool", "store", "schema", "agent", "pipeline")
KEYWORDS = (
    *DECLARING,
    "equips",
    "requires",
    "system",
    "context",
    "yield",
    "listen",
    "loop",
    "each",
    "in",
    "else",
    "as",
)
CONSTANTS = ("true", "false", "null")
MODELS = ("openai/gpt-4o-mini", "ollama/llama3.2:3b", "gemini-3-1-pro", "a-b", '"openai/gpt-4o"')
COMMENTS = ("// agent Not [", "/* c */", "/* a\n     b */", "/**/", "//", '// "open')
GAPS = ("", "", "", " ", "  ", "\n", "\n\n", "\t")


def _words(*choices: str) -> TokenStrategy:
    return st.sampled_from(choices).map(lambda word: (word,))


def _join(*parts: TokenStrategy | str) -> TokenStrategy:
    """The parts one after the other; a text stands for its words."""
    strategies = [st.just(tuple(part.split())) if isinstance(part, str) else part for part in parts]
    return st.tuples(*strategies).map(lambda drawn: tuple(token for tokens in drawn for token in tokens))


def _maybe(part: TokenStrategy) -> TokenStrategy:
    return st.just(()) | part


def _many(part: TokenStrategy, *, least: int = 0, most: int = 3) -> TokenStrategy:
    return st.lists(part, min_size=least, max_size=most).map(lambda drawn: tuple(t for tokens in drawn for t in tokens))


def _list(*parts: TokenStrategy, least: int = 0, most: int = 3) -> TokenStrategy:
    """Items of the kinds in their order, with commas between and perhaps one behind the last."""
    kinds = [st.lists(part, min_size=least, max_size=most) for part in parts]
    return st.tuples(st.booleans(), *kinds).map(_with_commas)


def _with_commas(drawn: tuple[bool | list[Tokens], ...]) -> Tokens:
    trailing, *kinds = drawn
    items = [item for kind in kinds if isinstance(kind, list) for item in kind]
    tokens = [token for item in items for token in (*item, ",")]
    return tuple(tokens if trailing else tokens[:-1])


name = _words(*NAMES)
any_name = _words(*NAMES, *KEYWORDS, *CONSTANTS)
plain_text = st.text(st.sampled_from('ab é漢😀{}.:/|>()#"\\\n'), max_size=12)
long_text = st.integers(1, 9).map(lambda count: "lorem ipsum " * count)
string = st.one_of(
    (plain_text | long_text).map(
        lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    ),
    plain_text.map(lambda text: "'" + text.replace("\n", " ") + "'"),
    plain_text.map(lambda text: '"""' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""'),
    st.just('"""\n     {{x.y}}\n       "b"\n     """'),
).map(lambda literal: (literal,))
number = _words("0", "12", "-3", "0.5", "-1.25e+2", "1e6")
duration = _words("500ms", "1.5h", "2d", "30s", "5m")
constant = _words(*CONSTANTS)
path = _join(_words(*NAMES, "context"), _many(_join(".", any_name | _words("0", "12")), most=3))
scalar = string | number | duration | constant | path
value = st.recursive(scalar, lambda inner: _join("[", _list(inner), "]"), max_leaves=5)
arguments = _join("(", _list(value, _join(any_name, ":", value), most=2), ")")
call = _join(name, _maybe(_join(".", any_name)), arguments)
binding = _maybe(_join("as", name))

operand = scalar | _join("!", scalar)
comparison = operand | _join(operand, _words("==", "!=", "<", "<=", ">", ">="), operand)
condition = st.recursive(
    comparison,
    lambda inner: st.one_of(_join(inner, _words("&&", "||"), inner), _join("(", inner, ")"), _join("! (", inner, ")")),
    max_leaves=5,
)

arm = _join("(", condition, ") =>", call)
stage = st.one_of(
    _join("|>", call, binding),
    _join("|? (", condition, ")", _maybe(_join("=>", _maybe(_join(call, binding))))),
    _join("|? {", _list(arm, least=1), "}", binding),
    _join("|? {", arm, ", else =>", call, _maybe(st.just((",",))), "}", binding),
    _join("|* {", _list(_join(call, binding), least=1), "}", binding),
    _join("|* each (", name, "in", _list(value, least=1, most=1), ") =>", call, binding),
    _join("|* each (", name, "in", value, ", concurrency : 2", ") =>", call, binding),
    _join("|! yield", arguments, binding),
    _join("~> listen (", name, ".", name, ")", binding),
    _join("|<> loop (", name, ",", string, _maybe(_join(", max : 3")), ")", binding),
)

type_ = st.recursive(_words("String", "Array", "Answer"), lambda inner: _join("Array <", inner, ">"), max_leaves=2)
fields = _list(_join(any_name, ":", type_))
model = _words(*MODELS)
directive = st.one_of(
    _join("@", _words("checkpoint", "retry", "timeout"), _maybe(arguments)),
    _join("@ shadow (", model | name, ")"),
)
directives = _many(directive, most=2)
rule_value = st.deferred(lambda: scalar | rule)
rule = _join(name, _maybe(_join("(", _list(rule_value, _join(any_name, ":", rule_value), most=1), ")")))
modifier = st.one_of(_join("system", string), _join(_words("equips", "requires"), _list(name, least=1)))

policy = _join("policy", name, ":", rule, _many(_join("&", rule)))
provider = _join(_words("tool", "store"), name, ":", name, _maybe(arguments))
schema = _join("schema", name, "{", fields, "}")
settings = _many(_join(",", any_name, ":", value))
agent = _join(directives, "agent", name, "[", model, settings, _maybe(st.just((",",))), "]", _many(modifier))
head = _join(directives, "pipeline", name, "(", fields, ") ->", type_, ":")
pipeline = _join(head, _join(value, _many(stage)) | _many(stage, least=1))
declaration = st.one_of(policy, provider, schema, agent, pipeline)

comment = st.sampled_from(COMMENTS)
gap = st.sampled_from(GAPS) | st.tuples(st.sampled_from(GAPS), comment, st.sampled_from(GAPS)).map("".join)


def written(tokens: Tokens, gaps: list[str]) -> str:
    """The tokens as text, with the gaps in turn in front of them and behind the last."""
    text, turn = "", cycle(gaps or [""])
    for token in tokens:
        text = _parted(text, next(turn), token) + token
    return _parted(text, next(turn), "\n")


def _parted(text: str, between: str, token: str) -> str:
    """The text with a gap that keeps its end and the token apart where they would run together."""
    if "//" in between:
        between += "\n"
    if text.endswith(".") and token in DECLARING and "\n" in between:
        # At the start of a line the parser takes such a word for a declaration that somebody is still typing.
        return text
    word = text[-1:].isalnum() or text[-1:] in ("_", '"')
    runs_on = word and not between and (token[0].isalnum() or token[0] in '_"')
    # A comment behind a model reference needs white space in front of it (spec 12.1).
    if runs_on or (between.startswith("/") and word):
        between = " " + between
    return text + between


def programs(*, max_declarations: int = 3) -> st.SearchStrategy[str]:
    """Texts that parse without an error."""
    declarations = _many(declaration, most=max_declarations)
    return st.builds(written, declarations, st.lists(gap, max_size=20))


def twins(*, max_declarations: int = 3) -> st.SearchStrategy[tuple[str, str]]:
    """One program in two layouts, without comments."""
    declarations = _many(declaration, most=max_declarations)
    layout = st.lists(st.sampled_from(GAPS), max_size=20)
    return st.tuples(declarations, layout, layout).map(lambda t: (written(t[0], t[1]), written(t[0], t[2])))

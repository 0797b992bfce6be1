"""The mistakes that people make, each with an example, a text and, where it is certain, the edit that mends it.

The table is read from top to bottom and the first entry that applies counts, so special ones stand above general
ones. The tests run every example: no entry outlives the grammar, and none is hidden by another.
"""

from __future__ import annotations

import re

from halo_lang.lexicon import DECLARATION_KEYWORDS
from halo_lang.situation import DECLARATIONS, VALUES, Mistake

_COMPARATORS = ("==", "!=", "<", "<=", ">", ">=")
_MODIFIERS = ("system", "equips", "requires")


def _condition(text: str) -> str:
    return f"pipeline Main(n: Number) -> Result:\n  n |? ({text})"


def _stage(text: str) -> str:
    return f"pipeline Main(n: Number) -> Result:\n  n {text}"


def _written(wrong: str, right: str, terminal: str, example: str) -> Mistake:
    """An operator that other languages write in another way."""
    return Mistake(
        _condition(example),
        lambda s: s.found.text.lower() == wrong and s.wants(terminal),
        f"conditions have no {{found}}, they write `{right}`",
        f"write `{right}`",
        replacement=right,
    )


_ANYWHERE = (
    Mistake(
        "¦# a note\nagent Bot [openai/gpt-4o-mini]",
        lambda s: s.found.text == "#",
        "a comment does not begin with `#`",
        "write `//` in front of a comment",
        replacement="//",
    ),
    Mistake(
        _stage("|> Bot.go()¦;"),
        lambda s: s.found.text == ";",
        "nothing ends with `;` here",
        "take it away",
        replacement="",
    ),
    Mistake(
        _stage("|> Bot.go(¦“hello”)"),
        lambda s: s.found.text in "“”„‘’«»" and s.found.text != "",
        "{found} does not quote",
        "use straight quotes: `\"` or `'`",
    ),
    Mistake(
        _stage('|> Bot.go("say "¦hello" loudly")'),
        lambda s: s.touches and s.before.text[-1:] in ('"', "'") and re.match(r"\w", s.found.text) is not None,
        "the string {before} ends here",
        'write `\\"` for a quotation mark inside a string',
    ),
    Mistake(
        _stage("|> Bot.go() as ¦'result'"),
        lambda s: s.found.text[:1] in ('"', "'") and s.wants("NAME") and not s.wants("STRING"),
        "a name must stand here, found {found}",
        "names have no quotes",
    ),
    Mistake(
        _stage("|> Bot.go(¦.5)"),
        lambda s: s.found.text == "." and s.wants("NUMBER"),
        "a number begins with a digit",
        "write `0` in front of the point",
        replacement="0.",
    ),
    Mistake(
        _stage("|> System.Sleep(5¦min)"),
        lambda s: s.touches and s.before.text[-1:].isdigit() and s.found.text.isalpha(),
        "{found} is no unit of time",
        "the units are ms, s, m, h and d: `500ms`, `5m`",
    ),
    Mistake(
        _stage("|> Bot.go(¦{{n}})"),
        lambda s: s.found.text == "{{" and s.wants("STRING"),
        "placeholders stand inside strings only",
        "write the name without braces",
    ),
    Mistake(
        _stage("|> Bot.go(¦{ a: 1 })"),
        lambda s: s.found.text == "{" and s.expected >= VALUES,
        "there are no object literals",
        "pass named arguments (`name: value`) or a string with JSON in it",
    ),
    Mistake(
        _stage("|> Bot.go(n¦, , 1)").replace("¦, ,", ", ¦,"),
        lambda s: s.found.text == "," and s.wants("NAME", "STRING", "ELSE"),
        "nothing stands in front of this comma",
        "take the comma away, or write what is missing",
    ),
    Mistake(
        _stage("|> Bot.go(temp ¦= 1)"),
        lambda s: s.found.text == "=" and s.wants("COLON"),
        "names and values are joined with `:`, found {found}",
        "write `:`",
        replacement=":",
    ),
    Mistake(
        _stage("|> Bot.go(n ¦+ 1)"),
        lambda s: s.found.text in ("+", "-", "*", "%") and (s.wants("COMMA", "_AND") or s.expected >= VALUES),
        "there is no arithmetic, found {found}",
        "let an agent or a tool work it out, and use its result",
    ),
    Mistake(
        _stage("|> Bot.go(temp ¦=> 1)"),
        lambda s: s.found.text == "=>" and s.wants("COLON"),
        "names and values are joined with `:`, found {found}",
        "write `:`, or `,` between two arguments",
    ),
)

_IN_CONDITIONS = (
    Mistake(
        _condition("n ==¦= 1"),
        lambda s: s.found.text == "=" and s.before.text in ("==", "!=") and s.touches,
        "there is one `=` too many",
        "write {before}",
        replacement="",
    ),
    _written("=", "==", "COMPARATOR", "n ¦= 1"),
    _written("=<", "<=", "COMPARATOR", "n ¦=< 1"),
    _written("=>", ">=", "COMPARATOR", "n ¦=> 1"),
    _written("is", "==", "COMPARATOR", "n ¦is 1"),
    _written("and", "&&", "_AND", "n > 1 ¦and n < 5"),
    _written("&", "&&", "_AND", "n > 1 ¦& n < 5"),
    _written("or", "||", "_OR", "n > 1 ¦or n < 5"),
    _written("|", "||", "_OR", "n > 1 ¦| n < 5"),
    Mistake(
        _condition("n <¦> 1"),
        lambda s: s.found.text == ">" and s.before.text == "<" and s.touches,
        "conditions have no `<>`, they write `!=`",
        "write `!=`",
    ),
    Mistake(
        _condition("¦not n"),
        lambda s: s.before.text.lower() == "not" and s.wants("COMPARATOR") and s.begins,
        "conditions have no {before}, they write `!`",
        "write `!`",
        at_before=True,
        replacement="!",
    ),
    Mistake(
        _condition("1 < n ¦< 5"),
        lambda s: s.found.text in _COMPARATORS and s.wants("_AND") and not s.wants("COMPARATOR"),
        "comparisons cannot be chained",
        "compare twice and join with `&&`: `1 < n && n < 5`",
    ),
    Mistake(
        _stage("|<> loop(Bot, ¦n > 1)"),
        lambda s: s.only("STRING") and s.before.text == ",",
        "the condition of a loop is a string, found {found}",
        'put it in quotes: `loop(Agent, "score < 8")`',
    ),
    Mistake(
        "agent Bot [openai/gpt-4o-mini]\n  system ¦You are kind.",
        lambda s: s.only("STRING") and s.found.text != ":",
        "a string must stand here, found {found}",
        "put the text in quotes",
    ),
    Mistake(
        _stage("|? ¦n > 1"),
        lambda s: s.before.text == "|?" and s.begins,
        "a condition stands in brackets, found {found}",
        "write `|? (condition)`",
    ),
    Mistake(
        _condition("n ¦n"),
        lambda s: s.wants("_AND") and s.begins,
        "an operator is missing in front of {found}",
        "compare with `==`, join with `&&` or `||`",
    ),
)

_DECLARATIONS = (
    Mistake(
        "¦agnet Bot [openai/gpt-4o-mini]",
        lambda s: s.expected >= DECLARATIONS and s.meant is not None,
        "{found} begins no declaration",
        "did you mean {meant}?",
        replacement="{meant}",
    ),
    Mistake(
        "¦flow Main(n: Number) -> Result: n",
        lambda s: s.expected >= DECLARATIONS and s.found.text != "",
        "{found} begins no declaration",
        f"declarations begin with {', '.join(DECLARATION_KEYWORDS)}, or with a directive such as `@timeout(5s)`",
    ),
    Mistake(
        "@timeout(5s)¦",
        lambda s: s.wants("AGENT") and s.found.text == "",
        "no declaration follows these directives",
        "put an agent or a pipeline behind them, or take them away",
    ),
    Mistake(
        "@timeout(5s)\n¦tool Repo : GitHub(Env.TOKEN)",
        lambda s: s.wants("AGENT") and s.found.text in DECLARATION_KEYWORDS,
        "directives belong to agents and pipelines, found {found}",
        "move the directives in front of the declaration that they belong to",
    ),
    Mistake(
        "agent Bot ¦(openai/gpt-4o-mini)",
        lambda s: s.only("LSQB"),
        "an agent's model and settings stand in square brackets, found {found}",
        "write `agent Name [model, setting: value]`",
    ),
    Mistake(
        "agent Bot [¦temp: 0.3]",
        lambda s: s.found.text == ":" and s.only("COMMA", "RSQB") and s.before.text.isidentifier(),
        "an agent's model comes before its settings, found {before}",
        "begin with the model: `[openai/gpt-4o-mini, temp: 0.3]`",
        at_before=True,
    ),
    Mistake(
        'agent Bot [openai/gpt-4o-mini]\n  system¦: "Be kind."',
        lambda s: s.found.text == ":" and s.before.text in _MODIFIERS,
        "no colon stands behind {before}",
        "take the `:` away",
        replacement="",
    ),
    Mistake(
        "agent Bot [openai/gpt-4o-mini]\n  equips ¦[Repo, Docs]",
        lambda s: s.found.text == "[" and s.before.text in _MODIFIERS,
        "the names behind {before} stand without brackets",
        "take the brackets away; commas between the names are enough",
    ),
    Mistake(
        "policy Safe : Block(PII)¦, MaxSpend(1)",
        lambda s: s.wants("AMPERSAND") and s.found.text in (",", "&&", "and", "|", "||"),
        "rules are joined with `&`, found {found}",
        "write `&`",
        replacement=" &",
    ),
    Mistake(
        "policy Safe : Block(PII) ¦MaxSpend(1)",
        lambda s: s.wants("AMPERSAND") and s.follows == "(" and not s.before.text.isidentifier(),
        "an `&` is missing in front of {found}",
        "rules are joined with `&`",
        insertion=" &",
    ),
    Mistake(
        "policy Safe : RequireJSON ¦RequireCitation",
        lambda s: s.wants("AMPERSAND") and s.begins,
        "an `&` is missing in front of {found}",
        "rules are joined with `&`",
    ),
    Mistake(
        "schema Item { tags: String¦[] }",
        lambda s: s.found.text == "[" and s.wants("LESSTHAN"),
        "the type of a list is not written with `[]`",
        "write `Array<String>` for a list of strings",
    ),
    Mistake(
        "pipeline Main(n¦) -> Result: n",
        lambda s: s.only("COLON") and s.found.text in (")", ",", "}"),
        "{before} has no type",
        "write one behind it, such as `: String`",
    ),
)

_HEADS = (
    Mistake(
        "pipeline Main(n: Number) ¦=> Result: n",
        lambda s: s.wants("_RETURNS") and s.found.text in ("=>", "~>"),
        "the type of a pipeline's result stands behind `->`, found {found}",
        "write `->`",
        code="HL107",
        replacement="->",
    ),
    Mistake(
        "pipeline Main(n: Number) ¦Result: n",
        lambda s: s.wants("_RETURNS") and s.found.text.isidentifier() and s.follows in (":", "<"),
        "a `->` is missing in front of {found}",
        "write `->` between the parameters and the type of the result",
        code="HL107",
        insertion=" ->",
    ),
    Mistake(
        "pipeline Main(n: Number)¦: n",
        lambda s: s.wants("_RETURNS"),
        "a pipeline needs `->` and the type of its result here",
        "write `-> Result` behind the parameters, or a schema's name in the place of `Result`",
        code="HL107",
        insertion=" -> Result",
    ),
    Mistake(
        "pipeline Main(n: Number) -> ¦: n",
        lambda s: s.before.text == "->" and s.wants("NAME"),
        "the type of the pipeline's result is missing behind `->`",
        "write `-> Result`, or a schema's name in the place of `Result`",
        code="HL107",
        insertion=" Result",
    ),
    Mistake(
        "pipeline Main ¦-> Result: 1",
        lambda s: s.only("LPAR") and s.found.text in ("->", ":"),
        "a pipeline needs brackets behind its name, also without parameters",
        "write `()` behind {before}",
        insertion="()",
    ),
)

_STAGES = (
    Mistake(
        _stage("¦~ listen(UI.Ready)"),
        lambda s: s.could_end and s.found.text == "~",
        "{found} is no stage operator",
        "did you mean `~>`?",
        replacement="~>",
    ),
    Mistake(
        _stage("¦| Bot.go()"),
        lambda s: s.could_end and s.found.text in ("|", "||", "||>", ">"),
        "{found} is no stage operator",
        "did you mean `|>`?",
        replacement="|>",
    ),
    Mistake(
        _stage("¦-> Bot.go()"),
        lambda s: s.could_end and s.found.text == "->",
        "{found} is no stage operator",
        "write `|>` in front of a stage, `as` in front of the name of its result",
    ),
    Mistake(
        "pipeline Main(n: Number) -> Result:\n  Bot.go¦(n)",
        lambda s: s.rule == "value" and s.found.text == "(",
        "a pipeline does not begin with a call",
        "write `|>` in front of the call",
    ),
    Mistake(
        _stage("|> Bot.go(Other.come¦(n))"),
        lambda s: s.found.text == "(" and s.wants("COMMA") and s.wants("DOT"),
        "a call cannot be an argument",
        "make it a stage of its own, `|> call as name`, and pass the name",
    ),
    Mistake(
        _stage("|> ¦|> Bot.go()").replace("|> ¦|>", "|>¦ |>"),
        lambda s: s.rule == "stage" and s.found.text == "" and s.before.text in ("|>", "|?", "|*", "|!", "~>", "|<>"),
        "nothing stands behind {before}",
        "write what this stage does, or take {before} away",
    ),
    Mistake(
        _stage("|? { ¦n > 1 => Bot.go() }"),
        lambda s: s.wants("ELSE") and s.begins and s.meant is None,
        "an arm of a branch begins with a condition in brackets, found {found}",
        "write `(condition) => call`, or `else => call` for the last arm",
    ),
    Mistake(
        _stage("|? { (n > 1) => Bot.go() ¦as big, else => Bot.stop() }"),
        lambda s: s.found.text == "as" and s.before.text == ")" and s.only("COMMA", "RBRACE"),
        "one arm of a branch cannot name its result",
        "name that of the branch, with `as` behind its `}}`; each call is also found by its method",
    ),
    Mistake(
        _stage("|* each ¦item in items => Bot.go(item)"),
        lambda s: s.before.text == "each" and s.wants("LPAR") and s.found.text.isidentifier(),
        "the item and the list of `each` stand in brackets, found {found}",
        "write `each(item in list) => Agent.method(item)`",
    ),
    Mistake(
        _stage("|> ¦as result"),
        lambda s: s.before.text == "as" and s.wants("LPAR") and s.begins,
        "{before} names the result of a call, and there is none in front of it",
        "write the call: `|> Agent.method() as name`",
        at_before=True,
    ),
    Mistake(
        _stage('|> Bot.go ¦"hello"'),
        lambda s: s.wants("LPAR") and s.before.text.isidentifier() and s.begins and s.found.text != "as",
        "the arguments of {before} stand in brackets, found {found}",
        "write them as `(first, name: second)`",
    ),
    Mistake(
        _stage("|> Bot.go ¦as result"),
        lambda s: s.only("LPAR") and s.before.text.isidentifier() and s.found.text != "",
        "a call needs brackets behind {before}",
        "write `()`, also where there are no arguments",
        insertion="()",
    ),
    Mistake(
        _stage("|> Summarize ¦as result"),
        lambda s: s.expected <= {"DOT", "LPAR"} and s.wants("LPAR") and s.before.text.isidentifier(),
        "a call needs brackets behind {before}",
        "write `()`, also where there are no arguments; an agent or tool is called by a method",
    ),
    Mistake(
        _stage("|? { (n > 1)¦: Bot.go() }"),
        lambda s: s.only("ARROW") and s.found.text in (":", "->", "="),
        "the call stands behind `=>`, found {found}",
        "write `=>`",
        replacement=" =>",
    ),
    Mistake(
        _stage("|? { (n > 1) ¦Bot.go() }"),
        lambda s: s.only("ARROW") and s.begins,
        "a `=>` is missing in front of {found}",
        "write `=>` between the condition and the call",
        insertion=" =>",
    ),
    Mistake(
        _stage("|! ¦yeild()"),
        lambda s: s.meant is not None,
        "{found} cannot stand here",
        "did you mean {meant}?",
        replacement="{meant}",
    ),
    Mistake(
        _stage("¦Bot.go()"),
        lambda s: s.could_end and s.found.text.isidentifier(),
        "a stage begins with an operator, found {found}",
        "write `|>` in front of {found}, or take it away",
    ),
)

_SEPARATORS = (
    Mistake(
        _stage('|> Bot.go(topic ¦"cats")'),
        lambda s: s.wants("COMMA") and s.wants("COLON") and s.begins,
        "a comma is missing in front of {found}",
        "write `,` between two arguments, or `:` between a name and its value",
    ),
    Mistake(
        _stage('|> Bot.go("one" ¦"two")'),
        lambda s: s.wants("COMMA") and s.begins_item and not s.wants("EQUIPS"),
        "a comma is missing in front of {found}",
        "write `,` between the two",
        insertion=",",
    ),
    Mistake(
        "agent Bot [openai/gpt-4o-mini]\n  equips Repo ¦Docs",
        lambda s: s.wants("COMMA") and s.begins,
        "a comma is missing in front of {found}",
        "write `,` between the two",
    ),
    Mistake(
        "pipeline Main(n: Number) -> Result ¦n",
        lambda s: s.wants("COLON") and s.begins,
        "a `:` is missing in front of {found}",
        "write `:` behind {before}",
        insertion=":",
    ),
)

MISTAKES = (*_ANYWHERE, *_IN_CONDITIONS, *_DECLARATIONS, *_HEADS, *_STAGES, *_SEPARATORS)
"""All entries in the order in which they are tried."""

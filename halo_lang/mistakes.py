"""The mistakes that people make, each with an example, a text and, where it is certain, the edit that mends it.

The table is read from top to bottom and the first entry that applies counts, so special ones stand above general
ones. The tests run every example: no entry outlives the grammar, and none is hidden by another.
"""

from __future__ import annotations

import re

from halo_lang.lexicon import DECLARATION_KEYWORDS
from halo_lang.situation import DECLARATIONS, VALUES, Mistake
from halo_lang.stage_mistakes import STAGES, written_stage

_COMPARATORS = ("==", "!=", "<", "<=", ">", ">=")
_OPERATORS = (*_COMPARATORS, "&&", "||", "!")
_MODIFIERS = ("system", "equips", "requires")


def _condition(text: str) -> str:
    return f"pipeline Main(n: Number) -> Result:\n  n |? ({text})"


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
        written_stage("|> Bot.go()¦;"),
        lambda s: s.found.text == ";",
        "nothing ends with `;` here",
        "take it away",
        replacement="",
    ),
    Mistake(
        written_stage("|> Bot.go(¦“hello”)"),
        lambda s: s.found.text in "“”„‘’«»" and s.found.text != "",
        "{found} does not quote",
        "use straight quotes: `\"` or `'`",
    ),
    Mistake(
        written_stage('|> Bot.go("say "¦hello" loudly")'),
        lambda s: s.touches and s.before.text[-1:] in ('"', "'") and re.match(r"\w", s.found.text) is not None,
        "the string {before} ends here",
        'write `\\"` for a quotation mark inside a string',
    ),
    Mistake(
        written_stage("|> Bot.go() as ¦'result'"),
        lambda s: s.found.text[:1] in ('"', "'") and s.wants("NAME") and not s.wants("STRING"),
        "a name must stand here, found {found}",
        "names have no quotes",
    ),
    Mistake(
        written_stage("|> Bot.go(¦.5)"),
        lambda s: s.found.text == "." and s.wants("NUMBER"),
        "a number begins with a digit",
        "write `0` in front of the point",
        replacement="0.",
    ),
    Mistake(
        written_stage("|> System.Sleep(5¦min)"),
        lambda s: s.touches and s.before.text[-1:].isdigit() and s.found.text.isalpha(),
        "{found} is no unit of time",
        "the units are ms, s, m, h and d: `500ms`, `5m`",
    ),
    Mistake(
        written_stage("|> Bot.go(¦{{n}})"),
        lambda s: s.found.text == "{{" and s.wants("STRING"),
        "placeholders stand inside strings only",
        "write the name without braces",
    ),
    Mistake(
        written_stage("|> Bot.go(¦{ a: 1 })"),
        lambda s: s.found.text == "{" and s.expected >= VALUES,
        "there are no object literals",
        "pass named arguments (`name: value`) or a string with JSON in it",
    ),
    Mistake(
        written_stage("|> Bot.go(n¦, , 1)").replace("¦, ,", ", ¦,"),
        lambda s: s.found.text == "," and s.wants("NAME", "STRING", "ELSE"),
        "nothing stands in front of this comma",
        "take the comma away, or write what is missing",
    ),
    Mistake(
        written_stage("|> Bot.go(temp ¦= 1)"),
        lambda s: s.found.text == "=" and s.wants("COLON"),
        "names and values are joined with `:`, found {found}",
        "write `:`",
        replacement=":",
    ),
    Mistake(
        written_stage("|> Bot.go(n ¦+ 1)"),
        lambda s: s.found.text in ("+", "-", "*", "%") and (s.wants("COMMA", "_AND") or s.expected >= VALUES),
        "there is no arithmetic, found {found}",
        "let an agent or a tool work it out, and use its result",
    ),
    Mistake(
        written_stage("|> Bot.go(temp ¦=> 1)"),
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
        written_stage("|<> loop(Bot, ¦n > 1)"),
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
        written_stage("|? ¦n > 1"),
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
    Mistake(
        _condition("n > 1 && ¦"),
        lambda s: s.wants("BANG") and s.before.text in _OPERATORS,
        "a value is missing behind {before}, found {found}",
        "write a value, a path or a condition in brackets there, or take {before} away",
    ),
    Mistake(
        _condition("¦&& n"),
        lambda s: s.wants("BANG") and s.found.text in _OPERATORS,
        "a value is missing in front of {found}",
        "write a value, a path or a condition in brackets there, or take {found} away",
    ),
    Mistake(
        _condition("¦"),
        lambda s: s.wants("BANG") and s.found.text in (")", ""),
        "a condition is missing here, found {found}",
        "write one, such as `score > 8`",
    ),
    Mistake(
        _condition("¦[n]"),
        lambda s: s.wants("BANG") and s.found.text == "[",
        "no list can stand in a condition",
        "compare with one value after the other and join with `||`",
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
        "schema Item ¦[tags: String]",
        lambda s: s.only("LBRACE"),
        "the fields of a schema stand in braces, found {found}",
        "write `schema Name {{ field: Type }}`",
    ),
    Mistake(
        "schema Item { tags: ¦}",
        lambda s: s.only("NAME") and s.before.text == ":" and s.found.text in (")", "}"),
        "a type is missing behind `:`",
        "write one, such as `String`",
    ),
    Mistake(
        "pipeline Main(n: Number ¦= 1) -> Result: n",
        lambda s: s.wants("LESSTHAN") and s.found.text == "=",
        "a parameter has no value of its own",
        "give the value where the pipeline is run or called",
    ),
    Mistake(
        "policy Safe¦",
        lambda s: s.wants("COLON") and s.found.text == "",
        "a `:` is missing behind {before}",
        "write it, and what belongs behind it",
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

_SEPARATORS = (
    Mistake(
        written_stage('|> Bot.go(topic ¦"cats")'),
        lambda s: s.wants("COMMA") and s.wants("COLON") and s.begins,
        "a comma is missing in front of {found}",
        "write `,` between two arguments, or `:` between a name and its value",
    ),
    Mistake(
        written_stage('|> Bot.go("one" ¦"two")'),
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

MISTAKES = (*_ANYWHERE, *_IN_CONDITIONS, *_DECLARATIONS, *_HEADS, *STAGES, *_SEPARATORS)
"""All entries in the order in which they are tried."""

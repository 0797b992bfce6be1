"""The mistakes that people make in the stages of a pipeline: a part of the table in mistakes.py, read like it."""

from __future__ import annotations

from halo_lang.situation import VALUES, Mistake


def written_stage(text: str) -> str:
    """A pipeline with that stage, for an example."""
    return f"pipeline Main(n: Number) -> Result:\n  n {text}"


STAGES = (
    Mistake(
        written_stage("¦~ listen(UI.Ready)"),
        lambda s: s.could_end and s.found.text == "~",
        "{found} is no stage operator",
        "did you mean `~>`?",
        replacement="~>",
    ),
    Mistake(
        written_stage("¦| Bot.go()"),
        lambda s: s.could_end and s.found.text in ("|", "||", "||>", ">"),
        "{found} is no stage operator",
        "did you mean `|>`?",
        replacement="|>",
    ),
    Mistake(
        written_stage("¦-> Bot.go()"),
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
        written_stage("|> Bot.go(Other.come¦(n))"),
        lambda s: s.found.text == "(" and s.wants("COMMA") and s.wants("DOT"),
        "a call cannot be an argument",
        "make it a stage of its own, `|> call as name`, and pass the name",
    ),
    Mistake(
        written_stage("|> ¦|> Bot.go()").replace("|> ¦|>", "|>¦ |>"),
        lambda s: s.rule == "stage" and s.found.text == "" and s.before.text in ("|>", "|?", "|*", "|!", "~>", "|<>"),
        "nothing stands behind {before}",
        "write what this stage does, or take {before} away",
    ),
    Mistake(
        written_stage("|? { ¦n > 1 => Bot.go() }"),
        lambda s: s.wants("ELSE") and s.begins and s.meant is None,
        "an arm of a branch begins with a condition in brackets, found {found}",
        "write `(condition) => call`, or `else => call` for the last arm",
    ),
    Mistake(
        written_stage("|? { (n > 1) => Bot.go() ¦as big, else => Bot.stop() }"),
        lambda s: s.found.text == "as" and s.before.text == ")" and s.only("COMMA", "RBRACE"),
        "one arm of a branch cannot name its result",
        "name that of the branch, with `as` behind its `}}`; each call is also found by its method",
    ),
    Mistake(
        written_stage("|* each ¦item in items => Bot.go(item)"),
        lambda s: s.before.text == "each" and s.wants("LPAR") and s.found.text.isidentifier(),
        "the item and the list of `each` stand in brackets, found {found}",
        "write `each(item in list) => Agent.method(item)`",
    ),
    Mistake(
        written_stage("|* each(item ¦of items) => Bot.go(item)"),
        lambda s: s.only("_IN") and s.found.text == "of",
        "the list stands behind `in`, found {found}",
        "write `in`",
        replacement="in",
    ),
    Mistake(
        written_stage("|* each(items¦) => Bot.go(item)"),
        lambda s: s.only("_IN") and s.meant is None,
        "`each` names an item and its list, found {found} where `in` must stand",
        "write `each(item in list) => Agent.method(item)`",
    ),
    Mistake(
        written_stage("|* ¦[Bot.one(), Bot.two()]"),
        lambda s: s.wants("_EACH") and s.begins and s.meant is None,
        "calls side by side stand in braces, found {found}",
        "write `|* {{ Agent.one(), Agent.two() }}`, or `|* each(item in list) => Agent.method(item)`",
    ),
    Mistake(
        written_stage('|! ¦"Go on?"'),
        lambda s: s.only("_YIELD") and s.begins and s.meant is None,
        "a question to a person is asked with `yield`, found {found}",
        'write `|! yield("Question?")`',
    ),
    Mistake(
        written_stage("~> ¦Editor.Saved"),
        lambda s: s.only("_LISTEN") and s.begins and s.meant is None,
        "an event is awaited with `listen`, found {found}",
        "write `~> listen(Source.Event)`",
    ),
    Mistake(
        written_stage("~> listen(Saved¦)"),
        lambda s: s.only("DOT") and s.found.text == ")",
        "an event has a source and a name, found {found}",
        "write `listen(Source.Event)`",
    ),
    Mistake(
        written_stage("|<> ¦Bot"),
        lambda s: s.only("_LOOP") and s.begins and s.meant is None,
        "a loop is written with `loop`, found {found}",
        'write `|<> loop(Agent, "condition")`',
    ),
    Mistake(
        written_stage("|<> loop(Bot¦)"),
        lambda s: s.only("COMMA") and s.found.text == ")",
        "the condition of the loop is missing, found {found}",
        'write `loop(Agent, "condition")`: it goes back to the agent as long as that holds',
    ),
    Mistake(
        written_stage("|> Bot.go() as¦"),
        lambda s: s.only("NAME") and s.before.text == "as",
        "a name is missing behind `as`, found {found}",
        "write one, such as `as result`; it begins with a letter",
    ),
    Mistake(
        written_stage("|> Bot.¦(n)"),
        lambda s: s.wants("NAME") and s.before.text == ".",
        "a name is missing behind `.`, found {found}",
        "write it, or take the `.` away",
    ),
    Mistake(
        written_stage("|> Bot.go(tone: ¦)"),
        lambda s: s.expected >= VALUES and s.before.text == ":" and s.found.text in (")", "]"),
        "a value is missing behind `:`, found {found}",
        "write one",
    ),
    Mistake(
        written_stage("|> ¦as result"),
        lambda s: s.before.text == "as" and s.wants("LPAR") and s.begins,
        "{before} names the result of a call, and there is none in front of it",
        "write the call: `|> Agent.method() as name`",
        at_before=True,
    ),
    Mistake(
        written_stage('|> Bot.go ¦"hello"'),
        lambda s: s.wants("LPAR") and s.before.text.isidentifier() and s.begins and s.found.text != "as",
        "the arguments of {before} stand in brackets, found {found}",
        "write them as `(first, name: second)`",
    ),
    Mistake(
        written_stage("|> Bot.go ¦as result"),
        lambda s: s.only("LPAR") and s.before.text.isidentifier() and s.found.text != "",
        "a call needs brackets behind {before}",
        "write `()`, also where there are no arguments",
        insertion="()",
    ),
    Mistake(
        written_stage("|> Summarize ¦as result"),
        lambda s: s.expected <= {"DOT", "LPAR"} and s.wants("LPAR") and s.before.text.isidentifier(),
        "a call needs brackets behind {before}",
        "write `()`, also where there are no arguments; an agent or tool is called by a method",
    ),
    Mistake(
        written_stage("|? { (n > 1)¦: Bot.go() }"),
        lambda s: s.only("ARROW") and s.found.text in (":", "->", "="),
        "the call stands behind `=>`, found {found}",
        "write `=>`",
        replacement=" =>",
    ),
    Mistake(
        written_stage("|? { (n > 1) ¦Bot.go() }"),
        lambda s: s.only("ARROW") and s.begins,
        "a `=>` is missing in front of {found}",
        "write `=>` between the condition and the call",
        insertion=" =>",
    ),
    Mistake(
        written_stage("|! ¦yeild()"),
        lambda s: s.meant is not None,
        "{found} cannot stand here",
        "did you mean {meant}?",
        replacement="{meant}",
    ),
    Mistake(
        written_stage("¦Bot.go()"),
        lambda s: s.could_end and s.found.text.isidentifier(),
        "a stage begins with an operator, found {found}",
        "write `|>` in front of {found}, or take it away",
    ),
)
"""The entries in the order in which they are tried."""

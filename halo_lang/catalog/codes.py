"""Every diagnostic code: what it means, with a wrong and a right example (spec 1.4).

`halo explain` and the page `docs/reference/diagnostics.md` are made from this list; the tests check every example.
"""

from __future__ import annotations

from typing import Literal

from halo_lang.records import record

_AGENT = "agent Bot [openai/gpt-4o-mini]\n"
_REPO_USER = "pipeline Main(n: Number) -> Result: n |> Repo.get_issue(n)"
# In two parts, so that nothing that scans repositories for keys takes it for one.
_KEY = "ghp_" + "x7Kq2mVn9RtLw4ZpYc8HsBd1JfGa6EuT0oNi"


@record
class Code:
    """A diagnostic code. `wrong` gives exactly this one, `right` shows how it is meant and gives none.

    A byte that is no UTF-8 stands in an example as a surrogate escape.
    """

    name: str
    severity: Literal["error", "warning", "info"]
    title: str
    text: str
    wrong: str
    right: str


CODES: tuple[Code, ...] = (
    Code(
        "HL101",
        "error",
        "invalid UTF-8",
        "A program is UTF-8 text. The message names the first byte that is none; the program is read up to there. "
        "Save the file as UTF-8.",
        'pipeline Main(x: String) -> Result: x |> System.Value("caf\udce9")',
        'pipeline Main(x: String) -> Result: x |> System.Value("café")',
    ),
    Code(
        "HL102",
        "error",
        "unexpected token",
        "The text does not go on as the grammar wants it. The message says what was found and what could stand there; "
        "where the mistake is a known one, the hint says how to mend it.",
        "pipeline Main(n: Number) -> Result:\n  n |? (n = 1)",
        "pipeline Main(n: Number) -> Result:\n  n |? (n == 1)",
    ),
    Code(
        "HL103",
        "error",
        "unterminated string",
        'A "…" or \'…\' string ends on its line. Use """…""" for a text over several lines.',
        'pipeline Main(x: String) -> Result:\n  x |> System.Value("no end)',
        'pipeline Main(x: String) -> Result:\n  x |> System.Value("an end")',
    ),
    Code(
        "HL104",
        "error",
        "unterminated comment",
        "A comment that begins with /* ends with */. Comments do not nest.",
        "pipeline Main(x: String) -> Result: x /* and so on",
        "pipeline Main(x: String) -> Result: x /* and so on */",
    ),
    Code(
        "HL105",
        "error",
        "unclosed bracket",
        "A bracket is opened and not closed; the place is that of the opening one.",
        'pipeline Main(x: String) -> Result:\n  x |> System.Value("a"',
        'pipeline Main(x: String) -> Result:\n  x |> System.Value("a")',
    ),
    Code(
        "HL106",
        "error",
        "nesting too deep",
        "Brackets, types and conditions nest up to 200 levels.",
        f"pipeline Main(x: String) -> Result: {'[' * 201}{']' * 201}",
        f"pipeline Main(x: String) -> Result: {'[' * 4}{']' * 4}",
    ),
    Code(
        "HL107",
        "error",
        "missing `->` type",
        "A pipeline says what it results in: a schema, or any label such as Result.",
        "pipeline Main(x: String): x",
        "pipeline Main(x: String) -> Result: x",
    ),
    Code(
        "HL108",
        "error",
        "empty pipeline",
        "A pipeline needs a value to start from, a stage, or both.",
        "pipeline Main(x: String) -> Result:",
        "pipeline Main(x: String) -> Result: x",
    ),
    Code(
        "HL201",
        "error",
        "a name declared twice",
        "All declarations share one namespace, so a name is declared once, whatever it stands for.",
        f"{_AGENT}schema Bot {{ text: String }}",
        f"{_AGENT}schema Answer {{ text: String }}",
    ),
    Code(
        "HL202",
        "error",
        "a reserved name",
        "System, Env and the keywords keep their meaning: they cannot be declared, nor be the name of a parameter, "
        "of an item of `each`, or of a result bound with `as`.",
        "agent System [openai/gpt-4o-mini]",
        "agent Clerk [openai/gpt-4o-mini]",
    ),
    Code(
        "HL203",
        "error",
        "unknown name",
        "A callee, an equipped tool, a required policy, a schema's field type, the target of @shadow or of a loop, "
        "and the tools of a call must be declared in the program.",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bto.answer()",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer()",
    ),
    Code(
        "HL204",
        "error",
        "the wrong kind of name",
        "The name is declared, but as something that cannot stand here: a policy that is equipped, a store that is "
        "required, a schema that is called, an agent called without a method.",
        f"policy Safe : Block(PII)\n{_AGENT}  equips Safe",
        f"policy Safe : Block(PII)\n{_AGENT}  requires Safe",
    ),
    Code(
        "HL205",
        "error",
        "given twice",
        "A parameter, schema field, named argument or config key is there once. The items of a fan-out need keys of "
        "their own: bind two calls of one method with `as`.",
        "schema Pair { a: String, a: Number }",
        "schema Pair { a: String, b: Number }",
    ),
    Code(
        "HL206",
        "error",
        "a hiding name",
        "A name bound by `as` or `each` must not hide a parameter or a declaration; `index`, which every `each` "
        "brings along, must not either.",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer() as x",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer() as y",
    ),
    Code(
        "HL207",
        "error",
        "a schema inside itself",
        "A schema that holds itself has no finite value. Put an Array between, which may be empty.",
        "schema Node { name: String, child: Node }",
        "schema Node { name: String, children: Array<Node> }",
    ),
    Code(
        "HL301",
        "error",
        "unknown method",
        "System and the built-in providers have fixed methods; the message lists them. REST, GET, POST and MCP take "
        "any name: there it is a path, or comes from the server.",
        'pipeline Main(x: String) -> Result: x |> System.Prnt("a")',
        'pipeline Main(x: String) -> Result: x |> System.Print("a")',
    ),
    Code(
        "HL302",
        "error",
        "missing or surplus argument",
        "The arguments of pipelines, providers, directives, policy rules and built-in methods must all be there, and "
        "none too many. A missing one is reported at the closing bracket.",
        "pipeline Inner(x: String) -> Result: x\npipeline Main(x: String) -> Result: x |> Inner()",
        "pipeline Inner(x: String) -> Result: x\npipeline Main(x: String) -> Result: x |> Inner(x)",
    ),
    Code(
        "HL303",
        "error",
        "an argument of the wrong type or out of range",
        "Where the type of an argument is known, the value must have it and lie in its range.",
        '@timeout("soon")\npipeline Main(x: String) -> Result: x',
        "@timeout(5m)\npipeline Main(x: String) -> Result: x",
    ),
    Code(
        "HL304",
        "error",
        "unknown provider, policy rule, directive or setting",
        "These names come with Halo and with tool packages; `halo providers` lists those of tools and stores.",
        "policy Safe : Blok(PII)",
        "policy Safe : Block(PII)",
    ),
    Code(
        "HL305",
        "error",
        "positional after named argument",
        "Positional arguments come first.",
        f'{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer(tone: "dry", "Be brief.")',
        f'{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer("Be brief.", tone: "dry")',
    ),
    Code(
        "HL306",
        "error",
        "unknown model service",
        "A model id begins with its service, as in openai/o3. Ids that begin with gpt-, o1, o3, o4, chatgpt-, claude- "
        "or gemini- may go without, if they have a `-`.",
        "agent Bot [o3]",
        "agent Bot [openai/o3]",
    ),
    Code(
        "HL401",
        "error",
        "a tool that the agent does not equip",
        "An agent can use the tools and stores that it equips, and no others.",
        f"store Memory : KV\n{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer(tools: [Memory])",
        f"store Memory : KV\n{_AGENT}  equips Memory\n"
        "pipeline Main(x: String) -> Result: x |> Bot.answer(tools: [Memory])",
    ),
    Code(
        "HL402",
        "error",
        "Env outside a tool or store",
        "Environment variables hold secrets. They can be read where tools and stores are declared, bare or as a whole "
        "string, and nowhere else, so that they cannot reach a prompt.",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer(Env.API_KEY)",
        'tool Api : REST("api.example.com", apiKey: Env.API_KEY)',
    ),
    Code(
        "HL403",
        "error",
        "a directive in the wrong place or twice",
        "@checkpoint stands above pipelines, @shadow above agents, @retry, @timeout and @correct above both; each "
        "only once.",
        f"@checkpoint\n{_AGENT}",
        "@checkpoint\npipeline Main(x: String) -> Result: x",
    ),
    Code(
        "HL404",
        "error",
        "else is not the last arm",
        "An arm behind `else` could never run.",
        'pipeline Main(x: String) -> Result:\n  x |? { else => System.Value("a"), (x == "b") => System.Value("b") }',
        'pipeline Main(x: String) -> Result:\n  x |? { (x == "b") => System.Value("b"), else => System.Value("a") }',
    ),
    Code(
        "HL405",
        "error",
        "a loop without a stage to go back to",
        "A loop jumps back to the latest stage before it that calls its agent, in a branch, fan-out or each too.",
        f'{_AGENT}pipeline Main(x: String) -> Result:\n  x |<> loop(Bot, "context.current == null") |> Bot.answer()',
        f'{_AGENT}pipeline Main(x: String) -> Result:\n  x |> Bot.answer() |<> loop(Bot, "context.current == null")',
    ),
    Code(
        "HL406",
        "error",
        "a loop condition that does not parse",
        "The condition of a loop is a string; the place is inside it.",
        f'{_AGENT}pipeline Main(x: String) -> Result:\n  x |> Bot.answer() |<> loop(Bot, "context.data.answer > > 3")',
        f'{_AGENT}pipeline Main(x: String) -> Result:\n  x |> Bot.answer() |<> loop(Bot, "context.data.answer > 3")',
    ),
    Code(
        "HL407",
        "error",
        "an Env name that is not plain",
        "The name behind `Env.` is one word of letters, digits and `_`.",
        'tool Api : REST("api.example.com", apiKey: "Env.NOT-PLAIN")',
        'tool Api : REST("api.example.com", apiKey: "Env.PLAIN")',
    ),
    Code(
        "HL501",
        "warning",
        "a placeholder that cannot resolve",
        "A `{{…}}` names a parameter, a result of an earlier stage, `current` or `context.…`; any other stays in the "
        "text as it is written. `{{Env.X}}` is never filled in.",
        f'{_AGENT}pipeline Main(name: String) -> Result: name |> Bot.greet("Hello {{{{nmae}}}}")',
        f'{_AGENT}pipeline Main(name: String) -> Result: name |> Bot.greet("Hello {{{{name}}}}")',
    ),
    Code(
        "HL502",
        "warning",
        "unknown escape",
        r"Escapes are \" \\ \n \t; a backslash before anything else stays in the text. '…' strings have no escapes.",
        'pipeline Main(x: String) -> Result: x |> System.Value("a\\qb")',
        'pipeline Main(x: String) -> Result: x |> System.Value("a\\\\qb")',
    ),
    Code(
        "HL503",
        "warning",
        "a result that nothing produces",
        "A path below context.data leads to the result of an earlier stage: by its `as` name, by its method, by "
        "Callee.method, or by Source.Event. One that no earlier stage can have filled gives null in a run. Results of "
        "single arms may be there or not, so they are not reported.",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.sum_up() as digest |> Bot.end(context.data.digst)",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.sum_up() as digest |> Bot.end(context.data.digest)",
    ),
    Code(
        "HL504",
        "warning",
        "an unknown name as a value",
        "A bare name is a parameter, a result of an earlier stage or a declaration. Any other gives null in a run.",
        f"{_AGENT}pipeline Main(text: String) -> Result: text |> Bot.answer(txet)",
        f"{_AGENT}pipeline Main(text: String) -> Result: text |> Bot.answer(text)",
    ),
    Code(
        "HL506",
        "warning",
        "a stage that never runs",
        "Every run ends before it: at a System.Fail, at a gate that never opens, in a loop that never ends. Or it is "
        "an arm that is never chosen, because one before it always is or its own condition is never true.",
        'pipeline Main(x: String) -> Result:\n  x |> System.Fail("not yet") |> System.Value("done")',
        'pipeline Main(x: String) -> Result:\n  x |? { (x == "no") => System.Fail("not yet") } |> System.Value("done")',
    ),
    Code(
        "HL508",
        "warning",
        "a secret in the program",
        "A literal in a tool or store looks like the key of a service, or stands where a password or a key belongs. "
        "Programs are shown and shared; read secrets from the environment.",
        f'tool Repo : GitHub("{_KEY}", repo: "acme/api")\n{_REPO_USER}',
        f'tool Repo : GitHub(Env.GITHUB_TOKEN, repo: "acme/api")\n{_REPO_USER}',
    ),
    Code(
        "HL510",
        "info",
        "a condition that looks into a text",
        "A gate, branch or loop reads a field of an agent's answer, and nothing asks the agent for JSON: not its "
        "instructions or its system prompt (the word JSON is enough), nor a schema as the pipeline's result, nor a "
        "policy with RequireJSON or RequireSchema. A text has no fields, so the condition would not pass.",
        f'{_AGENT}pipeline Main(x: String) -> Result:\n  x |> Bot.judge("Is it right?") |? (context.data.judge.right)',
        f"{_AGENT}pipeline Main(x: String) -> Result:\n"
        "  x |> Bot.judge('Reply with JSON: {\"right\": true | false}') |? (context.data.judge.right)",
    ),
)
"""All codes, in order."""

_BY_NAME = {code.name: code for code in CODES}
_WIDEST = 100


def explain(name: str) -> str | None:
    """What a code means, as text for a terminal; None for a code that does not exist."""
    code = _BY_NAME.get(name.upper())
    if code is None:
        return None
    wrong, right = (f"    {_shown(example)}".replace("\n", "\n    ") for example in (code.wrong, code.right))
    return f"{code.name} ({code.severity}): {code.title}\n\n{code.text}\n\nWrong:\n\n{wrong}\n\nRight:\n\n{right}\n"


def page() -> str:
    """The reference page of all codes, as Markdown."""
    intro = (
        "# Diagnostics\n\n"
        "What `halo check` and the workbench report. A program with an error does not run; warnings and notes do not "
        "stop it. `halo explain CODE` prints the same on a terminal.\n"
    )
    return "\n".join([intro, *(_section(code) for code in CODES)])


def _section(code: Code) -> str:
    wrong, right = _shown(code.wrong), _shown(code.right)
    return (
        f"## {code.name}: {code.title}\n\n*{code.severity.capitalize()}.* {code.text}\n\n"
        f"Wrong:\n\n```halo\n{wrong}\n```\n\nRight:\n\n```halo\n{right}\n```\n"
    )


def _shown(example: str) -> str:
    readable = example.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
    lines = readable.split("\n")
    return "\n".join(line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…" for line in lines)

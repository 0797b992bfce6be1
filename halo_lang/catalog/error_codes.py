"""What keeps a program from running, code by code (spec 1.4)."""

from __future__ import annotations

from halo_lang.catalog.specs import Code

_AGENT = "agent Bot [openai/gpt-4o-mini]\n"
_PAGE = 'tool Page : GET("https://example.com")\n'
_CALL = "pipeline Main(x: String) -> Result: x |> Bot.answer()"
_API_CALL = "pipeline Main(x: String) -> Result: x |> Api.get(x)"
# In two parts, so that nothing that scans repositories for keys takes it for one.
_KEY = "ghp_" + "x7Kq2mVn9RtLw4ZpYc8HsBd1JfGa6EuT0oNi"

ERRORS: tuple[Code, ...] = (
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
        f"pipeline Main() -> Result: {'[' * 201}{']' * 201}",
        f"pipeline Main() -> Result: {'[' * 4}{']' * 4}",
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
        f"{_AGENT}schema Bot {{ text: String }}\n{_CALL}",
        f"{_AGENT}schema Answer {{ text: String }}\n{_CALL.replace('Result', 'Answer')}",
    ),
    Code(
        "HL202",
        "error",
        "a reserved name",
        "System, Env and the keywords keep their meaning: they cannot be declared, nor be the name of a parameter, "
        "of an item of `each`, or of a result bound with `as`.",
        "pipeline System(x: String) -> Result: x",
        "pipeline Main(x: String) -> Result: x",
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
        "required, a schema that is called, an agent called without a method, a type that is no list with the type of "
        "items.",
        f"policy Safe : Block(PII)\n{_AGENT}  equips Safe\n{_CALL}",
        f"policy Safe : Block(PII)\n{_AGENT}  requires Safe\n{_CALL}",
    ),
    Code(
        "HL205",
        "error",
        "given twice",
        "A parameter, schema field, named argument, config key or system prompt is there once. The items of a "
        "fan-out need keys of their own: bind two calls of one method with `as`.",
        "schema Pair { a: String, a: Number }\npipeline Main(x: Object) -> Pair: x",
        "schema Pair { a: String, b: Number }\npipeline Main(x: Object) -> Pair: x",
    ),
    Code(
        "HL206",
        "error",
        "a hiding name",
        "A name bound by `as` or `each` must not hide a parameter or a declaration; `index`, which every `each` "
        "brings along, must not either, nor be hidden by the item itself.",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer() as x",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer() as y",
    ),
    Code(
        "HL207",
        "error",
        "a schema inside itself",
        "A schema that holds itself has no finite value. Put an Array between, which may be empty.",
        "schema Node { name: String, child: Node }\npipeline Main(x: Object) -> Node: x",
        "schema Node { name: String, children: Array<Node> }\npipeline Main(x: Object) -> Node: x",
    ),
    Code(
        "HL301",
        "error",
        "unknown method",
        "System and the built-in providers have fixed methods; the message lists them. REST, GET, POST and MCP take "
        "any name: there it is a path, or comes from the server. `halo check --connect` asks MCP servers for their "
        "methods.",
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
        f"policy Safe : Blok(PII)\n{_AGENT}  requires Safe\n{_CALL}",
        f"policy Safe : Block(PII)\n{_AGENT}  requires Safe\n{_CALL}",
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
        f"agent Bot [o3]\n{_CALL}",
        f"agent Bot [openai/o3]\n{_CALL}",
    ),
    Code(
        "HL401",
        "error",
        "a tool that the agent does not equip",
        "An agent can use the tools and stores that it equips, and no others.",
        f"{_PAGE}{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer(tools: [Page])",
        f"{_PAGE}{_AGENT}  equips Page\npipeline Main(x: String) -> Result: x |> Bot.answer(tools: [Page])",
    ),
    Code(
        "HL402",
        "error",
        "Env outside a tool or store",
        "Environment variables hold secrets. They can be read where tools and stores are declared, bare or as a whole "
        "string, and nowhere else, so that they cannot reach a prompt.",
        f"{_AGENT}pipeline Main(x: String) -> Result: x |> Bot.answer(Env.API_KEY)",
        f'tool Api : REST("api.example.com", apiKey: Env.API_KEY)\n{_API_CALL}',
    ),
    Code(
        "HL403",
        "error",
        "a directive in the wrong place or twice",
        "@checkpoint stands above pipelines, @shadow above agents, @retry, @timeout and @correct above both; each "
        "only once.",
        f"@checkpoint\n{_AGENT}{_CALL}",
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
        f'tool Api : REST("api.example.com", apiKey: "Env.NOT-PLAIN")\n{_API_CALL}',
        f'tool Api : REST("api.example.com", apiKey: "Env.PLAIN")\n{_API_CALL}',
    ),
)
"""The codes of errors, in order."""

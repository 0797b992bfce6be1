"""What a program may run with and is probably not meant, code by code (spec 1.4)."""

from __future__ import annotations

from halo_lang.catalog.specs import Code

_AGENT = "agent Bot [openai/gpt-4o-mini]\n"
_CALL = "pipeline Main(x: String) -> Result: x |> Bot.answer()"
_MEMORY_CALL = "pipeline Main(x: String) -> Result: x |> Bot.answer(tools: [Memory])"
_REPO_USER = "pipeline Main(n: Number) -> Result: n |> Repo.get_issue(n)"
# In two parts, so that nothing that scans repositories for keys takes it for one.
_KEY = "ghp_" + "x7Kq2mVn9RtLw4ZpYc8HsBd1JfGa6EuT0oNi"

WARNINGS: tuple[Code, ...] = (
    Code(
        "HL501",
        "warning",
        "a placeholder that cannot resolve",
        "A `{{…}}` names a parameter, a result of an earlier stage, `current` or `context.…`; any other stays in the "
        "text as it is written. A system prompt is filled in where its agent is called, so there a name must mean "
        "something in one of the pipelines that call it. `{{Env.X}}` is never filled in.",
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
        "A bare name is a parameter, a result of an earlier stage or a declaration; `context.input` has the "
        "pipeline's parameters. Any other path gives null in a run.",
        f"{_AGENT}pipeline Main(text: String) -> Result: text |> Bot.answer(txet)",
        f"{_AGENT}pipeline Main(text: String) -> Result: text |> Bot.answer(text)",
    ),
    Code(
        "HL505",
        "warning",
        "declared and never used",
        "An agent, tool, store, policy or schema that nothing mentions, or a parameter that nothing reads. Without a "
        "start value all parameters flow on, and so are used.",
        f"{_AGENT}pipeline Main(text: String, tone: String) -> Result:\n  text |> Bot.answer()",
        f"{_AGENT}pipeline Main(text: String, tone: String) -> Result:\n  text |> Bot.answer(text, tone: tone)",
    ),
    Code(
        "HL506",
        "warning",
        "a stage that never runs",
        "Every run ends before it: at a System.Fail, at a gate that never opens, in a loop that never ends, in a "
        "pipeline that is called and does one of these. Or it is an arm that is never chosen, because one before it "
        "always is or its own condition is never true.",
        'pipeline Main(x: String) -> Result:\n  x |> System.Fail("not yet") |> System.Value("done")',
        'pipeline Main(x: String) -> Result:\n  x |? { (x == "no") => System.Fail("not yet") } |> System.Value("done")',
    ),
    Code(
        "HL507",
        "warning",
        "a pipeline that always calls itself",
        "Every run of the pipeline calls it again, by itself or through others, until 64 levels end the run. Let a "
        "branch decide, or a gate before the call.",
        "pipeline Main(n: Number) -> Result: n |> Main(n)",
        "pipeline Main(n: Number) -> Result: n |? { (n > 9) => Main(1), else => System.Value(n) }",
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
        "HL509",
        "warning",
        "an agent that nothing holds back",
        "With `tools:` an agent chooses its own calls. Among these tools are methods that write or destroy, and the "
        "agent requires no policy that could approve, limit or refuse them.",
        f"store Memory : KV\n{_AGENT}  equips Memory\n{_MEMORY_CALL}",
        f"store Memory : KV\npolicy Careful : Approve(Memory.delete) & MaxToolCalls(10)\n{_AGENT}  equips Memory\n"
        f"  requires Careful\n{_MEMORY_CALL}",
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
    Code(
        "HL511",
        "warning",
        "a budget that cannot be counted",
        "MaxSpend needs to know what a call costs, and no price is known for the model of an agent that requires it, "
        "so its calls are refused. Models on this machine cost nothing.",
        f"policy Budget : MaxSpend(1.00)\nagent Bot [openai/our-own-model]\n  requires Budget\n{_CALL}",
        f"policy Budget : MaxSpend(1.00)\n{_AGENT}  requires Budget\n{_CALL}",
    ),
    Code(
        "HL512",
        "warning",
        "a judge that is missing",
        "What a text is about, and whether it is toxic, is told by a judge model: no list of words can. A rule that "
        "asks one and names none cannot be enforced, so no run starts.",
        f"policy Polite : Block(Toxicity)\n{_AGENT}  requires Polite\n{_CALL}",
        f'policy Polite : Block(Toxicity, model: "openai/gpt-4o-mini")\n{_AGENT}  requires Polite\n{_CALL}',
    ),
)
"""The codes of warnings and notes, in order."""

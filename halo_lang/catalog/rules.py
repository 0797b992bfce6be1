"""The policy rules (spec 6)."""

from __future__ import annotations

from halo_lang.catalog.signature import Parameter, Signature, optional, required
from halo_lang.catalog.specs import Point, RuleSpec

_TEXTS: tuple[Point, ...] = ("input", "output", "tool", "result")
_PERSONAL = ("PII", "Email", "Phone", "CreditCard", "IBAN", "SSN", "IP", "Secrets", "Name", "Address")
_THREATS = ("PromptInjection", "Secrets", "PII", "Toxicity")

_ON_LIMIT = optional(
    "onLimit",
    "string",
    "What happens at the limit: the run fails, or pauses and asks.",
    default="fail",
    choices=("fail", "ask"),
    named_only=True,
)
_TOOLS = optional("tools", "method", "Tools, or single methods as Tool.method.")
_MODELS = optional("models", "string", "Model ids, `*` for any part.")
_DOMAINS = required("Domains", "list", "Host names; their subdomains count.", items="string", named_only=True)


def _limit(name: str, what: str, example: str) -> RuleSpec:
    count = required("n", "integer", f"How many {what}.", minimum=1)
    doc = f"At most that many {what} in a run, over all agents that share the policy."
    return RuleSpec(name, Signature((count, _ON_LIMIT)), ("budget",), doc, example)


def _any_of(rest: Parameter) -> Signature:
    return Signature(rest=rest, any_of=(rest.name,))


RULES: tuple[RuleSpec, ...] = (
    RuleSpec(
        "Redact",
        Signature(
            (optional("restore", "boolean", "Put the values back into the reply.", default=False, named_only=True),),
            rest=optional("kinds", "name", "What to replace.", choices=_PERSONAL),
            any_of=("kinds",),
        ),
        _TEXTS,
        "Replace personal data and secrets by typed placeholders before a model sees them.",
        "Redact(Email, Phone)",
    ),
    RuleSpec(
        "Block",
        Signature(
            (
                optional("Topic", "string", "A topic that a judge model looks for.", named_only=True),
                optional("model", "string", "The judge model, for Topic and Toxicity.", named_only=True),
                optional("threshold", "number", "From which score on.", minimum=0, maximum=1, named_only=True),
            ),
            rest=optional("kinds", "pattern", "What to stop, or a regular expression as text.", choices=_THREATS),
            any_of=("kinds", "Topic"),
        ),
        _TEXTS,
        "Stop a call whose text holds what must not be there.",
        "Block(PromptInjection)",
    ),
    RuleSpec(
        "Allow",
        Signature((_DOMAINS,)),
        ("output", "tool"),
        "Only URLs of these domains, in output and tool arguments.",
        'Allow(Domains: ["example.com"])',
    ),
    RuleSpec(
        "Deny",
        Signature((_DOMAINS,)),
        ("output", "tool"),
        "No URLs of these domains, in output and tool arguments.",
        'Deny(Domains: ["bad.example"])',
    ),
    RuleSpec(
        "AllowModels", _any_of(_MODELS), ("input",), "Only these models.", 'AllowModels("openai/*", "local/smollm2")'
    ),
    RuleSpec("DenyModels", _any_of(_MODELS), ("input",), "None of these models.", 'DenyModels("openrouter/*")'),
    RuleSpec("AllowTools", _any_of(_TOOLS), ("tool",), "Only these tools, when an agent chooses.", "AllowTools(Repo)"),
    RuleSpec(
        "DenyTools", _any_of(_TOOLS), ("tool",), "None of these tools, when an agent chooses.", "DenyTools(Shell.run)"
    ),
    RuleSpec(
        "Approve", _any_of(_TOOLS), ("tool",), "Ask a human before these calls of an agent.", "Approve(Repo.merge_pull)"
    ),
    RuleSpec(
        "MaxSpend",
        Signature((required("usd", "number", "US dollars.", minimum=0), _ON_LIMIT)),
        ("budget",),
        "At most that much money in a run, over all agents that share the policy.",
        "MaxSpend(1.00)",
    ),
    _limit("MaxTokens", "tokens", "MaxTokens(50000)"),
    _limit("MaxCalls", "model calls", "MaxCalls(20)"),
    _limit("MaxToolCalls", "tool calls", "MaxToolCalls(10)"),
    RuleSpec(
        "MaxLatency",
        Signature((required("duration", "duration", "The longest time for a call.", positive=True),)),
        ("call",),
        "End a call that takes longer.",
        "MaxLatency(30s)",
    ),
    RuleSpec(
        "RateLimit",
        Signature(
            (
                required("n", "integer", "How many calls.", minimum=1),
                optional("per", "duration", "In which time.", default="1m", positive=True),
            )
        ),
        ("call",),
        "At most n calls in that time, over the whole process.",
        "RateLimit(10, 1m)",
    ),
    RuleSpec("RequireJSON", Signature(), ("output",), "The reply must be a JSON object or list.", "RequireJSON"),
    RuleSpec(
        "RequireSchema",
        Signature((required("schema", "schema", "The schema."),)),
        ("output",),
        "The reply must fit a schema.",
        "RequireSchema(Answer)",
    ),
    RuleSpec(
        "RequireCitation", Signature(), ("output",), "The reply must cite sources that it was given.", "RequireCitation"
    ),
    RuleSpec(
        "MaxLength",
        Signature((required("n", "integer", "Code points.", minimum=1),)),
        ("output",),
        "The reply has at most n code points.",
        "MaxLength(400)",
    ),
    RuleSpec(
        "MinLength",
        Signature((required("n", "integer", "Code points.", minimum=1),)),
        ("output",),
        "The reply has at least n code points.",
        "MinLength(20)",
    ),
    RuleSpec(
        "Language",
        Signature((required("code", "string", "Its ISO 639-1 code."),)),
        ("output",),
        "The reply is in that language.",
        'Language("en")',
        extra="language",
    ),
    RuleSpec(
        "Match",
        Signature((required("pattern", "string", "A regular expression."),)),
        ("output",),
        "The reply matches a regular expression somewhere.",
        "Match('[A-Z]+-[0-9]+')",
    ),
    RuleSpec(
        "Audit",
        Signature((required("rule", "rule", "The rule to try."),)),
        _TEXTS,
        "Evaluate and record a rule without acting on it.",
        "Audit(Block(PII))",
    ),
    RuleSpec(
        "Taint",
        Signature(
            (
                required("from", "method", "The source.", named_only=True),
                required("to", "method", "The sink.", named_only=True),
            )
        ),
        ("tool", "result"),
        "After a result of one tool, calls of another need approval.",
        "Taint(from: Inbox, to: Web)",
    ),
)
"""All policy rules."""

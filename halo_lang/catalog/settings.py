"""What the language's own forms take: an agent's brackets, an agent call, `each`, `loop` and `yield`."""

from __future__ import annotations

from halo_lang.catalog.signature import Parameter, Signature, Type, optional


def _setting(name: str, type: Type, doc: str, **limits: object) -> Parameter:  # noqa: A002
    return optional(name, type, doc, named_only=True, **limits)


_MODEL_SETTINGS: tuple[Parameter, ...] = (
    _setting("temperature", "number", "How freely the model chooses.", minimum=0, maximum=2, aliases=("temp",)),
    _setting("max_tokens", "integer", "The longest reply, in tokens.", minimum=1),
    _setting("top_p", "number", "The share of likely words considered.", minimum=0, maximum=1),
    _setting("system", "string", "The system prompt.", aliases=("role",)),
    _setting("tools", "tools", "The tools whose calls the agent chooses itself: a list, auto or none."),
    _setting("max_steps", "integer", "How many requests one call may make.", default=8, minimum=1),
    _setting("tool_result_chars", "integer", "Where long tool results are cut.", default=20_000, minimum=1),
)

AGENT_SETTINGS = Signature(_MODEL_SETTINGS)
"""The entries after the model in an agent's brackets."""

CALL_SETTINGS = Signature(
    (*_MODEL_SETTINGS, _setting("tool", "tool", "The equipped tool that runs before the prompt.")),
    rest=optional("inputs"),
    open_named=True,
)
"""The named arguments of an agent call that are settings (spec 12.3); all others are parameters of the prompt."""

EACH = Signature(
    (
        optional("concurrency", "integer", "How many items run at once.", default=4, minimum=1, named_only=True),
        optional(
            "onError",
            "string",
            "What a failing item does: fail the stage, keep its error in place, drop it.",
            default="fail",
            choices=("fail", "keep", "drop"),
            named_only=True,
        ),
    )
)
"""The arguments of `each` behind its list."""

LOOP = Signature((optional("max", "integer", "How many jumps at most.", default=3, minimum=1),))
"""The arguments of `loop` behind its condition."""

YIELD = Signature(
    (
        optional("msg", doc="What to ask."),
        optional("channel", "any", "Where to ask: a text or any name."),
        optional("timeout", "duration", "How long the answer may take.", positive=True),
        optional("attachments", "list", "Texts and paths to look at."),
    )
)
"""The arguments of `yield`."""

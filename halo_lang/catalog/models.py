"""Which service answers for a model id (spec 4 and reference 0.1)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from halo_lang.records import record


@record
class ModelPrefix:
    """A model service: how its ids begin and where its settings come from.

    `bare` are patterns of ids without a prefix. Any one of the `keys` variables serves; none are needed when empty.
    """

    service: str
    prefixes: tuple[str, ...]
    doc: str
    bare: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    base_url: str | None = None

    @property
    def name(self) -> str:
        """The service's first prefix, its name in the registry."""
        return self.prefixes[0]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further prefixes of the same service."""
        return self.prefixes[1:]


class ModelRoute(NamedTuple):
    """Where a model id leads: the service, the prefix as written (empty for a bare id), the id for the wire."""

    entry: ModelPrefix
    prefix: str
    model: str


MODEL_PREFIXES: tuple[ModelPrefix, ...] = (
    ModelPrefix(
        "openai",
        ("openai",),
        "OpenAI, or any compatible server by its base URL.",
        bare=("gpt-*", "o1*", "o3*", "o4*", "chatgpt-*"),
        keys=("OPENAI_API_KEY",),
        base_url="OPENAI_BASE_URL",
    ),
    ModelPrefix(
        "anthropic",
        ("anthropic",),
        "Anthropic messages.",
        bare=("claude-*",),
        keys=("ANTHROPIC_API_KEY",),
        base_url="ANTHROPIC_BASE_URL",
    ),
    ModelPrefix(
        "google",
        ("google", "gemini"),
        "Gemini generateContent.",
        bare=("gemini-*",),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url="GOOGLE_GEMINI_BASE_URL",
    ),
    ModelPrefix(
        "openrouter",
        ("openrouter",),
        "OpenRouter.",
        keys=("OPENROUTER_API_KEY",),
        base_url="OPENROUTER_BASE_URL",
    ),
    ModelPrefix("together", ("together",), "Together.", keys=("TOGETHER_API_KEY",), base_url="TOGETHER_BASE_URL"),
    ModelPrefix(
        "replicate",
        ("replicate",),
        "Replicate predictions.",
        keys=("REPLICATE_API_TOKEN",),
        base_url="REPLICATE_BASE_URL",
    ),
    ModelPrefix(
        "ollama",
        ("ollama", "local"),
        "Ollama; `local/NAME` is an embedded model first.",
        base_url="OLLAMA_HOST",
    ),
    ModelPrefix("scripted", ("scripted",), "Replies from a file, no model at all."),
)
"""All model services."""


def bare_route(model: str, entries: tuple[ModelPrefix, ...] = MODEL_PREFIXES) -> ModelRoute | None:
    """The service of an id without a prefix. It needs a `-` (spec 12.1): `o3-mini` has one, `o3` does not."""
    entry = _maker_of(model, entries) if "-" in model else None
    return ModelRoute(entry, "", model) if entry is not None else None


def service_of(model: str) -> str | None:
    """The prefix that an id without one was probably meant to have: `openai` for `o3`."""
    entry = _maker_of(model, MODEL_PREFIXES)
    return entry.name if entry is not None else None


def _maker_of(model: str, entries: tuple[ModelPrefix, ...]) -> ModelPrefix | None:
    fitting = (entry for entry in entries if any(fnmatchcase(model, pattern) for pattern in entry.bare))
    return next(fitting, None)

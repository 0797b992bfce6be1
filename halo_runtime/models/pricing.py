"""What a request costs, from the prices that ship with genai-prices; nothing is looked up on the network."""

from __future__ import annotations

import re
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from halo_lang.lexicon import MODEL
from halo_runtime.models.base import Usage

_UNQUOTED: Final = re.compile(MODEL)

FREE: Final = frozenset({"local", "ollama", "scripted"})
"""Prefixes of models that cost nothing: they run on this machine."""

WELL_KNOWN: Final = frozenset(
    f"{prefix}{name}"
    for service, names in {
        "openai": "gpt-4o gpt-4o-mini gpt-4.1 gpt-4.1-mini gpt-5 gpt-5-mini gpt-5-nano o3-mini o4-mini",
        "anthropic": "claude-haiku-4-5 claude-sonnet-4-5 claude-opus-4-1 claude-opus-4-5",
        "google": "gemini-2.5-flash gemini-2.5-flash-lite gemini-2.5-pro",
    }.items()
    for name in names.split()
    for prefix in ("", f"{service}/")
)
"""Ids that have a price for certain, so that checking a program need not load the table for the common ones."""


@lru_cache(maxsize=4096)
def cost(model: str, usage: Usage) -> Decimal | None:
    """USD for `usage` of the declared id `model`; None when the price or the number of tokens is not known.

    Totals include cached and reasoning tokens (Usage), which is how the price table counts too.
    """
    prefix = model.partition("/")[0]
    if prefix in FREE or (usage.input == 0 and usage.output == 0):
        return Decimal(0)
    if usage.input is None or usage.output is None:
        return None
    return _priced(model, usage)


@lru_cache(maxsize=1024)
def is_priced(model: str) -> bool:
    """Whether the cost of calls of the declared id `model` can be known, and so limited by MaxSpend."""
    return model in WELL_KNOWN or cost(model, Usage(input=1, output=1)) is not None


@lru_cache(maxsize=1)
def known_models() -> tuple[str, ...]:
    """The embedded model and the ids of the price table as a program writes them, for completion; slow at first.

    Of a service that tells its own ids by their names, the table's others (embeddings, speech) are left out, and so
    are ids that a program can write in quotes only.
    """
    from genai_prices.data import providers

    from halo_lang.catalog import model_prefixes
    from halo_runtime.models.local import MODEL_NAME

    listed = [
        f"{entry.name}/{model.id}"
        for provider in providers
        if (entry := model_prefixes().get(provider.id)) is not None
        for model in provider.models
        if _UNQUOTED.fullmatch(model.id)
        and (not entry.bare or any(fnmatchcase(model.id, pattern) for pattern in entry.bare))
    ]
    return tuple(dict.fromkeys((f"local/{MODEL_NAME}", *sorted(name for name in WELL_KNOWN if "/" in name), *listed)))


def _priced(model: str, usage: Usage) -> Decimal | None:
    # The library takes 120 ms to import, which a run that spends nothing shall not pay.
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    total = usage.input or 0
    read = min(usage.cached or 0, total)
    written = min(usage.cache_written or 0, total - read)
    tokens = Tokens(input_tokens=total, output_tokens=usage.output, cache_read_tokens=read, cache_write_tokens=written)
    service, slash, name = model.partition("/")
    try:
        return calc_price(
            tokens, model_ref=name if slash else model, provider_id=service if slash else None
        ).total_price
    except LookupError:
        return None

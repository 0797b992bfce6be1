"""What a request costs, from prices that people set and those that ship with genai-prices; nothing is looked up on the
network.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from halo_lang import catalog
from halo_lang.lexicon import MODEL
from halo_lang.records import record
from halo_runtime.models.base import Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

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


MILLION: Final = 1_000_000
_NOTHING: Final = Decimal(0)
_FRESH_SECONDS: Final = 60
"""For how long a price of the table holds: some change at a date or an hour."""
_PLAIN: Final = frozenset(
    {"input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok"}
    | {"web_searches_kcount", "storage_searches_kcount"}
)
"""The prices of the table that a usage has a part in here, and those of what it never has."""


@record
class Price:
    """US dollars for a million tokens. Those of a cache cost as others where nothing is said of them."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    cache_written: Decimal | None = None

    def of(self, usage: Usage) -> Decimal | None:
        """What a usage costs; None where it does not say how many tokens it was."""
        if usage.input is None or usage.output is None:
            return None
        read, written = _parts_of(usage)
        of_cache = read * (self.input if self.cached is None else self.cached)
        to_cache = written * (self.input if self.cache_written is None else self.cache_written)
        new = (usage.input - read - written) * self.input
        return (new + of_cache + to_cache + usage.output * self.output) / MILLION


class Prices:
    """What models cost: by prices of one's own, by model id, and by the table where there is none."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = {_canonical(model): price for model, price in (own or {}).items()}

    def cost(self, model: str, usage: Usage) -> Decimal | None:
        """USD for `usage` of the declared id `model`; None when the price or the number of tokens is not known."""
        own = self._own.get(_canonical(model)) if self._own else None
        return cost(model, usage) if own is None else own.of(usage)

    def is_priced(self, model: str) -> bool:
        """Whether the cost of calls of the declared id `model` can be known, and so limited by MaxSpend."""
        return (bool(self._own) and _canonical(model) in self._own) or is_priced(model)


def _canonical(model: str) -> str:
    """One spelling for the ids of one model: `gpt-5` and `openai/gpt-5`, `gemini/x` and `google/x`."""
    route = catalog.model_route(model)
    return model if route is None else f"{route.entry.name}/{route.model}"


def cost(model: str, usage: Usage) -> Decimal | None:
    """USD for `usage` of the declared id `model`; None when the price or the number of tokens is not known.

    Totals include cached and reasoning tokens (Usage), which is how the price table counts too.
    """
    prefix = model.partition("/")[0]
    if prefix in FREE or (usage.input == 0 and usage.output == 0):
        return Decimal(0)
    if usage.input is None or usage.output is None:
        return None
    prices = _prices_of(model, int(time.time() // _FRESH_SECONDS))
    if prices is None:
        calculated = _calculated(model, usage)
        return None if calculated is None else calculated.total_price
    return next(price for start, price in prices if usage.input > start or start < 0).of(usage)


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


@lru_cache(maxsize=1024)
def _prices_of(model: str, _: int) -> tuple[tuple[int, Price], ...] | None:
    """The table's prices of a model, each with the size of prompt above which it holds, the largest first; -1 for all.

    None where the table does not have it, or reckons with more than tokens and caches. Worked out once in a while: the
    table's own arithmetic takes longer than all else that is done for a call.
    """
    calculated = _calculated(model, Usage(1, 1))
    if calculated is None:
        return None
    from genai_prices.types import TieredPrices

    table = {name: price for name, price in vars(calculated.model_price).items() if price is not None}
    if not {"input_mtok", "output_mtok"} <= set(table) <= _PLAIN:
        return None
    tiers = [tier.start for price in table.values() if isinstance(price, TieredPrices) for tier in price.tiers]

    def price_above(start: int, name: str) -> Decimal | None:
        price = table.get(name)
        if not isinstance(price, TieredPrices):
            return price
        return next((tier.price for tier in reversed(price.tiers) if start >= tier.start), price.base)

    return tuple(
        (
            start,
            Price(
                price_above(start, "input_mtok") or _NOTHING,
                price_above(start, "output_mtok") or _NOTHING,
                price_above(start, "cache_read_mtok"),
                price_above(start, "cache_write_mtok"),
            ),
        )
        for start in sorted({-1, *tiers}, reverse=True)
    )


def _calculated(model: str, usage: Usage) -> PriceCalculation | None:
    """What the library that has the table makes of a usage; None for a model that it does not have."""
    # The library takes 120 ms to import, which a run that spends nothing shall not pay.
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    read, written = _parts_of(usage)
    tokens = Tokens(
        input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=read, cache_write_tokens=written
    )
    service, slash, name = model.partition("/")
    try:
        return calc_price(tokens, model_ref=name if slash else model, provider_id=service if slash else None)
    except LookupError:
        return None


def _parts_of(usage: Usage) -> tuple[int, int]:
    """The tokens of the input that were read from a cache and written to one; never more than there are."""
    total = usage.input or 0
    read = min(usage.cached or 0, total)
    return read, min(usage.cache_written or 0, total - read)

"""What usages cost: the table of genai-prices against figures worked out by hand, and prices of one's own."""

from __future__ import annotations

from decimal import Decimal

import pytest
from genai_prices import Usage as Tokens
from genai_prices import calc_price
from genai_prices.data import providers
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.catalog import model_prefixes
from halo_runtime.models.base import Usage
from halo_runtime.models.pricing import Price, Prices, cost

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "micro"),
    [
        # a million tokens at $1 are one micro-dollar each
        ("openai/gpt-4o", Usage(1000, 200), "1000*2.5 + 200*10"),
        ("gpt-4o", Usage(1000, 200, cached=400), "600*2.5 + 400*1.25 + 200*10"),
        ("openai/gpt-4o-mini", Usage(1, 1, cached=1), "0.075 + 0.6"),
        ("openai/gpt-4.1", Usage(5000, 0, cached=1000), "4000*2 + 1000*0.5"),
        ("openai/gpt-5", Usage(1000, 300, cached=100, reasoning=200), "900*1.25 + 100*0.125 + 300*10"),
        ("gpt-5-mini", Usage(10, 7), "10*0.25 + 7*2"),
        ("openai/gpt-5.4", Usage(1000, 10, cached=999), "1*2.5 + 999*0.25 + 10*15"),
        ("openai/gpt-5.5", Usage(272_000, 10), "272000*5 + 10*30"),
        ("openai/gpt-5.5", Usage(272_001, 10), "272001*10 + 10*45"),  # all of it moves to the tier
        ("openai/gpt-6-astra", Usage(1000, 10, cache_written=100), "900*10 + 100*12.5 + 10*50"),
        ("openai/gpt-6-sol", Usage(1000, 10, cached=500), "500*2 + 500*0.2 + 10*10"),
        ("anthropic/claude-sonnet-4-5", Usage(1000, 100), "1000*3 + 100*15"),
        ("claude-sonnet-4-5", Usage(1000, 100, cached=800), "200*3 + 800*0.3 + 100*15"),
        ("claude-opus-4-7", Usage(1000, 100, cache_written=800), "200*5 + 800*6.25 + 100*25"),
        ("claude-haiku-4-5", Usage(1000, 100, cached=300, cache_written=200), "500*1 + 300*0.1 + 200*1.25 + 100*5"),
        ("claude-haiku-5-5", Usage(100_000, 100), "100000*0.1 + 100*0.5"),
        ("claude-haiku-5-5", Usage(100_001, 100), "100001*0.5 + 100*2.5"),
        ("claude-opus-5-5", Usage(1000, 10, cached=1000), "1000*0.2 + 10*20"),
        ("google/gemini-2.5-flash", Usage(1000, 100, cached=400), "600*0.3 + 400*0.03 + 100*2.5"),
        ("gemini/gemini-3.5-flash", Usage(1000, 100), "1000*1.5 + 100*9"),
    ],
)
def test_a_usage_costs_what_the_makers_say(model: str, usage: Usage, micro: str) -> None:
    worked_out = sum(
        (Decimal(one.split("*")[0]) * Decimal(one.split("*")[-1] if "*" in one else 1) for one in micro.split(" + ")),
        Decimal(0),
    )
    assert cost(model, usage) == worked_out / MILLION


@given(
    model=st.sampled_from(
        ["openai/gpt-4o", "openai/gpt-5.5", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-flash"]
    ),
    given_=st.integers(1, 400_000),
    made=st.integers(0, 100_000),
    parts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_the_tables_own_arithmetic_is_followed(model: str, given_: int, made: int, parts: tuple[float, float]) -> None:
    read = int(given_ * parts[0])
    written = int((given_ - read) * parts[1]) if "claude" in model else 0
    service, _, name = model.partition("/")
    tokens = Tokens(input_tokens=given_, output_tokens=made, cache_read_tokens=read, cache_write_tokens=written)
    expected = calc_price(tokens, model_ref=name, provider_id=service).total_price
    assert cost(model, Usage(given_, made, read, cache_written=written)) == expected


@pytest.mark.parametrize("service", sorted(one.id for one in providers if model_prefixes().get(one.id) is not None))
@pytest.mark.parametrize(
    "usage", [Usage(1000, 50), Usage(300_000, 77, 1000, cache_written=500)], ids=["small", "large"]
)
def test_every_price_of_the_table_is_followed(service: str, usage: Usage) -> None:
    (provider,) = (provider for provider in providers if provider.id == service)
    tokens = Tokens(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached or 0,
        cache_write_tokens=usage.cache_written or 0,
    )
    for model in provider.models:
        if provider.find_model(model.id) is not None:  # the ids of some are the beginnings of names
            expected = calc_price(tokens, model_ref=model.id, provider_id=service).total_price
            assert cost(f"{service}/{model.id}", usage) == expected, model.id


# --- prices of one's own ----------------------------------------------------------------------------------------------

OWN = Prices(
    {
        "openai/our-own": Price(Decimal("1.5"), Decimal(6), Decimal("0.15"), Decimal(3)),
        "gpt-4o": Price(Decimal(1), Decimal(1)),
        "google/tuned": Price(Decimal(2), Decimal(4)),
        "ollama/big": Price(Decimal(1), Decimal(0)),
    }
)


@pytest.mark.parametrize(
    ("model", "usage", "micro"),
    [
        ("openai/our-own", Usage(1000, 100, cached=200, cache_written=300), 500 * Decimal("1.5") + 30 + 900 + 600),
        ("openai/our-own", Usage(100, 0, cached=500), 15),  # never more of a cache than there is
        ("openai/gpt-4o", Usage(10, 10, cached=10), 20),
        ("gemini/tuned", Usage(10, 10), 60),
        ("ollama/big", Usage(10, 10), 10),
        ("ollama/small", Usage(10, 10), 0),
        ("openai/gpt-4o-mini", Usage(10, 10), Decimal("7.5")),
    ],
)
def test_a_price_of_ones_own_takes_the_place_of_the_tables_however_the_model_is_written(
    model: str, usage: Usage, micro: Decimal | int
) -> None:
    assert OWN.cost(model, usage) == Decimal(micro) / MILLION
    assert OWN.is_priced(model)


def test_what_nobody_says_is_unknown() -> None:
    assert OWN.cost("openai/our-own", Usage(10, None)) is None
    assert OWN.cost("openai/another", Usage(10, 10)) is None
    assert not OWN.is_priced("openai/another")

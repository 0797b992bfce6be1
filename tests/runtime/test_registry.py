"""Which provider answers for a model id, and what its tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from halo_lang import check, parse
from halo_lang.catalog import model_prefixes
from halo_runtime.errors import ConfigError
from halo_runtime.models.base import ModelProvider, Usage
from halo_runtime.models.local import LocalModel
from halo_runtime.models.openai import OpenAILike
from halo_runtime.models.pricing import WELL_KNOWN, cost, is_priced, known_models
from halo_runtime.models.registry import ModelRegistry
from halo_runtime.models.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("model", "key", "name"),
    [
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("gpt-4o", "openai", "gpt-4o"),
        ("o3-mini", "openai", "o3-mini"),
        ("chatgpt-4o-latest", "openai", "chatgpt-4o-latest"),
        ("openai/org/model:tag", "openai", "org/model:tag"),
        ("claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("gemini/gemini-2.5-flash", "google", "gemini-2.5-flash"),
        ("openrouter/anthropic/claude-opus-5.5", "openrouter", "anthropic/claude-opus-5.5"),
        ("ollama/llama3:8b", "ollama", "llama3:8b"),
        ("local/smollm2", "local", "smollm2"),
        ("local/llama3:8b", "ollama", "llama3:8b"),
        ("scripted/any", "scripted", "any"),
    ],
)
def test_an_id_leads_to_its_service(model: str, key: str, name: str) -> None:
    assert ModelRegistry({}).resolve(model) == (key, name)


@pytest.mark.parametrize("model", ["", "/", "openai/", "nobody/x", "llama", "o3"])
def test_an_id_that_leads_nowhere_is_refused_with_what_is_known(model: str) -> None:
    with pytest.raises(ConfigError, match="names no service; known are anthropic/…"):
        ModelRegistry({}).resolve(model)


def test_each_service_is_opened_once() -> None:
    registry = ModelRegistry({"OPENAI_API_KEY": "sk-0123456789"})
    provider = registry.provider("openai/gpt-4o")
    assert isinstance(provider, OpenAILike)
    assert registry.provider("gpt-4o-mini") is provider
    assert isinstance(registry.provider("local/smollm2"), LocalModel)
    assert registry.provider("local/llama3") is registry.provider("ollama/llama3:8b")


def test_a_scripted_model_without_replies_says_how_to_name_them() -> None:
    with pytest.raises(ConfigError, match="the model scripted/x answers from a replies file; name one with --replies"):
        ModelRegistry({}).provider("scripted/x")


def test_every_service_of_the_catalogue_has_a_provider() -> None:
    registry = ModelRegistry({})
    for entry in model_prefixes():
        if entry.name != "scripted":
            assert registry.provider(f"{entry.name}/owner/name").missing is not None


def test_what_is_missing_is_told_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match=r"openai/gpt-4o: OPENAI_API_KEY is not set; .*--replies FILE"):
        ModelRegistry({}).require(["openai/gpt-4o"])
    ModelRegistry({"OPENAI_API_KEY": "sk-0123456789"}).require(["openai/gpt-4o", "gpt-4o-mini"])


async def test_a_registered_provider_answers_for_its_prefix_also_in_place_of_a_built_in_one() -> None:
    registry = ModelRegistry({"SAID": "hello"})

    def factory(env: Mapping[str, str]) -> ModelProvider:
        return ScriptedModel({"*": env["SAID"]})

    for prefix in ("mine", "openai", "anthropic"):
        registry.register(prefix, factory)
        assert isinstance(registry.provider(f"{prefix}/any"), ScriptedModel)
    registry.require(["mine/x", "claude-sonnet-4-5"])
    await registry.close()


# --- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "usage", "price"),
    [
        ("openai/gpt-4o-mini", Usage(1000, 200), "0.00027"),
        ("gpt-4o-mini", Usage(1000, 200), "0.00027"),
        ("anthropic/claude-sonnet-4-5", Usage(1000, 200), "0.006"),
        ("anthropic/claude-sonnet-4-5", Usage(1000, 200, cached=800), "0.00384"),
        ("anthropic/claude-sonnet-4-5", Usage(1000, 200, cached=400, cache_written=100), "0.004995"),
        ("google/gemini-2.5-flash", Usage(1000, 200), "0.0008"),
        ("gemini/gemini-2.5-pro", Usage(1000, 200), "0.00325"),
        ("openai/gpt-4o-mini", Usage(1_000_000, 1_000_000), "0.75"),
    ],
)
def test_a_known_model_costs_what_the_price_list_says(model: str, usage: Usage, price: str) -> None:
    assert cost(model, usage) == Decimal(price)


@pytest.mark.parametrize("model", ["openai/no-such-model", "nobody/x", "openai/"])
def test_an_unknown_price_is_unknown_and_not_zero(model: str) -> None:
    assert cost(model, Usage(1000, 200)) is None


@pytest.mark.parametrize("model", sorted(WELL_KNOWN))
def test_a_well_known_model_has_a_price(model: str) -> None:
    assert cost(model, Usage(1000, 200)) is not None


@pytest.mark.parametrize(
    ("model", "priced"),
    [
        ("openai/gpt-4o-mini", True),
        ("openrouter/openai/gpt-4o-mini", True),
        ("local/smollm2", True),
        ("openai/no-such-model", False),
        ("nobody/x", False),
    ],
)
def test_whether_a_price_is_known_can_be_asked_beforehand(model: str, priced: bool) -> None:
    assert is_priced(model) is priced


@pytest.mark.parametrize("usage", [Usage(), Usage(1000, None), Usage(None, 200), Usage(0, None)])
def test_unknown_usage_has_no_price(usage: Usage) -> None:
    assert cost("openai/gpt-4o-mini", usage) is None


@pytest.mark.parametrize("model", ["openai/no-such-model", "local/smollm2", "gpt-4o"])
def test_no_tokens_cost_nothing_whatever_the_model(model: str) -> None:
    assert cost(model, Usage(0, 0)) == 0


@pytest.mark.parametrize("model", ["local/smollm2", "ollama/llama3:8b", "scripted/x"])
def test_models_of_this_machine_cost_nothing(model: str) -> None:
    assert cost(model, Usage(1000, None)) == 0


def test_every_known_model_leads_to_a_service_and_stands_in_a_program_without_quotes() -> None:
    program = "".join(f"agent A{number} [{model}]\n" for number, model in enumerate(known_models()))
    assert {one.code for one in check(parse(program)).diagnostics} == {"HL505"}


def test_common_models_come_first_and_models_for_other_things_not_at_all() -> None:
    models = known_models()
    assert models[0] == "local/smollm2"
    assert models.index("openai/gpt-4o-mini") < 20
    assert len(models) == len(set(models))
    assert not [name for name in models if name.startswith("openai/text-embedding")]

"""Texts as vectors at OpenAI, Gemini and Ollama, against fakes that refuse what they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import ollama as ollama_sdk
import openai as openai_sdk
import pytest
from google.genai import Client, types
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ConfigError, ModelError
from halo_runtime.models.embeddings import BATCH_TEXTS, Embeddings, EmbeddingUse, batches, metered
from halo_runtime.models.registry import ModelRegistry
from tests.fakes import embeddings as rules
from tests.fakes import gemini_server, ollama_server, openai_server
from tests.fakes.wire import Answer, FakeService, reply

TEXTS = ["Refunds take five days.", "We are closed on Sundays."]


@dataclass(frozen=True)
class Kit:
    """A service: its model, how its fake is started and led to, how it refuses; `counts` whether it tells tokens."""

    model: str
    length: int
    start: Callable[..., Any]
    env: Callable[[Any], dict[str, str]]
    refuse: Callable[[int], Answer]
    empty: dict[str, Any]
    counts: bool = True


OPENAI = Kit(
    "openai/text-embedding-3-small", 48, openai_server.FakeOpenAI,
    lambda fake: {"OPENAI_API_KEY": openai_server.KEY, "OPENAI_BASE_URL": fake.url},
    lambda status: openai_server.refusal(status, "try later"), {"data": [], "usage": {}},
)  # fmt: skip
GEMINI = Kit(
    "google/gemini-embedding-001", 48, gemini_server.FakeGemini,
    lambda fake: {"GEMINI_API_KEY": gemini_server.KEY, "GOOGLE_GEMINI_BASE_URL": fake.address},
    lambda status: gemini_server.refusal(status, "try later"), {"embeddings": []}, counts=False,
)  # fmt: skip
OLLAMA = Kit(
    "ollama/nomic-embed-text", 48, ollama_server.FakeOllama, lambda fake: {"OLLAMA_HOST": fake.host},
    lambda status: ollama_server.refusal(status, "try later"), {"embeddings": []},
)  # fmt: skip
ROUTER = Kit(
    "openrouter/openai/text-embedding-3-small", 48, partial(openai_server.FakeOpenAI, "openrouter"),
    lambda fake: {"OPENROUTER_API_KEY": openai_server.KEY, "OPENROUTER_BASE_URL": fake.url},
    OPENAI.refuse, OPENAI.empty,
)  # fmt: skip
TOGETHER = Kit(
    "together/BAAI/bge-base-en-v1.5", 48, partial(openai_server.FakeOpenAI, "together"),
    lambda fake: {"TOGETHER_API_KEY": openai_server.KEY, "TOGETHER_BASE_URL": fake.url},
    OPENAI.refuse, OPENAI.empty,
)  # fmt: skip
KITS = pytest.mark.parametrize("kit", [OPENAI, ROUTER, TOGETHER, GEMINI, OLLAMA], ids=lambda kit: kit.model)


async def embed(
    kit: Kit,
    fake: FakeService,
    texts: list[str],
    model: str | None = None,
    waited: list[float] | None = None,
    **more: Any,
) -> Any:
    """The vectors of texts, without waiting between two attempts."""
    registry = ModelRegistry(kit.env(fake))

    async def sleep(seconds: float) -> None:
        (waited if waited is not None else []).append(seconds)

    try:
        return await Embeddings(registry, sleep=sleep).embed(model or kit.model, texts, more.get("purpose", "entry"))
    finally:
        await registry.close()


@KITS
async def test_each_text_gets_its_vector_and_the_tokens_are_counted(kit: Kit) -> None:
    async with kit.start() as fake:
        with metered() as used:
            vectors = await embed(kit, fake, TEXTS)
    assert vectors == [pytest.approx(rules.vector(text, kit.length)) for text in TEXTS]
    estimate = sum(-(-len(text) // 4) for text in TEXTS)
    tokens = rules.tokens(TEXTS) if kit.counts else estimate
    assert used == {kit.model: EmbeddingUse(kit.model, tokens, estimated=not kit.counts)}


@KITS
async def test_many_texts_go_in_requests_that_the_service_takes(kit: Kit) -> None:
    texts = [f"text {number}" for number in range(2 * BATCH_TEXTS + 1)]
    async with kit.start() as fake:
        vectors = await embed(kit, fake, texts)
        assert len(fake.requests) == 3
    assert vectors == [pytest.approx(rules.vector(text, kit.length)) for text in texts]


@KITS
async def test_what_passes_is_tried_again_and_what_does_not_is_told(kit: Kit) -> None:
    waited: list[float] = []
    async with kit.start(refusals_expected=True) as fake:
        fake.answer(kit.refuse(503), kit.refuse(429))
        assert len(await embed(kit, fake, TEXTS, waited=waited)) == 2
        assert waited == [0.5, 1.0]
        fake.answer(kit.refuse(400))
        with pytest.raises(ModelError, match="answered 400: try later"):
            await embed(kit, fake, TEXTS, waited=waited)
        assert len(waited) == 2
        fake.answer(*(kit.refuse(503) for _ in range(4)))
        with pytest.raises(ModelError, match="answered 503"):
            await embed(kit, fake, TEXTS)


@pytest.mark.parametrize(("asked", "waits"), [("2", [2.0]), ("31", [])])
async def test_a_service_is_waited_for_as_long_as_it_asks_within_reason(asked: str, waits: list[float]) -> None:
    waited: list[float] = []
    async with openai_server.FakeOpenAI(refusals_expected=True) as fake:
        fake.answer(openai_server.refusal(429, "slow down", headers={"retry-after": asked}))
        if waits:
            await embed(OPENAI, fake, TEXTS, waited=waited)
        else:
            with pytest.raises(ModelError, match="slow down"):
                await embed(OPENAI, fake, TEXTS, waited=waited)
    assert waited == waits


@KITS
async def test_a_model_that_is_not_there_is_named(kit: Kit) -> None:
    async with kit.start(refusals_expected=True) as fake:
        with pytest.raises(ModelError, match="nothing-like-it"):
            await embed(kit, fake, TEXTS, model=f"{kit.model.partition('/')[0]}/nothing-like-it")


@KITS
async def test_a_wrong_answer_is_an_error_and_no_vector(kit: Kit) -> None:
    async with kit.start() as fake:
        fake.answer(reply(kit.empty))
        with pytest.raises(ModelError, match="2 texts"):
            await embed(kit, fake, TEXTS)


@pytest.mark.parametrize(
    ("vectors", "wrong"),
    [
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([[1.0], ["a"]], "no list of numbers"),
        ([[1.0], []], "no list of numbers"),
        ([[1.0], None], "no list of numbers"),
        ([[True], [False]], "no list of numbers"),
    ],
)
async def test_vectors_that_are_none_are_found(vectors: Any, wrong: str) -> None:
    async with ollama_server.FakeOllama() as fake:
        fake.answer(reply({"embeddings": vectors}))
        with pytest.raises(ModelError, match=wrong):
            await embed(OLLAMA, fake, TEXTS)


@KITS
async def test_cancelling_ends_the_request(kit: Kit) -> None:
    async with kit.start() as fake:
        fake.answer(Answer(hang=True))
        task = asyncio.create_task(embed(kit, fake, TEXTS))
        await fake.hanging.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(fake.left.wait(), 5)


async def test_a_kept_text_must_not_lose_its_end_but_a_query_may() -> None:
    long = "word " * (rules.OLLAMA_CONTEXT + 1)
    async with ollama_server.FakeOllama(refusals_expected=True) as fake:
        with pytest.raises(ModelError, match="exceeds maximum context length"):
            await embed(OLLAMA, fake, [long])
        assert len(await embed(OLLAMA, fake, [long], purpose="query")) == 1


async def test_gemini_is_told_what_a_text_is_for() -> None:
    async with gemini_server.FakeGemini() as fake:
        await embed(GEMINI, fake, TEXTS)
        await embed(GEMINI, fake, TEXTS[:1], purpose="query")
        tasks = [one["taskType"] for request in fake.requests for one in request.body["requests"]]
    assert tasks == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]


@pytest.mark.parametrize(
    ("model", "env", "told"),
    [
        ("openai/text-embedding-3-small", {}, "OPENAI_API_KEY is not set; set it, or leave `model:` out"),
        ("anthropic/claude-sonnet-4-5", {"ANTHROPIC_API_KEY": "k"}, "cannot embed texts"),
        ("local/smollm2", {}, "cannot embed texts"),
        ("text-embedding-3-small", {}, "names no service"),
    ],
)
def test_a_model_that_cannot_embed_is_told_before_anything_is_sent(model: str, env: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Embeddings(ModelRegistry(env)).require(model)


@given(st.lists(st.text(max_size=40), max_size=20), st.integers(1, 60))
def test_batches_keep_all_texts_in_order_and_are_as_large_as_may_be(texts: list[str], limit: int) -> None:
    found = list(batches(texts, limit))
    assert [text for batch in found for text in batch] == texts
    sizes = [sum(len(text.encode("utf-8", "replace")) for text in batch) for batch in found]
    assert all(size <= limit or len(batch) == 1 for size, batch in zip(sizes, found, strict=True))
    firsts = [len(batch[0].encode("utf-8", "replace")) for batch in found[1:]]
    assert all(size + first > limit for size, first in zip(sizes, firsts, strict=False))


# --- the fakes beside the services' own clients -----------------------------------------------------------------------


async def test_the_services_own_clients_read_the_same() -> None:
    expected = [pytest.approx(rules.vector(text, 48), abs=1e-6) for text in TEXTS]
    async with (
        openai_server.FakeOpenAI() as fake,
        openai_sdk.AsyncOpenAI(api_key=openai_server.KEY, base_url=fake.url) as client,
    ):
        answer = await client.embeddings.create(model="text-embedding-3-small", input=TEXTS)
        by_index = sorted(answer.data, key=lambda item: item.index)
        assert ([item.embedding for item in by_index], answer.usage.prompt_tokens) == (expected, rules.tokens(TEXTS))
    async with ollama_server.FakeOllama() as fake, ollama_sdk.AsyncClient(host=fake.host, trust_env=False) as client:
        answer = await client.embed(model="nomic-embed-text", input=TEXTS)
        assert ([*map(list, answer.embeddings)], answer.prompt_eval_count) == (expected, rules.tokens(TEXTS))
    async with gemini_server.FakeGemini() as fake, httpx.AsyncClient(trust_env=False) as transport:
        options = types.HttpOptions(base_url=fake.address, httpx_async_client=transport)
        client = Client(api_key=gemini_server.KEY, http_options=options)
        config = types.EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT")
        answer = await client.aio.models.embed_content(model="gemini-embedding-001", contents=[*TEXTS], config=config)
        assert [item.values for item in answer.embeddings or ()] == expected
        await client.aio.aclose()
        client.close()

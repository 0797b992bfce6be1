"""Texts as vectors, by the model services: one interface for all of them, in batches, with retries, and counted.

What stands in the services' own formats is in `embedding_wire`; their providers (`openai`, `gemini`, `ollama`) have
the connections and the keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from halo_lang.records import record
from halo_runtime.errors import ConfigError, ModelError
from halo_runtime.json_types import JsonObject
from halo_runtime.models.access import WITHOUT_KEY
from halo_runtime.models.registry import ModelRegistry

Purpose: TypeAlias = Literal["entry", "query"]
"""What a text is for: some models embed what is kept and what is looked for in different ways."""

BATCH_TEXTS: Final = 96
"""Texts of one request; Gemini takes 100 at most."""
BATCH_BYTES: Final = 250_000
"""Bytes of one request. No text has more tokens than bytes, and OpenAI takes 300,000 tokens at most."""
ATTEMPTS: Final = 4
LONGEST_WAIT: Final = 30.0
"""Seconds; a service that asks for more is not waited for."""
_BYTES_A_TOKEN: Final = 4


@record
class Embedded:
    """The vectors of some texts in their order, and how many tokens those had; None where the service did not say."""

    vectors: Sequence[Sequence[float]]
    tokens: int | None


@runtime_checkable
class EmbeddingProvider(Protocol):
    """A model provider that can embed texts too. Errors are ModelError; cancelling stops the request."""

    def missing(self) -> str | None:
        """As every model provider's: what keeps it from working at all."""
        ...

    async def embed(self, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """The vectors of at most BATCH_TEXTS texts, in one request. `model` is the declared id with its prefix."""
        ...


@record
class EmbeddingUse:
    """What one call of a tool has used of an embedding model; `estimated` where the service did not say it all."""

    model: str
    tokens: int
    estimated: bool

    def plus(self, tokens: int, *, estimated: bool) -> EmbeddingUse:
        """With one request more."""
        return EmbeddingUse(self.model, self.tokens + tokens, self.estimated or estimated)

    def to_json(self) -> JsonObject:
        """For the journal."""
        return {"model": self.model, "tokens": self.tokens, "estimated": self.estimated}


class Embeddings:
    """The embedding models of one runtime. `sleep` waits between two attempts."""

    def __init__(self, models: ModelRegistry, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        self._models = models
        self._sleep = sleep

    def require(self, model: str) -> None:
        """Raises ConfigError where texts cannot be embedded with `model`; nothing is sent."""
        problem = self._provider(model).missing()
        if problem is not None:
            told = problem.replace(WITHOUT_KEY, "set it, or leave `model:` out for the one that needs no key")
            raise ConfigError(f"{model}: {told}")

    async def embed(self, model: str, texts: Sequence[str], purpose: Purpose) -> list[Sequence[float]]:
        """The vectors of texts, in as many requests as it takes. Raises ModelError."""
        provider = self._provider(model)
        vectors: list[Sequence[float]] = []
        for batch in batches(texts):
            answer = await self._patiently(lambda batch=batch: provider.embed(model, batch, purpose))
            _note(model, answer.tokens, batch)
            vectors += answer.vectors
        return vectors

    def _provider(self, model: str) -> EmbeddingProvider:
        provider = self._models.provider(model)
        if isinstance(provider, EmbeddingProvider):
            return provider
        raise ConfigError(
            f"{model} cannot embed texts: its service has no embeddings; use a model of openai/, google/ or ollama/"
        )

    async def _patiently(self, ask: Callable[[], Awaitable[Embedded]]) -> Embedded:
        """An answer, after waiting where the service wants that or fails for now."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await ask()
            except ModelError as error:
                wait = 0.5 * 2 ** (attempt - 1) if error.retry_after is None else error.retry_after
                if not error.retryable or wait > LONGEST_WAIT:
                    raise
            await self._sleep(wait)
        return await ask()


def batches(texts: Sequence[str], max_bytes: int = BATCH_BYTES) -> Iterator[list[str]]:
    """Texts in their order, as many together as one request takes; a longer one goes alone."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode("utf-8", "replace"))
        if batch and (len(batch) == BATCH_TEXTS or size + length > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


# --- counting ---------------------------------------------------------------------------------------------------------

_METER: ContextVar[dict[str, EmbeddingUse] | None] = ContextVar("embedding meter", default=None)


@contextmanager
def metered() -> Generator[dict[str, EmbeddingUse]]:
    """What is embedded inside is written down here, by model."""
    used: dict[str, EmbeddingUse] = {}
    token = _METER.set(used)
    try:
        yield used
    finally:
        _METER.reset(token)


def _note(model: str, tokens: int | None, texts: Sequence[str]) -> None:
    used = _METER.get()
    if used is None:
        return
    estimate = sum(-(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN) for text in texts)
    before = used.get(model, EmbeddingUse(model, 0, estimated=False))
    used[model] = before.plus(estimate if tokens is None else tokens, estimated=tokens is None)

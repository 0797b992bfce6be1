"""Requests and answers of the services' embedding APIs.

OpenAI, OpenRouter and Together: `POST /embeddings`. Gemini: `POST /models/NAME:batchEmbedContents`. Ollama:
`POST /api/embed`. Shapes from the services' documentation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.embeddings import Embedded, Purpose

MakeError: TypeAlias = Callable[[str], ModelError]
"""An error of the service from what is wrong with its answer."""

_TASKS: Final[dict[Purpose, str]] = {"entry": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}
_KNOWS_TASKS: Final = re.compile(r"gemini-embedding-001|text-embedding-\d+|embedding-001")


def openai_body(model: str, texts: Sequence[str]) -> JsonObject:
    """The request; floats are asked for, as compatible servers do not all know base64."""
    return {"model": model, "input": list(texts), "encoding_format": "float"}


def read_openai(document: JsonObject, count: int, error: MakeError) -> Embedded:
    """`data[{index, embedding}]` in any order, and `usage.prompt_tokens`. Raises ModelError."""
    items: Json = document.get("data")
    placed: dict[int, Json] = {}
    for item in items if is_list(items) else ():
        index = item.get("index") if is_object(item) else None
        if type(index) is int:
            placed[index] = item.get("embedding")
    if sorted(placed) != list(range(count)):
        raise error(f"answered without an embedding for each of {count} texts")
    usage: Json = document.get("usage")
    return Embedded(
        _vectors([placed[index] for index in range(count)], count, error),
        _tokens(usage.get("prompt_tokens") if is_object(usage) else None),
    )


def gemini_body(model: str, texts: Sequence[str], purpose: Purpose) -> JsonObject:
    """The request, in which each text names the model once more. Newer models know no tasks."""
    task = {"taskType": _TASKS[purpose]} if _KNOWS_TASKS.fullmatch(model) else {}
    return {
        "requests": [{"model": f"models/{model}", "content": {"parts": [{"text": text}]}, **task} for text in texts]
    }


def read_gemini(document: JsonObject, count: int, error: MakeError) -> Embedded:
    """`embeddings[{values}]`, and `usageMetadata.promptTokenCount` where there is one. Raises ModelError."""
    items: Json = document.get("embeddings")
    usage: Json = document.get("usageMetadata")
    values: list[Json] = [item.get("values") if is_object(item) else None for item in items] if is_list(items) else []
    return Embedded(
        _vectors(values, count, error), _tokens(usage.get("promptTokenCount") if is_object(usage) else None)
    )


def ollama_body(model: str, texts: Sequence[str], purpose: Purpose) -> JsonObject:
    """The request. What is kept must not lose its end without a word; of a long query the beginning is enough."""
    return {"model": model, "input": list(texts), "truncate": purpose == "query"}


def read_ollama(document: JsonObject, count: int, error: MakeError) -> Embedded:
    """`embeddings`, and `prompt_eval_count`. Raises ModelError."""
    items: Json = document.get("embeddings")
    return Embedded(_vectors(items if is_list(items) else [], count, error), _tokens(document.get("prompt_eval_count")))


def _vectors(values: Sequence[Json], count: int, error: MakeError) -> Sequence[Sequence[float]]:
    """Vectors of one length, a number in each place."""
    if len(values) != count:
        raise error(f"answered with {len(values)} embeddings for {count} texts")
    vectors: list[list[float]] = []
    for value in values:
        if not is_list(value) or not value or not all(map(_is_number, value)):
            raise error("answered with an embedding that is no list of numbers")
        vectors.append(value)
    if len({len(vector) for vector in vectors}) > 1:
        raise error("answered with embeddings of different lengths")
    return vectors


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _tokens(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None

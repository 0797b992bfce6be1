"""What the services' embedding APIs refuse and answer: texts of the same words have the same vector in every service.

Written from the services' documentation and not from our client, so that the two check each other. A refusal is
`Wrong`, with its message; each fake sends it in its service's shape.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Sequence
from typing import Any
from zlib import crc32

OPENAI_MODELS = {
    "text-embedding-3-small": 48, "text-embedding-3-large": 96, "openai/text-embedding-3-small": 48,
    "BAAI/bge-base-en-v1.5": 48,
}  # fmt: skip
GEMINI_MODELS = {"gemini-embedding-001": 48}
OLLAMA_MODELS = {"nomic-embed-text": 48, "all-minilm": 24}
"""Model → length of its vectors; short ones, for they are not looked at."""

TASKS = {
    "TASK_TYPE_UNSPECIFIED", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION",
    "CLUSTERING", "QUESTION_ANSWERING", "FACT_VERIFICATION", "CODE_RETRIEVAL_QUERY",
}  # fmt: skip
OLLAMA_CONTEXT = 2048
"""Tokens that Ollama's models read at once; more is cut off, or refused where that was asked for."""


class Wrong(Exception):
    """What the service would not take, in its words."""


def require(condition: object, message: str) -> None:
    """Raise Wrong where a condition does not hold."""
    if not condition:
        raise Wrong(message)


def vector(text: str, length: int) -> list[float]:
    """Unit vector of the words of a text, whatever their order."""
    counts = [0.0] * length
    for word in re.findall(r"\w+", text.casefold()):
        counts[crc32(word.encode()) % length] += 1
    norm = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / norm for count in counts]


def tokens(texts: Sequence[str]) -> int:
    """How many tokens texts have: as many as words."""
    return sum(len(text.split()) for text in texts)


# --- OpenAI: POST /embeddings -----------------------------------------------------------------------------------------


def check_openai(body: Any) -> None:
    """Raise Wrong for a request that OpenAI would not take."""
    require(isinstance(body, dict), "the body is no object")
    unknown = body.keys() - {"model", "input", "encoding_format", "dimensions", "user"}
    require(not unknown, f"Unrecognized request arguments supplied: {sorted(unknown)}")
    require(body.get("model") in OPENAI_MODELS, f"The model `{body.get('model')}` does not exist.")
    require(body.get("encoding_format", "float") in ("float", "base64"), "Invalid encoding_format")
    texts = _openai_texts(body)
    require(0 < len(texts) <= 2048, "'$.input' is invalid: 1 to 2048 texts")
    require(all(isinstance(text, str) and text for text in texts), "'$.input' is invalid: input cannot be empty")
    require(all(tokens([text]) <= 8192 for text in texts), "maximum context length is 8192 tokens")
    require(tokens(texts) <= 300_000, "max 300000 tokens per request")


def answer_openai(body: dict[str, Any]) -> dict[str, Any]:
    """The embeddings, last one first: only `index` says where each belongs."""
    texts, length = _openai_texts(body), body.get("dimensions") or OPENAI_MODELS[body["model"]]
    encode = _base64 if body.get("encoding_format") == "base64" else list
    data = [{"object": "embedding", "index": n, "embedding": encode(vector(t, length))} for n, t in enumerate(texts)]
    count = tokens(texts)
    return {
        "object": "list", "data": data[::-1], "model": body["model"],
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }  # fmt: skip


def _openai_texts(body: dict[str, Any]) -> list[Any]:
    given = body.get("input")
    return [given] if isinstance(given, str) else given if isinstance(given, list) else []


def _base64(numbers: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


# --- Gemini: POST /models/NAME:batchEmbedContents ---------------------------------------------------------------------


def check_gemini(model: str, body: Any) -> None:
    """Raise Wrong for a request that Gemini would not take."""
    require(model in GEMINI_MODELS, f"models/{model} is not found for API version v1beta")
    require(isinstance(body, dict) and body.keys() == {"requests"}, "Invalid JSON payload received.")
    require(1 <= len(body["requests"]) <= 100, "at most 100 requests can be in one batch")
    for number, one in enumerate(body["requests"]):
        where = f"requests[{number}]"
        known = {"model", "content", "taskType", "title", "outputDimensionality"}
        require(one.keys() <= known, f"Unknown name \"{sorted(one.keys() - known)}\" at '{where}'")
        require(one.get("model") == f"models/{model}", f"{where}.model: does not match the model of the batch")
        require(one.get("taskType", "RETRIEVAL_QUERY") in TASKS, f"{where}.task_type: invalid value")
        parts = one["content"]["parts"]
        require(len(parts) == 1 and parts[0].keys() == {"text"} and parts[0]["text"], f"{where}: content is empty")


def answer_gemini(model: str, body: dict[str, Any]) -> dict[str, Any]:
    """The embeddings; nothing is said of tokens."""
    texts = [one["content"]["parts"][0]["text"] for one in body["requests"]]
    return {"embeddings": [{"values": vector(text, GEMINI_MODELS[model])} for text in texts]}


# --- Ollama: POST /api/embed ------------------------------------------------------------------------------------------


def check_ollama(body: Any) -> None:
    """Raise Wrong for a request that Ollama would not take; `model … not found` is its 404."""
    require(isinstance(body, dict), "missing request body")
    unknown = body.keys() - {"model", "input", "truncate", "options", "keep_alive", "dimensions"}
    require(not unknown, f"unknown fields {sorted(unknown)}")
    require(body.get("model") in OLLAMA_MODELS, f'model "{body.get("model")}" not found, try pulling it first')
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    require(isinstance(texts, list) and all(isinstance(text, str) for text in texts), "invalid input type")
    fits = all(tokens([text]) <= OLLAMA_CONTEXT for text in texts)
    require(fits or body.get("truncate", True), "input length exceeds maximum context length")


def answer_ollama(body: dict[str, Any]) -> dict[str, Any]:
    """The embeddings with what Ollama measures."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    cut = [" ".join(text.split()[:OLLAMA_CONTEXT]) for text in texts]
    return {
        "model": body["model"], "embeddings": [vector(text, OLLAMA_MODELS[body["model"]]) for text in cut],
        "total_duration": 14_000_000, "load_duration": 1_000_000, "prompt_eval_count": tokens(cut),
    }  # fmt: skip

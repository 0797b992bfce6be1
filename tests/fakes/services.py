"""All model services behind one face, for tests that hold for each of them: a turn of a model as each service sends it.

async with kit.start() as server:
    kit.order(server, Turn(calls=[("Notes_incr", {"key": "a"})]), Turn("Done."), streams=True)
    runtime = Runtime(env=kit.env(server))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from zlib import crc32

from tests.fakes import (
    anthropic_server,
    gemini_server,
    ollama_server,
    openai_responses,
    openai_server,
    replicate_server,
)
from tests.fakes.wire import Answer, FakeService, reply

End = Literal["stop", "length", "filter", "refusal"]
READ, MADE = 1000, 200
"""Tokens of every turn."""


@dataclass(frozen=True)
class Turn:
    """What a model says: a text, or calls with their arguments; and why it stopped."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    end: End = "stop"


def _ids(turn: Turn) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The calls of a turn with an id each, another one in every turn."""
    for number, (name, given) in enumerate(turn.calls):
        said = json.dumps([name, given, number]).encode()
        yield f"call_{crc32(said):08x}", name, given


def _cut(text: str) -> list[str]:
    return [text[start : start + 4] for start in range(0, len(text), 4)]


@dataclass(frozen=True)
class Kit:
    """A service: the model that is asked, how its fake is started and led to, and how it says things.

    `say` lets the fake say a turn, streamed or whole although a stream is asked for; `refuse` makes a refusal from
    status and words. `cost`: USD of three turns, None where nobody knows it. `tool_model`: the one that is offered
    tools, None where there are none. `ends`: the ways of its turns to end other than `stop`.
    """

    name: str
    model: str
    key_variable: str
    url_variable: str
    key: str
    start: Callable[..., FakeService]
    say: Callable[[Any, Turn, bool], None]
    refuse: Callable[[int, str], Answer]
    cost: float | None
    tool_model: str | None
    wrong_key: int = 401
    ends: frozenset[End] = frozenset({"length"})
    more: dict[str, str] = field(default_factory=dict[str, str])

    def env(self, server: FakeService, **changes: str) -> dict[str, str]:
        """What leads Halo to the fake."""
        return {self.url_variable: self.url(server), self.key_variable: self.key} | self.more | changes

    def url(self, server: FakeService) -> str:
        """The fake's address as the service's variable has it."""
        return getattr(server, "url", server.address)

    def order(self, server: FakeService, *turns: Turn, streams: bool) -> None:
        """Let the fake answer with these turns, streamed or whole although a stream is asked for."""
        for turn in turns:
            self.say(server, turn, streams)


def _answering(send: Callable[[Turn, bool], Answer]) -> Callable[[Any, Turn, bool], None]:
    """Says a turn in one answer."""
    return lambda server, turn, streams: server.answer(send(turn, streams))


# --- OpenAI, OpenRouter, Together -------------------------------------------------------------------------------------

_CHAT_ENDS = {"stop": "stop", "length": "length", "filter": "content_filter", "refusal": "stop"}


def _chat(cost: float | None = None, *, comments: bool = False) -> Callable[[Turn, bool], Answer]:
    def send(turn: Turn, streams: bool) -> Answer:
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for id_, name, given in _ids(turn)
        ]
        said = {"content": turn.text or None} if turn.end != "refusal" else {"content": None, "refusal": turn.text}
        finish = "tool_calls" if calls else _CHAT_ENDS[turn.end]
        used = openai_server.usage(READ, MADE) | ({} if cost is None else {"cost": cost})
        whole = openai_server.document(said | ({"tool_calls": calls} if calls else {}), finish, used)
        return openai_server.events(*openai_server.chunks(whole), comments=comments) if streams else whole

    return send


def _respond(server: openai_server.FakeOpenAI, turn: Turn, streams: bool) -> None:
    """Let the service say a turn; it takes the items of a response back only as it has made them."""
    calls = [openai_responses.function_call(id_, name, json.dumps(given)) for id_, name, given in _ids(turn)]
    said = [openai_responses.message(None, refusal=turn.text)] if turn.end == "refusal" else []
    said += [openai_responses.message(turn.text)] if turn.text and not said else []
    thought = openai_responses.reasoning(f"rs_{calls[0]['call_id'] if calls else 0}")
    why = {"length": "max_output_tokens", "filter": "content_filter"}.get(turn.end)
    ended: Any = {"status": "incomplete", "incomplete_details": {"reason": why}} if why else {}
    used = openai_responses.usage(READ, MADE, reasoning=100)
    server.turn(openai_responses.response(thought, *said, *calls, usage=used, **ended), whole=not streams)


def _openai(service: openai_server.Service) -> Callable[..., FakeService]:
    return lambda **more: openai_server.FakeOpenAI(service, **more)


# --- Anthropic, Gemini ------------------------------------------------------------------------------------------------


def _anthropic(turn: Turn, streams: bool) -> Answer:
    blocks = [anthropic_server.text(turn.text)] if turn.text else []
    blocks += [anthropic_server.tool_use(id_, name, given) for id_, name, given in _ids(turn)]
    stop = {"length": "max_tokens", "refusal": "refusal"}.get(turn.end)
    whole = anthropic_server.document(*blocks, stop=stop, usage=anthropic_server.usage(READ, MADE))
    return anthropic_server.stream(anthropic_server.events(whole)) if streams else reply(whole)


GEMINI = "gemini-3.5-flash"
_LLAMA = "together/meta-llama/Llama-3.3-70B-Instruct-Turbo"
_OLLAMA_KEY = "ollama-0123456789abcdef"


def _gemini(turn: Turn, streams: bool) -> Answer:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for number, (id_, name, given) in enumerate(_ids(turn)):
        parts.append(gemini_server.call(name, given, id_, GEMINI if not number else None))
    finish = {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}[turn.end]
    whole = gemini_server.turn(parts or None, finish, usageMetadata=gemini_server.usage(READ, MADE))
    return gemini_server.events(*gemini_server.streamed(whole)) if streams else reply(whole)


# --- Ollama, Replicate ------------------------------------------------------------------------------------------------


def _ollama(turn: Turn, streams: bool) -> Answer:
    counts = {"prompt_eval_count": READ, "eval_count": MADE}
    made = (
        ollama_server.calls(*turn.calls, counts=counts)
        if turn.calls
        else ollama_server.text(*_cut(turn.text), reason=turn.end, counts=counts)
    )
    return made.streamed if streams else made.whole


_METRICS = {"predict_time": 1.2, "input_token_count": READ, "output_token_count": MADE}


def _predict(server: replicate_server.FakeReplicate, turn: Turn, streams: bool) -> None:
    ended = replicate_server.succeeded(turn.text, metrics=_METRICS)
    pieces = [("output", piece) for piece in _cut(turn.text)]
    stream = replicate_server.sse(*pieces, ("done", "{}")) if streams else None
    server.predict("starting", ended, stream=stream)


_ALL: frozenset[End] = frozenset({"length", "filter", "refusal"})
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", openai_server.KEY, _openai("openai"))
SERVICES: tuple[Kit, ...] = (
    Kit(
        "openai chat", "openai/gpt-4o", *_OPENAI, _answering(_chat()), openai_server.refusal, 0.0135,
        tool_model="openai/gpt-4o", ends=_ALL,
    ),
    Kit(
        "openai responses", "openai/gpt-5.5-pro", *_OPENAI, _respond, openai_server.refusal, 0.012,
        tool_model="openai/gpt-6.1-sol", ends=_ALL,
    ),
    Kit(
        "openrouter", "openrouter/maker/model", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", openai_server.KEY,
        _openai("openrouter"), _answering(_chat(0.004, comments=True)), openai_server.refusal, 0.012,
        tool_model="openrouter/maker/model", ends=_ALL,
    ),
    Kit(
        "together", _LLAMA, "TOGETHER_API_KEY", "TOGETHER_BASE_URL", openai_server.KEY, _openai("together"),
        _answering(_chat()), openai_server.refusal, 0.003168, tool_model=_LLAMA,
    ),
    Kit(
        "anthropic", "anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", anthropic_server.KEY,
        anthropic_server.FakeAnthropic, _answering(_anthropic),
        lambda status, said: anthropic_server.failure(status, said=said), 0.012,
        tool_model="anthropic/claude-sonnet-5-5", ends=frozenset({"length", "refusal"}),
    ),
    Kit(
        "gemini", f"google/{GEMINI}", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", gemini_server.KEY,
        gemini_server.FakeGemini, _answering(_gemini), gemini_server.refusal, 0.0099, tool_model=f"google/{GEMINI}",
        wrong_key=400, ends=frozenset({"length", "filter"}),
    ),
    Kit(
        "ollama", "ollama/llama3:8b", "OLLAMA_API_KEY", "OLLAMA_HOST", _OLLAMA_KEY,
        lambda **more: ollama_server.FakeOllama(key=_OLLAMA_KEY, **more), _answering(_ollama),
        ollama_server.refusal, 0.0, tool_model="ollama/llama3:8b",
    ),
    Kit(
        "replicate", "replicate/meta/llama", "REPLICATE_API_TOKEN", "REPLICATE_BASE_URL", replicate_server.KEY,
        replicate_server.FakeReplicate, _predict, replicate_server.refusal, None, tool_model=None, ends=frozenset(),
        more={"REPLICATE_POLL_INTERVAL": "0"},
    ),
)  # fmt: skip


def texts(requests: Iterable[Any]) -> list[str]:
    """The bodies of requests as text."""
    return [json.dumps(request.body) for request in requests]

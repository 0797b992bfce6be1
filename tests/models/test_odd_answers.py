"""Answers with a value of another kind somewhere in them: a reply or a ModelError comes of it, at every service."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any, TypeAlias

import pytest

from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, is_list, is_object
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolSpec
from halo_runtime.models.registry import ModelRegistry
from tests.fakes import openai_responses, openai_server, replicate_server
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.replicate_server import FakeReplicate
from tests.fakes.services import SERVICES, Kit, Turn
from tests.fakes.wire import Answer, reply

Path: TypeAlias = tuple[str | int, ...]

OPENROUTER, REPLICATE = (next(kit for kit in SERVICES if kit.name == name) for name in ("openrouter", "replicate"))
TALKING = [kit for kit in SERVICES if kit.name != "replicate"]
every_service = pytest.mark.parametrize("kit", TALKING, ids=lambda kit: kit.name)
ODD: tuple[Any, ...] = ([5], {"a": None}, None)
SAYS = (Turn("Hello."), Turn(calls=(("Notes_incr", {"by": 1}),)))


def places(document: Json, path: Path = ()) -> Iterator[Path]:
    """Every place in a document but the whole of it."""
    if is_object(document) or is_list(document):
        for key, inner in document.items() if is_object(document) else enumerate(document):
            yield (*path, key)
            yield from places(inner, (*path, key))


def with_odd(document: Any, path: Path, odd: Any) -> Any:
    """A copy of a document with another value at a place."""
    changed = inner = copy.deepcopy(document)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return changed


def variants(document: Any) -> Iterator[Any]:
    for path in places(document):
        for odd in ODD:
            yield with_odd(document, path, odd)


def has_events(answer: Answer) -> bool:
    return (answer.content_type or "").startswith("text/event-stream")


def parts_of(answer: Answer) -> list[str]:
    """A streamed body in its lines or events, whichever it has."""
    whole = re.sub("\r\n?", "\n", b"".join(answer.pieces).decode())
    return re.split("\n\n+" if has_events(answer) else "\n", whole)


def document_of(part: str) -> Any:
    """What an event or line carries; None for what is no JSON."""
    lines = part.splitlines()
    data = "\n".join(line[5:].strip() for line in lines if line.startswith("data:")) if ":" in part[:7] else part
    try:
        return json.loads(data)
    except ValueError:
        return None


def streams_of(answer: Answer) -> Iterator[Answer]:
    """A stream in all the ways to have one odd value; of parts that are made alike, the last."""
    parts, events = parts_of(answer), has_events(answer)
    shapes = {str(sorted(map(str, places(found)))): number for number, found in enumerate(map(document_of, parts))}
    for number in shapes.values():
        for changed in variants(document_of(parts[number])):
            name = "".join(f"{line}\n" for line in parts[number].splitlines() if line.startswith("event:"))
            said = (f"{name}data: " if events else "") + json.dumps(changed)
            told = [*parts[:number], said, *parts[number + 1 :]]
            body = ("\n\n" if events else "\n").join(told).encode()
            yield Answer(pieces=(body,), content_type=answer.content_type)


class Ordered:
    """Stands for a fake, to see what a kit would have it answer."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []

    def answer(self, answer: Answer) -> None:
        self.answers.append(answer)

    def turn(self, answer: Answer, *, whole: bool) -> None:
        events = openai_responses.events(json.loads(answer.body))
        self.answers.append(answer if whole else openai_responses.stream(events))


def made(kit: Kit, turn: Turn, streams: bool) -> Answer:
    """What a service answers where its model says this."""
    ordered = Ordered()
    kit.say(ordered, turn, streams)
    [answer] = ordered.answers
    return answer


def answers(kit: Kit, kind: str) -> Iterator[Answer]:
    """What a service answers with one odd value in it."""
    if kind == "streamed":
        for turn in SAYS:
            yield from streams_of(made(kit, turn, streams=True))
        return
    refusal = kit.refuse(429, "Not so fast.")
    for whole in (refusal,) if kind == "refused" else (made(kit, turn, streams=False) for turn in SAYS):
        for changed in variants(json.loads(whole.body)):
            yield reply(changed, whole.status, headers=whole.headers)


@every_service
@pytest.mark.parametrize("kind", ["whole", "streamed", "refused"])
async def test_an_odd_value_is_passed_over_or_an_error_of_the_service(kit: Kit, kind: str) -> None:
    assert kit.tool_model is not None
    offered = ToolSpec("Notes_incr", "Counts.", {"type": "object", "properties": {}})
    request = ModelRequest(kit.tool_model, "Bot", "say", (Message("user", "hi"),), tools=(offered,))
    usable = 0
    async with kit.start() as server, aclosing(_Open(kit.env(server))) as models:
        provider = models.provider(kit.tool_model)
        for answer in answers(kit, kind):
            server.answer(answer)
            try:
                found = await provider.complete(request, list[str]().append)
            except ModelError:
                continue
            usable += 1
            assert ModelReply.from_json(json.loads(json.dumps(found.to_json()))).text == found.text
            assert all(isinstance(call.id, str) and isinstance(call.name, str) for call in found.tool_calls)
            counts = (found.usage.input, found.usage.output, found.usage.cached, found.usage.reasoning)
            assert all(type(count) in (int, type(None)) for count in counts)
    assert (usable > 0) == (kind != "refused")


@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_piece_of_reasoning_is_kept_and_harms_none(odd: Any) -> None:
    whole = {"type": "reasoning.text", "index": 0, "text": "a"}
    details = [with_odd(whole, (name,), odd) for name in whole] + [whole]
    pieces = [openai_server.chunk({"reasoning_details": [detail, detail]}) for detail in details]
    async with FakeOpenAI("openrouter") as server, aclosing(_Open(OPENROUTER.env(server))) as models:
        server.answer(openai_server.events(*pieces, openai_server.chunk({"content": "Hello."}, "stop")))
        request = ModelRequest(OPENROUTER.model, "Bot", "say", (Message("user", "hi"),))
        found = await models.provider(OPENROUTER.model).complete(request, list[str]().append)
    assert found.text == "Hello."


@pytest.mark.parametrize("name", ["status", "id", "urls", "output"])
@pytest.mark.parametrize("odd", ODD)
async def test_a_look_at_a_prediction_that_shows_something_odd_is_followed_by_another(name: str, odd: Any) -> None:
    async with FakeReplicate() as server, aclosing(_Open(REPLICATE.env(server))) as models:
        server.predict("starting", {"status": "processing", name: odd}, replicate_server.succeeded("Hello."))
        request = ModelRequest(REPLICATE.model, "Bot", "say", (Message("user", "hi"),))
        assert (await models.provider(REPLICATE.model).complete(request, None)).text == "Hello."


class _Open(ModelRegistry):
    async def aclose(self) -> None:
        await self.close()

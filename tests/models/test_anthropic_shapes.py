"""Whatever a conversation holds, the request keeps the service's rules; whatever a stream brings, nothing breaks."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import ModelError
from halo_runtime.models.anthropic_reply import MessageStream, read_reply
from halo_runtime.models.anthropic_request import request_body
from halo_runtime.models.base import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from halo_runtime.models.chat import tool_names
from tests.fakes.anthropic_rules import check
from tests.fakes.anthropic_server import document, event, events

TEXTS = st.sampled_from(["", " \n", "a", "b ", "\ud83d", "語\u2028"]) | st.text(max_size=5)
IDS = st.sampled_from(["c1", "c2", "c1_2", "a:b", ""])
ARGUMENTS = st.sampled_from(["{}", "", "[", '{"a":1}'])
CALLS = st.builds(ToolCall, IDS, st.sampled_from(["Sh_run", "T.x", "T/x", "Ü"]), ARGUMENTS)
UNSIGNED = {"anthropic": {"content": [{"type": "thinking"}], "after": "x"}}
OPAQUE = st.sampled_from([None, {}, {"anthropic": None}, UNSIGNED])
TURNS = st.builds(
    lambda text, calls, opaque: Message("assistant", text, tuple(calls), opaque=opaque),
    TEXTS,
    st.lists(CALLS, max_size=3, unique_by=lambda call: call.id),
    OPAQUE,
)
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["user", "system"]), TEXTS),
    TURNS,
    st.builds(lambda text, id_: Message("tool", text, tool_call_id=id_), TEXTS, IDS),
)


@given(st.lists(MESSAGES, max_size=8), st.booleans())
def test_every_conversation_becomes_one_that_the_service_takes(messages: list[Message], tools: bool) -> None:
    offered = (ToolSpec("T.x", "", {"type": "object"}), ToolSpec("T/x", "", {})) if tools else ()
    request = ModelRequest("claude-sonnet-4-5", "A", "m", (Message("user", "hi"), *messages), tools=offered)
    body, warnings = request_body(request, "claude-sonnet-4-5", tool_names(request))
    json.dumps(body, ensure_ascii=False).encode()
    check(body)
    assert warnings == ()


def refuse(problem: str, **_: Any) -> ModelError:
    return ModelError(problem)


def failure(status: int, said: dict[str, Any]) -> ModelError:
    return ModelError(f"{status} {said}")


BODY = {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}


def read(body: bytes, cuts: list[int]) -> ModelReply:
    said: list[str] = []
    stream = MessageStream(said.append, refuse, failure)
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        stream.receive(body[start:end])
    reply = read_reply(stream.message(), BODY, {}, refuse)
    assert reply.stop == "refusal" or "".join(said) == reply.text
    return reply


BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=9)),
        st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, st.text(max_size=5)),
        st.builds(
            lambda value: {"type": "tool_use", "id": "c", "name": "T", "input": value},
            st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3), max_size=2),
        ),
    ),
    min_size=1,
    max_size=4,
)


@given(BLOCKS, st.integers(1, 5), st.lists(st.integers(0, 10_000), max_size=5))
def test_a_message_is_the_same_whole_and_streamed_however_it_is_cut(
    blocks: list[Any], step: int, cuts: list[int]
) -> None:
    whole = document({"type": "text", "text": "."}, *blocks)
    body = "".join(map(event, events(whole, step))).encode()
    assert read(body, cuts) == read_reply(whole, BODY, {}, refuse)


ODD = st.none() | st.integers(-1, 1) | st.text(max_size=2) | st.lists(st.none(), max_size=1)
FIELDS = "type index delta content_block text partial_json message usage error content stop_reason"
EVENTS = "message_start content_block_start content_block_delta message_delta message_stop error"
KINDS = st.sampled_from(f"{EVENTS} text text_delta input_json_delta tool_use thinking signature_delta".split())
NAMED = st.sampled_from(FIELDS.split())
NONSENSE = st.recursive(ODD | KINDS, lambda inner: st.dictionaries(NAMED, inner, max_size=4), max_leaves=8)


@given(st.lists(st.tuples(KINDS, st.dictionaries(NAMED, NONSENSE, max_size=4)), max_size=6))
def test_nonsense_in_a_stream_is_an_answer_or_an_error_of_the_model(found: list[tuple[str, dict[str, Any]]]) -> None:
    nonsense = "".join(event({**fields, "type": kind}) for kind, fields in found)
    with suppress(ModelError):
        reply = read((nonsense + event({"type": "message_stop"})).encode("utf-8", "replace"), [])
        json.dumps(reply.to_json())


@given(st.dictionaries(st.sampled_from(["content", "stop_reason", "usage", "model", "stop_details"]), NONSENSE))
def test_nonsense_for_a_message_is_an_answer_or_an_error_of_the_model(found: dict[str, Any]) -> None:
    with suppress(ModelError):
        json.dumps(read_reply(found, BODY, {}, refuse).to_json())

"""Gemini's answers of any shape and in any pieces, without a server."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.errors import Fault, ModelError
from halo_runtime.models.base import Message, ModelReply, ModelRequest
from halo_runtime.models.chat import tool_names
from halo_runtime.models.gemini_reply import Answer
from halo_runtime.models.gemini_request import request_body
from tests.fakes.gemini_rules import check
from tests.fakes.gemini_server import call, streamed, turn

MODEL = "gemini-3.5-flash"
NAMES = [
    "candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "id", "args",
    "finishReason", "finishMessage", "continuationToken", "promptFeedback", "blockReason", "usageMetadata",
    "promptTokenCount", "candidatesTokenCount", "modelVersion",
]  # fmt: skip

scalars = st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.text(max_size=4)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)
texts = st.builds(lambda text: {"text": text}, st.text(max_size=12))
signed_texts = st.builds(lambda part: part | {"thoughtSignature": "c2ln"}, texts)
calls = st.builds(
    lambda name, id_, signed: call(name, {"a": 1}, id_, MODEL if signed else None),
    st.sampled_from(["weather", "time"]),
    st.none() | st.sampled_from(["f1", "f2"]),
    st.booleans(),
)
turns = st.lists(texts | signed_texts | calls, min_size=1, max_size=6)


def refuse(problem: str, *, retryable: bool = False, code: Fault | None = None) -> ModelError:
    return ModelError(problem, retryable=retryable, code=code)


def read(*documents: dict[str, Any]) -> ModelReply | str:
    """The reply to documents, or why there is none."""
    answer = Answer(MODEL, {}, refuse)
    answer.begin()
    try:
        told = "".join([answer.take(document) for document in documents])
        reply = answer.reply()
    except ModelError as error:
        return error.message
    assert reply.text == told
    return reply


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(NAMES), anything, max_size=6), max_size=3))
def test_documents_of_any_shape_make_a_reply_that_can_be_kept_or_a_refusal(documents: list[dict[str, Any]]) -> None:
    reply = read(*documents)
    if isinstance(reply, ModelReply):
        assert ModelReply.from_json(json.loads(json.dumps(reply.to_json()))).tool_calls == reply.tool_calls


@settings(max_examples=100, deadline=None)
@given(turns)
def test_a_streamed_answer_is_the_whole_one(parts: list[dict[str, Any]]) -> None:
    whole = turn(parts)
    assert read(*streamed(whole)) == read(whole)


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, max_size=3), st.lists(calls, min_size=1, max_size=4), st.booleans())
def test_what_came_goes_back_as_it_came(said: list[Any], asked: list[Any], stream: bool) -> None:
    """The first call of a turn is signed, others may be; the service finds a signature that went elsewhere."""
    first = call("weather", {"city": "Oslo"}, None, MODEL)
    whole = turn([*said, first, *asked])
    reply = read(*streamed(whole)) if stream else read(whole)
    assert isinstance(reply, ModelReply)
    results = (Message("tool", "4C", tool_call_id=made.id) for made in reply.tool_calls)
    spoken = Message("assistant", reply.text, reply.tool_calls, opaque=reply.opaque)
    request = ModelRequest(MODEL, "Bot", "say", (Message("user", "hi"), spoken, *results))
    body = request_body(request, MODEL, tool_names(request))
    check(MODEL, body)
    sent = [part for part in body["contents"][1]["parts"] if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in sent] == [part.get("thoughtSignature") for part in (first, *asked)]

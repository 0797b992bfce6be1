"""A server on loopback that speaks Replicate's predictions, and refuses what Replicate refuses.

    async with FakeReplicate() as server:
        server.predict("starting", "processing", succeeded("Hel", "lo"))
        ...
        server.predictions[0].cancelled

It has the model `meta/llama` of Replicate's own, and `someone/tuned`, which can only be asked for by its version. Each
look at a prediction finds its next state, then the last again and again. `order` puts other answers in the way.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.wire import Answer, FakeService, Received, Refused, crumbs, reply

KEY = "r8_fake0123456789abcdef"
VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
METRICS = {"predict_time": 1.2, "input_token_count": 9, "output_token_count": 3}
INPUT: dict[str, tuple[type, ...]] = {
    "prompt": (str,), "system_prompt": (str,), "temperature": (int, float), "top_p": (int, float), "max_tokens": (int,),
}  # fmt: skip
ROUTES = (
    ("collection", "GET", r"/v1/collections/language-models"),
    ("create", "POST", r"/v1/models/(?P<path>[^/]+/[^/]+)/predictions"),
    ("create", "POST", r"/v1/predictions"),
    ("look", "GET", r"/v1/predictions/(?P<id>\w+)"),
    ("cancel", "POST", r"/v1/predictions/(?P<id>\w+)/cancel"),
    ("stream", "GET", r"/stream/(?P<id>\w+)"),
    ("model", "GET", r"/v1/models/(?P<path>[^/]+/[^/]+)"),
)


def refusal(status: int, detail: str = "no", title: str = "Error", **more: Any) -> Answer:
    """An error in Replicate's shape."""
    problem = {"title": title, "detail": detail, "status": status}
    return reply(problem, status, content_type="application/problem+json", **more)


def succeeded(*output: str, metrics: dict[str, Any] | None = None) -> dict[str, Any]:
    """The state of a prediction that has ended well."""
    return {"status": "succeeded", "output": list(output), "metrics": METRICS if metrics is None else metrics}


def failed(error: str | None, status: str = "failed") -> dict[str, Any]:
    """The state of a prediction that has ended otherwise."""
    return {"status": status, "error": error, "output": None}


def sse(*events: tuple[str, str], size: int = 3, **more: Any) -> Answer:
    """Events as a stream in pieces, each `(name, data)`."""
    text = ": hi\n\n"
    for number, (name, data) in enumerate(events):
        lines = "".join(f"data: {line}\n" for line in data.split("\n"))
        text += f"event: {name}\nid: {number}:0\n{lines}\n"
    return Answer(pieces=crumbs(text, size), content_type="text/event-stream", **more)


@dataclass
class Prediction:
    """One that was created, with the states that are still to come."""

    id: str
    input: dict[str, Any]
    states: deque[dict[str, Any]]
    streams: bool
    model: str
    cancelled: bool = False
    looks: int = 0

    def next_state(self) -> dict[str, Any]:
        """What a look finds."""
        return self.states.popleft() if len(self.states) > 1 else self.states[0]


@dataclass
class _Script:
    states: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    streams: bool = False


class FakeReplicate(FakeService):
    """The server; see the module."""

    def __init__(self, *, refusals_expected: bool = False) -> None:
        super().__init__(refusals_expected=refusals_expected)
        self.predictions: list[Prediction] = []
        self.stream_at: str | None = None
        self._scripts: deque[_Script] = deque()
        self._orders: defaultdict[str, deque[Answer]] = defaultdict(deque)

    def predict(self, *states: str | dict[str, Any], stream: Answer | None = None) -> None:
        """Let the next prediction go through these states; it can be streamed where a stream is given."""
        whole = [{"status": state} if isinstance(state, str) else state for state in states]
        self._scripts.append(_Script(whole, stream is not None))
        if stream is not None:
            self.order("stream", stream)

    def order(self, route: str, *answers: Answer) -> None:
        """Give these next to requests of one kind: create, look, cancel, stream, model."""
        self._orders[route].extend(answers)

    def sent(self, route: str) -> list[Received]:
        """The requests of one kind."""
        return [request for request in self.requests if _route(request)[0] == route]

    def check(self, request: Received) -> None:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            raise Refused("token", refusal(401, "You did not pass a valid authentication token", "Unauthenticated"))
        route, found = _route(request)
        if route == "create":
            _check_creation(request, found.get("path"))
        elif route == "stream" and (request.headers.get("accept"), request.headers.get("cache-control")) != (
            "text/event-stream", "no-store",
        ):  # fmt: skip
            raise Refused("no stream asked for", refusal(406))
        elif not route:
            raise Refused(
                f"{request.method} {request.path}", refusal(404, "The requested resource could not be found.")
            )

    def usual(self, request: Received) -> Answer:
        route, found = _route(request)
        if self._orders[route]:
            return self._orders[route].popleft()
        return getattr(self, f"_{route}")(request, found)

    def _create(self, request: Received, found: dict[str, str]) -> Answer:
        path = found.get("path")
        if path not in (None, "meta/llama"):
            return refusal(404, "The requested resource could not be found.")
        script = self._scripts.popleft() if self._scripts else _Script([{"status": "starting"}, succeeded("o", "k")])
        name = path or "someone/tuned"
        id_ = f"p{len(self.predictions)}"
        made = Prediction(id_, request.body["input"], deque(script.states), script.streams, name)
        self.predictions.append(made)
        return reply(self._document(made, made.next_state()), 201)

    def _look(self, request: Received, found: dict[str, str]) -> Answer:
        made = self._find(found["id"])
        made.looks += 1
        return reply(self._document(made, failed(None, "canceled") if made.cancelled else made.next_state()))

    def _cancel(self, request: Received, found: dict[str, str]) -> Answer:
        made = self._find(found["id"])
        made.cancelled = True
        return reply(self._document(made, failed(None, "canceled")))

    def _stream(self, request: Received, found: dict[str, str]) -> Answer:
        return refusal(404)

    def _model(self, request: Received, found: dict[str, str]) -> Answer:
        if found["path"] != "someone/tuned":
            return refusal(404, "The requested resource could not be found.")
        return reply({"owner": "someone", "name": "tuned", "latest_version": {"id": VERSION}})

    def _collection(self, request: Received, found: dict[str, str]) -> Answer:
        models = [{"owner": "meta", "name": "llama"}, {"owner": "someone", "name": "tuned"}]
        return reply({"name": "Language models", "slug": "language-models", "models": models})

    def _find(self, id_: str) -> Prediction:
        return next(made for made in self.predictions if made.id == id_)

    def _document(self, made: Prediction, state: dict[str, Any]) -> dict[str, Any]:
        at = f"{self.address}/v1/predictions/{made.id}"
        urls = {"get": at, "cancel": f"{at}/cancel", "web": "https://replicate.com/p/x"}
        if made.streams:
            urls["stream"] = self.stream_at or f"{self.address}/stream/{made.id}"
        return {
            "id": made.id, "model": made.model, "version": VERSION, "input": made.input, "output": None, "logs": "",
            "error": None, "created_at": "2026-11-30T10:00:00Z", "started_at": None, "completed_at": None,
            "data_removed": False, "metrics": {}, "urls": urls, "source": "api",
        } | state  # fmt: skip


def _route(request: Received) -> tuple[str, dict[str, str]]:
    for name, method, pattern in ROUTES:
        found = re.fullmatch(pattern, request.path)
        if found is not None and method == request.method:
            return name, found.groupdict()
    return "", {}


def _check_creation(request: Received, path: str | None) -> None:
    body, version = request.body, request.body.get("version")
    if body.keys() - {"version", "input", "stream"} or (path is None) != (version is not None):
        raise _invalid(f"bad body {sorted(body)}")
    if version not in (None, VERSION):
        raise _invalid("version does not exist")
    if not re.fullmatch(r"\d+[smh]", request.headers.get("cancel-after", "1m")):
        raise _invalid("bad Cancel-After")
    if "prompt" not in body["input"]:
        raise _invalid("input: prompt is required")
    for name, value in body["input"].items():
        if type(value) not in INPUT.get(name, ()):
            raise _invalid(f"input.{name}: additional property, or of a wrong type")


def _invalid(problem: str) -> Refused:
    return Refused(problem, refusal(422, f"- {problem}\n", "Input validation failed"))

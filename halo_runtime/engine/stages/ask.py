"""`|! yield(…)` asks a human and `~> listen(Source.Event)` waits for an event; both answers come from outside."""

from __future__ import annotations

from collections.abc import Mapping

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.expressions import Expression
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.plan import StageInfo
from halo_runtime.errors import RunError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.values import text_of


@record
class Ask:
    """A question. `choices` are the literals that the program later compares the answer with."""

    info: StageInfo
    arguments: Mapping[str, Expression]
    choices: tuple[Json, ...]
    binding: str | None

    async def execute(self, frame: Frame, path: str) -> int:
        given = {name: expression.evaluate(frame) for name, expression in self.arguments.items()}
        origins = frame.current_origins.union(
            *(frame.origins_of_all(expression.paths) for expression in self.arguments.values())
        )
        place = f"{path}/yield"
        question: JsonObject = {
            "kind": "yield",
            "message": text_of(given.get("msg", "")),
            "channel": None if given.get("channel") is None else text_of(given["channel"]),
            "attachments": [_attachment(item) for item in _as_list(given.get("attachments"))],
            "choices": list(self.choices),
            "event": None,
        }
        answer = await frame.run.ask(frame, place, question, _timeout(given.get("timeout")), self.binding, origins)
        _answered(frame, answer, place, self.binding)
        return self.info.index + 1


@record
class Listen:
    """An awaited event, stored at `data.<source>.<event>`."""

    info: StageInfo
    source: str
    event: str
    choices: tuple[Json, ...]
    binding: str | None

    async def execute(self, frame: Frame, path: str) -> int:
        place = f"{path}/listen"
        name = f"{self.source}.{self.event}"
        question: JsonObject = {
            "kind": "listen",
            "message": f"waiting for {name}",
            "channel": None,
            "attachments": [],
            "choices": list(self.choices),
            "event": name,
        }
        payload = await frame.run.ask(frame, place, question, None, self.binding, frame.current_origins)
        frame.bind_in(self.source, self.event, payload, frozenset((place,)))
        _answered(frame, payload, place, self.binding)
        return self.info.index + 1


def _answered(frame: Frame, answer: Json, place: str, binding: str | None) -> None:
    origins: Origins = frozenset((place,))
    if binding is not None:
        frame.bind(binding, answer, origins)
    frame.flow(answer, origins)


def _as_list(value: Json) -> list[Json]:
    return [] if value is None else value if is_list(value) else [value]


def _attachment(value: Json) -> JsonObject:
    """`{"kind": "text"|"file", "text"|"path", "name"}`; an object in that shape is taken as it is, all else is text."""
    if is_object(value) and value.get("kind") in ("text", "file"):
        return value
    return {"kind": "text", "text": text_of(value), "name": None}


def _timeout(value: Json) -> float | None:
    if value is None:
        return None
    seconds = duration_seconds(value) if isinstance(value, str) else None
    if seconds is None:
        raise RunError(f"yield: timeout takes a duration such as 30m or 3d, not {text_of(value)}")
    return seconds

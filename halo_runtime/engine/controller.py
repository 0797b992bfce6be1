"""How a debugger holds a run: the only way in (spec 2.8)."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import HaloError
from halo_runtime.json_types import Json, JsonObject


@record
class StagePoint:
    """Where a run is held: before or after the stage at `path`. `data` is a view, not to be changed."""

    run_id: str
    path: str
    pipeline: str
    index: int
    stage: str
    line: int
    current: Json
    data: JsonObject


@record
class Proceed:
    """Go on unchanged."""


@record
class Replace:
    """Go on with another flowing value."""

    value: Json


@record
class Skip:
    """Leave the stage out; `value` flows on."""

    value: Json


@record
class Jump:
    """Go on at the stage `index` of this pipeline (run it again, or leave some out)."""

    index: int


Command: TypeAlias = Proceed | Replace | Skip | Jump
PROCEED = Proceed()


class Controller(Protocol):
    """Asked at each stage of each pipeline; may take as long as it likes before it answers.

    What it changes is journalled, so a replay of the run makes the same changes without it.
    """

    async def before_stage(self, point: StagePoint) -> Command: ...

    async def after_stage(self, point: StagePoint) -> Command:
        """`point.current` is the stage's result. Skip means nothing here and counts as Replace."""
        ...

    async def on_error(self, point: StagePoint, error: HaloError) -> Command:
        """A stage failed: Proceed fails the run, Replace or Skip goes on with a value, Jump goes elsewhere."""
        ...


def command_to_json(command: Command) -> JsonObject:
    """A command as the journal keeps it."""
    match command:
        case Proceed():
            return {"command": "proceed"}
        case Replace(value):
            return {"command": "replace", "value": value}
        case Skip(value):
            return {"command": "skip", "value": value}
        case Jump(index):
            return {"command": "jump", "index": index}


def command_from_json(document: JsonObject) -> Command:
    """The inverse of `command_to_json`."""
    match document:
        case {"command": "replace", "value": value}:
            return Replace(value)
        case {"command": "skip", "value": value}:
            return Skip(value)
        case {"command": "jump", "index": index}:
            return Jump(index)
        case _:
            return PROCEED

"""The built-in callee `System` (seed 003 §5, spec 2.5, 12.2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from halo_lang.catalog.signature import duration_seconds
from halo_lang.records import record
from halo_runtime.engine.calls.base import Outcome
from halo_runtime.engine.effects import Origins
from halo_runtime.engine.events import Printed
from halo_runtime.engine.expressions import Expression
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import ProgramFailure, RunError
from halo_runtime.json_types import Json, is_list
from halo_runtime.pick import pick
from halo_runtime.values import text_of

Arguments: TypeAlias = Mapping[str, Expression]
Method: TypeAlias = Callable[[Frame, str, Arguments], Awaitable[Outcome]]


@record
class SystemCall:
    """`System.<method>(arguments)`, arguments bound by the catalogue's parameter names."""

    label: str
    arguments: Arguments
    method: Method

    def invoke(self, frame: Frame, path: str) -> Awaitable[Outcome]:
        return self.method(frame, path, self.arguments)


def _argument(frame: Frame, arguments: Arguments, name: str) -> tuple[Json, Origins]:
    """An argument's value, else the flowing value."""
    expression = arguments.get(name)
    if expression is None:
        return frame.current, frame.current_origins
    return expression.evaluate(frame), frame.origins_of_all(expression.paths)


async def _value(frame: Frame, path: str, arguments: Arguments) -> Outcome:
    expression = arguments["x"]
    return Outcome(expression.evaluate(frame), frame.origins_of_all(expression.paths))


async def _pick(frame: Frame, path: str, arguments: Arguments) -> Outcome:
    value, origins = _argument(frame, arguments, "value")
    fields = arguments["fields"].evaluate(frame) if "fields" in arguments else None
    limit = arguments["maxChars"].evaluate(frame) if "maxChars" in arguments else None
    if fields is not None and not (is_list(fields) and all(isinstance(name, str) for name in fields)):
        raise RunError('System.Pick: fields must be a list of texts such as "labels.name"')
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise RunError("System.Pick: maxChars must be a whole number of at least 1")
    picked, left_out = pick(value, fields, limit)
    if left_out:
        frame.run.warn(frame, f"System.Pick left out {left_out} item(s) to stay within {limit} characters")
    return Outcome(picked, origins)


def _shown(level: str) -> Method:
    async def show(frame: Frame, path: str, arguments: Arguments) -> Outcome:
        run = frame.run
        if run.emitter.active:
            text = text_of(_argument(frame, arguments, "value")[0])
            run.emitter.emit(Printed(run.run_id, path, level, run.redactor.text(text)))
        return Outcome(frame.current, frame.current_origins)

    return show


async def _sleep(frame: Frame, path: str, arguments: Arguments) -> Outcome:
    wanted = arguments["duration"].evaluate(frame)
    seconds = duration_seconds(wanted) if isinstance(wanted, str) else None
    if seconds is None:
        raise RunError(f"System.Sleep takes a duration such as 500ms or 2s, not {text_of(wanted)}")
    clock = frame.run.clock
    await frame.run.effects.perform(
        f"{path}/sleep", "clock", {"sleep": wanted}, lambda: clock.sleep(seconds), guards=frame.guards
    )
    return Outcome(frame.current, frame.current_origins)


async def _fail(frame: Frame, path: str, arguments: Arguments) -> Outcome:
    raise ProgramFailure(text_of(arguments["msg"].evaluate(frame)))


def _event(name: str) -> Method:
    async def send(frame: Frame, path: str, arguments: Arguments) -> Outcome:
        payload, origins = _argument(frame, arguments, "payload")
        await frame.run.send_event(frame, path, name, payload, origins)
        return Outcome(frame.current, frame.current_origins)

    return send


METHODS: Final[dict[str, Method]] = {
    "Print": _shown("print"),
    "Log": _shown("log"),
    "Sleep": _sleep,
    "Fail": _fail,
    "Value": _value,
    "Pick": _pick,
    **{name: _event(name) for name in ("ResolveIncident", "Publish", "Distribute", "TriggerWebhook", "Notify")},
}
"""What each method of the catalogue's `System` does; a test holds the two together."""

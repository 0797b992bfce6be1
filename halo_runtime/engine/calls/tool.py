"""Tool calls, whoever asks for them: a stage, an agent's `tool:`, a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Final

from halo_lang.catalog.signature import Method
from halo_lang.records import record
from halo_runtime.engine.attempts import with_retries
from halo_runtime.engine.booking import Turn
from halo_runtime.engine.calls.base import Outcome
from halo_runtime.engine.directives import NO_DIRECTIVES, Directives
from halo_runtime.engine.effects import NO_ORIGINS, Origins
from halo_runtime.engine.events import ToolRequested, ToolResponded
from halo_runtime.engine.expressions import Expression, evaluate_written
from halo_runtime.engine.frame import Frame
from halo_runtime.engine.journal import error_to_record
from halo_runtime.engine.limits import within
from halo_runtime.engine.needs import TOOL_CALL
from halo_runtime.errors import HaloError, ToolError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.models.base import Usage
from halo_runtime.policies.base import PolicyCall, ToolUse
from halo_runtime.results import error_to_json
from halo_runtime.templates import WrittenText
from halo_runtime.values import compact, text_of

_WHOLE: Final = (
    "{call}: all of its {name} is a filled-in value, so whoever supplies that decides what is run, a model or an "
    "argument too; write the {name} into the program and fill in only what changes"
)


@record
class ToolCall:
    """`Tool.method(arguments)` as a stage. `method` is the catalogue's entry, None where the provider has none."""

    label: str
    tool: str
    name: str
    method: Method | None
    positional: Sequence[Expression]
    named: Mapping[str, Expression]

    async def invoke(self, frame: Frame, path: str) -> Outcome:
        positional = [expression.evaluate(frame) for expression in self.positional]
        named = {name: expression.evaluate(frame) for name, expression in self.named.items()}
        expressions = [*self.positional, *self.named.values()]
        origins = NO_ORIGINS.union(*(frame.origins_of_all(expression.paths) for expression in expressions))
        arguments = bind_arguments(self.label, self.method, positional, named)
        arguments |= written_arguments(frame, self.method, self.positional, self.named)
        result, place = await call_tool(frame, f"{path}/tool", self.tool, self.name, arguments, origins=origins)
        return Outcome(result, frozenset((place,)))


def bind_arguments(
    label: str, method: Method | None, positional: Sequence[Json], named: Mapping[str, Json]
) -> JsonObject:
    """Arguments by parameter name, checked against the catalogue. Raises ToolError before anything is done."""
    if method is None:
        if positional:
            raise ToolError(f"{label}: this provider has no catalogue entry, so its arguments need names")
        return dict(named)
    bound = method.signature.bind(positional, named)
    flaws = [f"{problem.kind} argument {problem.name}".rstrip() for problem in bound.problems] + bound.wrong_values()
    if flaws:
        raise ToolError(f"{label}{method.signature}: {'; '.join(flaws)}")
    return bound.values()


def written_arguments(
    frame: Frame, method: Method | None, positional: Sequence[Expression], named: Mapping[str, Expression]
) -> JsonObject:
    """Of the arguments that the program gives to a method, those that are run as code, as WrittenText."""
    if method is None:
        return {}
    known = method.signature.by_name
    bound = method.signature.bind(positional, named).arguments
    return {name: evaluate_written(value, frame) for name, value in bound.items() if known[name].code}


async def call_tool(
    frame: Frame,
    path: str,
    tool: str,
    method: str,
    arguments: JsonObject,
    *,
    origins: Origins,
    directives: Directives = NO_DIRECTIVES,
    asker: PolicyCall | None = None,
    turn: Turn | None = None,
    key: str | None = None,
) -> tuple[Json, str]:
    """Call a tool with retries: its result, and the path under which it is recorded. Raises ToolError.

    `asker` is the agent's call that it is for, whose budgets hold, and raise PolicyViolation; None for a stage of its
    own. `directives` are those of the agent: each try may take its `@timeout`, or raises TimeoutExceeded, and its
    `@retry` comes before the pipeline's. `turn` are the calls that the model asked for together. `key` goes to the tool
    as `id`, by which it does the same thing once, however often it is asked.
    """

    for name, value in arguments.items():
        if isinstance(value, WrittenText) and value.is_value:
            frame.run.warn(frame, _WHOLE.format(call=f"{tool}.{method}", name=name))

    entry = frame.run.plan.provider_method(tool, method)
    # Of a method that nobody has described nothing is known, so it is taken for one that must not happen twice.
    repeatable = key is not None or (entry is not None and (entry.effect == "read" or entry.idempotent))

    async def once(attempt: int) -> tuple[JsonObject, str]:
        place = path if attempt == 1 else f"{path}/try{attempt}"
        together = turn if attempt == 1 else None
        asked = _Asked(tool, method, arguments, origins, asker, together, directives.timeout, key)
        return await _careful(frame, place, asked, once=not repeatable)

    retry = directives.retry or frame.directives.retry
    (result, place), _ = await with_retries(frame, path, retry, once, repeatable=repeatable)
    frame.run.tools_used.setdefault((tool, method), ToolUse(tool, method))
    for warning in result["warnings"]:
        frame.run.warn(frame, f"{tool}.{method}: {warning}")
    return result["value"], place


def _note_embeddings(frame: Frame, place: str, asked: _Asked, embedded: Sequence[JsonObject]) -> None:
    """Write down in `meta.embeddings` what a call has used of embedding models; what is reused has cost nothing."""
    if embedded and frame.run.effects.was_reused(place):
        return
    for used in embedded:
        cost = frame.run.prices.cost(used["model"], Usage(used["tokens"], 0))
        line: JsonObject = {"tool": asked.tool, "method": asked.method}
        line |= {"model": used["model"], "tokens": used["tokens"], "cost": None if cost is None else float(cost)}
        frame.strand.embeddings.append(line | ({"estimated": True} if used["estimated"] else {}))


@record
class _Asked:
    """What is asked of a tool, what that came from, the agent's call and turn it is for, its seconds and its key."""

    tool: str
    method: str
    arguments: JsonObject
    origins: Origins
    asker: PolicyCall | None
    turn: Turn | None
    seconds: float | None
    key: str | None


async def _careful(frame: Frame, place: str, asked: _Asked, *, once: bool) -> tuple[JsonObject, str]:
    """A call, and where it is recorded. One that must happen `once` and had begun when the run broke off is in doubt.

    A person says what became of it then (spec 3.2, 12.6): `"retry"` does it again, `"fail"` fails,
    `{"skip": value}` takes the value for its result.
    """
    if not (once and frame.run.effects.in_doubt(place)):
        return await _try(frame, place, asked, once=once), place
    doubt = f"{place}/doubt"
    answer = await frame.run.ask(frame, doubt, _doubt(asked), None, None, asked.origins)
    if is_object(answer) and "skip" in answer:
        result: JsonObject = {"value": answer["skip"], "warnings": []}
        frame.run.heard_of(place, "tool", lambda: _request(asked), "done", result)
        return result, doubt
    if answer == "retry":
        return await _careful(frame, f"{doubt}/again", asked, once=once)
    called = f"{asked.tool}.{asked.method}"
    error = ToolError(f"{called} had begun when the run broke off, and was given up ({compact(answer)})")
    frame.run.heard_of(place, "tool", lambda: _request(asked), "failed", error_to_record(error))
    raise error


def _request(asked: _Asked) -> JsonObject:
    """What a journal and a cassette know a call by. The key is of one run alone, so it is no part of what was asked."""
    return {"tool": asked.tool, "method": asked.method, "args": asked.arguments}


def _doubt(asked: _Asked) -> JsonObject:
    return {
        "kind": "in_doubt",
        "message": f"{asked.tool}.{asked.method} had begun when the run broke off; did it take effect? "
        'Answer "retry" to do it again, "fail" to give it up, or {"skip": value} to go on with a value',
        "channel": None,
        "attachments": [{"kind": "text", "text": text_of(asked.arguments), "name": "arguments"}],
        "choices": ["retry", "fail"],
        "event": None,
    }


async def _try(frame: Frame, place: str, asked: _Asked, *, once: bool) -> JsonObject:
    """One try, with its events and its record."""
    run, redact = frame.run, frame.run.redactor.json
    tool, method, arguments = asked.tool, asked.method, asked.arguments
    request = _request(asked)
    given = arguments if asked.key is None else {**arguments, "id": asked.key}
    booking = None
    if asked.asker is not None:
        journal = run.effects.journal
        booking = run.ledger.book(
            frame, asked.asker, lambda: TOOL_CALL, lambda charge: journal.book(place, charge), asked.turn
        )

    async def live() -> Json:
        return await within(asked.seconds, f"{tool}.{method}", run.tools.call(tool, method, given))

    async def do() -> Json:
        async with booking or nullcontext():
            if once:  # from here on it is in doubt, and not while a budget asks
                run.effects.journal.begin(place)
            return await run.exchange(place, "tool", lambda: request, live)

    if run.emitter.active:
        run.emitter.emit(ToolRequested(run.run_id, place, tool, method, redact(arguments)))
    replayed = run.effects.recorded(place)
    try:
        result = await run.effects.perform(
            place, "tool", request, do, origins=asked.origins, guards=frame.guards,
            charge=lambda: booking and booking.charge,
        )  # fmt: skip
    except HaloError as error:
        _note_embeddings(frame, place, asked, error.embedded)
        reused, failure = replayed or run.effects.was_reused(place), redact(error_to_json(error))
        run.emitter.emit(ToolResponded(run.run_id, place, tool, method, None, failure, reused))
        raise
    finally:
        if asked.asker is not None:
            run.ledger.told(frame, place, asked.asker, run.effects.journal.find(place))
        run.heard(place, "tool", lambda: request)
    _note_embeddings(frame, place, asked, result.get("embedded", ()))
    if run.emitter.active:
        reused = replayed or run.effects.was_reused(place)
        run.emitter.emit(ToolResponded(run.run_id, place, tool, method, redact(result["value"]), None, reused))
    return result

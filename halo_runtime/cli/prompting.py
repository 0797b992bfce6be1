"""What `halo prompt` does once its arguments are read: find the calls, foretell each, show them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from halo_lang import nodes
from halo_lang.excerpt import visible
from halo_runtime.cli import reporting
from halo_runtime.cli.execution import load
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.inputs import collect
from halo_runtime.cli.output import error_block, is_terminal, paint, tell, tell_json
from halo_runtime.cli.sources import read_text, read_text_or_stdin
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.configuration import configuration
from halo_runtime.errors import HaloError, ProgramError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.preview import CallPreview, FoundCall
from halo_runtime.runtime import Runtime
from halo_runtime.values import indented, parse_json, text_of, type_name

if TYPE_CHECKING:
    from halo_lang import Analysis, Program
    from halo_runtime.cli.prompt import PromptOptions
    from halo_runtime.redaction import Redactor

_RULE = "──"


def show(options: PromptOptions) -> int:
    """Show the calls that are meant; the exit code."""
    try:
        analysis = load(options.file)
    except ProgramError as error:
        return reporting.report_errors(error, as_json=options.as_json)
    try:
        _show(options, analysis)
    except HaloError as error:
        return reporting.report_refusal(error, analysis.program.source, as_json=options.as_json)
    return ExitCode.COMPLETED


def _show(options: PromptOptions, analysis: Analysis) -> None:
    program = analysis.program
    runtime = Runtime(model=None if options.model is None else configuration().model(options.model))
    found = _meant(options, program, list(runtime.agent_calls(analysis)))
    given = _given(options, program, found)
    previews = asyncio.run(_previews(runtime, analysis, found, given))
    clean = runtime.redactor
    if options.as_json:
        tell_json(clean.json({"file": program.source.path, "calls": [preview.to_json() for preview in previews]}))
        return
    shown = _Page(clean)
    tell("\n\n\n".join("\n".join(shown.lines(preview)) for preview in previews))


async def _previews(
    runtime: Runtime, analysis: Analysis, found: list[FoundCall], given: list[dict[str, Json]]
) -> list[CallPreview]:
    return [await runtime.preview(analysis, call, values) for call, values in zip(found, given, strict=True)]


# --- which calls ---------------------------------------------------------------------------------------------


def _meant(options: PromptOptions, program: Program, calls: list[FoundCall]) -> list[FoundCall]:
    """The calls that are named. UsageError says what there is."""
    agent, _, method = options.call.partition(".")
    path = program.source.path
    if not any(node.name.text == agent for node in program.declarations if isinstance(node, nodes.Agent)):
        names = [node.name.text for node in program.declarations if isinstance(node, nodes.Agent)]
        raise UsageError(f"{path} has no agent {agent}", hint=did_you_mean(agent, names))
    named = [found for found in calls if found.call.agent.name == agent and method in ("", found.call.method)]
    if not named:
        hint = did_you_mean(options.call, {found.call.label for found in calls if found.call.agent.name == agent})
        raise UsageError(f"no pipeline of {path} calls {options.call}", hint=hint)
    if options.line is None:
        return named
    there = [found for found in named if found.call.place.line == options.line]
    if not there:
        lines = ", ".join(str(found.call.place.line) for found in named)
        raise UsageError(f"{path} does not call {options.call} at line {options.line}", hint=f"it does at {lines}")
    return there


# --- values ---------------------------------------------------------------------------------------------------


def _given(options: PromptOptions, program: Program, calls: list[FoundCall]) -> list[dict[str, Json]]:
    """The values for each call, by name. UsageError for a name that none of them has."""
    arguments = None if options.input_json is None else read_text_or_stdin(options.input_json)
    data = {} if options.data is None else _data(options.data)
    given: list[dict[str, Json]] = []
    unused: set[str] | None = None
    for found in calls:
        pipeline = program.find(found.pipeline)
        assert isinstance(pipeline, nodes.Pipeline), "calls stand in pipelines"
        values = dict(_results(data, found.names)) | collect(program, pipeline, options.inputs, arguments, read_text)
        given.append({name: value for name, value in values.items() if name in found.names})
        strange = values.keys() - found.names
        unused = strange if unused is None else unused & strange
    for name in sorted(unused or ()):
        known = {name for found in calls for name in found.names}
        raise UsageError(f"{options.call} reads no value {name}", hint=did_you_mean(name, known))
    return given


def _data(given: str) -> JsonObject:
    text = read_text(given[1:]) if given.startswith("@") else given
    try:
        value = parse_json(text)
    except ValueError as failure:
        raise UsageError(f"--data: no JSON: {failure}") from None
    if not is_object(value):
        raise UsageError(
            f"--data: a JSON object with results by name is needed, not a {type_name(value)}",
            hint='for example {"summary": "short", "Bot": {"answer": "yes"}}',
        )
    return value


def _results(data: JsonObject, names: Iterable[str]) -> Iterator[tuple[str, Json]]:
    """The names that `--data` gives: `summary`, and `Bot.answer` for what stands inside of `Bot`."""
    spaces = {name.partition(".")[0] for name in names if "." in name}
    for name, value in data.items():
        if name in spaces and is_object(value):
            yield from ((f"{name}.{inner}", result) for inner, result in value.items())
        else:
            yield name, value


# --- for people -----------------------------------------------------------------------------------------------


class _Page:
    """Previews as text. On a terminal values are made visible before anything is painted: they must not act on it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._is_terminal = is_terminal(sys.stdout)

    def lines(self, preview: CallPreview) -> Iterator[str]:
        place = f"{preview.place.file}:{preview.place.line}:{preview.place.column}"
        label = f"{preview.agent}.{preview.method}"
        yield self._text(paint("strong", label, sys.stdout), f"  {place}  pipeline {preview.pipeline}")
        yield from (self._text("", f"{name:<10}{text}") for name, text in _facts(preview))
        if preview.request is not None:
            for message in preview.request.messages:
                yield from self._part(message.role, message.content)
            for tool in preview.request.tools:
                yield from self._part(f"function {tool.name}", f"{tool.description}\n{indented(tool.parameters)}")
            if preview.request.json_schema is not None:
                yield from self._part("reply schema", indented(preview.request.json_schema))
        notes = [self._text(head, text) for head, text in _notes(preview)]
        if preview.error is not None:
            notes.append(self._redactor.text(error_block(preview.error)))
        yield from ["", *notes] if notes else []

    def _part(self, head: str, text: str) -> list[str]:
        return ["", paint("dim", f"{_RULE} {head} {_RULE}", sys.stdout), self._text("", text)]

    def _text(self, painted: str, text: str) -> str:
        """`painted`, which is ours, before a text that is not."""
        clean = self._redactor.text(text)
        return painted + (visible(clean, keep="\t\n") if self._is_terminal else clean)


def _facts(preview: CallPreview) -> Iterator[tuple[str, str]]:
    yield "model", preview.model
    if preview.settings:
        yield "settings", ", ".join(f"{name} {text_of(value)}" for name, value in preview.settings.items())
    first = preview.first_tool
    if first is not None:
        arguments = ", ".join(f"{name}: {text_of(value)}" for name, value in first.arguments.items())
        yield "before it", f"{first.tool}.{first.method}({arguments})"
    if preview.json_asked:
        yield "reply", "JSON is asked for"


def _notes(preview: CallPreview) -> Iterator[tuple[str, str]]:
    missing: dict[tuple[str | None, str], list[str]] = {}
    for unknown in preview.unknown:
        missing.setdefault((unknown.name, unknown.source), []).append(unknown.placeholder)
    for (name, source), placeholders in missing.items():
        how = f"; give it with -i {name}=VALUE" if name else ""
        verb = "are" if len(placeholders) > 1 else "is"
        yield _kind("info", "note"), f": {', '.join(placeholders)} {verb} not there yet: {source}{how}"
    if preview.first_tool is not None and preview.first_tool.problem is not None:
        yield _kind("warning", "warning"), f": {preview.first_tool.problem}"
    for line in preview.policies:
        said = "refuses this request" if line["action"] == "block" else "changed this request"
        reason = f": {line['reason']}" if line["reason"] else ""
        yield _kind("warning", "policy"), f": {line['policy']}, rule {line['rule']} {said}{reason}"
    for warning in preview.warnings:
        yield _kind("warning", "warning"), f": {warning}"


def _kind(style: str, text: str) -> str:
    return paint(style, text, sys.stdout)

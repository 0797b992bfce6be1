"""A pipeline's arguments from `-i name=value` and `--input-json` (spec 08, 12.6).

A value is read by its parameter's type label. Which arguments there must be is the runtime's business: what is
missing or unknown is refused there, for every caller alike.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from halo_lang import Program
from halo_lang.nodes import Field, Pipeline
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.errors import InputError, Place
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.values import parse_json, type_name

ReadText = Callable[[str], str]

TYPES: Final[dict[str, str]] = {
    "Integer": "Number",
    "Number": "Number",
    "Boolean": "Boolean",
    "Array": "List",
    "List": "List",
    "Object": "Object",
    "JSON": "",
}
"""Labels whose values must parse as JSON, and the type that must come of it (any for JSON)."""


def choose_pipeline(program: Program, name: str | None) -> Pipeline:
    """The pipeline that is meant; it may be left out when there is one. UsageError lists what exists."""
    found = {pipeline.name.text: pipeline for pipeline in program.pipelines}
    path = program.source.path
    if not found:
        raise UsageError(f"{path}: there is no pipeline to run", hint="declare one: pipeline Main(text: String) -> …")
    if name is None:
        if len(found) > 1:
            hint = f"name one behind the file: {path} {next(iter(found))}"
            raise UsageError(f"{path} has {len(found)} pipelines: {', '.join(found)}", hint=hint)
        return next(iter(found.values()))
    if name not in found:
        hint = f"an argument is given as -i {name}" if "=" in name else did_you_mean(name, found)
        raise UsageError(f"{path} has no pipeline {name}", hint=hint)
    return found[name]


def collect(
    program: Program, pipeline: Pipeline, pairs: Sequence[str], json_text: str | None, read: ReadText
) -> JsonObject:
    """The arguments: `--input-json` first, each `-i` over it. `read` gives the text of a file.

    Raises UsageError for what has not the form of an argument, InputError for a value that its parameter cannot take.
    """
    arguments = {} if json_text is None else _json_arguments(json_text)
    parameters = {parameter.name.text: parameter for parameter in pipeline.params}
    for pair in pairs:
        name, text = _split(pair)
        parameter = parameters.get(name)
        try:
            arguments[name] = _value(text, parameter.type.name.text if parameter else "Any", read)
        except ValueError as failure:
            assert parameter is not None  # values of unknown parameters always parse
            raise _input_error(str(failure), program, pipeline, parameter) from None
    return arguments


def usage_line(program: Program, pipeline: Pipeline) -> str:
    """The command that runs `pipeline`, each parameter with its label."""
    values = [f"-i {parameter.name.text}=<{parameter.type.name.text}>" for parameter in pipeline.params]
    name = [pipeline.name.text] if len(program.pipelines) > 1 else []
    return " ".join(["halo run", shlex.quote(program.source.path), *name, *values])


def _split(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not equals or not name:
        raise UsageError(f"-i {pair}: no value", hint="write -i name=value, or -i name=@file")
    if not _is_unicode(pair):
        raise UsageError(f"-i {name}: the value is no UTF-8 text", hint="pass it in a file with --input-json")
    return name, text


def _value(given: str, label: str, read: ReadText) -> Json:
    """ValueError where the label wants what the text does not give."""
    text = _from_file(given, read)
    if label == "String":
        return text
    try:
        value = parse_json(text)
    except ValueError as failure:
        if label in TYPES:
            why = "" if isinstance(failure, json.JSONDecodeError) else f": {failure}"
            raise ValueError(f"takes {_label(label)}, and {_shown(given)} is no JSON{why}") from None
        return text
    wanted = TYPES.get(label)
    if wanted and (type_name(value) != wanted or (label == "Integer" and value != int(value))):
        raise ValueError(f"takes {_label(label)}, not {_shown(given)}")
    return value


def _from_file(text: str, read: ReadText) -> str:
    if text.startswith("@@"):
        return text[1:]
    return read(text[1:]) if text.startswith("@") else text


def _json_arguments(text: str) -> JsonObject:
    try:
        value = parse_json(text)
    except ValueError as failure:
        raise UsageError(f"--input-json: no JSON: {failure}") from None
    if not is_object(value):
        raise UsageError(
            f"--input-json: a JSON object with the arguments by name is needed, not a {type_name(value)}",
            hint='for example {"text": "hello"}',
        )
    return dict(value)


def _input_error(message: str, program: Program, pipeline: Pipeline, parameter: Field) -> InputError:
    place = program.position(pipeline, parameter.span)
    error = InputError(f"{parameter.name.text} {message}")
    error.place = Place(pipeline.name.text, program.source.path, place.line, place.column)
    return error


def _label(label: str) -> str:
    return f"{'an' if label[0] in 'AIO' else 'a'} {label}"


def _shown(given: str) -> str:
    """The value as it was given: what a file holds is not repeated, it may be secret."""
    return repr(given if len(given) <= 40 else given[:39] + "…")


def _is_unicode(text: str) -> bool:
    """Whether the bytes of a command line argument were UTF-8; Python passes others on as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)

"""The form for a pipeline's arguments: a field a parameter, values typed as on the command line, and remembered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from halo_lang import Program
from halo_lang.nodes import Pipeline, TypeRef
from halo_runtime.cli.inputs import collect
from halo_runtime.cli.sources import read_text
from halo_runtime.errors import HaloError
from halo_runtime.json_types import Json, JsonObject, is_object
from halo_runtime.values import parse_json
from halo_tui.models.lines import visible

_HINTS: Final = {
    "String": "text, or @file",
    "Number": "12 or 0.5",
    "Integer": "12",
    "Boolean": "true or false",
    "Array": "[1, 2]",
    "List": "[1, 2]",
    "Object": '{"name": "value"}',
}


@dataclass(frozen=True, slots=True)
class InputField:
    """One parameter: its name, its type as written, and what may be typed for it."""

    name: str
    label: str
    hint: str


@dataclass(frozen=True, slots=True)
class ParsedInputs:
    """What the typed texts give: arguments by name, and what is wrong with each field that gives none."""

    values: JsonObject
    errors: Mapping[str, str]


@dataclass(slots=True)
class Remembered:
    """Texts typed for parameters, by pipeline; `given` from the command line hold for every pipeline."""

    given: dict[str, str] = field(default_factory=dict[str, str])
    _typed: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def texts(self, pipeline: str) -> dict[str, str]:
        """What to fill the form with."""
        return {**self.given, **self._typed.get(pipeline, {})}

    def keep(self, pipeline: str, texts: Mapping[str, str]) -> None:
        """Remember what was typed this time."""
        self._typed[pipeline] = dict(texts)


def beside(program: Path) -> dict[str, str]:
    """Texts from `<name>.input.json` beside a program, where there is such a file with an object in it."""
    try:
        found = parse_json(program.with_suffix(".input.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: as_typed(value) for name, value in found.items()} if is_object(found) else {}


def as_typed(value: Json) -> str:
    """The text that a person would type for a value."""
    if isinstance(value, str):
        return f"@{value}" if value.startswith("@") else value
    return json.dumps(value, ensure_ascii=False)


def fields_of(pipeline: Pipeline) -> tuple[InputField, ...]:
    """The form's fields, in the order of the parameters."""
    return tuple(
        InputField(param.name.text, _written(param.type), _HINTS.get(param.type.name.text, "text or JSON"))
        for param in pipeline.params
    )


def parse_inputs(program: Program, pipeline: Pipeline, texts: Mapping[str, str]) -> ParsedInputs:
    """Read each text as `-i name=text` would be, by the parameter's type."""
    values: JsonObject = {}
    errors: dict[str, str] = {}
    for name, text in texts.items():
        try:
            values |= collect(program, pipeline, [f"{name}={text}"], None, read_text)
        except HaloError as error:
            errors[name] = visible(error.message)
    return ParsedInputs(values, errors)


def complete_inputs(program: Program, pipeline: Pipeline, texts: Mapping[str, str]) -> JsonObject | None:
    """The arguments where the texts give each parameter a value of its type, else None."""
    names = [param.name.text for param in pipeline.params]
    if not all(name in texts for name in names):
        return None
    parsed = parse_inputs(program, pipeline, {name: texts[name] for name in names})
    return None if parsed.errors else parsed.values


def _written(label: TypeRef) -> str:
    return f"{label.name.text}<{_written(label.item)}>" if label.item else label.name.text

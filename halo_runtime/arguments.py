"""Which pipeline is meant and whether its arguments are there, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halo_lang import Program
from halo_runtime.errors import InputError
from halo_runtime.json_types import Json, JsonObject


def choose_pipeline(program: Program, name: str | None) -> str:
    """The pipeline to run: the one named, or the only one. Raises InputError that lists what there is."""
    names = [pipeline.name.text for pipeline in program.pipelines]
    listed = ", ".join(names) or "none"
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InputError(f"say which pipeline to run; {program.source.path} has {listed}")
    if name not in names:
        raise InputError(f"there is no pipeline {name} in {program.source.path}; it has {listed}")
    return name


def check_arguments(pipeline: str, parameters: Sequence[str], inputs: Mapping[str, Json]) -> JsonObject:
    """The arguments in the order of the parameters. Raises InputError for missing and unknown ones, all at once."""
    missing = [name for name in parameters if name not in inputs]
    unknown = [name for name in inputs if name not in parameters]
    problems = [f"missing argument {name}" for name in missing] + [f"unknown argument {name}" for name in unknown]
    if problems:
        taken = ", ".join(parameters) or "no arguments"
        raise InputError(f"{'; '.join(problems)}: the pipeline {pipeline} takes {taken}")
    return {name: inputs[name] for name in parameters}

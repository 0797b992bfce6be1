"""What `halo doctor` does: look at the installation, try what programs declare, tell it line by line."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from halo_lang import Analysis
from halo_lang.excerpt import visible
from halo_runtime import extras
from halo_runtime.cli import reporting
from halo_runtime.cli.env_file import environment
from halo_runtime.cli.execution import load
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import paint, tell, tell_json
from halo_runtime.cli.settings import seconds_of
from halo_runtime.configuration import STORE, configuration
from halo_runtime.errors import ConfigError, ProgramError
from halo_runtime.json_types import Json
from halo_runtime.probing import Probe
from halo_runtime.runtime import Runtime
from halo_runtime.version import __version__


def examine(files: Sequence[str], timeout: str, env_file: str | None, *, as_json: bool) -> int:
    """Tell what was found; FAILED where something is wrong, REFUSED for a program with errors."""
    seconds = seconds_of("--timeout", timeout)
    env = environment(env_file, os.environ)
    try:
        programs = [(file, load(file)) for file in files]
    except ProgramError as error:
        return reporting.report_errors(error, as_json=as_json)
    installation = [_versions(), _extras(), *_project()]
    found = asyncio.run(_tried(programs, env, seconds))
    if as_json:
        tell_json(_document(installation, found))
    else:
        tell("\n".join(_lines(installation, found)))
    everything = [*installation, *(probe for probes in found.values() for probe in probes)]
    return ExitCode.FAILED if any(probe.problem for probe in everything) else ExitCode.COMPLETED


async def _tried(
    programs: Sequence[tuple[str, Analysis]], env: Mapping[str, str], seconds: float
) -> dict[str, list[Probe]]:
    runtime = Runtime(env=env)
    try:
        return {file: await runtime.probe(analysis, seconds=seconds) for file, analysis in programs}
    finally:
        await runtime.close()


def _versions() -> Probe:
    return Probe("halo", f"{__version__}, on Python {platform.python_version()}")


def _extras() -> Probe:
    there = [extra for extra in extras.PACKAGES if extras.is_installed(extra)]
    absent = [extra for extra in extras.PACKAGES if extra not in there]
    missing = f"; not installed: {', '.join(absent)}" if absent else ""
    return Probe("extras", f"{', '.join(there) or 'none'}{missing}")


def _project() -> list[Probe]:
    """What `halo.toml` says and whether the folder of runs can be used."""
    try:
        project = configuration()
    except ConfigError as error:
        return [Probe("halo.toml", problem=error.message)]
    file = Probe("halo.toml", "there is none, and none is needed" if project.file is None else str(project.file))
    return [file, _store(project.store or project.folder / STORE)]


def _store(folder: Path) -> Probe:
    """Whether runs can be kept: of a folder that is not there yet, whether it could be made."""
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        return Probe("runs", problem=f"{existing} is no folder, so runs cannot be kept in {folder}")
    if not os.access(existing, os.W_OK | os.X_OK):
        return Probe("runs", problem=f"{existing} cannot be written, so runs cannot be kept in {folder}")
    return Probe("runs", f"kept in {folder}" + ("" if existing == folder.absolute() else ", which is made when needed"))


def _document(installation: Sequence[Probe], found: Mapping[str, Sequence[Probe]]) -> Json:
    files: list[Json] = [
        {"path": file, "parts": [probe.to_json() for probe in probes]} for file, probes in found.items()
    ]
    return {"installation": [probe.to_json() for probe in installation], "files": files}


def _lines(installation: Sequence[Probe], found: Mapping[str, Sequence[Probe]]) -> list[str]:
    lines = [_line(probe) for probe in installation]
    for file, probes in found.items():
        lines += ["", f"{visible(file)}:", *map(_line, probes)]
        lines += [] if probes else ["        nothing that needs anything"]
    return lines


def _line(probe: Probe) -> str:
    if probe.problem is not None:
        return f"{paint('error', 'failed', sys.stdout)}  {visible(probe.part)}: {visible(probe.problem)}"
    if probe.found is None:
        return (
            f"{paint('dim', 'untried', sys.stdout)} {visible(probe.part)}: its settings are right; only a call tries it"
        )
    return f"{paint('good', 'ok', sys.stdout)}      {visible(probe.part)}: {visible(probe.found)}"

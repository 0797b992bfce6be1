"""What `halo models` says: a line a service for people, objects for programs."""

from __future__ import annotations

import asyncio
import os
import sys

from halo_lang.excerpt import visible
from halo_runtime.cli.env_file import environment
from halo_runtime.cli.exit_codes import ExitCode
from halo_runtime.cli.output import paint, plural, tell, tell_json
from halo_runtime.cli.settings import seconds_of
from halo_runtime.json_types import JsonObject
from halo_runtime.models.survey import EMBEDDED, Answered, Listed, Survey

_EXAMPLES = 3
"""Models that are named of a service."""


def list_services(env_file: str | None, *, as_json: bool) -> int:
    """All services with what they need."""
    services = Survey(environment(env_file, os.environ)).services
    if as_json:
        tell_json({"services": [service.to_json() for service in services]})
    else:
        tell("\n".join(_table([("PREFIX", "KEY", "ADDRESS", "MODELS"), *map(_row, services)])))
    return ExitCode.COMPLETED


def check_services(timeout: str, env_file: str | None, *, as_json: bool) -> int:
    """Ask those that are configured; FAILED where one of them does not answer as it should."""
    seconds = seconds_of("--timeout", timeout)
    survey = Survey(environment(env_file, os.environ))
    answers = asyncio.run(survey.ask(seconds))
    if as_json:
        asked = {answer.service.name: answer.to_json() for answer in answers}
        unasked: JsonObject = {"ok": None, "error": None, "models": []}
        everything = [asked.get(service.name, service.to_json() | unasked) for service in survey.services]
        tell_json({"services": everything})
    else:
        tell("\n".join([*map(_answer, answers), *_unasked(survey, answers)]))
    return ExitCode.FAILED if any(answer.counts for answer in answers) else ExitCode.COMPLETED


def _row(service: Listed) -> tuple[str, str, str, str]:
    examples = ", ".join(name.partition("/")[2] for name in service.known[:_EXAMPLES])
    prefixes = " ".join(_prefix(name) for name in service.prefixes)
    origin = f" (from {service.address_from})" if service.address_from else ""
    return prefixes, _key(service), f"{visible(service.address)}{origin}", f"{examples}, …" if examples else ""


def _key(service: Listed) -> str:
    if not service.keys:
        return "none needed"
    if service.keys_set:
        return f"{' and '.join(service.keys_set)} {'is' if len(service.keys_set) == 1 else 'are'} set"
    return f"{' or '.join(service.keys)} is not set"


def _prefix(name: str) -> str:
    return name if name == EMBEDDED else f"{name}/"


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]


def _answer(answer: Answered) -> str:
    name = _prefix(answer.service.name)
    if answer.error is None:
        return f"{paint('good', 'ok', sys.stdout)}      {name}: {plural(len(answer.models), 'model')}"
    state = paint("error", "failed", sys.stdout) if answer.counts else paint("dim", "absent", sys.stdout)
    hint = f"\n        = hint: {visible(answer.hint)}" if answer.hint and answer.counts else ""
    return f"{state}  {name}: {visible(answer.error)}{hint}"


def _unasked(survey: Survey, answers: list[Answered]) -> list[str]:
    asked = {answer.service.name for answer in answers}
    left = [service for service in survey.services if service.name not in asked]
    return [f"{paint('dim', 'absent', sys.stdout)}  {_prefix(service.name)}: {_key(service)}" for service in left]

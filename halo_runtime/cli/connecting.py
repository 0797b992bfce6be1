"""`halo check --connect`: the methods of servers as they are now, and programs held to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import halo_lang
from halo_lang.diagnostics import Severity
from halo_runtime.cli.env_file import environment
from halo_runtime.cli.findings import Report
from halo_runtime.cli.sources import is_priced
from halo_runtime.runtime import Runtime


def connected(reports: Sequence[Report], env_file: str | None) -> list[Report]:
    """The reports with what the programs' servers have to say; a program with errors is left as it is."""
    return asyncio.run(_connected(reports, environment(env_file, os.environ)))


async def _connected(reports: Sequence[Report], env: Mapping[str, str]) -> list[Report]:
    runtime = Runtime(env=env)
    try:
        return [await _asked(report, runtime) for report in reports]
    finally:
        await runtime.close()


async def _asked(report: Report, runtime: Runtime) -> Report:
    if report.analysis is None or any(one.severity is Severity.ERROR for one in report.diagnostics):
        return report
    program = report.analysis.program
    told, unreached = await runtime.listed_methods(report.analysis)
    checked = halo_lang.check(program, is_priced=is_priced, told=told)
    return replace(report, diagnostics=checked.diagnostics, unreached=tuple(unreached))

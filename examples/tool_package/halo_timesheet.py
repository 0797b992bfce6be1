"""A tool provider that programs can use once this package is installed: hours of work, kept in a file."""

from __future__ import annotations

import asyncio
import csv
import os
from datetime import date
from pathlib import Path

from halo_lang.catalog import Method, ProviderSpec, Signature
from halo_lang.catalog.signature import required
from halo_runtime.errors import ConfigError, ToolError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.tools.base import ToolConfig


class Timesheet:
    """`store Hours : Timesheet("hours.csv")`: what was worked on, by day."""

    spec = ProviderSpec(
        "Timesheet",
        Signature((required("path", "string", "The file; relative to the program's folder."),)),
        (
            Method(
                "add",
                Signature(
                    (
                        required("day", "string", "The day as YYYY-MM-DD."),
                        required("hours", "number", "How long.", minimum=0, maximum=24),
                        required("task", "string", "What was done."),
                    )
                ),
                "the hours of that day so far",
                effect="write",
                idempotent=False,
                doc="Note some work.",
                example='Hours.add("2026-11-30", 1.5, "review")',
            ),
            Method(
                "total",
                Signature((required("task", "string", "What was done."),)),
                "its hours, of all days",
                doc="Add up the hours of a task.",
                example='Hours.total("review")',
            ),
        ),
        "Hours of work, kept in a file.",
        'store Hours : Timesheet("hours.csv")',
    )

    def __init__(self, config: ToolConfig) -> None:
        shown: str = config.settings["path"]
        if not shown.endswith(".csv"):
            raise ConfigError(f'a timesheet is a .csv file, and "{shown}" is none')
        self._file = config.folder / shown
        self._lock = asyncio.Lock()

    async def call(self, method: str, args: JsonObject) -> Json:
        """Do a method; its arguments fit the catalogue's entry. Raises ToolError."""
        async with self._lock:  # calls of one run may come side by side
            if method == "total":
                return sum(hours for _, hours, task in self._lines() if task == args["task"])
            day = _day(args["day"])
            self._append(day, args["hours"], args["task"])
            return sum(hours for other, hours, _ in self._lines() if other == day)

    async def probe(self) -> str:
        """For `halo doctor`: read the file and change nothing. Raises ToolError."""
        return f"{len(self._lines())} entries in {self._file.name}"

    async def close(self) -> None:
        """Nothing is held between calls."""

    def _lines(self) -> list[tuple[str, float, str]]:
        if not self._file.exists():
            return []
        try:
            with self._file.open(newline="", encoding="utf-8") as file:
                return [(day, float(hours), task) for day, hours, task in csv.reader(file)]
        except (OSError, ValueError) as error:
            raise ToolError(f"{self._file.name} is no timesheet that can be read: {error}") from error

    def _append(self, day: str, hours: float, task: str) -> None:
        try:
            with Path(self._file).open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow((day, hours, task))
                file.flush()
                os.fsync(file.fileno())  # what a run has been told is done stays done
        except OSError as error:
            raise ToolError(f"{self._file.name} cannot be written: {error.strerror}") from error


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ToolError(f'a day is written YYYY-MM-DD, not "{text}"') from None

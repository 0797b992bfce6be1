"""What the benchmarks have in common: the machine they ran on, a table to read, and a file to keep."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """When and on what kind of machine; nothing that tells whose."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_gb": round(memory / 2**30, 1),
            "system": _system(),
            "python": f"{platform.python_implementation()} {platform.python_version()}",
        },
    }


def versions(*distributions: str) -> dict[str, str]:
    """Halo's version and those of others."""
    return {name: version(name) for name in ("halo-workbench", *distributions)}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose columns stand below each other."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|"
    return "\n".join([line(heads), rule, *map(line, rows)])


def save(path: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = (
        [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")] if cpuinfo.exists() else []
    )
    return names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine()


def _system() -> str:
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except OSError:
        return kernel

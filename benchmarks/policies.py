"""What policy rules find and what they stop by mistake, on texts written for it, and what they cost.

    python benchmarks/policies.py [--only injection|redaction|names] [--out FILE]

Prints tables and writes JSON; a part that is not measured keeps the figures that stand there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final, Protocol

import policies_injection
import policies_names
import policies_redaction
from record import machine, save, versions


class Part(Protocol):
    """What is measured of one rule: figures, and the tables that show them."""

    BESIDE: tuple[str, ...]
    """The distributions that are measured beside Halo."""

    def measure(self) -> dict[str, Any]: ...

    def tables(self, figures: dict[str, Any]) -> str: ...


PARTS: Final[dict[str, Part]] = {
    "injection": policies_injection,
    "redaction": policies_redaction,
    "names": policies_names,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", choices=PARTS)
    arguments.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "policies.json")
    options = arguments.parse_args()
    report: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    for name, part in PARTS.items():
        if options.only == name or (options.only is None and getattr(part, "IS_THERE", True)):
            figures = part.measure()
            report[name] = {**machine(), "versions": versions(*part.BESIDE), **figures}
            print(f"## {name}\n\n{part.tables(figures)}\n")
    save(options.out, report)


if __name__ == "__main__":
    main()

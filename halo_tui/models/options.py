"""What `halo edit` was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """`inputs` are texts by parameter name, as `-i` takes them; `run` starts a run as soon as the program is open."""

    replies: Path | None = None
    model: str | None = None
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    run: bool = False

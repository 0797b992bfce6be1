"""What continuing a run with the program as it is now would reuse and pay again, for reading (spec 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from halo_tui.models.lines import Role, Run, counted, money, one_line

if TYPE_CHECKING:
    from halo_runtime.preflight import Preflight, StageVerdict

SIGNS: Final[dict[str, tuple[str, Role]]] = {
    "reused": ("✓", "ok"),
    "edited after use": ("~", "warning"),
    "re-run": ("↻", "busy"),
    "new": ("+", "accent"),
    "gone": ("-", "dim"),
    "question orphaned": ("!", "error"),
}
"""Sign and role of every verdict: they differ without colour too."""


def plan_text(preflight: Preflight) -> Iterator[Run]:
    """A line for each stage with its verdict and why, then what it comes to."""
    for stage in preflight.stages:
        yield from _stage(stage)
    reused = sum(stage.verdict == "reused" for stage in preflight.stages)
    yield f"\n{reused} of {counted(len(preflight.stages), 'stage')} reused", "title"
    yield f"  saved {_cost(preflight.saved)} · paid again {_cost(preflight.again)}\n", "dim"


def _stage(stage: StageVerdict) -> Iterator[Run]:
    glyph, role = SIGNS[stage.verdict]
    yield f"{glyph} {stage.verdict:<17}", role
    yield f" {one_line(stage.stage, 60)}", "text"
    place = "" if stage.line is None else f"  line {stage.line}"
    yield f"{place}{f'  {_cost(stage.cost)}' if stage.cost else ''}\n", "dim"
    if stage.verdict != "reused":
        yield f"  {one_line(stage.reason)}\n", "dim"


def _cost(cost: float | None) -> str:
    return "an unknown sum" if cost is None else money(Decimal(str(cost)))

"""What the server knows of the world beyond the text; whoever starts it tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halo_lang.assist.completion import Models
from halo_lang.checks.whole import PriceLookup


def _no_models() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Facts about models."""

    models: Models = _no_models
    """The ids that completion offers; asked when it is first needed, since such lists take time to load."""
    is_priced: PriceLookup | None = None
    """Whether the cost of a model is known (HL511); without it nothing is said about costs."""

"""Short ways to log."""

from __future__ import annotations

from typing import Any

from halo_runtime.ledger import Ledger, Logged

OWN: dict[str, dict[str, str]] = {
    "act": {"trigger": "request", "form": "communication"},
    "revise": {"target": "the prompt", "made_by": "agent", "governance": "none"},
}


def step(ledger: Ledger, kind: str, *uses: int, **fields: Any) -> Logged:
    """Log an event with all that its kind needs; `uses` are numbers."""
    given = {"summary": "what happened", "agent": "demo", "session": "s1", **OWN.get(kind, {}), **fields}
    return ledger.log(kind, uses=[f"e{number}" for number in uses], **given)


def walk_through(ledger: Ledger) -> None:
    """The seed's story, as events e1 to e9: all channels but A→M and M→S, and level 5."""
    step(ledger, "observe")
    step(ledger, "remember", 1)
    step(ledger, "act", 1, trigger="request")
    step(ledger, "recall", 2, session="s2")
    step(ledger, "act", 1, 4, session="s2", trigger="self")
    step(ledger, "outcome", about="e5", session="s2")
    step(ledger, "remember", 6, session="s2")
    step(ledger, "revise", 7, session="s3", governance="bounded")
    step(ledger, "act", 8, session="s3")

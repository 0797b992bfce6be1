"""The directives that stand above agents and pipelines (seed 003 §4)."""

from __future__ import annotations

from halo_lang.catalog.signature import Signature, optional, required
from halo_lang.catalog.specs import DirectiveSpec

DIRECTIVES: tuple[DirectiveSpec, ...] = (
    DirectiveSpec(
        "checkpoint",
        Signature(),
        ("pipeline",),
        "Save a snapshot after every stage, so that a run can be continued.",
        "@checkpoint",
    ),
    DirectiveSpec(
        "shadow",
        Signature((required("target", "target", "The agent or model to run beside."),)),
        ("agent",),
        "Run this agent beside every call to another agent or model; its output is recorded and never used.",
        "@shadow(Writer)",
    ),
    DirectiveSpec(
        "retry",
        Signature(
            (
                required("count", "integer", "How many more tries.", minimum=1, maximum=20),
                optional("backoff", "duration", "The first wait; it doubles.", default="1s", positive=True),
            )
        ),
        ("agent", "pipeline"),
        "Try again after network errors, 408, 409, 425, 429, 5xx and timeouts; never after policy violations.",
        "@retry(3, 2s)",
    ),
    DirectiveSpec(
        "timeout",
        Signature((required("duration", "duration", "The longest time allowed.", positive=True),)),
        ("agent", "pipeline"),
        "On an agent: end each call that takes longer. On a pipeline: end the whole run.",
        "@timeout(5m)",
    ),
    DirectiveSpec(
        "correct",
        Signature((required("n", "integer", "How many corrections.", minimum=1, maximum=20),)),
        ("agent", "pipeline"),
        "When an output policy rejects an answer, show the agent the reason and ask again.",
        "@correct(2)",
    ),
)
"""All directives."""

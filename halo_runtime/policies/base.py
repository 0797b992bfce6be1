"""The contract of policy rules (spec 6): a rule looks at a text at a point and decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from halo_lang.records import record
from halo_runtime.json_types import JsonObject

Point: TypeAlias = Literal["input", "output", "tool", "result"]
Action: TypeAlias = Literal["allow", "redact", "block"]


@record
class Decision:
    """What a rule says. `reason` is for people and models and never repeats the offending text."""

    action: Action
    reason: str | None = None
    text: str | None = None
    """The redacted text, with action `redact`."""


ALLOW = Decision("allow")


@record
class PolicyCall:
    """What a rule may look at: the agent call it guards and how far it is."""

    agent: str
    method: str
    model: str


class PolicyRule(Protocol):
    """One rule of one policy, made once a run and shared by all agents that require the policy."""

    @property
    def points(self) -> frozenset[Point]:
        """Where the rule is evaluated."""
        ...

    def evaluate(self, point: Point, text: str, call: PolicyCall) -> Decision:
        """Decide about `text` at `point`. Raising counts as a block that names the rule (fail closed)."""
        ...


RuleFactory: TypeAlias = Callable[[JsonObject], PolicyRule]
"""Makes a rule from its arguments, by the catalogue's parameter names; values are JSON."""

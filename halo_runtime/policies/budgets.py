"""Budgets: what the agents that require a policy may use up in a run (spec 6); engine/budgets.py counts."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule
from halo_runtime.raising import Unit

OnLimit: TypeAlias = Literal["fail", "ask"]
"""What happens at a limit: the call is refused, or somebody is asked to raise it first."""


@record
class Budget:
    """At most `limit` of a unit in a run. It looks at no text, so it has no points: it is held before a call."""

    unit: Unit
    limit: Decimal
    on_limit: OnLimit = "fail"
    points: frozenset[Point] = frozenset()

    def evaluate(self, examined: Examined) -> Decision:
        """Texts pass."""
        return ALLOW


def max_calls(args: JsonObject) -> PolicyRule:
    """`MaxCalls(n)`: requests to models, retries and corrections included."""
    return _budget("MaxCalls", "calls", "n", args)


def max_tool_calls(args: JsonObject) -> PolicyRule:
    """`MaxToolCalls(n)`: calls of tools for an agent, retries included."""
    return _budget("MaxToolCalls", "tool_calls", "n", args)


def max_tokens(args: JsonObject) -> PolicyRule:
    """`MaxTokens(n)`: tokens sent and received."""
    return _budget("MaxTokens", "tokens", "n", args)


def max_spend(args: JsonObject) -> PolicyRule:
    """`MaxSpend(usd)`: US dollars."""
    return _budget("MaxSpend", "usd", "usd", args)


def _budget(rule: str, unit: Unit, parameter: str, args: JsonObject) -> Budget:
    on_limit = args.get("onLimit", "fail")
    if on_limit not in ("fail", "ask"):
        raise ConfigError(f'{rule}: onLimit is "fail" or "ask", not {on_limit!r}; correct the policy')
    return Budget(unit, _limit(rule, args[parameter], whole=unit != "usd"), on_limit)


def _limit(rule: str, given: Json, *, whole: bool) -> Decimal:
    """The limit as written: a decimal number of the program is that number, not the float nearest to it."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < float("inf"):
        raise ConfigError(f"{rule} takes a number of at least 0, got {given!r}; correct the policy")
    if whole and given != int(given):
        raise ConfigError(f"{rule} takes a whole number, got {given!r}; correct the policy")
    return Decimal(str(given))

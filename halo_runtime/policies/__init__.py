"""Which policy rules can be enforced here. A rule that cannot is refused before the run starts (fail closed)."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from halo_runtime.errors import ConfigError
from halo_runtime.policies.base import RuleFactory

_FACTORIES: Final = {
    "Match": "halo_runtime.policies.output:match",
    "MaxCalls": "halo_runtime.policies.budgets:max_calls",
    "MaxLength": "halo_runtime.policies.output:max_length",
    "MaxSpend": "halo_runtime.policies.budgets:max_spend",
    "MaxTokens": "halo_runtime.policies.budgets:max_tokens",
    "MaxToolCalls": "halo_runtime.policies.budgets:max_tool_calls",
    "MinLength": "halo_runtime.policies.output:min_length",
    "RequireJSON": "halo_runtime.policies.output:require_json",
}
"""Rule name → `module:function`."""


def rule_factory(rule: str) -> RuleFactory:
    """What makes `rule` from its arguments; ConfigError for one that this version cannot enforce."""
    target = _FACTORIES.get(rule)
    if target is None:
        raise ConfigError(
            f"the policy rule {rule} cannot be enforced by this version (it has {', '.join(sorted(_FACTORIES))}),"
            " and a policy that is not enforced must not let a run start; take the rule out of the program"
        )
    module, _, function = target.partition(":")
    return getattr(import_module(module), function)

"""Which policy rules can be enforced here. A rule that cannot is refused before the run starts (fail closed)."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from halo_runtime.errors import ConfigError
from halo_runtime.policies.base import RuleFactory

_FACTORIES: Final = {
    "Allow": "halo_runtime.policies.domains:allow_domains",
    "AllowModels": "halo_runtime.policies.models:allow_models",
    "AllowTools": "halo_runtime.policies.tools:allow_tools",
    "Approve": "halo_runtime.policies.tools:approve",
    "Block": "halo_runtime.policies.block:block",
    "Deny": "halo_runtime.policies.domains:deny_domains",
    "DenyModels": "halo_runtime.policies.models:deny_models",
    "DenyTools": "halo_runtime.policies.tools:deny_tools",
    "Match": "halo_runtime.policies.output:match",
    "MaxCalls": "halo_runtime.policies.budgets:max_calls",
    "MaxLatency": "halo_runtime.policies.pace:max_latency",
    "MaxLength": "halo_runtime.policies.output:max_length",
    "MaxSpend": "halo_runtime.policies.budgets:max_spend",
    "MaxTokens": "halo_runtime.policies.budgets:max_tokens",
    "MaxToolCalls": "halo_runtime.policies.budgets:max_tool_calls",
    "MinLength": "halo_runtime.policies.output:min_length",
    "RateLimit": "halo_runtime.policies.pace:rate_limit",
    "Redact": "halo_runtime.policies.redact:redact",
    "RequireJSON": "halo_runtime.policies.output:require_json",
    "Taint": "halo_runtime.policies.tools:taint",
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

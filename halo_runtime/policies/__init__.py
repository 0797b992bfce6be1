"""Which policy rules can be enforced here. A rule that cannot is refused before the run starts (fail closed)."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast, get_args

from halo_lang import catalog
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import Point, PolicyRule, RuleFactory

POINTS: Final[frozenset[str]] = frozenset(get_args(Point))

_FACTORIES: Final = {
    "Allow": "halo_runtime.policies.domains:allow_domains",
    "AllowModels": "halo_runtime.policies.models:allow_models",
    "AllowTools": "halo_runtime.policies.tools:allow_tools",
    "Approve": "halo_runtime.policies.tools:approve",
    "Block": "halo_runtime.policies.block:block",
    "Deny": "halo_runtime.policies.domains:deny_domains",
    "DenyModels": "halo_runtime.policies.models:deny_models",
    "DenyTools": "halo_runtime.policies.tools:deny_tools",
    "Language": "halo_runtime.policies.language:language",
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
    "RequireCitation": "halo_runtime.policies.citation:require_citation",
    "RequireJSON": "halo_runtime.policies.output:require_json",
    "RequireSchema": "halo_runtime.policies.output:require_schema",
    "Taint": "halo_runtime.policies.tools:taint",
}
"""Rule name → `module:function`."""


def rule_factory(rule: str) -> RuleFactory:
    """What makes `rule` from its arguments, a package's too; ConfigError for one that cannot be enforced here."""
    target = _FACTORIES.get(rule)
    if target is not None:
        module, _, function = target.partition(":")
        return getattr(import_module(module), function)
    brought = catalog.rule_package(rule)
    if brought is not None:
        return cast(RuleFactory, brought)  # `made_by` looks at what it makes
    reason = catalog.why_missing(rule)
    raise ConfigError(
        f"the policy rule {rule} cannot be enforced {f'({reason})' if reason else 'by this version'}, and a policy"
        " that is not enforced must not let a run start; register what makes it"
        f' (`runtime.register_policy_rule("{rule}", …)`), or take the rule out of the program'
    )


def made_by(rule: str, factory: RuleFactory, args: JsonObject) -> PolicyRule:
    """The rule that a factory makes. Raises ConfigError where it fails, or makes something that is no rule."""
    try:
        made = factory(args)
        points = frozenset(made.points)
    except ConfigError:
        raise
    except Exception as error:  # it may be a stranger's code; a rule that is not there must not let a run start
        raise ConfigError(f"the policy rule {rule} cannot be made: {type(error).__name__}: {error}") from error
    if not points <= POINTS or not callable(getattr(made, "evaluate", None)):
        raise ConfigError(
            f"the policy rule {rule} is none: it needs `evaluate` and `points`, of {', '.join(sorted(POINTS))}"
        )
    return made

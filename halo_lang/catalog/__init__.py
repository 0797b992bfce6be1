"""What exists in Halo beside a program: `System`, directives, providers, policy rules, model services, settings.

Everything is data that checks, completion, docs and the runtime read; names are looked up here and nowhere else.
Installed packages add providers and rules by entry points (see `packages`), programs that embed Halo by
`register_provider` and `register_rule`.
"""

from __future__ import annotations

from halo_lang.catalog.directives import DIRECTIVES
from halo_lang.catalog.models import MODEL_PREFIXES, ModelPrefix, ModelRoute, bare_route, service_of
from halo_lang.catalog.packages import POLICY_RULES, TOOL_PROVIDERS, BrokenPackage, Packages
from halo_lang.catalog.providers import PROVIDERS
from halo_lang.catalog.registry import Registry
from halo_lang.catalog.rules import RULES
from halo_lang.catalog.settings import AGENT_SETTINGS, CALL_SETTINGS, EACH, LOOP, YIELD
from halo_lang.catalog.signature import Bound, Method, Parameter, Problem, Signature
from halo_lang.catalog.specs import DirectiveSpec, ProviderSpec, RuleSpec
from halo_lang.catalog.system import SYSTEM_METHODS

__all__ = [
    "AGENT_SETTINGS",
    "CALL_SETTINGS",
    "EACH",
    "LOOP",
    "SYSTEM_METHODS",
    "YIELD",
    "Bound",
    "BrokenPackage",
    "DirectiveSpec",
    "Method",
    "ModelPrefix",
    "ModelRoute",
    "Parameter",
    "Problem",
    "ProviderSpec",
    "RuleSpec",
    "Signature",
    "broken_packages",
    "directive",
    "directives",
    "model_prefixes",
    "model_route",
    "provider",
    "provider_package",
    "providers",
    "register_provider",
    "register_rule",
    "rule",
    "rule_package",
    "rules",
    "service_of",
    "system_method",
    "why_missing",
]

_system = {method.name: method for method in SYSTEM_METHODS}
_directives = Registry("directive", DIRECTIVES)
_providers = Packages(TOOL_PROVIDERS, ProviderSpec, Registry("provider", PROVIDERS))
_rules = Packages(POLICY_RULES, RuleSpec, Registry("policy rule", RULES))
_models = Registry("model prefix", MODEL_PREFIXES)


def system_method(name: str) -> Method | None:
    """The method of `System` of that name."""
    return _system.get(name)


def directive(name: str) -> DirectiveSpec | None:
    """The directive `@name`."""
    return _directives.get(name)


def directives() -> Registry[DirectiveSpec]:
    """All directives."""
    return _directives


def provider(name: str) -> ProviderSpec | None:
    """The provider of tools and stores of that name."""
    return _providers.get(name)


def providers() -> Registry[ProviderSpec]:
    """All providers, those of packages included."""
    return _providers.all()


def provider_package(name: str) -> object | None:
    """What a package's entry point for a provider leads to; None for a provider that no package brings."""
    return _providers.object(name)


def register_provider(spec: ProviderSpec) -> None:
    """Add a provider; ValueError when the name is taken."""
    _providers.register(spec)


def rule(name: str) -> RuleSpec | None:
    """The policy rule of that name."""
    return _rules.get(name)


def rules() -> Registry[RuleSpec]:
    """All policy rules, those of packages included."""
    return _rules.all()


def rule_package(name: str) -> object | None:
    """What a package's entry point for a policy rule leads to; None for a rule that no package brings."""
    return _rules.object(name)


def register_rule(spec: RuleSpec) -> None:
    """Add a policy rule; ValueError when the name is taken."""
    _rules.register(spec)


def broken_packages() -> tuple[BrokenPackage, ...]:
    """The entries of packages that could not be added, after all of them were tried."""
    _providers.all()
    _rules.all()
    return (*_providers.broken, *_rules.broken)


def why_missing(name: str) -> str | None:
    """Why a package's provider or rule of that name could not be added; None where no package has tried to."""
    return _providers.why_missing(name) or _rules.why_missing(name)


def model_prefixes() -> Registry[ModelPrefix]:
    """All model services."""
    return _models


def model_route(model: str) -> ModelRoute | None:
    """Where a model id leads; None for an unknown prefix or a bare name that says nothing.

    Only the first `/` separates: `openrouter/anthropic/claude-x` is OpenRouter's `anthropic/claude-x`.
    """
    prefix, slash, rest = model.partition("/")
    if not slash:
        return bare_route(model)
    entry = _models.get(prefix)
    return ModelRoute(entry, prefix, rest) if entry is not None and rest else None

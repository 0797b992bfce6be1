"""What exists in Halo beside a program: `System`, directives, providers, policy rules, model services, settings.

Everything is data that checks, completion, docs and the runtime read; names are looked up here and nowhere else.
Tool and rule packages add entries with `register_provider` and `register_rule`.
"""

from __future__ import annotations

from halo_lang.catalog.directives import DIRECTIVES
from halo_lang.catalog.models import MODEL_PREFIXES, ModelPrefix, ModelRoute, bare_route, service_of
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
    "DirectiveSpec",
    "Method",
    "ModelPrefix",
    "ModelRoute",
    "Parameter",
    "Problem",
    "ProviderSpec",
    "RuleSpec",
    "Signature",
    "directive",
    "directives",
    "model_prefixes",
    "model_route",
    "provider",
    "providers",
    "register_provider",
    "register_rule",
    "rule",
    "rules",
    "service_of",
    "system_method",
]

_system = {method.name: method for method in SYSTEM_METHODS}
_directives = Registry("directive", DIRECTIVES)
_providers = Registry("provider", PROVIDERS)
_rules = Registry("policy rule", RULES)
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
    return _providers


def register_provider(spec: ProviderSpec) -> None:
    """Add a package's provider; ValueError when the name is taken."""
    _providers.register(spec)


def rule(name: str) -> RuleSpec | None:
    """The policy rule of that name."""
    return _rules.get(name)


def rules() -> Registry[RuleSpec]:
    """All policy rules, those of packages included."""
    return _rules


def register_rule(spec: RuleSpec) -> None:
    """Add a package's policy rule; ValueError when the name is taken."""
    _rules.register(spec)


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

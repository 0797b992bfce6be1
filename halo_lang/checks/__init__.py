"""The checks, one module a family.

A declaration check looks at one declaration and asks its `Scope` about the others; its places count from the
declaration's unit. A program check looks at all of them and gives absolute places. A summary check does so too, but
reads only summaries and interfaces, and is repeated only when one of these changed. A new family is a new module and
one entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from halo_lang.checks import (
    answers,
    arguments,
    catalogued,
    declared,
    duplicates,
    endings,
    flow,
    judges,
    oversight,
    permissions,
    prompts,
    recursion,
    references,
    secrets,
    texts,
    unreachable,
    unused,
    values,
)
from halo_lang.checks.whole import Finding, Whole
from halo_lang.diagnostics import Diagnostic
from halo_lang.nodes import Declaration
from halo_lang.symbols import Scope

DeclarationCheck: TypeAlias = Callable[[Declaration, Scope], Iterator[Diagnostic]]
ProgramCheck: TypeAlias = Callable[[Whole], Iterator[Diagnostic]]
SummaryCheck: TypeAlias = Callable[[Whole], Iterator[Finding]]

DECLARATION_CHECKS: Final[tuple[DeclarationCheck, ...]] = (
    declared.reserved_names,
    references.references,
    references.item_types,
    references.call_forms,
    duplicates.repeated_fields,
    duplicates.repeated_keys,
    duplicates.repeated_prompts,
    duplicates.hiding_names,
    catalogued.methods,
    catalogued.providers,
    catalogued.rules,
    catalogued.directives,
    catalogued.models,
    judges.missing_judges,
    arguments.check,
    permissions.equipment,
    permissions.environment,
    flow.directives,
    flow.else_arms,
    flow.loop_targets,
    flow.loop_conditions,
    texts.placeholders,
    texts.escapes,
    values.unknown_values,
    unreachable.never_run,
    secrets.written_secrets,
    answers.looked_into_texts,
    unused.parameters,
)

PROGRAM_CHECKS: Final[tuple[ProgramCheck, ...]] = (declared.repeated_names,)

SUMMARY_CHECKS: Final[tuple[SummaryCheck, ...]] = (
    declared.endless_schemas,
    unused.declarations,
    recursion.endless_pipelines,
    endings.stages_behind,
    prompts.unfilled_prompts,
    oversight.unguarded_agents,
    oversight.unpriced_budgets,
)

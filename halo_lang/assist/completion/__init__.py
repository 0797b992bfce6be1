"""Completion: what can stand at a place of a program, likeliest first.

`complete` finds out where the cursor is (`assist.cursor`), asks one function for each kind of place what there is,
and keeps what fits the letters that are typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from halo_lang.analysis import Analysis
from halo_lang.assist.completion import names, values
from halo_lang.assist.completion.items import Candidate, Completions, Item, ItemKind, fitting
from halo_lang.assist.completion.view import Models, View
from halo_lang.assist.completion.words import words
from halo_lang.assist.cursor import locate
from halo_lang.assist.spots import Spot

__all__ = ["Completions", "Item", "ItemKind", "Models", "complete"]


def _no_models() -> tuple[str, ...]:
    return ()


def complete(analysis: Analysis, offset: int, *, models: Models = _no_models) -> Completions:
    """What can be written at an offset.

    An item fits when the letters in front of the cursor come in its label in that order, whatever their case; the
    span is the whole word around the cursor. `models` gives the ids of known models beside those that the program
    uses; it is called only where a model can stand.
    """
    cursor = locate(analysis, offset)
    view = View(analysis, cursor, models)
    candidates = chain(_CANDIDATES[cursor.place.spot](view), words(view))
    return Completions(cursor.span, fitting(candidates, cursor.typed))


def _nothing(_: View) -> Iterator[Candidate]:
    return iter(())


_CANDIDATES: Final[dict[Spot, Callable[[View], Iterator[Candidate]]]] = {
    Spot.NOTHING: _nothing,
    Spot.DIRECTIVE: names.directives,
    Spot.PROVIDER: names.providers,
    Spot.MODEL: names.models,
    Spot.RULE: names.rules,
    Spot.TYPE: names.types,
    Spot.RETURN_TYPE: names.return_types,
    Spot.TOOL: names.tools,
    Spot.POLICY: names.policies,
    Spot.CALLEE: names.callees,
    Spot.METHOD: names.methods,
    Spot.VALUE: values.values,
    Spot.ARGUMENT: values.arguments,
    Spot.OPERAND: values.operands,
    Spot.TEMPLATE: values.templates,
    Spot.CHOICE: values.choices,
    Spot.LOOP_TARGET: names.loop_targets,
    Spot.SHADOW_TARGET: names.shadow_targets,
    Spot.SOURCE: names.sources,
    Spot.EVENT: names.events,
}

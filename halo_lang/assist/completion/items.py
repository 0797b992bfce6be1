"""What completion gives: items, and which of them fit what is typed already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from halo_lang.records import record
from halo_lang.source import Span


class ItemKind(StrEnum):
    """What an item stands for."""

    KEYWORD = "keyword"
    OPERATOR = "operator"
    POLICY = "policy"
    TOOL = "tool"
    SCHEMA = "schema"
    AGENT = "agent"
    PIPELINE = "pipeline"
    UNKNOWN = "unknown"
    """Declared, but by something that does not parse."""
    PROVIDER = "provider"
    RULE = "rule"
    DIRECTIVE = "directive"
    MODEL = "model"
    TYPE = "type"
    METHOD = "method"
    EVENT = "event"
    ARGUMENT = "argument"
    CHOICE = "choice"
    PARAMETER = "parameter"
    RESULT = "result"
    FIELD = "field"
    NAMESPACE = "namespace"
    CONSTANT = "constant"
    VARIABLE = "variable"
    """Of the environment."""


@record
class Item:
    """One completion: `insert` replaces the span of the `Completions`, `sort` orders by likelihood as text does."""

    label: str
    kind: ItemKind
    detail: str = ""
    documentation: str = ""
    insert: str = ""
    sort: str = ""


@record
class Completions:
    """The items that can stand at `span`, likeliest first."""

    span: Span
    items: tuple[Item, ...]


@record
class Candidate:
    """An item before it is matched. `rank` 0 is for what fits best; `insert` is empty where it is the label."""

    label: str
    kind: ItemKind
    rank: int
    detail: str = ""
    documentation: str = ""
    insert: str = ""


def fitting(candidates: Iterable[Candidate], typed: str) -> tuple[Item, ...]:
    """The candidates that `typed` may be short for, in order: the typed letters come in them in that order.

    Letter case does not matter. Names that begin with what is typed come first, then by rank, then as they came; of
    several with one label the best counts.
    """
    found: dict[str, tuple[int, int, int, Candidate]] = {}
    for number, candidate in enumerate(candidates):
        quality = _quality(candidate.label, typed)
        if quality is not None:
            entry = (quality, candidate.rank, number, candidate)
            known = found.get(candidate.label)
            if known is None or entry[:2] < known[:2]:
                found[candidate.label] = entry
    ordered = sorted(found.values(), key=lambda entry: entry[:3])
    return tuple(_items(candidate for *_, candidate in ordered))


def _items(candidates: Iterable[Candidate]) -> Iterator[Item]:
    for number, one in enumerate(candidates):
        insert = one.insert or one.label
        yield Item(one.label, one.kind, one.detail, one.documentation, insert, f"{number:05}")


def _quality(label: str, typed: str) -> int | None:
    """How well a label fits: 0 begins with it, 1 but for letter case, 2 has its letters in order; None for not."""
    if label.startswith(typed):
        return 0
    folded, wanted = label.casefold(), typed.casefold()
    if folded.startswith(wanted):
        return 1
    rest = iter(folded)
    return 2 if all(letter in rest for letter in wanted) else None

"""What pipelines have for the system prompts of the agents that they call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Final

from halo_lang import nodes
from halo_lang.checks.reach import left_behind, readers
from halo_lang.checks.walk import calls
from halo_lang.nodes import Declaration, Pipeline, Stage
from halo_lang.records import record


@record
class Supply:
    """What a pipeline has for the agents that it calls, beside its parameters; free of places.

    `left` are the names that stages leave behind, each with the number of the first stage that can read it. `called`
    are the callees, each with the last stage that calls it, `items` those that are called with the item of an `each`,
    each with a name that exists only there.
    """

    left: frozenset[tuple[str, int]] = frozenset()
    called: frozenset[tuple[str, int]] = frozenset()
    items: frozenset[tuple[str, str]] = frozenset()

    def reaches(self, agents: Set[str]) -> bool:
        """Whether the pipeline calls one of these agents."""
        return any(name in agents for name, _ in self.called)


_NOTHING: Final = Supply()


def supply_of(declaration: Declaration) -> Supply:
    """What a declaration has for agents; only pipelines have anything."""
    return _supply(declaration.stages) if isinstance(declaration, Pipeline) else _NOTHING


def _supply(stages: Sequence[Stage]) -> Supply:
    left = {
        ((one.namespace or one.name).text, reader) for stage, reader in readers(stages) for one in left_behind(stage)
    }
    called = {call.callee.text: number for number, stage in enumerate(stages) for call in calls(stage)}
    return Supply(frozenset(left), frozenset(called.items()), frozenset(_items(stages)))


def _items(stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
    for stage in stages:
        if isinstance(stage, nodes.EachStage):
            yield stage.call.callee.text, stage.item.text
            yield stage.call.callee.text, "index"

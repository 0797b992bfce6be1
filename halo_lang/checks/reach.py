"""Which names mean something at each stage of a pipeline (spec 1.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from halo_lang import catalog, nodes
from halo_lang.checks.walk import bindings, calls
from halo_lang.nodes import Call, Pipeline, Stage
from halo_lang.spelling import NameIndex

NAMESPACES = frozenset({"current", "input", "data", "meta", "trace"})
"""What stands behind `context.`."""


class Reach:
    """The names in reach of a pipeline's stages: parameters, and results of earlier stages.

    A loop may bring the run back, so what the looped stages leave behind is in reach from the loop's first stage on.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._parameters = frozenset(parameter.name.text for parameter in pipeline.params)
        self._first: dict[str, int] = {}
        """For each result the number of the first stage that can read it."""
        earliest = _earliest(pipeline.stages)
        for number, stage in enumerate(pipeline.stages):
            reader = min(number + 1, earliest[number])
            for name in _results(stage):
                self._first[name] = min(reader, self._first.get(name, reader))
        self._index = NameIndex((*self._parameters, *self._first))

    def has(self, name: str, stage: int) -> bool:
        """Whether `name` is a parameter, or a result that stage number `stage` can read."""
        return name in self._parameters or self._first.get(name, stage + 1) <= stage

    def is_parameter(self, name: str) -> bool:
        """Whether the pipeline has a parameter of that name."""
        return name in self._parameters

    def nearest(self, word: str, stage: int) -> str | None:
        """The name in reach of a stage that `word` may be a misspelling of."""
        return next((name for name in self._index.near(word) if self.has(name, stage)), None)


def _earliest(stages: Sequence[Stage]) -> list[int]:
    """For each stage the first stage of the outermost loop around it; past the end where there is none."""
    earliest = [len(stages)] * len(stages)
    latest: dict[str, int] = {}
    loops: list[tuple[int, int]] = []
    for number, stage in enumerate(stages):
        if isinstance(stage, nodes.LoopStage) and stage.agent.text in latest:
            loops.append((latest[stage.agent.text], number))
        latest.update((call.callee.text, number) for call in calls(stage))
    done = 0
    # By their first stages: whatever an earlier loop has marked needs no second look, so the work is linear.
    for first, last in sorted(loops):
        for number in range(max(first, done), last + 1):
            earliest[number] = first
        done = max(done, last + 1)
    return earliest


def _results(stage: Stage) -> Iterator[str]:
    yield from (name.text for name in bindings(stage))
    if isinstance(stage, nodes.ListenStage):
        yield stage.source.text
    for call in calls(stage):
        if not _passes(call):
            yield call.callee.text
            if call.method is not None:
                yield call.method.text


def _passes(call: Call) -> bool:
    method = catalog.system_method(call.method.text) if call.method is not None else None
    return call.callee.text == "System" and method is not None and method.passes

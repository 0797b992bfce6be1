"""What a stage is made of, as hashes: whether two versions of a program would do the same there (spec 3.2).

A fingerprint covers the stage's syntax and the declarations that its calls lead to: an agent with its tools and
policies, a tool; of a pipeline only how it is called, since its stages have fingerprints of their own. Comments,
layout and places are in none of it, nor are budgets: a call that was made is made, whatever the limit is now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, TypeAlias

from halo_lang import catalog, nodes
from halo_lang.source import Span
from halo_runtime.engine.plan import Plan, StagePlan
from halo_runtime.engine.reach import calls_in, fields_of

Shape: TypeAlias = Any
"""A syntax tree as nested tuples: the name of a node's class, then its parts; literals as they are."""

_SHOWN: Final = 16
"""Hexadecimal digits of a fingerprint in a journal: enough to tell versions of one stage apart."""


class Fingerprints:
    """The fingerprints of one program's stages, each worked out when it is first asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stages: dict[tuple[str, int], str] = {}

    def stage(self, pipeline: str, index: int) -> str | None:
        """The fingerprint of a pipeline's stage; None where there is no such stage."""
        key = (pipeline, index)
        if key not in self._stages:
            stage = self._find(pipeline, index)
            if stage is None:
                return None
            # Nested tuples of texts and numbers are written in one way only, and faster than as JSON.
            self._stages[key] = sha256(repr(self._parts(pipeline, stage)).encode()).hexdigest()[:_SHOWN]
        return self._stages[key]

    def all(self, pipeline: str) -> list[str]:
        """The fingerprints of a pipeline's stages in their order."""
        count = len(self.stages(pipeline))
        return [found for index in range(count) if (found := self.stage(pipeline, index)) is not None]

    def stages(self, pipeline: str) -> tuple[StagePlan, ...]:
        """The compiled stages of a pipeline; none where there is no such pipeline."""
        found = isinstance(self._plan.program.find(pipeline), nodes.Pipeline)
        return self._plan.pipeline(pipeline).stages if found else ()

    def difference(self, older: Fingerprints, pipeline: str, index: int) -> str | None:
        """In words what changed at a stage since another version of the program; None where nothing did."""
        mine, theirs = self._find(pipeline, index), older._find(pipeline, index)
        if mine is None or theirs is None:
            return "it is not in both programs"
        now, before = self._parts(pipeline, mine), older._parts(pipeline, theirs)
        changed = [name for name in (now | before) if now.get(name) != before.get(name)]
        return _in_words(changed[0], mine.info.kind, now, before) if changed else None

    def _find(self, pipeline: str, index: int) -> StagePlan | None:
        stages = self.stages(pipeline)
        return stages[index] if index < len(stages) else None

    def _parts(self, pipeline: str, stage: StagePlan) -> dict[str, Shape]:
        """Everything that a stage rests on, by name, the stage itself first."""
        parts: dict[str, Shape] = {"stage": shape(stage.info.nodes)}
        if stage.info.index == 0:
            parts["start"] = self._opening(pipeline)
        for callee in sorted({call.callee.text for node in stage.info.nodes for call in calls_in(node)}):
            parts.update(self._callee(callee))
        return parts

    def _opening(self, pipeline: str) -> Shape:
        """What a pipeline does before its first stage."""
        return shape(self._plan.declaration(pipeline, nodes.Pipeline).start)

    def _callee(self, name: str) -> dict[str, Shape]:
        declaration = self._plan.program.find(name)
        if isinstance(declaration, nodes.Agent):
            used = (*declaration.names("equips"), *declaration.names("requires"))
            return {f"agent {name}": shape(declaration)} | self._declared(one.text for one in used)
        if isinstance(declaration, nodes.Pipeline):
            return {f"pipeline {name}": shape((declaration.params, declaration.directives))}
        return self._declared([name])

    def _declared(self, names: Iterable[str]) -> dict[str, Shape]:
        found = [(name, self._plan.program.find(name)) for name in names]
        return {f"{_kind(one)} {name}": _without_budgets(one) for name, one in found if one is not None}


def _without_budgets(declaration: nodes.Declaration) -> Shape:
    """The shape of a declaration; of a policy only the rules that look at what is said and done."""
    if isinstance(declaration, nodes.Policy):
        specs = [(rule, catalog.rule(rule.name.text)) for rule in declaration.rules]
        kept = tuple(rule for rule, spec in specs if spec is None or "budget" not in spec.points)
        declaration = replace(declaration, rules=kept)
    return shape(declaration)


def shape(node: Any) -> Shape:
    """A syntax tree without places: equal for trees that mean the same."""
    kind = node.__class__
    if kind is tuple:
        return tuple(map(shape, node))
    if kind in _LITERALS:
        return node
    parts = _PARTS.get(kind)
    if parts is None:
        # How a string is quoted says nothing about its value.
        parts = _PARTS[kind] = tuple(name for name in fields_of(node) if name != "quote")
    values = [getattr(node, name) for name in parts]
    return (kind.__name__, *[shape(value) for value in values if value.__class__ is not Span])


_LITERALS: Final = (str, int, float, bool, type(None))
_PARTS: Final[dict[type, tuple[str, ...]]] = {}


_TEXTS: Final = {"gate": "condition", "branch": "text", "loop": "condition", "yield": "question"}
"""What the texts of a stage are, by its kind; of a call they are a prompt if it is an agent's."""


def _kind(declaration: nodes.Declaration) -> str:
    return declaration.kind if isinstance(declaration, nodes.Provider) else type(declaration).__name__.lower()


def _in_words(name: str, kind: str, now: dict[str, Shape], before: dict[str, Shape]) -> str:
    if name not in before:
        return f"the {name} is new there"
    if name not in now:
        return f"the {name} is no longer used there"
    if name == "stage":
        texts_only = _without_texts(now[name]) == _without_texts(before[name])
        usual = "prompt" if any(part.startswith("agent ") for part in now) else "text"
        return f"the {_TEXTS.get(kind, usual)} changed" if texts_only else "it was edited"
    if name == "start":
        return "the start value changed"
    if name.startswith("agent ") and _without_texts(now[name]) == _without_texts(before[name]):
        return f"the texts of the {name} changed"
    return f"the {name} changed"


def _without_texts(tree: Shape) -> Shape:
    if tree.__class__ is not tuple:
        return tree
    return ("String",) if tree[:1] == ("String",) else tuple(map(_without_texts, tree))

"""The program as completion sees it from one cursor; what costs something is worked out when it is first asked for."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

from halo_lang import nodes
from halo_lang.analysis import Analysis
from halo_lang.assist.cursor import Arguments, Cursor
from halo_lang.assist.described import Described, describe
from halo_lang.assist.frames import FrameKind
from halo_lang.assist.shapes import UNKNOWN, Flow, Result, Shape
from halo_lang.catalog.signature import Parameter
from halo_lang.checks.reach import Reach
from halo_lang.checks.walk import calls
from halo_lang.lexicon import NAME
from halo_lang.nodes import Pipeline, Stage
from halo_lang.source import Span
from halo_lang.symbols import Interface, Kind, Scope, Symbols

Models: TypeAlias = Callable[[], Sequence[str]]
"""The ids of known models, spelled as a program spells them; asked only where a model can stand."""


_FIXED: Final = frozenset({FrameKind.PROVIDER, FrameKind.SETTINGS, FrameKind.RULE, FrameKind.DIRECTIVE})


@dataclass(frozen=True)
class View:
    """A cursor in a program."""

    analysis: Analysis
    cursor: Cursor
    models: Models

    @property
    def symbols(self) -> Symbols:
        """All declared names."""
        return self.analysis.whole.symbols

    def interface(self, name: str) -> Interface | None:
        """What is declared under a name."""
        return self.symbols.interfaces.get(name)

    def named(self, *kinds: Kind) -> list[str]:
        """The declared names of these kinds, and those of declarations that do not parse."""
        return self.symbols.of_kind(*kinds, Kind.UNKNOWN)

    @property
    def arguments(self) -> Arguments | None:
        """The argument list around the cursor."""
        return self.cursor.arguments

    @cached_property
    def described(self) -> Described | None:
        """What that list takes."""
        return describe(self.arguments, self.analysis) if self.arguments is not None else None

    @cached_property
    def parameter(self) -> Parameter | None:
        """The parameter that the argument at the cursor is for."""
        if self.described is None or self.arguments is None:
            return None
        return self.described.parameter(self.arguments)

    @property
    def is_fixed(self) -> bool:
        """Whether nothing flows there: outside of pipelines every value is written out."""
        return self.arguments is not None and self.arguments.kind in _FIXED

    @property
    def wants_list(self) -> bool:
        """Whether the cursor is where an `each` takes its list from."""
        around = self.arguments
        return around is not None and around.kind is FrameKind.EACH and around.index < 0

    # --- the pipeline around the cursor

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """The pipeline that the cursor is in, with the stages that parse and the cursor's own."""
        declaration, at = self.cursor.unit.declaration, self.cursor.stage
        if not isinstance(declaration, Pipeline):
            return None
        if at is None or any(stage.span.start == at for stage in declaration.stages):
            return declaration
        number = _begun_before(declaration, at)
        stages = (*declaration.stages[:number], _stand_in(at, self.arguments), *declaration.stages[number:])
        return replace(declaration, stages=stages)

    @cached_property
    def stage(self) -> int:
        """The number of the cursor's stage; 0 in front of the first."""
        at = self.cursor.stage
        return _begun_before(self.pipeline, at) if self.pipeline is not None and at is not None else 0

    @cached_property
    def reach(self) -> Reach | None:
        """The names in reach of the pipeline's stages."""
        if self.pipeline is None:
            return None
        return Reach(self.pipeline, Scope(self.symbols, self.cursor.unit.text))

    @cached_property
    def flow(self) -> Flow | None:
        """The shapes of results and of the flowing value."""
        return Flow(self.pipeline, self.stage, self.analysis) if self.pipeline is not None else None

    def readable(self) -> dict[str, Result]:
        """The results in reach below `context.data`, the latest first; `Callee.method` is one name."""
        reach, flow = self.reach, self.flow
        if reach is None or flow is None:
            return {}
        found = [(name, one) for name, one in flow.results.items() if reach.is_produced(name.split("."), self.stage)]
        return dict(reversed(found))

    def read_below(self, path: Sequence[str]) -> list[str]:
        """The names that the cursor's declaration reads elsewhere below the last segment of a path."""
        text = self.cursor.unit.text
        here = self.cursor.span.start - self.cursor.base
        found = re.finditer(rf"(?<!\w){re.escape(path[-1])}\s*+\.\s*+({NAME})(?!\w|\s*+\()", text)
        return list(dict.fromkeys(match[1] for match in found if match.start(1) != here))

    @cached_property
    def local(self) -> dict[str, Shape]:
        """The names that exist in the call of an `each` alone."""
        each = self.cursor.each
        if each is None:
            return {}
        items = self.flow.at(each.source) if self.flow is not None and each.source else UNKNOWN
        return {each.name: items.at("0"), "index": Shape("Integer")}

    # --- what the program does elsewhere

    def stages(self) -> Iterator[Stage]:
        """The stages of all pipelines."""
        return (stage for pipeline in self.analysis.program.pipelines for stage in pipeline.stages)

    def used_methods(self) -> Iterator[tuple[str, str]]:
        """Callee and method of all calls, those of the cursor's unit that do not parse included."""
        for stage in self.stages():
            for call in calls(stage):
                if call.method is not None:
                    yield call.callee.text, call.method.text
        yield from ((match[1], match[2]) for match in _METHOD_CALL.finditer(self.cursor.unit.text))


_METHOD_CALL: Final = re.compile(rf"(?<!\w)({NAME})\s*+\.\s*+({NAME})\s*+\(")


def _begun_before(pipeline: Pipeline, offset: int) -> int:
    return bisect_left(pipeline.stages, offset, key=lambda stage: stage.span.start)


def _stand_in(at: int, arguments: Arguments | None) -> Stage:
    """A stage for one that does not parse: where it is a call, a loop may lead back to it."""
    place = Span(at, at)
    if arguments is None or arguments.kind is not FrameKind.CALL:
        return nodes.GateStage(nodes.Null(place), None, None, None, place, place)
    method = nodes.Name(arguments.method, place) if arguments.method else None
    call = nodes.Call(nodes.Name(arguments.name, place), method, (), place, place)
    return nodes.PipeStage(call, None, place, place)

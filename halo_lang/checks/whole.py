"""What the checks of a whole program work on: a summary of each declaration, made once as long as its text stands.

Few edits change a summary, so what follows from all of them is found only when one did, as `Finding`s that name
declarations; where these stand now is looked up when a finding is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, TypeAlias

from halo_lang import nodes
from halo_lang.checks.references import tool_names
from halo_lang.checks.supply import Supply
from halo_lang.checks.unreachable import chosen_arms, ends_run, is_exhaustive
from halo_lang.checks.walk import calls, leaves, type_names, written_values
from halo_lang.diagnostics import Diagnostic
from halo_lang.lexicon import NAME
from halo_lang.nodes import Argument, Call, Declaration, Pipeline, Stage
from halo_lang.program import Program
from halo_lang.records import record
from halo_lang.symbols import Interface, Symbols

_WORD: Final = re.compile(NAME)
_LONG: Final = 100_000
"""Characters of broken text from which on it is not searched for names at every keystroke."""
AUTO: Final = "auto"
"""Stands for all tools that an agent equips."""

PriceLookup: TypeAlias = Callable[[str], bool]
"""Whether what a model costs is known, by its id as written."""


@record
class Summary:
    """What the program as a whole needs to know of a declaration beside its interface; free of places.

    `uses` are the names of declarations that it mentions. `offers` are pairs of an agent and a tool whose calls that
    agent chooses itself. `model` is an agent's; `spends` tells of a policy that it limits what a run may cost. The rest
    is a pipeline's: the pipelines that it may call, those that every run calls as long as none of them ends it, in
    order, whether a gate of its own may end a run, whether a stage of its own always does, and the pipelines whose end
    is the end of its runs.
    """

    uses: frozenset[str] = frozenset()
    offers: frozenset[tuple[str, str]] = frozenset()
    model: str = ""
    spends: bool = False
    may_call: frozenset[str] = frozenset()
    always_calls: tuple[str, ...] = ()
    has_gate: bool = False
    ends: bool = False
    ends_with: frozenset[str] = frozenset()


@record
class Known:
    """A declaration and what follows from its text alone."""

    declaration: Declaration
    interface: Interface
    summary: Summary
    supply: Supply
    """What a pipeline has for the agents that it calls; of others none."""


class Entry(Protocol):
    """What is known of one unit; see `Checked` in analysis.py."""

    @property
    def known(self) -> Known: ...


@dataclass(frozen=True, eq=False)
class Whole:
    """A program as its checks see it.

    `entries` are those of its units with a declaration, by identity. `told` is what is found already, in the syntax and
    in single declarations. `is_priced` is None where nobody knows what models cost.
    """

    program: Program
    symbols: Symbols
    entries: Mapping[int, Entry]
    told: Sequence[Diagnostic]
    is_priced: PriceLookup | None

    @cached_property
    def known(self) -> list[Known]:
        """What is known of the declarations, in order; made when it is asked for, which few edits do."""
        return [self.entries[id(unit)].known for unit in self.program.units if unit.declaration is not None]

    def may_mention(self, name: str) -> bool:
        """Whether a name may be used where that cannot be seen: in what does not parse, or by a misspelling of it."""
        return self._doubtful is None or name in self._doubtful

    @cached_property
    def _doubtful(self) -> set[str] | None:
        """The names that may be used unseen; None for any."""
        broken = [unit.text for unit in self.program.units if unit.diagnostics]
        if sum(map(len, broken)) > _LONG:
            return None
        meant = {told.fix.text for told in self.told if told.code == "HL203" and told.fix is not None}
        return meant.union(*map(_WORD.findall, broken))


Finding: TypeAlias = Callable[[Whole], Iterator[Diagnostic]]
"""Something that holds as long as no summary or interface changes; called, it says so with the places of now."""


def summarize(declaration: Declaration, *, broken: bool) -> Summary:
    """The summary of a declaration; `broken` where some of its stages did not parse."""
    uses = frozenset(_mentioned(declaration)) - {declaration.name.text} | frozenset(_shadows(declaration))
    match declaration:
        case nodes.Policy():
            return Summary(uses, spends=any(spending_rules(declaration.rules)))
        case nodes.Agent():
            offers = frozenset(_offered(declaration.name.text, declaration.config))
            return Summary(uses, offers, model=declaration.model.text)
        case Pipeline():
            return _of_pipeline(declaration, uses, broken)
        case _:
            return Summary(uses)


def spending_rules(rules: Iterable[nodes.Rule]) -> Iterator[nodes.Rule]:
    """The rules that need to know what calls cost, those in other rules included."""
    for rule in rules:
        if rule.name.text == "MaxSpend":
            yield rule
        yield from spending_rules(argument.value for argument in rule.args if isinstance(argument.value, nodes.Rule))


def _of_pipeline(node: Pipeline, uses: frozenset[str], broken: bool) -> Summary:
    made = [call for stage in node.stages for call in calls(stage)]
    return Summary(
        uses,
        offers=frozenset(pair for call in made for pair in _offered(call.callee.text, call.args)),
        may_call=frozenset(call.callee.text for call in made if call.method is None),
        # What did not parse may be a gate.
        always_calls=() if broken else tuple(_always_called(node.stages)),
        has_gate=broken or any(isinstance(stage, nodes.GateStage) for stage in node.stages),
        ends=not broken and any(map(ends_run, node.stages)),
        ends_with=frozenset(name for stage in node.stages for name in lasting_calls(stage)),
    )


def lasting_calls(stage: Stage) -> Iterator[str]:
    """The pipelines that every run which goes on behind a stage has called there."""
    if isinstance(stage, nodes.PipeStage | nodes.GateStage | nodes.FanOutStage):
        yield from (call.callee.text for call in calls(stage) if call.method is None)


def _always_called(stages: Iterable[Stage]) -> Iterator[str]:
    for stage in stages:
        yield from (call.callee.text for call in _certain_calls(stage) if call.method is None)
        if isinstance(stage, nodes.GateStage) or ends_run(stage):
            return


def _certain_calls(stage: Stage) -> Sequence[Call]:
    """The calls that every run of a stage makes; of a branch, the one that all its arms make."""
    match stage:
        case nodes.PipeStage() | nodes.FanOutStage():
            return calls(stage)
        case nodes.BranchStage():
            chosen = chosen_arms(stage)
            same = len({arm.call.callee.text for arm in chosen}) == 1
            return [chosen[0].call] if same and is_exhaustive(stage) else []
        case _:
            return []


def _offered(agent: str, args: Iterable[Argument]) -> Iterator[tuple[str, str]]:
    for argument in args:
        if argument.name is not None and argument.name.text == "tools":
            if isinstance(argument.value, nodes.Path) and argument.value.root == AUTO:
                yield agent, AUTO
            yield from ((agent, name.text) for name in tool_names((argument,)))


def _shadows(declaration: Declaration) -> Iterator[str]:
    """The agent itself where it is a shadow: such a one runs although nobody calls it."""
    if isinstance(declaration, nodes.Agent):
        yield from (declaration.name.text for directive in declaration.directives if directive.name.text == "shadow")


def _mentioned(declaration: Declaration) -> Iterator[str]:
    yield from (value.root for value in written_values(declaration) if isinstance(value, nodes.Path))
    match declaration:
        case nodes.Schema():
            yield from (name.text for field in declaration.fields for name in type_names(field.type))
        case nodes.Agent():
            yield from (name.text for kind in ("equips", "requires") for name in declaration.names(kind))
        case Pipeline():
            types = (declaration.returns, *(parameter.type for parameter in declaration.params))
            yield from (name.text for type_ in types for name in type_names(type_))
            for stage in declaration.stages:
                yield from _mentioned_in(stage)
        case _:
            return


def _mentioned_in(stage: Stage) -> Iterator[str]:
    yield from (call.callee.text for call in calls(stage))
    match stage:
        case nodes.LoopStage():
            yield stage.agent.text
        case nodes.YieldStage():
            # A channel may name a tool as a text too.
            texts = leaves(argument.value for argument in stage.args)
            yield from (text.value for text in texts if isinstance(text, nodes.String))
        case _:
            return

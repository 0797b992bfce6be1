"""System prompts that no caller of their agent can fill in (HL501)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Final, NamedTuple

from halo_lang.checks.texts import unresolved, written_placeholders
from halo_lang.checks.whole import Finding, Known, Whole
from halo_lang.diagnostics import Diagnostic
from halo_lang.nodes import Agent
from halo_lang.spelling import Guess, NameIndex, first_of
from halo_lang.symbols import Asked, asked_at, system_prompt

_HINTS: Final = {
    "": "name a parameter of a pipeline that calls `{}`, a result of a stage before the call, `current` or `context.…`",
    "input": "`context.input` has the parameters of the pipeline that calls `{}`",
    "data": "no stage before a call of `{}` can have produced it",
}


class _Caller(NamedTuple):
    """A pipeline as one of its callees sees it: what it has until the stage that calls it last."""

    parameters: frozenset[str]
    left: Mapping[str, int]
    local: frozenset[str]
    last: int

    def has(self, asked: Asked) -> bool:
        namespace, name = asked
        given = namespace != "data" and (name in self.parameters or (namespace == "" and name in self.local))
        return given or (namespace != "input" and self.left.get(name, self.last + 1) <= self.last)


def unfilled_prompts(whole: Whole) -> Iterator[Finding]:
    """HL501 at a placeholder of a system prompt that none of the pipelines that call its agent has anything for."""
    asking = whole.symbols.asking
    if not asking:
        return
    callers, index = _callers(whole.known, asking), NameIndex(set(_supplied(whole.known)))
    for name, found in callers.items():
        asked_for = whole.symbols.interfaces[name].asks
        missing = [asked for asked in asked_for if not any(caller.has(asked) for caller in found)]
        if missing:
            yield partial(_unfilled, name, {asked: _meant(asked, found, index) for asked in missing})


def _callers(known: Sequence[Known], asking: Set[str]) -> Mapping[str, Sequence[_Caller]]:
    found: defaultdict[str, list[_Caller]] = defaultdict(list)
    for one in known:
        if (supply := one.supply).reaches(asking):
            parameters = frozenset(one.interface.parameters)
            left = dict(sorted(supply.left, reverse=True))  # of a name that several stages leave the first one counts
            local: defaultdict[str, set[str]] = defaultdict(set)
            for name, item in supply.items:
                local[name].add(item)
            for name, last in supply.called:
                if name in asking:
                    found[name].append(_Caller(parameters, left, frozenset(local[name]), last))
    return found


def _supplied(known: Sequence[Known]) -> Iterator[str]:
    """All names that any pipeline could have for an agent; of the items of `each` none."""
    for one in known:
        yield from one.interface.parameters
        yield from (name for name, _ in one.supply.left)


def _meant(asked: Asked, callers: Sequence[_Caller], index: NameIndex) -> Guess | None:
    namespace, word = asked
    near = (name for name in index.near(word) if any(caller.has((namespace, name)) for caller in callers))
    return first_of(word, near)


def _unfilled(name: str, missing: Mapping[Asked, Guess | None], whole: Whole) -> Iterator[Diagnostic]:
    agent = whole.program.find(name)
    prompt = system_prompt(agent) if isinstance(agent, Agent) else None
    if agent is None or prompt is None or whole.may_mention(name):
        return
    start = whole.program.offset_of(agent)
    source = whole.program.source.text[start : start + agent.span.end]
    for path, span in written_placeholders(prompt, source):
        asked = asked_at(path)
        if asked is not None and asked in missing:
            guess = missing[asked]
            meant = guess and guess.within(path, 2 if asked[0] else 0)
            yield unresolved(path, span, _HINTS[asked[0]].format(name), meant).shifted(start)

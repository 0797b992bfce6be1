"""Stages behind the call of a pipeline in which every run ends (HL506)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise

from halo_lang.checks.unreachable import never_reached
from halo_lang.checks.whole import Finding, Summary, Whole, lasting_calls
from halo_lang.diagnostics import Diagnostic
from halo_lang.nodes import Pipeline


def stages_behind(whole: Whole) -> Iterator[Finding]:
    """HL506 at the first stage behind such a call, in pipelines that have no end of their own, which is told there."""
    if not any(known.summary.ends for known in whole.known):
        return
    summaries = {known.declaration.name.text: known.summary for known in whole.known}
    ending = _ending(summaries)
    for name, summary in summaries.items():
        last = summary.ends_with & ending
        if last and not summary.ends:
            yield partial(_behind, name, last)


def _behind(name: str, last: frozenset[str], whole: Whole) -> Iterator[Diagnostic]:
    pipeline = whole.program.find(name)
    if not isinstance(pipeline, Pipeline):
        return
    for stage, following in pairwise(pipeline.stages):
        callee = next((callee for callee in lasting_calls(stage) if callee in last), None)
        if callee is not None:
            found = never_reached(following, f"every run ends in `{callee}`", stage.operator)
            yield found.shifted(whole.program.offset_of(pipeline))
            return


def _ending(summaries: Mapping[str, Summary]) -> frozenset[str]:
    """The pipelines that no run comes out of, because of a stage of their own or of one that they call."""
    callers: defaultdict[str, list[str]] = defaultdict(list)
    for name, summary in summaries.items():
        for callee in summary.ends_with:
            callers[callee].append(name)
    pending = [name for name, summary in summaries.items() if summary.ends]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += callers[name]
    return frozenset(found)

"""Answers to questions: given ahead with `--answer NAME=VALUE`, or typed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from halo_lang import Program
from halo_lang.nodes import ListenStage, YieldStage
from halo_runtime.cli.usage import UsageError, did_you_mean
from halo_runtime.json_types import MISSING, Json, Missing
from halo_runtime.results import Interrupt
from halo_runtime.values import parse_json, text_of


class AnswersAhead:
    """The values of `--answer`, each used once, in the order given.

    A question is named by its `as` name; an awaited event by that or by `Source.Event`.
    """

    def __init__(self, pairs: Sequence[str], program: Program) -> None:
        """UsageError for a pair without `=` and for a name that no question of the program has."""
        self._left: defaultdict[str, deque[Json]] = defaultdict(deque)
        known = question_names(program)
        for pair in pairs:
            name, equals, text = pair.partition("=")
            if not equals:
                raise UsageError(f"--answer {pair}: no value", hint="write --answer NAME=VALUE")
            if name not in known:
                hint = did_you_mean(name, known) or "give the yield a name with `as`"
                raise UsageError(f"--answer {name}: the program has no question of that name", hint=hint)
            self._left[name].append(value_of(text))

    def take(self, interrupt: Interrupt) -> Json | Missing:
        """The next answer for this question, or MISSING."""
        for name in (interrupt.binding, interrupt.event):
            if name is not None and self._left[name]:
                return self._left[name].popleft()
        return MISSING

    @property
    def unused(self) -> list[str]:
        """Names of answers that nothing has asked for, each as often as it is left."""
        return [name for name, answers in self._left.items() for _ in answers]


def question_names(program: Program) -> frozenset[str]:
    """All names by which `--answer` can mean a question of the program."""
    stages = [stage for pipeline in program.pipelines for stage in pipeline.stages]
    asking = [stage for stage in stages if isinstance(stage, YieldStage | ListenStage)]
    bound = {stage.binding.text for stage in asking if stage.binding is not None}
    return frozenset(bound | {f"{s.source.text}.{s.event.text}" for s in asking if isinstance(s, ListenStage)})


def value_of(text: str) -> Json:
    """JSON if it parses, else text (spec 12.6)."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def typed_value(text: str, choices: Sequence[Json]) -> Json:
    """What a person means: a choice in any letter case, else JSON if it parses, else text.

    The program compares exactly, so `Yes` must not silently miss its `"yes"`.
    """
    folded = text.strip().casefold()
    meant = [choice for choice in choices if text_of(choice).casefold() == folded]
    exact = [choice for choice in meant if text_of(choice) == text.strip()]
    return (exact or meant)[0] if meant else value_of(text)

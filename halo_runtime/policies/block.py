"""`Block(…)`: one rule of several parts, each of which looks for one thing (spec 6).

`_PARTS` is where a part is found; what is none of them is a regular expression. A part is made of the rule's arguments
and the kind that it is made for, so that it takes of them what it knows (`threshold`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, TypeAlias

from halo_lang.records import record
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, AskModel, Decision, Examined, Point, PolicyRule
from halo_runtime.policies.topic import TOXICITY, JudgedTopics, judged_topics

PartFactory: TypeAlias = Callable[[str, JsonObject], PolicyRule]
"""Makes a part from its kind (a name, a regular expression, a topic) and the rule's arguments. Raises ConfigError."""

_PARTS: Final = {
    "PII": "halo_runtime.policies.redact:block_found",
    "Secrets": "halo_runtime.policies.redact:block_found",
    "PromptInjection": "halo_runtime.policies.injection:block_injection",
}
_PATTERN: Final = "halo_runtime.policies.patterns:block_pattern"
_TOPICS: Final = {"Toxicity": TOXICITY}
"""What a judge model looks for, beside the topics that the program names."""


@record
class Parts:
    """Several rules as one: the first that blocks decides."""

    parts: Sequence[PolicyRule]
    points: frozenset[Point]

    def evaluate(self, examined: Examined) -> Decision:
        """Ask each part that looks at this point."""
        for part in self.parts:
            if examined.point in part.points:
                decision = part.evaluate(examined)
                if decision.action != "allow":
                    return decision
        return ALLOW


@record
class JudgedParts(Parts):
    """Several rules as one, the last of which a model decides, after the others."""

    judged: JudgedTopics

    @property
    def judge_model(self) -> str:
        """The id of the model that is asked."""
        return self.judged.judge_model

    async def judge(self, examined: Examined, ask: AskModel) -> Decision:
        """Let the model decide."""
        return await self.judged.judge(examined, ask)


def block(args: JsonObject) -> PolicyRule:
    """`Block(kinds…, Topic: …)`. Raises ConfigError for a part that this version does not have."""
    kinds = list(dict.fromkeys(args.get("kinds") or ()))
    parts = [_part(_PARTS.get(kind, _PATTERN), kind, args) for kind in kinds if kind not in _TOPICS]
    topics = [_TOPICS[kind] for kind in kinds if kind in _TOPICS]
    if args.get("Topic") is not None:
        topics.append(args["Topic"])
    judged = judged_topics(topics, args) if topics else None
    made: list[PolicyRule] = parts if judged is None else [*parts, judged]
    if len(made) == 1:
        return made[0]
    points = frozenset[Point]().union(*(part.points for part in made))
    return Parts(parts, points) if judged is None else JudgedParts(parts, points, judged)


def _part(target: str, kind: str, args: JsonObject) -> PolicyRule:
    module, _, function = target.partition(":")
    try:
        factory: PartFactory = getattr(import_module(module), function)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise ConfigError(
            f"Block({kind}) cannot be enforced by this version, and a policy that is not enforced must not let a run "
            "start; take the rule out of the program"
        ) from None
    return factory(kind, args)

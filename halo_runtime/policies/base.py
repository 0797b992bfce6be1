"""The contract of policy rules (spec 6): a rule looks at a text at a point and decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.views import Views, views_of

Point: TypeAlias = Literal["input", "output", "tool", "result"]
Action: TypeAlias = Literal["allow", "redact", "block", "approve"]


@record
class Finding:
    """A place in the raw text (offsets in code points) that a placeholder takes, `[EMAIL_1]` for the kind `EMAIL`.

    `value` is what stands there in one spelling: equal values get equal placeholders. `shown` is how it is written
    where nothing disguises it, empty for the raw text itself. One that is not `reversible` is never put back.
    """

    kind: str
    start: int
    end: int
    value: str
    shown: str = ""
    reversible: bool = True


@record
class Decision:
    """What a rule says. `reason` is for people and models and never repeats the offending text.

    `approve` lets a tool call wait for a person. `findings` belong to `redact`. `restore`: what was redacted in this
    run of these kinds is put back into this reply, or into the arguments of this call. `answers`: what is blocked is a
    call of a tool, which is not made, and the model goes on with the reason; else a block ends the agent's call.
    """

    action: Action
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    restore: frozenset[str] = frozenset()
    answers: bool = False


ALLOW = Decision("allow")


@record
class PolicyCall:
    """The agent call that a rule guards. `written` are the texts of it that the program's author wrote."""

    agent: str
    method: str
    model: str
    written: tuple[str, ...] = ()


@record
class ToolUse:
    """A call of a tool, or which method of it was called."""

    tool: str
    method: str
    args: JsonObject = field(default_factory=dict[str, Json])


class Examined:
    """A text at a point. `role` tells whose: system, user, assistant, tool.

    At the point `tool` it is the arguments of `use` as compact JSON; `before` are the tools that the run has had
    results of. At the point `output`, `sources` are the texts that the model had before it.
    """

    def __init__(
        self, point: Point, text: str, call: PolicyCall, *, role: str = "user", use: ToolUse | None = None,
        before: Collection[ToolUse] = (), sources: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.point: Point = point
        self.text = text
        self.call = call
        self.role = role
        self.use = use
        self.before = before
        self.sources = sources

    def with_text(self, text: str) -> Examined:
        """Another text in the same place."""
        return Examined(
            self.point, text, self.call, role=self.role, use=self.use, before=self.before, sources=self.sources
        )

    @cached_property
    def views(self) -> Views:
        """The text as it is meant, whatever it is disguised as; made when a rule first asks."""
        return views_of(self.text)


class PolicyRule(Protocol):
    """One rule of one policy, made once a run and shared by all agents that require the policy."""

    @property
    def points(self) -> frozenset[Point]:
        """Where the rule is evaluated."""
        ...

    def evaluate(self, examined: Examined) -> Decision:
        """Decide about a text. Raising counts as a block that names the rule (fail closed)."""
        ...


class AskModel(Protocol):
    """Asks the judge model of a rule."""

    def __call__(self, system: str, text: str, schema: JsonObject | None = None) -> Awaitable[str]:
        """The reply to a system and a user message, as JSON of a schema where one is given. Raises HaloError."""
        ...


@runtime_checkable
class JudgedRule(Protocol):
    """A rule that a model decides, after all others have let the text pass: `evaluate` allows."""

    @property
    def judge_model(self) -> str:
        """The id of the model that is asked."""
        ...

    async def judge(self, examined: Examined, ask: AskModel) -> Decision:
        """Decide about a text, redacted already. Raising counts as a block."""
        ...


def as_judged(rule: PolicyRule) -> JudgedRule | None:
    """The rule, where a model decides it. What is asked at every text is answered without a look at the protocol."""
    return rule if hasattr(rule, "judge") and isinstance(rule, JudgedRule) else None


RuleFactory: TypeAlias = Callable[[JsonObject], PolicyRule]
"""Makes a rule from its arguments, by the catalogue's parameter names; values are JSON. Raises ConfigError."""

"""Policies around an agent call: every rule of every policy that the agent requires, on every text (spec 6).

At each point the rules that need no model decide first, each about the text as it came; then what they redact is
taken out; then, where nothing blocks, models are asked about what is left. All reasons are given. Fail closed: a rule
that raises blocks. Each decision is an event; what blocks or changes something is counted in `meta.violations`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from halo_lang.records import record
from halo_runtime.engine.events import PolicyDecided
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import PolicyViolation, ReplayError, ReplayMiss
from halo_runtime.models.base import Message
from halo_runtime.policies.base import (
    ALLOW,
    Decision,
    Examined,
    Finding,
    Point,
    PolicyCall,
    PolicyRule,
    as_judged,
)

_KIND: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*")
"""What placeholders are called: `[CREDIT_CARD_1]`."""


@record
class BoundRule:
    """A rule of a declared policy; `text` is the rule as written, for reports. `audited`: it decides nothing.

    `told` is what reasons call it, where its own words may be those that nobody is to see.
    """

    policy: str
    text: str
    rule: PolicyRule
    audited: bool = False
    told: str | None = None

    def reason(self, decision: Decision) -> str:
        """Why a text is blocked, in words for people and models."""
        return f"policy {self.policy}, rule {self.told or self.text}: {decision.reason or 'blocked'}"


@record
class Objection:
    """A rule that wants a person to be asked first, and why."""

    bound: BoundRule
    reason: str


@record
class Verdict:
    """What came of a text: its redacted form, the reasons why it is blocked, and those to ask a person first.

    `restored` is the text with what was redacted put back, where a rule wants that; it is for nobody but the program
    or the tool. `is_unfit`: a rule refuses the text that looks at what is sent too, so it may not go to a model again.
    `answers`: the reasons are the answer to a call of a tool that may not be made (see Decision).
    """

    text: str
    restored: str
    reasons: tuple[str, ...] = ()
    approvals: tuple[Objection, ...] = ()
    is_unfit: bool = False
    answers: bool = False


async def examine(
    frame: Frame, path: str, rules: Sequence[BoundRule], examined: Examined, *,
    outside: bool = False, judged_at: str | None = None,
) -> Verdict:  # fmt: skip
    """Put a text through all rules of its point; judges are asked at `judged_at`, where `path` has several texts.

    `outside`: it comes from outside the call, so that what looks like a placeholder there is not one of this run's, and
    must not get the value behind it back.
    """
    held = [bound for bound in rules if examined.point in bound.rule.points]
    if not held:
        return Verdict(examined.text, examined.text)
    refused: list[tuple[BoundRule, Decision]] = []
    approvals: list[Objection] = []
    findings: list[Finding] = []
    restore: frozenset[str] = frozenset()
    for bound in held:
        decision = _decide(bound, examined)
        if as_judged(bound.rule) is not None and decision == ALLOW:
            continue  # it has not decided yet
        _report(frame, path, bound, examined, decision)
        if bound.audited:
            continue
        if decision.action == "block":
            refused.append((bound, decision))
        elif decision.action == "approve":
            approvals.append(Objection(bound, bound.reason(decision)))
        findings += decision.findings
        restore |= decision.restore
    vault = frame.run.vault
    known = vault.size
    text = vault.redacted(examined.text, findings, restore if outside else ())
    if not refused:
        refused += await _judged(frame, path, judged_at or path, held, examined.with_text(text))
    restored = vault.restored(text, known, restore) if restore else text
    reasons = tuple(bound.reason(decision) for bound, decision in refused)
    is_unfit = any("input" in bound.rule.points for bound, _ in refused)
    answers = bool(refused) and all(decision.answers for _, decision in refused)
    return Verdict(text, restored, reasons, tuple(approvals), is_unfit, answers)


class Passed:
    """The messages of one call that rules have looked at, as they left them; they are not looked at again.

    `own` are those that the call itself has added: the placeholders in them are this run's.
    """

    def __init__(self) -> None:
        self._passed: dict[int, Message] = {}
        self._own: dict[int, Message] = {}

    def add(self, message: Message) -> None:
        """A message has passed."""
        self._passed[id(message)] = message

    def own(self, message: Message) -> Message:
        """The message, as one that the call has added."""
        self._own[id(message)] = message
        return message

    def has(self, message: Message) -> bool:
        """Whether a message has passed."""
        return id(message) in self._passed

    def is_own(self, message: Message) -> bool:
        """Whether the call has added a message."""
        return id(message) in self._own


async def examine_messages(
    frame: Frame, path: str, rules: Sequence[BoundRule], messages: Sequence[Message], call: PolicyCall,
    passed: Passed | None = None,
) -> tuple[Message, ...]:  # fmt: skip
    """All that is about to be sent as it may be sent. Raises PolicyViolation.

    Without `passed` they are another call's, and everything in them is looked at.
    """
    if not rules:
        return tuple(messages)
    sent: list[Message] = []
    for number, message in enumerate(messages):
        if passed is None or not passed.has(message):
            outside = passed is not None and not passed.is_own(message)
            message = await _examine_message(frame, path, number, rules, message, call, outside=outside)
        if passed is not None:
            passed.add(message)
        sent.append(message)
    return tuple(sent)


async def _examine_message(
    frame: Frame, path: str, number: int, rules: Sequence[BoundRule], message: Message, call: PolicyCall,
    *, outside: bool,
) -> Message:  # fmt: skip
    """A message with what it says and what it asks of tools as they may be sent. Raises PolicyViolation."""
    point: Point = "result" if message.role == "tool" else "input"
    texts: list[str] = []
    for part, text in enumerate((message.content, *(asked.arguments for asked in message.tool_calls))):
        examined, place = Examined(point, text, call, role=message.role), f"{path}/message{number}.{part}"
        verdict = await examine(frame, path, rules, examined, outside=outside, judged_at=place)
        if verdict.reasons:
            raise refuse(verdict.reasons, call)
        texts.append(verdict.text)
    content, *arguments = texts
    asked = tuple(replace(one, arguments=text) for one, text in zip(message.tool_calls, arguments, strict=True))
    if content == message.content and asked == message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=asked)


def refuse(reasons: Sequence[str], call: PolicyCall) -> PolicyViolation:
    """The error for a blocked text."""
    return PolicyViolation(f"{call.agent}.{call.method} was blocked by {'; '.join(reasons)}")


def report(
    frame: Frame, path: str, policy: str, rule: str, point: Point, decision: Decision, call: PolicyCall,
    *, audited: bool = False,
) -> None:  # fmt: skip
    """Tell what a rule has decided, and count it where it stops or changes something; `audited`: where it would."""
    run, action = frame.run, decision.action
    if audited and action != "allow":
        action = "audit"
    if run.emitter.active:
        run.emitter.emit(PolicyDecided(run.run_id, path, policy, rule, point, action, decision.reason))
    if action not in ("allow", "approve"):
        told = {"policy": policy, "rule": rule, "point": point, "action": action}
        frame.strand.violations.append({**told, "agent": call.agent, "method": call.method})


def _report(frame: Frame, path: str, bound: BoundRule, examined: Examined, decision: Decision) -> None:
    report(
        frame, path, bound.policy, bound.text, examined.point, decision, examined.call, audited=bound.audited
    )  # fmt: skip


def _decide(bound: BoundRule, examined: Examined) -> Decision:
    try:
        return _usable(bound.rule.evaluate(examined), examined)
    except Exception as error:  # a rule may be a stranger's code; one that cannot decide must not let anything pass
        return _failed(error)


async def _judged(
    frame: Frame, path: str, place: str, held: Sequence[BoundRule], examined: Examined
) -> list[tuple[BoundRule, Decision]]:
    """What the rules refuse that a model decides. A budget that has no room for the judge raises PolicyViolation."""
    refused: list[tuple[BoundRule, Decision]] = []
    for number, bound in enumerate(held):
        rule = as_judged(bound.rule)
        if rule is None:
            continue
        from halo_runtime.engine.judging import asking  # only policies that ask a model pay for it

        ask = asking(frame, f"{place}/{examined.point}/judge{number}", bound.policy, rule.judge_model, examined)
        try:
            decision = _usable(await rule.judge(examined, ask), examined, judged=True)
        except (PolicyViolation, ReplayError, ReplayMiss):
            raise
        except Exception as error:
            decision = _failed(error)
        _report(frame, path, bound, examined, decision)
        if decision.action == "block" and not bound.audited:
            refused.append((bound, decision))
    return refused


def _usable(decision: object, examined: Examined, *, judged: bool = False) -> Decision:
    """A decision that can be carried out. Raises TypeError or ValueError for any other: what it meant is not known."""
    if not isinstance(decision, Decision):
        raise TypeError("no decision")
    doable = {"allow", "block"} if judged else {"allow", "block", "redact"}
    if decision.action not in doable and not (decision.action == "approve" and examined.point == "tool"):
        raise ValueError("a decision that is none here")
    if any(not 0 <= finding.start < finding.end <= len(examined.text) for finding in decision.findings):
        raise ValueError("a finding outside the text")
    kinds = {*decision.restore, *(finding.kind for finding in decision.findings)}
    if not all(map(_KIND.fullmatch, kinds)):
        raise ValueError("a kind that makes no placeholder")
    return decision


def _failed(error: Exception) -> Decision:
    return Decision("block", f"the rule itself failed ({type(error).__name__})")

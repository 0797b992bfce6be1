"""Policies around an agent call: every rule of every policy that the agent requires, on every text (spec 6).

Fail closed: a rule that raises blocks. Each decision is an event; blocks are counted in `meta.violations`.
"""

from __future__ import annotations

from collections.abc import Sequence

from halo_lang.records import record
from halo_runtime.engine.events import PolicyDecided
from halo_runtime.engine.frame import Frame
from halo_runtime.errors import PolicyViolation
from halo_runtime.policies.base import Decision, Point, PolicyCall, PolicyRule


@record
class BoundRule:
    """A rule of a declared policy; `text` is the rule as written, for reports."""

    policy: str
    text: str
    rule: PolicyRule


@record
class Verdict:
    """What came of a text: its redacted form, or the reasons why it is blocked."""

    text: str
    reasons: tuple[str, ...] = ()


def examine(frame: Frame, path: str, rules: Sequence[BoundRule], point: Point, text: str, call: PolicyCall) -> Verdict:
    """Put `text` through all rules of `point`, in the order written; redactions add up, all reasons are given."""
    reasons: list[str] = []
    for bound in rules:
        if point not in bound.rule.points:
            continue
        decision = _decide(bound, point, text, call)
        report(frame, path, bound.policy, bound.text, point, decision, call)
        if decision.action == "block":
            reasons.append(f"policy {bound.policy}, rule {bound.text}: {decision.reason or 'blocked'}")
        elif decision.text is not None:
            text = decision.text
    return Verdict(text, tuple(reasons))


def refuse(reasons: Sequence[str], call: PolicyCall) -> PolicyViolation:
    """The error for a blocked text."""
    return PolicyViolation(f"{call.agent}.{call.method} was blocked by {'; '.join(reasons)}")


def _decide(bound: BoundRule, point: Point, text: str, call: PolicyCall) -> Decision:
    try:
        return bound.rule.evaluate(point, text, call)
    except Exception as error:  # a rule may be a stranger's code; one that cannot decide must not let anything pass
        return Decision("block", f"the rule itself failed ({type(error).__name__})")


def report(frame: Frame, path: str, policy: str, rule: str, point: Point, decision: Decision, call: PolicyCall) -> None:
    """Tell what a rule has decided, and count it where it stops or changes something."""
    run = frame.run
    if run.emitter.active:
        run.emitter.emit(PolicyDecided(run.run_id, path, policy, rule, point, decision.action, decision.reason))
    if decision.action != "allow":
        told = {"policy": policy, "rule": rule, "point": point, "action": decision.action}
        frame.strand.violations.append({**told, "agent": call.agent, "method": call.method})

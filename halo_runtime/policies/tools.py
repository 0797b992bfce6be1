"""Rules about the tools that an agent chooses: which may be called, and which a person must allow (spec 6).

They answer the model, not the user: a call that is refused comes back to it as an error (decision 27).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule, ToolUse

_TOOL: Final[frozenset[Point]] = frozenset({"tool"})


@record
class ToolPattern:
    """`Shell`, or `Shell.run` in either spelling of its method."""

    tool: str
    method: str | None

    @classmethod
    def of(cls, written: str) -> ToolPattern:
        """A pattern as a policy writes it."""
        tool, dot, method = written.partition(".")
        return cls(tool, _folded(method) if dot else None)

    def fits(self, use: ToolUse | None) -> bool:
        """Whether a call is one of those."""
        return use is not None and use.tool == self.tool and self.method in (None, _folded(use.method))


@record
class Allowed:
    """`AllowTools(…)`: no tools but these."""

    tools: Sequence[ToolPattern]
    points: frozenset[Point] = _TOOL

    def evaluate(self, examined: Examined) -> Decision:
        """Block a call of another tool."""
        if any(pattern.fits(examined.use) for pattern in self.tools):
            return ALLOW
        return Decision("block", f"{_named(examined)} may not be called", answers=True)


@record
class Denied:
    """`DenyTools(…)`: none of these tools."""

    tools: Sequence[ToolPattern]
    points: frozenset[Point] = _TOOL

    def evaluate(self, examined: Examined) -> Decision:
        """Block a call of such a tool."""
        if any(pattern.fits(examined.use) for pattern in self.tools):
            return Decision("block", f"{_named(examined)} may not be called", answers=True)
        return ALLOW


@record
class Approved:
    """`Approve(…)`: a person is asked before each of these calls."""

    tools: Sequence[ToolPattern]
    points: frozenset[Point] = _TOOL

    def evaluate(self, examined: Examined) -> Decision:
        """Let a call of such a tool wait for an answer."""
        if any(pattern.fits(examined.use) for pattern in self.tools):
            return Decision("approve", f"{_named(examined)} needs approval")
        return ALLOW


@record
class Tainted:
    """`Taint(from: A, to: B)`: once the run has a result of A, whoever called it, calls of B need approval.

    Not only what was made from that result: an agent that has read it may have been told to hide where it got what it
    does from.
    """

    source: ToolPattern
    sink: ToolPattern
    points: frozenset[Point] = _TOOL

    def evaluate(self, examined: Examined) -> Decision:
        """Let a call of the sink wait for an answer after a result of the source."""
        if self.sink.fits(examined.use) and any(self.source.fits(use) for use in examined.before):
            source = f"{self.source.tool}.{self.source.method}" if self.source.method else self.source.tool
            return Decision("approve", f"{_named(examined)} needs approval after a result of {source}")
        return ALLOW


def allow_tools(args: JsonObject) -> PolicyRule:
    """`AllowTools(A, B.method)`."""
    return Allowed(_patterns(args))


def deny_tools(args: JsonObject) -> PolicyRule:
    """`DenyTools(A, B.method)`."""
    return Denied(_patterns(args))


def approve(args: JsonObject) -> PolicyRule:
    """`Approve(A, B.method)`."""
    return Approved(_patterns(args))


def taint(args: JsonObject) -> PolicyRule:
    """`Taint(from: A, to: B)`."""
    return Tainted(ToolPattern.of(args["from"]), ToolPattern.of(args["to"]))


def _patterns(args: JsonObject) -> tuple[ToolPattern, ...]:
    return tuple(map(ToolPattern.of, args["tools"]))


def _named(examined: Examined) -> str:
    use = examined.use
    return "the tool" if use is None else f"{use.tool}.{use.method}"


def _folded(method: str) -> str:
    """One spelling of `merge_pull` and `mergePull`."""
    return method.replace("_", "").lower()

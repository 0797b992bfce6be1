"""Rules about the shape of a reply: its length, a pattern it must hold, JSON (spec 6, decision 26)."""

from __future__ import annotations

from collections.abc import Callable

from halo_lang.records import record
from halo_runtime.errors import ConfigError, SchemaValidationError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule
from halo_runtime.policies.patterns import compiled, is_found
from halo_runtime.replies import parse_reply
from halo_runtime.schemas import SchemaType


@record
class OutputRule:
    """A rule that looks at replies only. `complaint` says what is wrong with a text, or None."""

    complaint: Callable[[str], str | None]
    points: frozenset[Point] = frozenset({"output"})

    def evaluate(self, examined: Examined) -> Decision:
        """Block a reply with a complaint."""
        reason = self.complaint(examined.text)
        return ALLOW if reason is None else Decision("block", reason)


def max_length(args: JsonObject) -> PolicyRule:
    """`MaxLength(n)`: at most n characters (code points)."""
    limit = _count("MaxLength", args["n"])

    def complaint(text: str) -> str | None:
        return f"the reply has {len(text)} characters, at most {limit} are allowed" if len(text) > limit else None

    return OutputRule(complaint)


def min_length(args: JsonObject) -> PolicyRule:
    """`MinLength(n)`: at least n characters (code points)."""
    limit = _count("MinLength", args["n"])

    def complaint(text: str) -> str | None:
        return f"the reply has {len(text)} characters, at least {limit} are needed" if len(text) < limit else None

    return OutputRule(complaint)


def match(args: JsonObject) -> PolicyRule:
    """`Match("regex")`: the pattern is found somewhere in the reply. A search that takes too long refuses it."""
    pattern = compiled("Match", args["pattern"])

    def complaint(text: str) -> str | None:
        try:
            found = is_found(pattern, text)
        except TimeoutError:
            return f"the pattern {pattern.pattern} could not be searched for in time"
        return None if found else f"the reply does not match the pattern {pattern.pattern}"

    return OutputRule(complaint)


def require_json(args: JsonObject) -> PolicyRule:
    """`RequireJSON`: the reply is one JSON object or array; prose or a fence around it is tolerated."""
    return OutputRule(_no_json)


def require_schema(args: JsonObject) -> PolicyRule:
    """`RequireSchema(Name)`: the reply is JSON, prose or a fence around it tolerated, and fits the schema."""
    schema: SchemaType = args["schema"]

    def complaint(text: str) -> str | None:
        try:
            schema.check(parse_reply(text, json_asked=True).value)
        except SchemaValidationError as error:
            return error.message.replace("the output", "the reply", 1)
        return None

    return OutputRule(complaint)


def _no_json(text: str) -> str | None:
    if isinstance(parse_reply(text, json_asked=True).value, str):
        return "the reply must be one JSON object or array"
    return None


def _count(rule: str, limit: Json) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ConfigError(f"{rule} takes a whole number of characters, got {limit!r}; correct the policy")
    return limit

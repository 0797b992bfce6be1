"""Regular expressions of policies, bounded in time and in what compiling them takes; `Block("regex")` (spec 6)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from halo_lang.records import record
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule

if TYPE_CHECKING:
    import regex

SEARCH_SECONDS: Final = 0.5
"""How long a pattern may search one text before the text is refused."""

MAX_LENGTH: Final = 2_000
MAX_REPETITIONS: Final = 100_000
"""Counted repetitions are written out when a pattern is compiled: `(a{3000}){3000}` would take gigabytes."""

_COUNT: Final = re.compile(r"(\)?)\{\s*(\d+)")
_EVERYWHERE: Final[frozenset[Point]] = frozenset({"input", "output", "tool", "result"})


def compiled(rule: str, pattern: Json) -> regex.Pattern[str]:
    """A rule's pattern, ready. Raises ConfigError for what is none, or is too large."""
    import regex  # only programs with such a rule pay for it

    try:
        if _is_too_large(pattern):
            raise ConfigError(
                f"{rule}: the pattern is too large ({pattern[:40]}…); make it shorter, with fewer repetitions"
            )
        return regex.compile(pattern)
    except (regex.error, TypeError, RecursionError) as error:
        raise ConfigError(f"{rule}: {pattern!r} is not a regular expression ({error}); correct the policy") from None


def is_found(pattern: regex.Pattern[str], text: str) -> bool:
    """Whether the pattern matches anywhere. Raises TimeoutError where that cannot be told in SEARCH_SECONDS."""
    return pattern.search(text, timeout=SEARCH_SECONDS) is not None


def _is_too_large(pattern: str) -> bool:
    if len(pattern) > MAX_LENGTH:
        return True
    counts = [(bool(group), int(count)) for group, count in _COUNT.findall(pattern)]
    nested = math.prod(count for is_group, count in counts if is_group)
    return nested * max(1, sum(count for is_group, count in counts if not is_group)) > MAX_REPETITIONS


@record
class BlockPattern:
    """Refuses a text in which the pattern is found, however the text disguises it.

    Reasons do not say the pattern, for it may be the very words that nobody is to see.
    """

    pattern: regex.Pattern[str]
    points: frozenset[Point] = _EVERYWHERE

    def evaluate(self, examined: Examined) -> Decision:
        """Search every view of the text."""
        try:
            found = any(is_found(self.pattern, view.text) for view in examined.views)
        except TimeoutError:
            return Decision("block", "a pattern could not be searched for in time")
        return Decision("block", "the text holds what a pattern stops") if found else ALLOW


def block_pattern(kind: str, args: JsonObject) -> PolicyRule:
    """`Block("regex")`: a part of `Block(…)`."""
    return BlockPattern(compiled("Block", kind))

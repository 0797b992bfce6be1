"""`RequireCitation`: a reply names the sources that it rests on, and they are there (spec 6).

A citation is the id of a source in square brackets: `[7]`, `[doc-3]`, `[a; b]`, `[^1]`. The ids of sources are those
that stand in what the model was given besides the author's own words: in brackets, or as a field `id` of JSON. A JSON
reply cites in its strings, or by a list under `citations` or `sources`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule
from halo_runtime.replies import parse_reply

_POINTS: Final[frozenset[Point]] = frozenset({"output"})
_ID: Final = r"[\w.:/#@-]{1,64}"
_BRACKETS: Final = re.compile(rf"\[\^?({_ID}(?:\s?[,;]\s?\^?{_ID}){{0,19}})\](?!\()")
_BETWEEN: Final = re.compile(r"[\s,;^]+")
_FIELD: Final = re.compile(r'"id"\s?:\s?(?:"([^"\\]{1,64})"|(-?\d{1,19})(?![\d.]))')
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^\s*[-*] \[[ xX]\]", re.DOTALL | re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"[A-Z][A-Z_]*_[1-9][0-9]*|REDACTED")
"""What stands for a redacted value is no source."""

_LISTS: Final = ("citations", "sources")


@record
class RequireCitation:
    """Refuses a reply without a citation, or with one that names no source."""

    points: frozenset[Point] = _POINTS

    def evaluate(self, examined: Examined) -> Decision:
        """Hold what is cited against what was given."""
        cited = list(dict.fromkeys(_cited(examined.text)))
        if not cited:
            return Decision("block", "the reply cites no source; name the ids of its sources in brackets, as in [7]")
        known = set(_ids(_given(examined)))
        if not known:
            return Decision("block", "the agent was given no source with an id, so nothing can be cited")
        wrong = sum(one not in known for one in cited)
        if wrong:
            return Decision("block", f"{wrong} of {len(cited)} cited sources are none of those that were given")
        return ALLOW


def require_citation(args: JsonObject) -> PolicyRule:
    """`RequireCitation`."""
    return RequireCitation()


def _given(examined: Examined) -> Iterator[str]:
    """The texts that the model had, without the author's."""
    for text in examined.sources:
        for written in examined.call.written:
            text = text.replace(written, "\n") if written else text
        yield text


def _ids(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _in_brackets(text)
        for found in _FIELD.finditer(text):
            yield found[1] or found[2]


def _cited(text: str) -> Iterator[str]:
    value = parse_reply(text, json_asked=False).value
    yield from _in_brackets(text) if isinstance(value, str) else _in_json(value)


def _in_json(value: Json) -> Iterator[str]:
    """Citations of a JSON value; its depth is bounded by the parser."""
    if isinstance(value, str):
        yield from _in_brackets(value)
    elif is_list(value):
        for item in value:
            yield from _in_json(item)
    elif is_object(value):
        for name, item in value.items():
            if name in _LISTS and is_list(item):
                yield from map(_listed, item)
            else:
                yield from _in_json(item)


def _listed(item: Json) -> str:
    """The id that an item of a list of sources is, or has; what has none is a citation of nothing."""
    found = item.get("id") if is_object(item) else item
    return str(found).strip("[]^ ")


def _in_brackets(text: str) -> Iterator[str]:
    for found in _BRACKETS.finditer(_CODE.sub(" ", text)):
        for one in _BETWEEN.split(found[1]):
            if one and not _PLACEHOLDER.fullmatch(one):
                yield one

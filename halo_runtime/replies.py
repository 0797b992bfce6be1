"""What value an agent's reply is: text, or the JSON object or array that it carries (spec 2.1).

Everything here takes linear time and never fails, whatever the model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from halo_runtime.json_types import Json
from halo_runtime.values import parse_json

_WORD_JSON: Final = re.compile(r"\bjson\b", re.IGNORECASE)
_INFO_WORD: Final = re.compile(r"[ \t]*+[^\s`{\[]*+")
# A bracket that JSON can follow; all others are prose.
_OPENING: Final = re.compile(r'\{(?=\s*+["}])|\[(?=\s*+(?:[\[\]{"0-9-]|(?:true|false|null)\b))')
# A string ends with its line at the latest: JSON allows no line break in it.
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|[{}\[\]]')


class Reply(NamedTuple):
    """The value of a reply, and what there is to say where JSON was asked for and none could be taken."""

    value: Json
    warning: str | None = None


def parse_reply(text: str, json_asked: bool) -> Reply:
    """The JSON object or array that is the whole reply, bare or in one fence; else the text exactly as it came.

    Where JSON was asked for, prose around the one outermost object or array is tolerated.
    """
    found = _whole(text)
    if found is not None:
        return Reply(found)
    return _in_prose(text) if json_asked else Reply(text)


def asks_for_json(static_texts: Iterable[str]) -> bool:
    """Whether the word JSON stands in a call's literals or the system prompt, as written in the program."""
    return any(_WORD_JSON.search(text) for text in static_texts)


def _whole(text: str) -> Json:
    body = text.strip()
    if body.startswith("```"):
        body = _unfenced(body)
    if body[:1] + body[-1:] not in ("{}", "[]"):
        return None
    return _parsed(body)


def _unfenced(body: str) -> str:
    """What is inside a fence: three backticks or more, an info word, and as many backticks at the end."""
    inner = body.strip("`")
    ticks = len(body) - len(body.lstrip("`"))
    if len(body) - len(inner) != 2 * ticks:
        return ""
    return _INFO_WORD.sub("", inner, count=1).strip()


def _parsed(text: str) -> Json:
    """The object or array that `text` is, None where it is none: no container is None."""
    try:
        return parse_json(text)
    except ValueError:
        return None


def _in_prose(text: str) -> Reply:
    found: list[Json] = []
    broken = False
    opening = _OPENING.search(text)
    while opening is not None and len(found) < 2:
        end = _closing(text, opening.start())
        value = _parsed(text[opening.start() : end])
        # What is inside a broken object is not what was asked for: it is passed over whole.
        if value is None:
            broken = True
        else:
            found.append(value)
        opening = _OPENING.search(text, end)
    if len(found) == 1:
        return Reply(found[0])
    return Reply(text, _warning(len(found), broken))


def _closing(text: str, start: int) -> int:
    """The end of the object or array that opens at `start`; the text's end where it is never closed."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        bracket = token[0]
        if bracket in "{[":
            depth += 1
        elif bracket in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _warning(found: int, broken: bool) -> str | None:
    if found:
        return "the reply holds more than one JSON value, so it is kept as text; ask for exactly one"
    if broken:
        return "the reply's JSON is broken or cut off, so it is kept as text; a larger max_tokens may help"
    return None

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
_OPENING: Final = re.compile(r"[{\[]")
# A string ends with its line at the latest: JSON allows no line break in it.
_STRING: Final = r'"(?:[^"\\\n]|\\.)*+"?'
_STRING_OR_BRACKET: Final = re.compile(rf"{_STRING}|[{{}}\[\]]")
# What tells JSON that came out broken from a bracket of the prose.
_BEGINS_AS_JSON: Final = re.compile(rf'\{{\s*+(?:{_STRING}\s*+:|\}})|\[\s*+(?:[\[\]{{"0-9-]|(?:true|false|null)\b)')


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
    spans, cut_off = _bracketed(text)
    found: list[Json] = []
    broken = cut_off
    for start, end in spans:
        value = _parsed(text[start:end])
        if value is not None:
            found.append(value)
        elif _BEGINS_AS_JSON.match(text, start):
            broken = True
    if len(found) == 1 and not cut_off:
        return Reply(found[0])
    return Reply(text, _warning(len(found) > 1, broken))


def _bracketed(text: str) -> tuple[list[tuple[int, int]], bool]:
    """The outermost pairs of brackets, and whether the text ends inside of what began as JSON.

    What is inside a pair never counts by itself, be the pair JSON or not: a part of a broken object is not what was
    asked for. A bracket of the prose that nothing closes is no more than a character.
    """
    spans: list[tuple[int, int]] = []
    opened: list[tuple[int, int]] = []  # where, and how many spans stand before
    token = _OPENING.search(text)
    while token is not None:
        if token[0] in "{[":
            opened.append((token.start(), len(spans)))
        elif token[0] in "}]":
            start, before = opened.pop()
            spans[before:] = [(start, token.end())]
        # A quotation mark begins a string inside of brackets only.
        token = (_STRING_OR_BRACKET if opened else _OPENING).search(text, token.end())
    for start, before in opened:
        if _BEGINS_AS_JSON.match(text, start):
            return spans[:before], True
    return spans, False


def _warning(several: bool, broken: bool) -> str | None:
    if several:
        return "the reply holds more than one JSON value, so it is kept as text; ask for exactly one"
    if broken:
        return "the reply's JSON is broken or cut off, so it is kept as text; a larger max_tokens may help"
    return None

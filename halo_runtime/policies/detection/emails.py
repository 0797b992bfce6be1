"""E-mail addresses, also as people write them for machines not to see: `ann (at) example dot com`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from halo_runtime.policies.detection.base import Match

MAX_LOCAL: Final = 64
MAX_DOMAIN: Final = 253

_LOCAL: Final = re.compile(r"[\w.%+'-]+")
_DOMAIN: Final = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+(?:xn--[a-z0-9-]{2,59}|[^\W\d_]{2,63})", re.IGNORECASE)
_EDGE: Final = ".%+'-_"
_FILES: Final = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".css", ".js", ".ts", ".py", ".dart")
"""`logo@2x.png` is a file, `pkg@1.x.js` a version."""


def emails(text: str) -> Iterator[Match]:
    """All addresses in a text."""
    at = text.find("@")
    while at >= 0:
        if text[at + 1 : at + 2].isalnum() and at and (text[at - 1].isalnum() or text[at - 1] in _EDGE):
            found = _around(text, at)
            if found is not None:
                yield found
        at = text.find("@", at + 1)
    yield from _written(text)


def _around(text: str, at: int) -> Match | None:
    """The address around the sign at `at`."""
    local = _LOCAL.match(text[max(0, at - MAX_LOCAL) : at][::-1])
    name = "" if local is None else local[0][::-1].lstrip(_EDGE)
    domain = _DOMAIN.match(text, at + 1, at + 1 + MAX_DOMAIN)
    if not name or domain is None:
        return None
    end = domain.end()
    follows = text[end : end + 1]
    if follows == "(" or (name == "git" and follows == ":") or domain[0].lower().endswith(_FILES):
        return None  # a call, the address of a repository, a file
    return Match(at - len(name), end, f"{name}@{domain[0]}".lower())


# --- in words -----------------------------------------------------------------------------------------------------

_TOP: Final = (
    "com|net|org|edu|gov|mil|int|info|biz|io|co|me|dev|app|ai|eu|de|at|ch|li|fr|es|pt|it|nl|be|lu|dk|se|no|fi|is|ie|uk"
    "|pl|cz|sk|hu|ro|bg|gr|tr|ru|ua|us|ca|mx|br|ar|cl|pe|au|nz|jp|cn|kr|tw|hk|sg|in|id|th|vn|my|ph|za|ng|ke|eg|ma|sa"
    "|ae|il|ir|pk|example|test"
)
_DOT: Final = (
    r"(?:\s{0,3}\.\s{0,3}|\s{0,3}[\[({<]\s?(?i:\.|dot|punkt|point|punto)\s?[\])}>]\s{0,3}"
    r"|\s{1,3}(?i:dot|punkt|point|punto)\s{1,3})"
)
_WORD_AT: Final = re.compile(r"[\[({<]\s?(?:[aA][tT]|ät)\s?[\])}>]|(?<=\s)[aA][tT](?=\s)")
_CLOSES: Final = re.compile(r"\s?[\])}>]")
_OPENS: Final = ("[", "(", "{", "<")
_REST: Final = re.compile(
    rf"\s{{0,3}}(?P<domain>[^\W_][\w-]{{0,62}}+(?:{_DOT}[\w-]{{1,63}}+){{0,4}}?(?P<dot>{_DOT})(?i:{_TOP}))(?![\w-])"
)
_BEFORE: Final = re.compile(r"\s{0,3}(?P<word>[\w%+'.-]{1,64})(?:\s{1,3}(?i:tod)\s{1,3}(?P<first>[\w%+'-]{1,64}))?")
"""What stands before the sign, from right to left: `ann`, or `lee` and `ann` of `ann dot lee`."""
_DOTS: Final = re.compile(_DOT)
_PREPOSITIONAL: Final = """
    a all also and anyone available be buy but call chat check contact directly email everyone find go has here him
    his is it join just learn look looking mail me meet meeting message more now office on online only open order
    out page read reach register see shop site start store support team them there this time today us visit was we
    website were work works write you
"""
"""Words before `at` that make it a preposition: `buy it at shop dot com`."""


@cache
def _not_names() -> frozenset[str]:
    return frozenset(_PREPOSITIONAL.split())


_IN_BRACKETS: Final = re.compile(r"[\[({<]\s?(?:\.|[aA][tT]|ät)")
_DOT_WORDS: Final = ("dot", "punkt", "point", "punto")


def _signs(text: str) -> Iterator[tuple[int, int]]:
    """Where signs stand, those that are words or in brackets as a whole."""
    at = text.find("@")
    while at >= 0:
        begin = at - text[max(0, at - 1) : at].isspace()
        closes = _CLOSES.match(text, at + 1)
        if closes is not None and text[max(0, begin - 1) : begin] in _OPENS:
            yield begin - 1, closes.end()
        else:
            yield at, at + 1
        at = text.find("@", at + 1)
    small = text.lower()
    if _IN_BRACKETS.search(text) or any(word in small for word in _DOT_WORDS):  # no `ann at example.com`
        yield from (sign.span() for sign in _WORD_AT.finditer(text))


def _written(text: str) -> Iterator[Match]:
    """Addresses whose sign and dots are words, in brackets or apart."""
    for begin, end in _signs(text):
        sign = text[begin:end]
        rest = _REST.match(text, end)
        last = _BEFORE.match(text[max(0, begin - 2 * MAX_LOCAL) : begin][::-1])
        if rest is None or last is None or rest["domain"].lower().endswith(_FILES):
            continue
        word = last["word"][::-1].lstrip(_EDGE)
        plain = sign.lower() in ("at", "@")
        apart = sign == "@" and (text[begin - 1 : begin].isspace() or text[end : end + 1].isspace())
        if not word or (plain and ((not apart and not rest["dot"].strip(" .\n\t\r")) or word.lower() in _not_names())):
            continue  # "look at example.com", and what is found as it stands
        name = word if last["first"] is None else f"{last['first'][::-1]}.{word}"
        start = begin - (last.end("first" if last["first"] is not None else "word"))
        start += len(last["word"]) - len(word) if last["first"] is None else 0
        yield Match(start, rest.end(), f"{name}@{_DOTS.sub('.', rest['domain'])}".lower())

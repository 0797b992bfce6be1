"""Cutting a source text at its declarations, so that each can be parsed on its own.

A cut is made in front of a declaration's header or of its first directive: anywhere outside brackets, and inside
brackets where the header is the first thing on its line, so that a bracket left open takes only its own
declaration along. Strings and comments are stepped over; a string that is not closed ends with its line, a
triple-quoted one in front of the next header, a comment with the text.

Where the text is cut behind a cut never depends on what stands in front of it. Incremental parsing rests on that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from halo_lang.lexicon import COMMENT, DECLARATION_KEYWORDS, GAP, KEYWORDS, MAX_NESTING, MODEL, NAME, STRING, TRIPLE

_SPACE = r"\s*+"
_KEYWORD = rf"(?:{'|'.join(DECLARATION_KEYWORDS)})(?!\w)"


def _header(gap: str) -> str:
    """A declaration up to its colon or bracket; an agent's with the model, which may hold `//`."""
    return (
        rf"(?:(?:policy|tool|store)(?!\w){gap}{NAME}{gap}:"
        rf"|schema(?!\w){gap}{NAME}{gap}(\{{)"
        rf"|agent(?!\w){gap}{NAME}{gap}(\[){gap}(?:{MODEL})?"
        rf"|pipeline(?!\w){gap}{NAME}{gap}(\())"
    )


_DECLARATION = re.compile(_header(GAP))
_DIRECTIVE = re.compile(rf"@(?:{GAP}shadow{GAP}(\(){GAP}(?:{MODEL})?)?")
_ARGUMENTS = rf"(?:[^()\"'/]++|{STRING}|{COMMENT}|/)*+\)"
_DIRECTIVES = re.compile(
    rf"(?:@{GAP}(?:shadow{GAP}\({GAP}(?:{MODEL})?{_ARGUMENTS}|{NAME}{GAP}(?:\({_ARGUMENTS})?){GAP})++"
)
# A word right in front of an `@` makes it part of something else (an address), unless a declaration follows.
_DECORATED = re.compile(rf"{_DIRECTIVES.pattern}(?:agent|pipeline)(?!\w)")
# Behind these a word that could begin a declaration is a misused keyword in a pipeline.
_IN_PIPELINE = re.compile(rf"{GAP}[.,|~)]")

# Outside strings it has no meaning. Where a string was left behind in its middle its quotes stay what they were in it.
_ESCAPE = r'\\[\\"]'
# A line that could be a header with its keyword misspelt.
_UNKNOWN = rf"^[^\S\n]*+(?!{_KEYWORD}){NAME}[^\S\n]++{NAME}{GAP}[:(\[{{]"
# What is stepped over, as far as it goes: nothing in it counts for where the text is cut.
_PASSED = rf"""
    (?:(?!{_UNKNOWN})(?:
      [^\w."'()\[\]{{}}@/\\\n]++
    | (?!(?<![\w.]){_KEYWORD})[\w.]++
    | \n
    | (?!"{{3}})(?:{STRING}|["'][^\n]*+)
    | {COMMENT}
    | /(?!\*)
    | {_ESCAPE}
    | \\
    ))*+
"""
_TOKEN = re.compile(
    rf"""
    {_PASSED}(?:
      (?P<open>[(\[{{]++)
    | (?P<close>[)\]}}]++)
    | (?P<triple>{TRIPLE})
    | (?P<word>{_KEYWORD})
    | ^[^\S\n]*+(?P<unknown>{NAME})
    | (?P<at>@)
    | (?P<unclosed>"{{3}})
    | (?P<comment>/\*)
    )""",
    re.VERBOSE | re.MULTILINE,
)
_STRING_OR_COMMENT = re.compile(rf"""{STRING}|{COMMENT}|{_ESCAPE}|(?P<unclosed>"{{3}})|["'][^\n]*+|(?P<comment>/\*)""")


class Piece(NamedTuple):
    """The text of one unit."""

    start: int
    end: int
    too_deep: bool
    """Its brackets go too deep to parse it."""
    unsettled: bool
    """A triple-quoted string in it holds a header or has no end: more quotes behind the unit could move its end."""


class _Opening(NamedTuple):
    """What begins a unit, or goes on with the unit that its directives began."""

    start: int
    end: int
    depth: int
    directive: bool


def cut(text: str, start: int = 0) -> Iterator[Piece]:
    """The units of `text` from `start` on, where one must begin; joined they are the text."""
    depth, too_deep, unsettled, directives, position = 0, False, False, False, start
    tail = _Tail(text)
    while match := _TOKEN.match(text, position):
        position = match.end()
        match match.lastgroup:
            case "open":
                depth += position - match.start("open")
            case "close":
                depth = max(0, depth - (position - match.start("close")))
            case "triple":
                if "\n" in match["triple"] and (header := _unindented().search(text, match.start("triple"), position)):
                    unsettled = True
                    if tail.has_unclosed(position):
                        depth, position = 0, header.start()
            case "comment":
                break
            case "unclosed":
                depth, unsettled, position = 0, True, _resume(text, position)
            case _:
                if opening := _opening(text, match, depth):
                    directives = directives and (
                        opening.directive or _DIRECTIVES.fullmatch(text, start, opening.start) is not None
                    )
                    if opening.start > start and not directives:
                        yield Piece(start, opening.start, too_deep, unsettled)
                        start, too_deep, unsettled = opening.start, False, False
                    depth, position, directives = opening.depth, opening.end, opening.directive
        if depth > MAX_NESTING:
            depth, too_deep, position = 0, True, _resume(text, position)
    if start < len(text):
        yield Piece(start, len(text), too_deep, unsettled)


class _Tail:
    """Whether a triple-quoted string has no end further on.

    If so, the first such string that holds a header is taken for the one whose end was forgotten: it begins in
    front of declarations, and all quotes behind it would be read the wrong way round.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[int, bool] = {}
        """The answer at the beginning of each string and comment that was passed."""

    def has_unclosed(self, position: int) -> bool:
        """The answer at the end of a string. It follows from the text behind that alone, however often it was asked."""
        passed: list[int] = []
        answer = False
        for match in _STRING_OR_COMMENT.finditer(self._text, position):
            # Whoever comes to the beginning of a string that was passed goes on as then, so the work stays linear.
            if match.start() in self._known:
                answer = self._known[match.start()]
                break
            passed.append(match.start())
            if match.lastgroup:
                answer = match.lastgroup == "unclosed"
                break
        self._known.update(dict.fromkeys(passed, answer))
        return answer


@lru_cache(256)
def _is_misspelt(word: str) -> bool:
    """Whether `word` was probably meant to be a declaration's keyword."""
    from difflib import get_close_matches  # only a text with mistakes needs it

    return bool(get_close_matches(word.lower(), DECLARATION_KEYWORDS, 1, 0.7))


def _opening(text: str, match: re.Match[str], depth: int) -> _Opening | None:
    """The declaration or directive that begins at the match, if one does there at this depth."""
    kind = match.lastgroup or ""
    at, outside = match.start(kind), depth == 0
    first = kind != "unknown" and _leads(text, at)
    if not (outside or first):
        return None
    if kind == "at":
        behind_word = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
        found = None if behind_word and not _DECORATED.match(text, at) else _DIRECTIVE.match(text, at)
        return _Opening(at, found.end(), found.lastindex is not None, True) if found else None
    if kind == "unknown":
        word, indented = match[kind], at > 0 and text[at - 1] != "\n"
        misspelt = word not in KEYWORDS and (not indented or _is_misspelt(word))
        return _Opening(at, match.end(), 0, False) if misspelt else None
    if found := _DECLARATION.match(text, at):
        return _Opening(at, found.end(), found.lastindex is not None, False)
    incomplete = first and outside and not _IN_PIPELINE.match(text, match.end())
    return _Opening(at, match.end(), 0, False) if incomplete else None


def _leads(text: str, at: int) -> bool:
    """Whether an offset is the first on its line, but for white space."""
    while at > 0 and text[at - 1] != "\n":
        at -= 1
        if not text[at].isspace():
            return False
    return True


def _resume(text: str, position: int) -> int:
    """Where the next header or directive stands that leads its line, behind what cannot be read."""
    found = _leading().search(text, position)
    return found.start() if found else len(text)


# These patterns run over text of unknown state. They take no comment for a gap, as each one without an end would be
# followed to the end of the text.


@cache
def _leading() -> re.Pattern[str]:
    return re.compile(rf"^[^\S\n]*+(?={_header(_SPACE)}|@{NAME})", re.MULTILINE)


@cache
def _unindented() -> re.Pattern[str]:
    return re.compile(rf"^{_header(_SPACE)}", re.MULTILINE)

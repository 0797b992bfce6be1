"""What can still be used of a declaration that does not parse, and its mistakes, one diagnostic each.

A broken pipeline is read again in parts: its head, its start value and each stage. The parts that can be read make
up the pipeline, so the checks see all that was meant apart from the broken part. Of another broken declaration the
name is kept, so that its users are not blamed.

The edit that a mistake suggests is offered only where it is proven: once it is made, the part can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias, cast

from halo_lang import nodes
from halo_lang.automaton import Stopped
from halo_lang.builder import Head, Refusal
from halo_lang.diagnostics import Diagnostic, Fix
from halo_lang.grammar import read
from halo_lang.lexical import first_mistake, marks, open_comment
from halo_lang.lexicon import COMMENT, DECLARATION_KEYWORDS, GAP, NAME, STRING, UNCLOSED
from halo_lang.program import Unit
from halo_lang.source import Span
from halo_lang.syntax_errors import explain
from halo_lang.trivia import code_end

_DECLARED = re.compile(
    rf"{STRING}|{COMMENT}|{UNCLOSED}|(?<![\w.@])(?P<keyword>{'|'.join(DECLARATION_KEYWORDS)})(?!\w){GAP}(?P<name>{NAME})"
)
_MISSPELT = re.compile(rf"(?:{NAME}){GAP}(?P<name>{NAME})")
# At the start of a line, behind whatever stands in front of it by mistake.
_MEANT = re.compile(rf"^(?:[^\s\w@]++|(?:\S++[^\S\n]++){{1,3}}?)[^\S\n]*+({NAME})[^\S\n]*+[:\[({{]", re.MULTILINE)
# Begins with a plain character, which is found far faster than `^`: this goes over the whole rest of a file.
_HIDDEN = re.compile(rf"\n[^\S\n]*+(?:{'|'.join(DECLARATION_KEYWORDS)})(?!\w)[^\S\n]++({NAME})")
_GAP = re.compile(GAP)
_MOST_MISTAKES = 50
_UNEXPECTED, _UNCLOSED = "HL102", "HL105"
_PARTNER: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING = tuple(_PARTNER.values())
# Brackets that group, not those of calls.
_NESTED = re.compile(r"(?<!\w)\(|\[")

_FRAMES: Final = {
    # A head without its colon has swallowed the start value.
    "head": (("", " null"), ("", "")),
    "value": (("pipeline _() -> _: ", ""),),
    "stage": (("pipeline _() -> _: ", ""),),
}
"""What may stand around a part so that it is a whole: an edit may well make two parts of one."""
_MOST_EDITS = 6

Reads: TypeAlias = Callable[[str, Span, str], Any]
"""What a part of a text is by a rule of the grammar; a Diagnostic where it is not."""


def attempt(text: str, span: Span, rule: str) -> Any:
    """What a part of `text` is by a rule of the grammar; a Diagnostic, with a fix if one is proven, where it is not."""
    part = _attempt(text, span, rule)
    if not isinstance(part, Diagnostic):
        return part
    if part.code == _UNCLOSED:
        return replace(part, fix=_closing_edit(part, text, span, rule))
    if part.fix is None or _is_proven(part.fix, text, span, rule):
        return part
    return replace(part, fix=None)


def _closing_edit(unclosed: Diagnostic, text: str, span: Span, rule: str) -> Fix | None:
    """The edit that closes a bracket at the end of its line or of the part, if one of the two and no other place can
    be meant."""
    start = unclosed.span.start
    line_end = text.find("\n", start, span.end)
    ends = {end for end in (line_end, span.end) if end != -1}
    places = {start + code_end(text[start:end]) for end in ends}
    edits = (Fix(Span(place, place), _PARTNER[text[start]]) for place in places if _is_flat(text[start + 1 : place]))
    proven = [edit for edit in edits if _is_proven(edit, text, span, rule)]
    return proven[0] if len(proven) == 1 else None


def _is_flat(text: str) -> bool:
    """Whether nothing in brackets has brackets of its own: else it may be those that were meant to be closed."""
    return _NESTED.search(text) is None


def _is_proven(fix: Fix, text: str, span: Span, rule: str) -> bool:
    """Whether the part can be read once the edit is made."""
    whole_rule = "declaration" if rule in _FRAMES else rule
    for front, back in _FRAMES.get(rule, (("", ""),)):
        whole = front + text[span.start : span.end] + back
        if _can_be_read(whole, Fix(fix.span.shifted(len(front) - span.start), fix.text), whole_rule):
            return True
    return False


def _can_be_read(text: str, edit: Fix, rule: str) -> bool:
    """Whether `text` can be read after the edit, and after others where there is more to mend."""
    for _ in range(_MOST_EDITS):
        text = f"{text[: edit.span.start]}{edit.text}{text[edit.span.end :]}"
        edits = [mistake.fix for mistake in _mistakes(text, rule)]
        if not edits:
            return True
        following, *others = edits
        if following is None or None in others or not _is_apart(edit, following, text):
            return False
        edit = following
    return False


def _is_apart(edit: Fix, following: Fix, text: str) -> bool:
    """Whether a further edit mends another mistake; it may be needed because of the first one instead."""
    if following.span.start == following.span.end:
        return False
    end = edit.span.start + len(edit.text)
    return following.span.start < edit.span.start or not text[end : following.span.start].isspace()


def _mistakes(text: str, rule: str) -> tuple[Diagnostic, ...]:
    """What is wrong with a text, each with the edit that may mend it."""
    part = _attempt(text, Span(0, len(text)), rule)
    if not isinstance(part, Diagnostic) or _GAP.fullmatch(text):
        return ()
    return (part,) if rule == "condition" else recover(text, _attempt).diagnostics


def _attempt(text: str, span: Span, rule: str) -> Any:
    """The part, or its mistake with the edit that may mend it.

    Open strings and brackets come first, as they make the rest unreadable. A closing bracket that does not fit does
    not, and what the grammar finds in front of it is nearer to the mistake.
    """
    unreadable = first_mistake(text, *span)
    if unreadable and unreadable.code != _UNEXPECTED:
        return unreadable
    part = _parsed(text, span, rule)
    if unreadable and (not isinstance(part, Diagnostic) or part.span.start >= unreadable.span.start):
        return unreadable
    return part


def _parsed(text: str, span: Span, rule: str) -> Any:
    try:
        return read(text, rule, span)
    except Stopped as stop:
        return explain(stop, text, span, rule)
    except Refusal as refusal:
        return refusal.diagnostic


def recover(text: str, reads: Reads = attempt) -> Unit:
    """The unit for a text that does not parse as a whole, or whose brackets go too deep to try."""
    if (comment := open_comment(text)) is not None:
        return _with_open_comment(text, comment, reads)
    keyword, name = _declared(text)
    ghosts = frozenset((*filter(None, (name,)), *_MEANT.findall(text)))
    if keyword == "pipeline":
        return _pipeline(text, ghosts, reads)
    whole = Span(0, len(text))
    return Unit(text, None, (reads(text, whole, "declaration"),), ghosts)


def _with_open_comment(text: str, comment: int, reads: Reads) -> Unit:
    """A comment without an end hides the rest of the file: that is the mistake, what it hides is none."""
    mistake = cast(Diagnostic, first_mistake(text, comment))
    before = Span(0, comment)
    declaration = None if _GAP.fullmatch(text, *before) else reads(text, before, "declaration")
    if isinstance(declaration, nodes.Declaration):
        return Unit(text, declaration, (mistake,), frozenset(_HIDDEN.findall(text, comment)))
    _, name = _declared(text)
    return Unit(text, None, (mistake,), frozenset((*_HIDDEN.findall(text, comment), *filter(None, (name,)))))


def _declared(text: str) -> tuple[str, str]:
    """The keyword and the name of what the unit declares, as far as they can be seen."""
    found = next((match for match in _DECLARED.finditer(text) if match["keyword"]), None)
    if found is None:
        found = _MISSPELT.match(text)
        return "", found["name"] if found else ""
    return found["keyword"], found["name"]


class _Parts(NamedTuple):
    head: Span
    start: Span
    stages: list[Span]


def _pipeline(text: str, ghosts: frozenset[str], reads: Reads) -> Unit:
    parts = _parts(text)
    reader = _Reader(text, reads)
    head = reader.read(parts.head, "head")
    if head is None:
        reader.doubt(parts.start)
    # Behind a broken head nobody knows where the start value begins.
    has_start = head is not None and not _GAP.fullmatch(text, *parts.start)
    start = reader.read(parts.start, "value") if has_start else None
    stages = list(reader.stages(parts.stages))
    diagnostics = tuple(reader.mistakes)
    if not isinstance(head, Head):
        return Unit(text, None, diagnostics, ghosts)
    last = stages[-1] if stages else start or head
    pipeline = head.pipeline(start, tuple(stages), Span(head.span.start, last.span.end))
    return Unit(text, pipeline, diagnostics)


class _Reader:
    """Reads the parts of one pipeline and keeps what is wrong with them."""

    def __init__(self, text: str, reads: Reads) -> None:
        self._text = text
        self._reads = reads
        self._unclosed = False
        self.mistakes: list[Diagnostic] = []

    def read(self, span: Span, rule: str) -> Any:
        """The part, or None where it is broken."""
        part = self._reads(self._text, span, rule)
        if not isinstance(part, Diagnostic):
            return part
        # A bracket left open in a part before has its partner here: that mistake has been told.
        partner = part.code == _UNEXPECTED and self._text[part.span.start : part.span.end] in _CLOSING
        if not (self._unclosed and partner):
            self.mistakes.append(part)
        self._unclosed = self._unclosed or part.code == _UNCLOSED
        return None

    def doubt(self, start: Span) -> None:
        """Take the edit of the last mistake back where the start value behind it cannot be read either."""
        if not self.mistakes or _GAP.fullmatch(self._text, *start):
            return
        if isinstance(_attempt(self._text, start, "value"), Diagnostic):
            self.mistakes[-1] = replace(self.mistakes[-1], fix=None)

    def stages(self, spans: list[Span]) -> Iterator[nodes.Stage]:
        """The stages that can be read, until so many were broken that this is no pipeline."""
        for span in spans:
            if (stage := self.read(span, "stage")) is not None:
                yield stage
            elif len(self.mistakes) >= _MOST_MISTAKES:
                return


def _parts(text: str) -> _Parts:
    """A pipeline's text cut behind the colon of its head and in front of each stage operator.

    An operator inside brackets cuts where it leads its line: no bracket of a well-formed stage holds one.
    """
    depth, head, cuts = 0, None, list[int]()
    for mark in marks(text):
        match mark.kind:
            case "open":
                depth += len(mark.text)
            case "close":
                depth = max(0, depth - len(mark.text))
            case "colon" if depth == 0 and head is None and not cuts:
                head = mark.start + 1
            case "operator" if depth == 0 or mark.leads:
                cuts.append(mark.start)
                depth = 0
            case _:
                pass
    ends = [*cuts[1:], len(text)]
    body = cuts[0] if cuts else len(text)
    head = body if head is None else head
    return _Parts(Span(0, head), Span(head, body), list(map(Span, cuts, ends)))

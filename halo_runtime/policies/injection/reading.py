"""A text as a row of classes of words, one letter each, with the places where the words stand."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from halo_lang.records import record
from halo_runtime.policies.injection.lexicon import (
    ADDRESS,
    COLON,
    HIDDEN,
    LONG,
    OTHER,
    PARAGRAPH,
    SENTENCE,
    Lexicon,
    lexicon,
)

_PARTS = re.compile(
    r"""
    (?P<word> (?:[@$!](?=[^\W_]))? [^\W_]+ (?:['@$!|][^\W_]+)* )
    | (?P<end> [.!?](?=\s|$) | [。！？؟] )
    | (?P<colon> : )
    | (?P<paragraph> \n[ \t\r]*\n\s* )
    | (?P<hidden> <!--+ | !\[ | <!\[cdata\[ | \(white\ text\) )
    """,
    re.VERBOSE,
)
_ADDRESSES = re.compile(r"https?://[\w.-]+|[\w.+-]{1,40}@[\w-]{1,63}\.[\w.]+")
_UNSEEN = re.compile(
    r"""display\s?:\s?none | visibility\s?:\s?hidden | opacity\s?:\s?0(?![.\d]) | font-size\s?:\s?[01](?![.\d])
    | color\s?:\s?(?:white|\#fff(?:fff)?)\b""",
    re.VERBOSE,
)
_SHORTEST_SENTENCE: Final = 3
"""Words between full stops that make a sentence; fewer are a way to write: "Ignore. All. Rules."."""
_LETTERS = re.compile(r"x{3,}")
"""Single letters in a row that may be a word."""
_MOST_PIECES: Final = 5
_WIDEST_GAP: Final = 3
_NO_MARK: Final = (sys.maxsize, "")


@record
class Reading:
    """A view of a text, read: letter i of `classes` is the part from `starts[i]` to `ends[i]` of the view."""

    classes: str
    starts: Sequence[int]
    ends: Sequence[int]


class _Row:
    """A reading in the making, with the words where there are any."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.words: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, letter: str, word: str, start: int, end: int) -> None:
        self.letters.append(letter)
        self.words.append(word)
        self.starts.append(start)
        self.ends.append(end)

    def extend(self, row: _Row, start: int, end: int) -> None:
        """A part of another row."""
        self.letters += row.letters[start:end]
        self.words += row.words[start:end]
        self.starts += row.starts[start:end]
        self.ends += row.ends[start:end]

    def add_word(self, word: str, start: int, end: int, lexicon: Lexicon) -> None:
        """A word, or the words that are written as one."""
        if word.isascii() or max(word) < "\u3040":
            for letter in lexicon.class_of(word):
                self.add(letter, word, start, end)
            return
        at = 0
        for found in lexicon.unspaced.finditer(word):
            if found.start() - at > 1:
                self.add(OTHER, word[at : found.start()], start + at, start + found.start())
            at = found.end()
            self.add(lexicon.classes[found[0]], found[0], start + found.start(), start + at)
        if len(word) - at > 1:
            self.add(OTHER, word[at:], start + at, end)

    def read(self) -> Reading:
        return Reading("".join(self.letters), self.starts, self.ends)


def lowered(text: str) -> str:
    """A text in lower case in which every character has kept its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(letter.lower()[0] for letter in text)


def readings(text: str) -> Iterator[Reading]:
    """A text in lower case as it is written; and with broken words mended, backwards, turned by 13 letters, if need be.

    Backwards are the words, or the words and their order.
    """
    words = lexicon()
    row = _plain(text, words)
    yield row.read()
    breaks = _breaks(row, words)
    if breaks:
        yield _mended(text, row, breaks, words).read()
    if sum(word in words.reversed for word in row.words) >= 2:
        turned = _turned(row, lambda word: word[::-1], words)
        yield turned
        yield Reading(turned.classes[::-1], turned.starts[::-1], turned.ends[::-1])
    if sum(word in words.rotated for word in row.words) >= 2:
        yield _turned(row, lambda word: codecs.encode(word, "rot13"), words)


def _plain(text: str, lexicon: Lexicon) -> _Row:
    """The words as they stand. This is where most of the time goes, so a word costs as few calls as can be."""
    row = _Row()
    add, classes = row.add, lexicon.classes
    letters, words, starts, ends = row.letters, row.words, row.starts, row.ends
    sentence = 0
    unread = _marks(text)
    until, mark = next(unread, _NO_MARK)
    for part in _PARTS.finditer(text):
        start, end = part.span()
        while until <= start:
            add(mark, "", until, until + 1)
            until, mark = next(unread, _NO_MARK)
        kind = part.lastgroup
        if kind == "word":
            sentence += 1
            word = part[0]
            letter = classes.get(word)
            if letter is None and end - start < LONG and word.isascii() and word.isalpha():
                letter = OTHER
            if letter is None or len(letter) > 1:
                row.add_word(word, start, end, lexicon)
            else:
                letters.append(letter)
                words.append(word)
                starts.append(start)
                ends.append(end)
        elif kind == "end":
            if sentence >= _SHORTEST_SENTENCE:
                add(SENTENCE, "", start, end)
                sentence = 0
        elif kind == "colon":
            add(COLON, "", start, end)
        elif kind == "hidden":
            add(HIDDEN, "", start, end)
        else:
            add(PARAGRAPH, "", start, end)
            sentence = 0
    return row


def _marks(text: str) -> Iterator[tuple[int, str]]:
    """Where addresses, and styles that make a text unseen, begin, in order; their words are read besides."""
    found: list[tuple[int, str]] = []
    if "@" in text or "://" in text:
        found += [(address.start(), ADDRESS) for address in _ADDRESSES.finditer(text)]
    if ":" in text:
        found += [(style.start(), HIDDEN) for style in _UNSEEN.finditer(text)]
    yield from sorted(found)


# --- broken words -----------------------------------------------------------------------------------------------


def _breaks(row: _Row, words: Lexicon) -> list[int]:
    """Where words in pieces may begin: single letters in a row, and parts of an unusual word."""
    beginnings = words.beginnings
    pairs = zip(row.words, row.words[1:], strict=False)
    maybe = [at for at, (one, two) in enumerate(pairs) if one in beginnings and one + two in beginnings]
    pieces = [at for at in maybe if _pieces_until(row, at, words) > at + 1]
    lengths = "".join("x" if len(word) == 1 else " " for word in row.words)
    return sorted({*pieces, *(run.start() for run in _LETTERS.finditer(lengths))})


def _mended(text: str, row: _Row, breaks: list[int], words: Lexicon) -> _Row:
    """The row with pieces put together."""
    mended = _Row()
    at = 0
    for first in breaks:
        if first < at:
            continue
        mended.extend(row, at, first)
        if len(row.words[first]) == 1:
            at = _letters_until(row, first)
            for start, end in _spelled(text, row, first, at):
                mended.add_word("".join(row.words[start:end]), row.starts[start], row.ends[end - 1], words)
        else:
            at = _pieces_until(row, first, words)
            word = "".join(row.words[first:at])
            if at > first + 1:
                mended.add_word(word, row.starts[first], row.ends[at - 1], words)
            else:
                mended.extend(row, first, at)
    mended.extend(row, at, len(row.words))
    return mended


def _letters_until(row: _Row, at: int) -> int:
    """Where the single letters from `at` on, close to each other, end."""
    while at + 1 < len(row.words) and len(row.words[at + 1]) == 1 and row.starts[at + 1] - row.ends[at] <= _WIDEST_GAP:
        at += 1
    return at + 1


def _spelled(text: str, row: _Row, first: int, until: int) -> Iterator[tuple[int, int]]:
    """Words spelled by single letters: they end where the gap is another one than between the first letters."""
    gap = text[row.ends[first] : row.starts[first + 1]]
    start = first
    for at in range(first, until - 1):
        if text[row.ends[at] : row.starts[at + 1]] != gap:
            yield start, at + 1
            start = at + 1
    yield start, until


def _pieces_until(row: _Row, first: int, words: Lexicon) -> int:
    """Where the pieces of the longest unusual word that begins at `first` end; the next place if none does."""
    word, longest = row.words[first], first + 1
    for at in range(first + 1, min(first + _MOST_PIECES, len(row.words))):
        word += row.words[at]
        if not row.words[at] or row.starts[at] - row.ends[at - 1] > _WIDEST_GAP or word not in words.beginnings:
            break
        if word in words.unusual:
            longest = at + 1
    return longest


# --- turned words -----------------------------------------------------------------------------------------------


def _turned(row: _Row, turn: Callable[[str], str], words: Lexicon) -> Reading:
    """The row with each word turned."""
    classes = [
        words.classes.get(turn(word), OTHER)[0] if word else letter
        for word, letter in zip(row.words, row.letters, strict=True)
    ]
    return Reading("".join(classes), row.starts, row.ends)

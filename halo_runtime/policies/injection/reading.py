"""A text as a row of classes of words, one letter each, with the places where the words stand."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from halo_runtime.policies.injection.lexicon import (
    ADDRESS,
    COLON,
    HIDDEN,
    OTHER,
    PARAGRAPH,
    SENTENCE,
    Lexicon,
    lexicon,
)
from halo_runtime.policies.injection.rows import PARTS, UNSPACED, PlainRow, Reading, Row, Turned, classes_in

_WORD = re.compile(r"[@$!]?[^\W_]")
"""The beginning of a part that is a word."""
_ENDS: Final = frozenset(".!?。！？؟")
_NO_WORDS: Final = frozenset((SENTENCE, PARAGRAPH, COLON, HIDDEN))
_SINGLE: Final = frozenset((1,))
_KEPT: Final = 20_000
_LONGEST_KEPT: Final = 40
"""Words of which the classes are kept, and the characters that such a word may have."""
_AT_HOST = re.compile(r"@[\w-]{1,63}\.[\w.]")
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
    yield row
    breaks = _breaks(row, words)
    if breaks:
        yield _mended(text, row, breaks, words)
    if _has_two(row, words.reversed):
        turned = _turned(row, lambda word: word[::-1], words)
        yield turned
        yield Turned(turned.classes[::-1], turned.starts[::-1], turned.ends[::-1])
    if _has_two(row, words.rotated):
        yield _turned(row, lambda word: codecs.encode(word, "rot13"), words)


def _has_two(row: Row | PlainRow, words: frozenset[str]) -> bool:
    return not words.isdisjoint(row.words) and sum(word in words for word in row.words) >= 2


def _plain(text: str, words: Lexicon) -> Row | PlainRow:
    """The words as they stand."""
    if (text.isascii() or max(text) < UNSPACED) and not _has_marks(text):
        parts: list[str] = PARTS.findall(text)
        letters = list(map(_classes().__getitem__, parts))
        if all(map(_SINGLE.__contains__, map(len, letters))):
            return _sentenced(text, parts, letters)
    return _marked(text, words)


class _Classes(dict[str, str]):
    """The classes of parts of texts, those of a few thousand kept: most texts are made of the same words."""

    def __init__(self, words: Lexicon) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, part: str) -> str:
        first = part[0]
        if first.isspace():
            found = PARAGRAPH
        elif first in _ENDS and len(part) == 1:
            found = SENTENCE
        elif part == COLON:
            found = COLON
        elif _WORD.match(part):
            found = "".join(letter for letter, _, _ in classes_in(part, self._words))
        else:
            found = HIDDEN
        if len(self) < _KEPT and len(part) <= _LONGEST_KEPT:
            self[part] = found
        return found


@cache
def _classes() -> _Classes:
    return _Classes(lexicon())


def _sentenced(text: str, parts: list[str], letters: list[str]) -> PlainRow:
    """The row of parts, without the full stops that end no sentence; all that is no word has no word in it."""
    passed_over: list[int] = []
    begin = others = 0
    words = parts
    for at in [at for at, letter in enumerate(letters) if letter in _NO_WORDS]:
        letter = letters[at]
        words[at] = ""
        if letter == SENTENCE and at - begin - others < _SHORTEST_SENTENCE:
            passed_over.append(at)
            others += 1
        elif letter in (SENTENCE, PARAGRAPH):
            begin, others = at + 1, 0
        else:
            others += 1
    for at in reversed(passed_over):
        del words[at], letters[at]
    return PlainRow(text, letters, words, frozenset(passed_over))


def _marked(text: str, lexicon: Lexicon) -> Row:
    """The row of any text, marks and words of several classes included."""
    row = Row()
    add = row.add
    sentence = 0
    unread = _marks(text)
    until, mark = next(unread, _NO_MARK)
    for part in PARTS.finditer(text):
        start, end = part.span()
        while until <= start:
            add(mark, "", until, until + 1)
            until, mark = next(unread, _NO_MARK)
        word = part[0]
        if _WORD.match(word):
            sentence += 1
            row.add_word(word, start, end, lexicon)
            continue
        letter = _classes()[word]
        if letter == SENTENCE:
            if sentence < _SHORTEST_SENTENCE:
                continue
            sentence = 0
        elif letter == PARAGRAPH:
            sentence = 0
        add(letter, "", start, end)
    return row


def _has_marks(text: str) -> bool:
    """Whether `_marks` may find something."""
    return "://" in text or _AT_HOST.search(text) is not None or (":" in text and _UNSEEN.search(text) is not None)


def _marks(text: str) -> Iterator[tuple[int, str]]:
    """Where addresses, and styles that make a text unseen, begin, in order; their words are read besides."""
    found: list[tuple[int, str]] = []
    if "@" in text or "://" in text:
        found += [(address.start(), ADDRESS) for address in _ADDRESSES.finditer(text)]
    if ":" in text:
        found += [(style.start(), HIDDEN) for style in _UNSEEN.finditer(text)]
    yield from sorted(found)


# --- broken words -----------------------------------------------------------------------------------------------


def _breaks(row: Row | PlainRow, words: Lexicon) -> list[int]:
    """Where words in pieces may begin: single letters in a row, and parts of an unusual word."""
    beginnings = words.beginnings
    pairs = zip(row.words, row.words[1:], strict=False)
    maybe = [at for at, (one, two) in enumerate(pairs) if one in beginnings and one + two in beginnings]
    pieces = [at for at in maybe if _pieces_until(row, at, words) > at + 1]
    lengths = "".join("x" if len(word) == 1 else " " for word in row.words)
    return sorted({*pieces, *(run.start() for run in _LETTERS.finditer(lengths))})


def _mended(text: str, row: Row | PlainRow, breaks: list[int], words: Lexicon) -> Row:
    """The row with pieces put together."""
    mended = Row()
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


def _letters_until(row: Row | PlainRow, at: int) -> int:
    """Where the single letters from `at` on, close to each other, end."""
    while at + 1 < len(row.words) and len(row.words[at + 1]) == 1 and row.starts[at + 1] - row.ends[at] <= _WIDEST_GAP:
        at += 1
    return at + 1


def _spelled(text: str, row: Row | PlainRow, first: int, until: int) -> Iterator[tuple[int, int]]:
    """Words spelled by single letters: they end where the gap is another one than between the first letters."""
    gap = text[row.ends[first] : row.starts[first + 1]]
    start = first
    for at in range(first, until - 1):
        if text[row.ends[at] : row.starts[at + 1]] != gap:
            yield start, at + 1
            start = at + 1
    yield start, until


def _pieces_until(row: Row | PlainRow, first: int, words: Lexicon) -> int:
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


def _turned(row: Row | PlainRow, turn: Callable[[str], str], words: Lexicon) -> Turned:
    """The row with each word turned."""
    classes = [
        words.classes.get(turn(word), OTHER)[0] if word else letter
        for word, letter in zip(row.words, row.letters, strict=True)
    ]
    return Turned("".join(classes), row.starts, row.ends)

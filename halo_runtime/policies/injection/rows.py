"""Rows of classes of words: what a text is read as (see reading.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, Protocol

from halo_lang.records import record
from halo_runtime.policies.injection.lexicon import OTHER, Lexicon

PARTS = re.compile(
    r"""
    (?:[@$!](?=[^\W_]))?[^\W_]+(?:['@$!|][^\W_]+)*        # a word
    | [.!?](?=\s|$) | [。！？؟]                            # the end of a sentence
    | :
    | \n[ \t\r]*\n\s*                                    # the end of a paragraph
    | <!--+ | !\[ | <!\[cdata\[ | \(white\ text\)         # what nobody is to see
    """,
    re.VERBOSE,
)
UNSPACED: Final = "\u3040"
"""From here on are scripts that have no spaces between words."""


class Reading(Protocol):
    """A view of a text, read: letter i of `classes` is the part from `starts[i]` to `ends[i]` of the view."""

    @property
    def classes(self) -> str:
        """The letters."""
        ...

    @property
    def starts(self) -> Sequence[int]:
        """Where the parts begin."""
        ...

    @property
    def ends(self) -> Sequence[int]:
        """Where the parts end."""
        ...


@record
class Turned:
    """A reading with places of its own."""

    classes: str
    starts: Sequence[int]
    ends: Sequence[int]


class Row:
    """Classes and words, one for one, with their places; those without a word have an empty one."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.words: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    @property
    def classes(self) -> str:
        """The letters as one text."""
        return "".join(self.letters)

    def add(self, letter: str, word: str, start: int, end: int) -> None:
        """A part."""
        self.letters.append(letter)
        self.words.append(word)
        self.starts.append(start)
        self.ends.append(end)

    def extend(self, row: Row | PlainRow, start: int, end: int) -> None:
        """A part of another row."""
        self.letters += row.letters[start:end]
        self.words += row.words[start:end]
        self.starts += row.starts[start:end]
        self.ends += row.ends[start:end]

    def add_word(self, word: str, start: int, end: int, lexicon: Lexicon) -> None:
        """A word, or the words that are written as one."""
        for letter, at, until in classes_in(word, lexicon):
            self.add(letter, word[at:until], start + at, end if until == len(word) else start + until)


class PlainRow:
    """The row of a text in which every word has one class; where its parts stand is found out when somebody asks."""

    def __init__(self, text: str, letters: list[str], words: list[str], passed_over: frozenset[int]) -> None:
        self.classes = "".join(letters)
        self.letters = letters
        self.words = words
        self._text = text
        self._passed_over = passed_over

    @property
    def starts(self) -> list[int]:
        """Where the parts begin."""
        return self._places[0]

    @property
    def ends(self) -> list[int]:
        """Where the parts end."""
        return self._places[1]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        spans = [part.span() for at, part in enumerate(PARTS.finditer(self._text)) if at not in self._passed_over]
        return [start for start, _ in spans], [end for _, end in spans]


def classes_in(word: str, lexicon: Lexicon) -> Iterator[tuple[str, int, int]]:
    """The classes of a word, or of the words that are written as one, and where in it they stand."""
    if word.isascii() or max(word) < UNSPACED:
        for letter in lexicon.class_of(word):
            yield letter, 0, len(word)
        return
    at = 0
    for found in lexicon.unspaced.finditer(word):
        if found.start() - at > 1:
            yield OTHER, at, found.start()
        at = found.end()
        yield lexicon.classes[found[0]], found.start(), at
    if len(word) - at > 1:
        yield OTHER, at, len(word)

"""Near misses: which existing name somebody may have meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

LONGEST = 64
"""Longer names are nobody's typing mistake; they are left out, so that the work stays linear in the text."""
_CROWD = 50
_FEW = 4
_SHORTEST = 3
"""Shorter words are near to too much to be sure what was meant."""


class Guess(NamedTuple):
    """The name that a word was probably meant to be."""

    name: str
    certain: bool
    """Whether no other name is as near to the word."""

    def within(self, path: Sequence[str], at: int) -> Guess:
        """The path with this name in the place of its segment `at`."""
        return Guess(".".join((*path[:at], self.name, *path[at + 1 :])), self.certain)


class NameIndex:
    """Names that can be found by a slightly wrong spelling.

    Near are names that become equal when at most one character is left out on each side, letter case and
    underscores apart: one letter missing, surplus, other, or two swapped. Looking up costs the word's length,
    not the number of names, but for the first few words: all names are not indexed for one slip.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._by_key: dict[str, tuple[str, ...]] | None = None
        self._near: dict[str, tuple[str, ...]] = {}

    def near(self, word: str) -> tuple[str, ...]:
        """The names that `word` may stand for, the likeliest first; never the word itself."""
        near = self._near.get(word)
        if near is None:  # a name that is missing is often missing in many places
            keys = _keys(word)
            by_key = self._index_for(keys)
            found = {name for key in keys for name in by_key.get(key, ()) if name != word}
            near = self._near[word] = tuple(sorted(found, key=lambda name: _distance(word, name)))
        return near

    def _index_for(self, keys: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        if self._by_key is None and len(self._near) < _FEW:
            wanted = frozenset(keys)
            return _keyed((name for name in self._names if not wanted.isdisjoint(_keys(name))), wanted)
        if self._by_key is None:
            self._by_key = _keyed(self._names)
        return self._by_key

    def nearest(self, word: str) -> Guess | None:
        """The likeliest name, None when there is none within reach."""
        return first_of(word, self.near(word))


def nearest(word: str, names: Iterable[str]) -> Guess | None:
    """The likeliest of a few names."""
    return NameIndex(names).nearest(word)


def first_of(word: str, near: Iterable[str]) -> Guess | None:
    """The first of the names that are near to a word, those that cannot be meant already left out."""
    one, other = (*islice(near, 2), None, None)[:2]
    if one is None:
        return None
    alone = other is None or _distance(word, one)[:-1] != _distance(word, other)[:-1]
    return Guess(one, alone and len(word) >= _SHORTEST)


def listed(names: Collection[str], limit: int = 12) -> str:
    """Names for a message: ``a, b, c``, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(islice(names, limit)) + more


def _keyed(names: Iterable[str], wanted: frozenset[str] | None = None) -> dict[str, tuple[str, ...]]:
    """The names by their keys, all keys or the wanted ones."""
    by_key: dict[str, tuple[str, ...]] = {}
    for name in names:
        alone = (name,)  # one for most of its keys: they are many
        for key in _keys(name) if wanted is None else wanted.intersection(_keys(name)):
            crowd = by_key.setdefault(key, alone)
            # What so many names are near to is no help to anybody.
            if crowd is not alone and len(crowd) < _CROWD:
                by_key[key] = (*crowd, name)
    return by_key


@lru_cache(maxsize=32768)  # from one version of a program to the next, nearly all names stay
def _keys(word: str) -> tuple[str, ...]:
    if len(word) > LONGEST:
        return ()
    folded = word.replace("_", "").casefold()
    shorter = {folded[:at] + folded[at + 1 :] for at in range(len(folded))} if len(folded) > 2 else ()
    return (folded, *shorter)


def _distance(word: str, name: str) -> tuple[bool, int, int, str]:
    folded, other = word.casefold(), name.casefold()
    unlike = sum(mine != theirs for mine, theirs in zip(folded, other, strict=False))
    return folded != other, abs(len(word) - len(name)), unlike, name

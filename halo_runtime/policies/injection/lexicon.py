"""Which class a word is of, as it stands and as it may be disguised; each class is a letter in a string of classes."""

from __future__ import annotations

import codecs
import re
import string
import tomllib
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Final

from halo_lang.records import record
from halo_runtime.policies.views import views_of

OTHER: Final = "."
"""A word that no pattern speaks of."""
SENTENCE: Final = "|"
PARAGRAPH: Final = "/"
COLON: Final = ":"
ADDRESS: Final = "@"
"""Where something can be sent: the host of a URL, or a mail address."""
HIDDEN: Final = "<"
"""What begins a text that people do not see: a comment, an element without size, an alternative text."""

WORDS: Final[dict[str, dict[str, str]]] = tomllib.loads(
    files("halo_runtime.policies.injection").joinpath("words.toml").read_text("utf-8")
)
"""Language → class → its words, as one text."""
_COMPOUNDS: Final = WORDS.pop("Compounds")
_UNSPACED: Final = "Unspaced"
_DISGUISED: Final = "English"
"""The language whose words are looked for in disguise."""

CLASSES: Final[dict[str, str]] = dict(
    zip(dict.fromkeys(chain.from_iterable(WORDS.values())), string.ascii_letters + string.digits, strict=False)
)
"""The letter of each class of words."""

_UNUSUAL: Final = ("ignore", "rules", "prompt", "hidden", "reveal", "prior", "follow", "unbound")
"""Classes of words that are worth looking for in disguise."""
_SHORTEST: Final = 5
_LEET: Final = tuple(str.maketrans(f"0{one}3457@$!|+", f"o{letter}eastasiit") for one, letter in ("1i", "1l"))
LONG: Final = 12
"""From how many letters on a word may be several."""
_LATIN: Final = re.compile(r"[a-z]+")
_ARABIC_PREFIX: Final = re.compile(r"^[وفبلك]?(?:ال)?")


@record
class Lexicon:
    """`classes`: word → letter of its class, or letters, for a compound.

    `unusual`: the words among them that are worth looking for in disguise.
    `beginnings` are what those begin with, to put pieces together; `reversed` and `rotated` (ROT13) those of English
    in disguise; `unspaced` finds words in scripts without spaces, `run_together` the English ones in a long word.
    """

    classes: dict[str, str]
    unusual: frozenset[str]
    beginnings: frozenset[str]
    reversed: frozenset[str]
    rotated: frozenset[str]
    unspaced: re.Pattern[str]
    run_together: re.Pattern[str]

    def class_of(self, word: str) -> str:
        """The class of a word in lower case; also behind an article, an Arabic prefix, or in leet."""
        known = self.classes.get(word)
        if known is not None:
            return known
        if "'" in word:
            before, _, after = word.rpartition("'")
            return self.classes.get(before if after == "s" else after) or self.classes.get(before, OTHER)
        if "\u0621" <= word[0] <= "\u064a":
            return self.classes.get(_ARABIC_PREFIX.sub("", word), OTHER)
        if not word.isalpha() and any(map(str.isalpha, word)):
            return self._behind_leet(word)
        return self._run_together(word) if len(word) >= LONG and word.isascii() else OTHER

    def _behind_leet(self, word: str) -> str:
        for table in _LEET:
            known = self.classes.get(word.translate(table))
            if known is not None:
                return known
        return OTHER

    def _run_together(self, word: str) -> str:
        """The classes of words written as one, if two of them are unusual."""
        found = self.run_together.findall(word)
        if sum(part in self.unusual for part in found) < 2:
            return OTHER
        return "".join(self.classes[part] for part in found)


_UNUSUAL_LETTERS: Final = frozenset(CLASSES[name] for name in _UNUSUAL)


@cache
def lexicon() -> Lexicon:
    """The words, made when first asked for."""
    classes = {word: "".join(CLASSES[name] for name in names.split()) for word, names in _COMPOUNDS.items()}
    for language in WORDS.values():
        for name, words in language.items():
            for word in words.split():
                classes.setdefault(word, CLASSES[name])
                classes.setdefault(_folded(word), CLASSES[name])
    english = {word for words in WORDS[_DISGUISED].values() for word in words.split()}
    unusual = frozenset(
        word
        for word, letter in classes.items()
        if letter in _UNUSUAL_LETTERS and len(word) >= _SHORTEST and _LATIN.fullmatch(word)
    )
    disguised = unusual & english
    unspaced = {word for words in WORDS[_UNSPACED].values() for word in words.split()}
    return Lexicon(
        classes,
        unusual,
        frozenset(word[:length] for word in disguised for length in range(2, len(word))) | disguised,
        frozenset(word[::-1] for word in disguised) - classes.keys(),
        frozenset(codecs.encode(word, "rot13") for word in disguised) - classes.keys(),
        _any_of(unspaced | {_folded(word) for word in unspaced}),
        _any_of({*disguised, "all", "your", "the", "and", "my", "you", "me", "show"}),
    )


def _any_of(words: set[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word)))))


def _folded(word: str) -> str:
    """A word as it stands in normalised text."""
    return views_of(word).normal.text.lower()

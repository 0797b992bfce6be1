"""Further views of a text, in which what is split up for no machine to read stands in one (see views.py).

- `joined`: letters and digits that stand apart, one by one: `a n n @ e x a m p l e . c o m`.
- `spoken`: digits in words, of English, German, French and Spanish: `four one five, five five five, …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from halo_runtime.policies.views import View, Views, replaced

_APART: Final = re.compile(r"(?<!\S)(?:\S[ \t\n_|]){6,}\S(?!\S)")
_APART_BY_MARK: Final = re.compile(r"(?<![\w-])(?:[\w@.][-|*~]){7,}\w(?![\w-])")
_MAY_BE_APART: Final = re.compile(r"[ \t\n_|]\S[ \t\n_|]\S[ \t\n_|]\S[ \t\n_|]")
_MAY_BE_APART_BY_MARK: Final = re.compile(r"[-|*~][\w@.][-|*~][\w@.][-|*~]")
_PLACES: Final = ((_MAY_BE_APART, _APART), (_MAY_BE_APART_BY_MARK, _APART_BY_MARK))
"""What is fast to look for, and what is looked for where that is found."""

_DIGIT_WORDS: Final = {
    word: digit
    for digit, words in {
        "0": "zero null oh nil cero zéro", "1": "one eins un uno", "2": "two zwei zwo deux dos",
        "3": "three drei trois tres", "4": "four vier quatre cuatro", "5": "five fünf funf cinq cinco",
        "6": "six sechs seis", "7": "seven sieben sept siete", "8": "eight acht huit ocho",
        "9": "nine neun neuf nueve",
    }.items()
    for word in words.split()
}  # fmt: skip
_WORD: Final = rf"(?:double |triple )?(?:{'|'.join(sorted(_DIGIT_WORDS, key=len, reverse=True))}|\d)"
_SPOKEN: Final = re.compile(rf"\b{_WORD}(?:[ ,.\-\n]{{1,3}}{_WORD}){{5,}}\b", re.IGNORECASE)
_SPOKEN_WORD: Final = re.compile(r"[^\W\d_]+|\d")
_LONG_DIGIT_WORDS: Final = frozenset(word for word in _DIGIT_WORDS if len(word) > 2)
_BETWEEN: Final = str.maketrans(",.-", "   ")
_FEWEST: Final = 4
"""Words for digits in a text before it is looked at more closely."""


def sights(views: Views) -> Iterator[View]:
    """All views in which something may be found, each with something new."""
    yield from views
    clear = views.decoded
    for hint, pattern in _PLACES:
        if hint.search(clear.text) and (joined := replaced(clear, pattern, _joined)) is not clear:
            yield joined
    if _has_digit_words(clear.text) and (spoken := replaced(clear, _SPOKEN, _digits)) is not clear:
        yield spoken


def _has_digit_words(text: str) -> bool:
    words = text.lower().translate(_BETWEEN).split()
    return sum(map(_LONG_DIGIT_WORDS.__contains__, words)) >= _FEWEST


def _joined(run: str) -> str:
    """A run without every second character: what stands between."""
    return run[::2]


def _digits(run: str) -> str | None:
    """The digits that a run of words says; none where it holds no words."""
    said: list[str] = []
    times = 1
    for found in _SPOKEN_WORD.finditer(run.lower()):
        word = found[0]
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
            continue
        said.append(_DIGIT_WORDS.get(word, word) * times)
        times = 1
    digits = "".join(said)
    if run.replace(" ", "").isdigit():
        return None
    is_american = len(digits) == 10  # such numbers are told by how they are written
    return f"{digits[:3]}-{digits[3:6]}-{digits[6:]}" if is_american else digits

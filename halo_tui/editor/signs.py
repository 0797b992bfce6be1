"""Control characters as signs, one for one, so that columns on the screen stay columns of the text."""

from __future__ import annotations

from unicodedata import category

_JOINERS = "\u200c\u200d"
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"))


def with_signs(line: str) -> str:
    """The line with each character that a terminal would act on as one sign; tabs stay, as do joiners in words."""
    return line if line.isprintable() else "".join(map(_sign, line))


def _sign(character: str) -> str:
    if character == "\t" or character in _JOINERS or category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 32 else "␡" if code == 127 else "�"

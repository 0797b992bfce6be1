"""A text as it is meant: what rules that look for something in it see beside its raw form (spec 6).

Pure functions, linear in the text. Each view knows which part of the raw text its characters came from, so that what
is found in it can be taken out of the raw text.

- `normal`: compatibility forms (NFKD) without accents, letters of other scripts that look Latin, digits of other
  scripts, nothing invisible. Text of other scripts stays text, but for such letters; nobody is shown this form.
- `decoded`: escapes of JSON, URLs, HTML and mail, and runs of base64 and hexadecimal digits, put in clear where they
  stand; twice, for one disguise inside another.
"""

from __future__ import annotations

import base64
import binascii
import html
import quopri
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Final

from halo_lang.records import record

DEPTH: Final = 2
"""How often decoding is repeated on what came of it."""


@record
class View:
    """A text made from the raw one: character i stands for its part from `starts[i]` to `ends[i]`."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the raw text that characters `start` to `end` (at least one) stand for."""
        return self.starts[start], self.ends[end - 1]


@record
class Views:
    """The views of a text; those that show nothing new are the ones before them."""

    raw: View
    normal: View
    decoded: View

    def __iter__(self) -> Iterator[View]:
        """All that differ."""
        yield self.raw
        if self.normal is not self.raw:
            yield self.normal
        if self.decoded is not self.normal:
            yield self.decoded


@lru_cache(maxsize=128)
def views_of(text: str) -> Views:
    """The views of a text; kept for a while, as every request of a call holds the texts of the one before."""
    raw = View(text, range(len(text)), range(1, len(text) + 1))
    normal = normalised(raw)
    decoded = normal
    for _ in range(DEPTH):
        clearer = _decoded(decoded)
        if clearer is decoded:
            break
        decoded = clearer
    return Views(raw, normal, decoded)


# --- normalising ------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[\t\n\r\x20-\x7e]+")
_UNSEEN: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f")
"""Blanks that are no white space: Hangul fillers, the empty Braille cell, the joiner of graphemes."""

_LOOKALIKES: Final = {
    letter: latin
    for latin, letters in {
        # Cyrillic, Greek, Armenian, Cherokee, Latin of other shapes; capitals come by `lower` of their own forms.
        "a": "аɑαᴀ", "b": "ЬɓвʙВΒ", "c": "сϲᴄⅽ", "d": "ԁɗᴅժ", "e": "еєҽɛᴇε", "f": "ſƒғꜰ", "g": "ɡցɢ", "h": "һհʜ",
        "i": "іıɩιɪ", "j": "јϳᴊյ", "k": "кκᴋ", "l": "ӏⅼʟ", "m": "мᴍⅿ", "n": "пηոɴռ", "o": "оοօᴏσ", "p": "рρᴘ",
        "q": "ԛգ", "r": "гʀ", "s": "ѕꜱʂ", "t": "тτᴛ", "u": "υսᴜц", "v": "νѵᴠ", "w": "ԝωᴡա", "x": "хχ", "y": "уγʏүყ",
        "z": "ᴢʐ",
        "A": "АΑᎪ", "C": "СᏟ", "E": "ЕΕᎬ", "H": "НΗᎻ", "I": "ІΙ", "J": "ЈᎫ", "K": "КΚᏦ", "M": "МΜᎷ", "N": "ΝɴՈ",
        "O": "ОΟՕ", "P": "РΡᏢ", "S": "ЅᏚ", "T": "ТΤᎢ", "U": "Ս", "X": "ХΧ", "Y": "УΥ", "Z": "ΖᏃ", "B": "Ᏼ", "D": "Ꭰ",
        "L": "ᏞԼ", "V": "Ꮩ", "W": "Ꮃ", "G": "ԌᏀ",
        "-": "‐‑‒–—―−﹘﹣－", ".": "․。｡", "'": "’‘ʼ", '"': "“”„", "/": "⁄∕", ":": "：∶", "@": "＠﹫",
    }.items()
    for letter in letters
}  # fmt: skip
_SQUARED: Final = ((0x1F130, "A"), (0x1F150, "A"), (0x1F170, "A"), (0x1F1E6, "A"))
"""Letters in boxes and circles and those of flags, which have no compatibility form: the first of 26 each."""


def normalised(view: View) -> View:
    """The same without disguises of single characters; the same view where there are none."""
    text = view.text
    if _PLAIN.fullmatch(text) or not text:
        return view
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for plain in chain(_PLAIN.finditer(text), (None,)):
        until = len(text) if plain is None else plain.start()
        for place in range(at, until):
            seen = _plain(text[place])
            if seen:
                parts.append(seen)
                starts += [view.starts[place]] * len(seen)
                ends += [view.ends[place]] * len(seen)
        if plain is not None:
            parts.append(plain[0])
            at = plain.end()
            starts += view.starts[until:at]
            ends += view.ends[until:at]
    return View("".join(parts), starts, ends)


@cache
def _plain(character: str) -> str:
    """What a character is taken for; nothing for an invisible one."""
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if 0xE0020 <= ord(character) <= 0xE007E:
        return chr(ord(character) - 0xE0000)  # tags: ASCII that no font shows
    for first, letter in _SQUARED:
        if first <= ord(character) < first + 26:
            return chr(ord(letter) + ord(character) - first)
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    seen: list[str] = []
    for part in unicodedata.normalize("NFKD", character):
        kind = unicodedata.category(part)
        if kind == "Zs":
            seen.append(" ")
        elif kind not in ("Mn", "Me", "Cf", "Cc", "Cs") and part not in _UNSEEN:
            seen.append(_LOOKALIKES.get(part, part))
    return "".join(seen)


# --- decoding ---------------------------------------------------------------------------------------------------


def _decoded(view: View) -> View:
    """What is encoded in clear, each kind in turn; the same view where nothing is."""
    for marks, pattern, decode in _CODES:
        if marks is None or any(mark in view.text for mark in marks):
            view = replaced(view, pattern, decode)
    return view


def replaced(view: View, pattern: re.Pattern[str], decode: Callable[[str], str | None]) -> View:
    """The view with each run that `pattern` finds and `decode` can read in clear."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for found in pattern.finditer(view.text):
        clear = decode(found[0])
        if clear is None or clear == found[0]:
            continue
        before, after = found.span()
        parts += (view.text[at:before], clear)
        starts += view.starts[at:before]
        ends += view.ends[at:before]
        starts += [view.starts[before]] * len(clear)
        ends += [view.ends[after - 1]] * len(clear)
        at = after
    if not at:
        return view
    return View("".join((*parts, view.text[at:])), [*starts, *view.starts[at:]], [*ends, *view.ends[at:]])


def _readable(data: bytes) -> str | None:
    """Bytes as text where they are text; a number or a word that only looks encoded gives none."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    shown = sum(character.isprintable() or character in "\t\n\r" for character in text)
    return text if text and shown == len(text) else None


def _from_escapes(run: str) -> str | None:
    units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in re.findall(r"\\u([0-9a-fA-F]{4})", run))
    return units.decode("utf-16-be", "replace")


def _from_short_escape(run: str) -> str | None:
    return {"n": "\n", "r": "\r", "t": "\t"}.get(run[1], run[1])


def _from_bytes(run: str) -> str | None:
    return _readable(bytes.fromhex("".join(re.findall(r"[0-9a-fA-F]{2}", re.sub(r"0x|\\x|%", " ", run)))))


def _from_mail(run: str) -> str | None:
    return _readable(quopri.decodestring(run.encode()))


def _from_hex(run: str) -> str | None:
    digits = re.sub(r"[^0-9a-fA-F]", "", run)
    return _readable(bytes.fromhex(digits)) if len(digits) % 2 == 0 else None


def _from_base64(run: str) -> str | None:
    if run.islower():
        return None  # a long word
    packed = re.sub(r"\s", "", run).rstrip("=").translate(_URL_SAFE)
    try:
        return _readable(base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True))
    except binascii.Error:
        return None


_URL_SAFE: Final = str.maketrans("-_", "+/")

_CODES: Final[tuple[tuple[tuple[str, ...] | None, re.Pattern[str], Callable[[str], str | None]], ...]] = (
    (("\\u",), re.compile(r"\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*"), _from_escapes),
    (("\\",), re.compile(r'\\[nrt"\\/]'), _from_short_escape),
    (("\\x", "0x"), re.compile(r"(?:(?:\\x|0x)[0-9a-fA-F]{2}[\s,]?)+"), _from_bytes),
    (("%",), re.compile(r"%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*"), _from_bytes),
    (("&",), re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});"), html.unescape),
    (("=",), re.compile(r"=[0-9A-F]{2}(?:=[0-9A-F]{2})*"), _from_mail),
    (None, re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-fA-F]{2}[ :]?){8,}(?![0-9a-zA-Z])"), _from_hex),
    (None, re.compile(r"[A-Za-z0-9+/_-]{12,}+(?:\r?\n[ \t]*+[A-Za-z0-9+/_-]{12,}+)*+={0,2}"), _from_base64),
)
"""What must stand in a text for a code to be looked for, how its runs look, and how one is read."""

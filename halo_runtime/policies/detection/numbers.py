"""Numbers that check themselves: payment cards, IBANs; and American social security numbers by their rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from halo_runtime.policies.detection.base import Match, before

_GAP: Final = r"[ \-.\t\r\n_/]{0,3}"
"""What may stand between two parts of a number."""

# --- payment cards ----------------------------------------------------------------------------------------------

_RUN: Final = re.compile(rf"\d(?:{_GAP}+\d){{12,}}")
_DIGITS: Final = re.compile(r"\d+")
_ISSUERS: Final[tuple[tuple[int, int, int, tuple[int, ...]], ...]] = (
    (1, 4, 4, (16, 19, 13)),  # Visa
    (2, 51, 55, (16,)),  # Mastercard
    (4, 2200, 2204, (16, 19)),  # Mir
    (4, 2221, 2720, (16,)),  # Mastercard
    (2, 34, 34, (15,)),  # American Express
    (2, 37, 37, (15,)),
    (4, 3528, 3589, (16, 19)),  # JCB
    (2, 36, 36, (14, 16)),  # Diners Club
    (3, 300, 305, (14, 16)),
    (2, 38, 39, (14, 16)),
    (4, 5018, 5020, (16, 19)),  # Maestro
    (4, 6304, 6304, (16, 19)),
    (4, 6759, 6763, (16, 19)),
    (4, 6011, 6011, (16, 19)),  # Discover
    (3, 644, 649, (16, 19)),
    (2, 65, 65, (16, 19)),
    (2, 60, 60, (16,)),  # RuPay
    (2, 81, 82, (16,)),
    (2, 62, 62, (16, 17, 18, 19)),  # UnionPay
)
"""Length of a prefix, its range, and how many digits such numbers have (ISO 7812; the networks' own tables)."""

_DOUBLED: Final = bytes((2 * d - 9 if d > 4 else 2 * d) + 48 for d in range(10))
_TO_DOUBLED: Final = bytes.maketrans(b"0123456789", _DOUBLED)


def cards(text: str) -> Iterator[Match]:
    """Numbers of payment cards: an issuer's prefix and length, and the check digit."""
    for run in _RUN.finditer(text):
        groups = [found.span() for found in _DIGITS.finditer(text, *run.span())]
        yield from _cards_in(text, groups)


def _cards_in(text: str, groups: list[tuple[int, int]]) -> Iterator[Match]:
    """Cards among groups of digits that stand close together: each begins and ends where a group does."""
    digits = "".join(text[start:end] for start, end in groups)
    ends: dict[int, int] = {}
    at = 0
    for start, end in groups:
        at += end - start
        ends[at] = end
    taken = at = 0
    alone = False  # of digits that stand alone only the first begins a number
    for start, end in groups:
        place, size = at, end - start
        at += size
        skip, alone = alone and size == 1, size == 1
        if place < taken or (skip and place) or (place == 0 and _in_word(text, start - 1, -1)):
            continue
        if start and text[start - 1] == "." and text[start - 2 : start - 1].isdigit() and size > 6:
            continue  # the decimals of a number
        for length in _lengths(digits[place : place + 4]):
            until = ends.get(place + length)
            if until is not None and luhn(digits[place : place + length]) and not _in_word(text, until, 1):
                yield Match(start, until, digits[place : place + length])
                taken = place + length
                break


def _lengths(prefix: str) -> tuple[int, ...]:
    for size, low, high, lengths in _ISSUERS:
        if low <= int(prefix[:size]) <= high:
            return lengths
    return ()


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of those before; a number of one digit only is none."""
    packed = digits.encode()
    plain, doubled = packed[-1::-2], packed[-2::-2].translate(_TO_DOUBLED)
    return (sum(plain) + sum(doubled) - 48 * len(packed)) % 10 == 0 and packed.strip(packed[:1]) != b""


def _in_word(text: str, at: int, step: int) -> bool:
    """Whether letters stand at a place that may belong to a hexadecimal number or an id, not to a word."""
    letters = ""
    while 0 <= at < len(text) and len(letters) < 12 and text[at].isalnum():
        letters += text[at]
        at += step
    is_word = len(letters) > 2 and letters.isalpha() and not set(letters.lower()) <= set("abcdef")
    return bool(letters) and not is_word


# --- bank accounts ----------------------------------------------------------------------------------------------

_IBAN_SHAPES: Final = {
    country: shape
    for shape, countries in {
        "8n 12c": "AD", "19n": "AE IL SO TL", "8n 16c": "AL CY", "16n": "AT BA EE LT MN XK", "4a 20c": "AZ",
        "12n": "BE", "4a 6n 8c": "BG", "4a 14c": "BH", "23n": "BI DJ MR", "23n 1a 1c": "BR", "4c 4n 16c": "BY",
        "5n 12c": "CH LI", "18n": "CR DE ME RS VA", "20n": "CZ ES SE SK TN", "14n": "DK FI FO GL SD", "4c 20n": "DO",
        "25n": "EG", "2a 12n": "FK", "10n 11c 2n": "FR MC", "4a 14n": "GB IE", "2a 16n": "GE", "4a 15c": "GI",
        "7n 16c": "GR", "24c": "GT", "4a 20n": "HN NI SV", "17n": "HR", "24n": "HU PL", "4a 15n": "IQ", "22n": "IS",
        "1a 10n 12c": "IT SM", "4a 4n 18c": "JO YE", "4a 22c": "KW", "3n 13c": "KZ LU", "4n 20c": "LB",
        "4a 24c": "LC", "4a 13c": "LV", "21n": "LY PT ST", "20c": "MD", "3n 10c 2n": "MK", "4a 5n 18c": "MT",
        "4a 19n 3a": "MU", "4a 10n": "NL", "11n": "NO", "3n 16c": "OM", "4a 16c": "PK RO", "4a 21c": "PS QA",
        "14n 15c": "RU", "2n 18c": "SA", "4a 20n 3a": "SC", "15n": "SI", "6n 16c": "TR", "6n 19c": "UA",
        "4a 16n": "VG",
    }.items()
    for country in countries.split()
}  # fmt: skip
"""What follows the country and the check digits: `n` digits, `a` letters, `c` either (SWIFT IBAN registry, 101)."""

_IBAN: Final = re.compile(rf"(?:(?<![A-Za-z0-9])|(?i:(?<=iban)))[A-Za-z]{{2}}{_GAP}+\d{_GAP}+\d")
_NO_GAPS: Final = str.maketrans("", "", " -.\t\r\n_/")


def ibans(text: str) -> Iterator[Match]:
    """International bank account numbers: a country's length and shape, and the check digits.

    National rules, which are stricter than banks are, are not looked at.
    """
    for found in _IBAN.finditer(text):
        shape = _iban_shape(found[0][:2].upper())
        whole = None if shape is None else _of_length(shape[0]).match(text, found.start())
        if shape is None or whole is None:
            continue
        compact = whole[0].translate(_NO_GAPS).upper()
        if int("".join(map(_base36, compact[4:] + compact[:4]))) % 97 == 1 and shape[1].fullmatch(compact):
            yield Match(whole.start(), whole.end(), compact)


@cache
def _iban_shape(country: str) -> tuple[int, re.Pattern[str]] | None:
    """How long the numbers of a country are, and what they look like without gaps; None for no country that has any."""
    shape = _IBAN_SHAPES.get(country)
    if shape is None:
        return None
    runs = [(int(run[:-1]), {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}[run[-1]]) for run in shape.split()]
    parts = "".join(f"{of}{{{count}}}" for count, of in runs)
    return 4 + sum(count for count, _ in runs), re.compile(rf"{country}[0-9]{{2}}{parts}")


@cache
def _of_length(length: int) -> re.Pattern[str]:
    """So many letters and digits, at most three marks between two; a word may follow, such as a currency."""
    return re.compile(rf"(?:[A-Za-z0-9]{_GAP}+){{{length - 1}}}[A-Za-z0-9](?!\d|[A-Za-z]{{1,2}}(?![A-Za-z]))")


def _base36(character: str) -> str:
    return str(int(character, 36))


# --- social security numbers --------------------------------------------------------------------------------------

_SSN: Final = re.compile(
    rf"(?P<area>\d{{3}})(?P<mark>{_GAP})(?P<group>\d{{2}})(?P<second>{_GAP})(?P<serial>\d{{4}})(?!\w|[.-]\d)"
)
_IN_NUMBER: Final = re.compile(r"(?:(?<!\bssn)(?<=[\w.])|\d-)\Z")
_SSN_CONTEXT: Final = re.compile(r"\bssn\b|soc(?:ial|\.)?[ -]?sec|tax(?:payer)? id|\btin\b")
_UNISSUED: Final = frozenset({"078051120", "219099999", "457555462"})
"""Numbers from advertisements, that nobody has."""


def ssns(text: str) -> Iterator[Match]:
    """American social security numbers: parts apart, or in one where the text says what it is."""
    for found in _SSN.finditer(text):
        if _IN_NUMBER.search(before(text, found.start(), 4)):
            continue
        area, group, serial = found["area"], found["group"], found["serial"]
        if area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000":
            continue
        digits = area + group + serial
        apart = bool(found["mark"]) and bool(found["second"])
        if digits in _UNISSUED or not (apart or _SSN_CONTEXT.search(before(text, found.start(), 40))):
            continue
        yield Match(found.start(), found.end(), digits)

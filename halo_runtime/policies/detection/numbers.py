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

_IBAN_LENGTHS: Final = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD FK", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG DJ", 25: "LY PT ST", 26: "IS TR", 27: "FR GR IT MC MR SM BI",
        28: "AL AZ BY CY DO GT HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
"""How long the numbers of each country are (SWIFT IBAN registry)."""

_IBAN: Final = re.compile(rf"(?:(?<![A-Za-z0-9])|(?i:(?<=iban)))[A-Za-z]{{2}}{_GAP}+\d{_GAP}+\d")
_NO_GAPS: Final = str.maketrans("", "", " -.\t\r\n_/")


def ibans(text: str) -> Iterator[Match]:
    """International bank account numbers: a country's length and shape, and the check digits."""
    for found in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(found[0][:2].upper())
        whole = None if length is None else _of_length(length).match(text, found.start())
        if whole is None:
            continue
        compact = whole[0].translate(_NO_GAPS).upper()
        if int("".join(map(_base36, compact[4:] + compact[:4]))) % 97 == 1:
            from stdnum import iban  # pyright: ignore[reportMissingTypeStubs] - only texts with one pay for it

            if iban.is_valid(compact, check_country=False):  # national rules are stricter than banks are
                yield Match(whole.start(), whole.end(), compact)


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

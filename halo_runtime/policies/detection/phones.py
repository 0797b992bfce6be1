"""Phone numbers, by the numbering plans of `phonenumbers`.

A number with its country code needs nothing else. One without needs the shape that only phone numbers have (North
America, France) or a word before it that says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from halo_runtime.policies.detection.base import Match, before

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

_GAP: Final = r"[ \-.()/\t\r\n]"
_RUN: Final = re.compile(rf"\d(?:{_GAP}{{0,4}}\d){{6,}}+")
_END: Final = r"(?!x\.?\s?\d|ext)\w"
"""What no number is followed by: a letter or digit, but for an extension."""
_ABROAD: Final = re.compile(
    rf"(?:(?<![\d+])\+|(?<![\w+])(?:\(\+|00))[ (]{{0,2}}[1-9](?:{_GAP}{{0,4}}\d){{6,14}}+(?!{_GAP}?\d|{_END})"
)
_NORTH_AMERICA: Final = re.compile(
    r"(?<![\w.+])(?<!\d-)(?:1[ \-.]{1,2})?(?:\([2-9]\d{2}\)[ \-.\t\r\n]{0,3}|[2-9]\d{2}[ \-.\t\r\n]{1,3})"
    rf"[2-9]\d{{2}}[ \-.\t\r\n]{{1,3}}\d{{4}}(?!{_END}|[-.]\d)"
)
_FRANCE: Final = re.compile(r"(?<![\w.+-])0[1-9](?:[ .\-]\d{2}){4}(?![\w]|[.-]\d)")
_AT_HOME: Final = re.compile(rf"(?<![\w.+])\(?\d(?:{_GAP}{{0,3}}\d){{6,14}}+(?!{_GAP}?\d|\w)")
_SAYS_SO: Final = re.compile(
    r"(?:\b(?:tele)?phone|\bmobile|\bcell(?:phone| ?number)|\btel\b|\bfax|\bwhatsapp|\btelefon\w*|\bhandy|\bmobil\w*"
    r"|\brufnummer|\bt[eé]l[eé]phone|\bportable|\bt[eé]l\b|\btel[eé]fono|\bm[oó]vil|\bcelular|\bcellulare|\btelefoon"
    r"|\btelefone|\bтел|电话|手机|電話|携帯|هاتف|फ़ोन|☎|📞|📱)[^\d\n]{0,24}\Z"
)
_MAY_SAY_SO: Final = re.compile(
    r"\b(?:call|dial|ring|text|sms|reach|cell|number is|contact|nummer|num[eé]ro|appele[rz]"
    r"|llama\w*|chiama\w*|bel|anrufen|rufen? \w+ an|erreich\w*)\b"
    r"[^\d\n]{0,24}\Z"
)
_REGIONS: Final = (
    "US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "CH", "AT", "PL", "SE", "PT", "RU", "IN", "CN", "JP", "BR", "AU",
    "MX", "ZA",
)  # fmt: skip
"""Where a number may be at home that does not say so."""


def phones(text: str) -> Iterator[Match]:
    """All phone numbers in a text."""
    for run in _RUN.finditer(text):
        yield from _phones_in(text, max(0, run.start() - 3), run.end() + 2)


def _phones_in(text: str, begin: int, end: int) -> Iterator[Match]:
    """The phone numbers where digits stand close together."""
    for found in _ABROAD.finditer(text, begin, end):
        number = _abroad(found[0])
        if number is not None:
            yield Match(found.start(), found.end(), number)
    for found in _NORTH_AMERICA.finditer(text, begin, end):
        digits = _digits(found[0])[-10:]
        if digits.startswith("555") or _valid(digits, "US"):  # 555 is nobody's area: those of films and examples
            yield Match(found.start(), found.end(), f"+1{digits}")
    for found in _FRANCE.finditer(text, begin, end):
        if _valid(_digits(found[0]), "FR"):
            yield Match(found.start(), found.end(), f"+33{_digits(found[0])[1:]}")
    for found in _AT_HOME.finditer(text, begin, end):
        context, digits = before(text, found.start(), 40), _digits(found[0])
        if _SAYS_SO.search(context) or (_MAY_SAY_SO.search(context) and _valid_anywhere(digits)):
            yield Match(found.start(), found.end(), digits)


@lru_cache(maxsize=1024)
def _abroad(written: str) -> str | None:
    """A number with its country code as +4989123456, where there can be such a number."""
    import phonenumbers  # only texts with something like a number pay for it

    digits = _digits(written.replace("(0)", ""))
    parsed = _parsed("+" + digits.removeprefix("00"), None)
    if parsed is None:
        return None
    possible = phonenumbers.is_possible_number_with_reason(parsed) == phonenumbers.ValidationResult.IS_POSSIBLE
    if not possible or (digits.startswith("00") and not phonenumbers.is_valid_number(parsed)):
        return None
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


def _valid_anywhere(digits: str) -> bool:
    return any(_valid(digits, region) for region in _REGIONS)


@lru_cache(maxsize=1024)
def _valid(digits: str, region: str) -> bool:
    import phonenumbers

    parsed = _parsed(digits, region)
    return parsed is not None and phonenumbers.is_valid_number(parsed)


def _parsed(written: str, region: str | None) -> PhoneNumber | None:
    import phonenumbers

    try:
        return phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return None


def _digits(written: str) -> str:
    return "".join(character for character in written if character.isdigit())

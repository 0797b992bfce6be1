"""Addresses on networks, of version 4 and 6, that may lead to somebody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from halo_runtime.policies.detection.base import Match, before

_DOT: Final = r"(?:\.|\s{0,2}[\[({]\s?(?:\.|dot)\s?[\])}]\s{0,2}|\s{1,2}(?:\.|dot)\s{1,2}|\.\s{1,2}|\s{1,2}\.)"
_FOUR: Final = re.compile(rf"(\d{{1,3}})({_DOT})(\d{{1,3}})({_DOT})(\d{{1,3}})({_DOT})(\d{{1,3}})(?!\w|\.\d)")
_SIX: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{1,38}+(?:(?:\.\d{1,3}){3})?(?![\w:])")
_DOTTED: Final = re.compile(r"\d(?:\s{0,2}[.\[({]|\s{1,2}dot)\D{0,8}\d")
"""Two parts of an address of version 4, which is fast to look for."""
_TWO_COLONS: Final = re.compile(r":[0-9A-Fa-f]{0,4}:")
"""What every address of version 6 has."""
_IN_NUMBER: Final = re.compile(r"(?<!\bip)(?<=[\w.])\Z")
_NO_ADDRESS: Final = re.compile(
    r"(?:\bv|\bver\.?|\bversion|\brelease|\bbuild|\brev(?:ision)?|\bsection|\bchapter|\bclause|\bfigure|\btable|§"
    r"|\boid)\s*[:=]?\s*\Z"
)
_PRODUCT: Final = re.compile(r"(?<![/\w])[A-Z][A-Za-z]+/\Z")
"""`Chrome/120.0.0.0` is a version."""

_SUFFIX: Final = re.compile(r"[-+](?:alpha|beta|rc|dev|pre|snapshot)", re.IGNORECASE)


def addresses(text: str) -> Iterator[Match]:
    """All addresses but those that are everybody's own: loopback, none, all, masks, multicast."""
    if _DOTTED.search(text):
        yield from _fours(text)
    if _TWO_COLONS.search(text):
        for found in _SIX.finditer(text):
            address = _six(found[0])
            if address is not None:
                yield Match(found.start(), found.end(), address)


def _fours(text: str) -> Iterator[Match]:
    for found in _FOUR.finditer(text):
        if _IN_NUMBER.search(before(text, found.start(), 3)):
            continue
        octets = found.group(1, 3, 5, 7)
        apart = any(mark != "." for mark in found.group(2, 4, 6))
        if apart and not any(len(octet) == 3 for octet in octets):
            continue  # an enumeration
        address = _four(octets)
        if address is None or _NO_ADDRESS.search(before(text, found.start(), 20)):
            continue
        if _PRODUCT.search(text[max(0, found.start() - 30) : found.start()]) or _SUFFIX.match(text, found.end()):
            continue
        yield Match(found.start(), found.end(), address)


def _four(octets: Sequence[str]) -> str | None:
    values = [int(octet) for octet in octets]
    nobody = values[0] in (0, 127, 255) or 224 <= values[0] <= 239
    if nobody or max(values) > 255 or any(len(octet) > 1 and octet[0] == "0" for octet in octets):
        return None
    return ".".join(octets)


def _six(written: str) -> str | None:
    """An address in one spelling; only those of the ranges in use, as `a::b` is one too."""
    try:
        address = IPv6Address(written.rstrip(":") if written.endswith(":") and not written.endswith("::") else written)
    except AddressValueError:
        return None
    if address.ipv4_mapped is not None:
        return _four(str(address.ipv4_mapped).split("."))
    first = address.packed[0]
    in_use = 0x20 <= first <= 0x3F or first in (0xFC, 0xFD) or address.is_link_local
    return str(address) if in_use else None

"""`Allow(Domains: […])` and `Deny(Domains: […])`: where a reply links to, and where arguments of tools lead (spec 6).

A host is one of a domain's when it is the domain or ends with it at a label's border. What counts is the host that a
browser would go to: behind a user name in the address, with dots and letters of other scripts, percent-encoded, in
Markdown images too, which are loaded without anybody's click. Also hosts without a scheme are seen by `Deny`, but for
parts of a path: `docs.example.org/bad.example` leads to example.org.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from halo_lang.records import record
from halo_runtime.json_types import JsonObject
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule

_POINTS: Final[frozenset[Point]] = frozenset({"output", "tool"})

_ADDRESS = re.compile(
    r"""
    (?: \b[a-z][a-z0-9+.-]{1,20}: [\\/]{2,} | (?<![:\w/\\]) [\\/]{2} | \bmailto: )   # https://, //, mailto:
    (?P<authority> (?:[^\s/\\?\#"'<>`()\[\]{}|]*@)? (?:\[[0-9a-f:.%]+\] | [^\s/\\?\#"'<>`()\[\]{}|]+) )
    (?P<rest> [^\s"'<>`]* )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BARE = re.compile(r"(?<![\w./@\\%-])(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_](?:[\w-]*\w)?\.?(?![\w-])")
_DOTS = str.maketrans("。．｡", "...")


@record
class AllowedDomains:
    """No addresses but those of these domains."""

    domains: tuple[str, ...]
    points: frozenset[Point] = _POINTS

    def evaluate(self, examined: Examined) -> Decision:
        """Block a text with an address that leads elsewhere."""
        for view in examined.views:
            if any(not _is_of(host, self.domains) for host, _ in _addresses(view.text)):
                return Decision("block", "it holds an address of a domain that is not allowed", answers=True)
        return ALLOW


@record
class DeniedDomains:
    """No addresses of these domains."""

    domains: tuple[str, ...]
    points: frozenset[Point] = _POINTS

    def evaluate(self, examined: Examined) -> Decision:
        """Block a text with an address that leads there."""
        for view in examined.views:
            if any(_is_of(host, self.domains) for host in _hosts(view.text)):
                return Decision("block", "it holds an address of a domain that is denied", answers=True)
        return ALLOW


def allow_domains(args: JsonObject) -> PolicyRule:
    """`Allow(Domains: ["example.com"])`."""
    return AllowedDomains(tuple(map(_host, args["Domains"])))


def deny_domains(args: JsonObject) -> PolicyRule:
    """`Deny(Domains: ["bad.example"])`."""
    return DeniedDomains(tuple(map(_host, args["Domains"])))


def _hosts(text: str) -> Iterator[str]:
    """Every host that the text names."""
    at = 0
    for host, (start, end) in _addresses(text):
        yield from _bare_hosts(text[at:start])
        yield host
        at = end
    yield from _bare_hosts(text[at:])


def _addresses(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The host of each address that says how to get there, and where the address stands."""
    for found in _ADDRESS.finditer(text):
        yield _host(found["authority"]), found.span()


def _bare_hosts(text: str) -> Iterator[str]:
    """Hosts without anything in front; what stands behind their slash is a path."""
    at = 0
    while found := _BARE.search(text, at):
        yield _host(found[0])
        at = found.end()
        if text[at : at + 1] in ("/", "\\"):
            at = next((place for place in range(at, len(text)) if text[place].isspace()), len(text))


def _host(authority: str) -> str:
    """The host of an address's authority, in one spelling: lower case, Punycode, no port, no dot at the end."""
    text = unquote(authority).rpartition("@")[2].translate(_DOTS).lower()
    host = re.sub(r":\d*$", "", text).strip(".,;:!*_~")
    try:
        return host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        return host


def _is_of(host: str, domains: tuple[str, ...]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)

"""`Allow(Domains: […])` and `Deny(Domains: […])`: where a reply links to, and where arguments of tools lead (spec 6).

A host is one of a domain's when it is the domain or ends with it at a label's border. What counts is the host that a
browser would go to: behind a user name in the address, with dots and letters of other scripts, percent-encoded, in
Markdown images too, which are loaded without anybody's click. Also hosts without a scheme are seen by `Deny`, but for
parts of a path: `docs.example.org/bad.example` leads to example.org. An address within another counts for itself, as
what begins it may send on to it. Where browsers and other programs read an address differently, all readings count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from halo_lang.records import record
from halo_runtime.errors import ConfigError
from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_runtime.policies.base import ALLOW, Decision, Examined, Point, PolicyRule

_POINTS: Final[frozenset[Point]] = frozenset({"output", "tool"})

_AUTHORITY: Final = r"""[^\s/\\?\#"'<>`()\[\]{}|]"""
_ADDRESS = re.compile(
    rf"""
    (?: \b[a-z][a-z0-9+.-]{{1,20}}: [\\/]{{2,}} | (?<![:\w/\\]) [\\/]{{2}} | \bmailto:    # https://, //, mailto:
      | \b(?:https?|wss?|ftp): [\\/]? (?=[^\s\\/]{{1,253}}[.。])      # http:host, as browsers read it
      | (?<![\w./@\\%-]) (?=www\.) )                                 # what many programs link
    (?P<authority> (?:{_AUTHORITY}*@)? (?:\[[0-9a-f:.%]+\] | {_AUTHORITY}+) )
    (?P<other> [\\]{_AUTHORITY}*@{_AUTHORITY}+ )?                    # http://one\@other
    """,
    re.VERBOSE | re.IGNORECASE,
)
_REST = re.compile(r"""[^\s"'<>`()\[\]|]*""")
"""What stands behind the host of an address and belongs to it."""
_BARE = re.compile(r"(?<![\w./@\\%-])(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_](?:[\w-]*\w)?\.?(?![\w-])")
_BROKEN = re.compile(r"[\t\r\n]+")
"""What browsers pass over in an address: `https://bad.exa\\nmple`."""
_DOTS = str.maketrans("。．｡", "...")
_DOMAIN = re.compile(r"(?!-)[^\W_](?:[\w-]{0,61}[^\W_])?(?:\.[^\W_](?:[\w-]{0,61}[^\W_])?)*|[0-9a-f:]*:[0-9a-f:.]*")
_LEADS: Final = frozenset({"base", "domain", "endpoint", "host", "hostname", "href", "link", "server", "site", "src",
                           "uri", "url", "website"})  # fmt: skip
"""Arguments of tools whose text is an address as a whole, with or without a scheme."""


@record
class AllowedDomains:
    """No addresses but those of these domains."""

    domains: tuple[str, ...]
    points: frozenset[Point] = _POINTS

    def evaluate(self, examined: Examined) -> Decision:
        """Block a text with an address that leads elsewhere."""
        led = (host for view in examined.views for host in _led_to(view.text))
        if any(not _is_of(host, self.domains) for host in (*led, *_arguments(examined))):
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
    """`Allow(Domains: ["example.com"])`; an empty list allows no address. Raises ConfigError for what is no domain."""
    return AllowedDomains(tuple(_domain("Allow", written) for written in args["Domains"]))


def deny_domains(args: JsonObject) -> PolicyRule:
    """`Deny(Domains: ["bad.example"])`. Raises ConfigError for what is no domain, and where there is none."""
    if not args["Domains"]:
        raise ConfigError("Deny(Domains: []) denies nothing; name the domains")
    return DeniedDomains(tuple(_domain("Deny", written) for written in args["Domains"]))


def _domain(rule: str, written: Json) -> str:
    """A domain of a policy in the spelling that hosts are told in; another would match nothing."""
    domain = _host(written) if isinstance(written, str) else ""
    is_read_whole = not str(written).isascii() or domain == str(written).lower().rstrip(".")
    if not is_read_whole or not _DOMAIN.fullmatch(domain.strip("[]")):
        raise ConfigError(
            f'{rule}(Domains: …): {written!r} is no domain; write the host name alone, such as "example.com": its'
            " subdomains count too"
        )
    return domain


def _hosts(text: str) -> Iterator[str]:
    """Every host that the text names."""
    at = 0
    for found in _ADDRESS.finditer(text):
        yield from _of(found)
        if found.start() >= at:
            yield from _bare_hosts(text[at : found.start()])
        rest = _REST.match(text, found.end())
        at = max(at, found.end() if rest is None else rest.end())
    yield from _bare_hosts(text[at:])
    if _BROKEN.search(text) is not None:
        yield from _led_to(_BROKEN.sub("", text))


def _led_to(text: str) -> Iterator[str]:
    """The hosts of addresses that say how to get there."""
    for found in _ADDRESS.finditer(text):
        yield from _of(found)


def _of(address: re.Match[str]) -> Iterator[str]:
    """The host of an address, and the one that it has for programs which read it another way."""
    yield _host(address["authority"])
    if address["other"]:
        yield _host(address["other"])


def _arguments(examined: Examined) -> Iterator[str]:
    """The hosts that arguments of a tool are by their names, whether they say how to get there or not."""
    if examined.use is None:
        return
    for text in _named(examined.use.args):
        if "://" not in text and (found := _BARE.match(text.strip())):
            yield _host(found[0])


def _named(value: Json, name: str = "") -> Iterator[str]:
    """The texts of a value under names that say that they are addresses; its depth is bounded by the parser."""
    if isinstance(value, str) and name.lower() in _LEADS:
        yield value
    elif is_list(value):
        for item in value:
            yield from _named(item, name)
    elif is_object(value):
        for key, item in value.items():
            yield from _named(item, key)


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

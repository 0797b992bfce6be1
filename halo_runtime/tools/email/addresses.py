"""Mail addresses as programs and models write them: one way to write each, and who may get mail. Pure functions.

The grammar of RFC 5322 lets one text be read in several ways (comments, groups, quoted locals, routes), and readers
differ. Only what every one of them reads alike is taken: `ada@example.org` and `Ada Lovelace <ada@example.org>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from halo_lang.records import record
from halo_runtime.json_types import Json, is_list

MAX_RECIPIENTS: Final = 100
MAX_ADDRESS: Final = 254
MAX_NAME: Final = 100
ANYBODY: Final = "*"

_LOCAL: Final = re.compile(r"[A-Za-z0-9#$&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9#$&'*+/=?^_`{|}~-]+)*")
"""A dot-atom without `%` and `!`, which some servers take for a route to another domain."""
_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NAMED: Final = re.compile(r"(?P<name>[^<>]*)<(?P<address>[^<>]*)>")
_QUOTED: Final = re.compile(r'"(?P<name>[^"\\]*)"')
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ENCODED_WORD: Final = re.compile(r"=\?[^?\s]*\?[bq]\?", re.IGNORECASE)
_WRITTEN: Final = "write it like ada@example.org or Ada Lovelace <ada@example.org>, several of them as a list"


class AddressProblem(ValueError):
    """What is wrong with an address or with a text that goes into a header."""


@record
class MailAddress:
    """An address: `name` as shown, "" for none; `domain` in lower case, in ASCII."""

    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        """As servers take it."""
        return f"{self.local}@{self.domain}"


def header_text(text: str, what: str) -> str:
    """A text that may stand in a header. Raises AddressProblem for one that could end it or be read as another text."""
    stripped = text.strip()
    if _UNPRINTABLE.search(stripped):
        raise AddressProblem(f"{what} holds a line break or control characters, which no header can have")
    if _ENCODED_WORD.search(stripped):
        raise AddressProblem(f"{what} holds an encoded word (=?…?=); write the text itself")
    return stripped


def parse_address(text: str, what: str) -> MailAddress:
    """One address. Raises AddressProblem for everything that could be read in another way."""
    written = header_text(text, what)
    named = _NAMED.fullmatch(written)
    name, address = (named["name"].strip(), named["address"]) if named else ("", written)
    quoted = _QUOTED.fullmatch(name)
    if quoted:
        name = quoted["name"].strip()
    elif re.search(r'[",:;()\\\[\]@]', name):
        raise AddressProblem(f"{what} is no single plain address; {_WRITTEN}")
    if len(name) > MAX_NAME:
        raise AddressProblem(f"{what} has a name of more than {MAX_NAME} characters")
    local, at, domain = address.rpartition("@")
    if not at or _LOCAL.fullmatch(local) is None or len(local) > 64:
        raise AddressProblem(f"{what} is no single plain address; {_WRITTEN}")
    found = MailAddress(name, local, domain_name(domain, what))
    if len(found.address) > MAX_ADDRESS:
        raise AddressProblem(f"{what} is longer than {MAX_ADDRESS} characters")
    return found


def parse_addresses(given: Json, what: str) -> tuple[MailAddress, ...]:
    """The addresses of an argument: a text, or a list of texts. Raises AddressProblem."""
    if given is None:
        return ()
    texts: list[Json] = given if is_list(given) else [given]
    found: list[MailAddress] = []
    for number, text in enumerate(texts, 1):
        called = what if len(texts) == 1 else f"{what} ({number})"
        if not isinstance(text, str):
            raise AddressProblem(f"{called} is no text; {_WRITTEN}")
        found.append(parse_address(text, called))
    return tuple(found)


def domain_name(text: str, what: str) -> str:
    """A domain in ASCII, as servers compare it; letters that only look alike stay different. Raises AddressProblem."""
    domain = text.lower()
    if not domain.isascii():
        import idna

        try:
            domain = idna.encode(text, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise AddressProblem(f"{what} has a domain that there cannot be") from None
    labels = domain.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels) or labels[-1].isdigit():
        raise AddressProblem(f"{what} has a domain that there cannot be; {_WRITTEN}")
    return domain


@record
class Recipients:
    """Who may get mail, from `allowRecipients`: `addresses` exactly, every address of `domains`, or `anybody`."""

    addresses: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    anybody: bool = False

    @classmethod
    def of(cls, entries: Iterable[str]) -> Recipients:
        """Raises AddressProblem for an entry that is neither an address, nor `@domain`, nor `*`."""
        addresses, domains, anybody = set[str](), set[str](), False
        for entry in entries:
            what, text = f"allowRecipients: `{entry}`", entry.strip()
            if text == ANYBODY:
                anybody = True
            elif text.startswith("@"):
                domains.add(domain_name(text[1:], what))
            elif "@" not in text:
                raise AddressProblem(f'{what} is no address; for everybody at a domain write "@example.org"')
            else:
                addresses.add(parse_address(text, what).address.lower())
        return cls(frozenset(addresses), frozenset(domains), anybody)

    def allow(self, address: MailAddress) -> bool:
        """Whether mail may go there. Addresses are compared without letter case, subdomains are other domains."""
        return self.anybody or address.address.lower() in self.addresses or address.domain in self.domains

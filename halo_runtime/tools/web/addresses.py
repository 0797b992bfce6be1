"""Which addresses tools may connect to by themselves: those of the public internet (spec 5, reference 2.1).

Asked of the address that is connected to and never of a name, so it does not matter how an address was written
(`2130706433`, `0x7f.1`, `[::ffff:127.0.0.1]`), what a name leads to today, or where a redirect came from.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from halo_lang.records import record

Address: TypeAlias = IPv4Address | IPv6Address

_NAT64: Final = IPv6Network("64:ff9b::/96")
"""IPv6-only networks reach every IPv4 address through it, public ones too; the last four bytes say which."""

_CLOSED: Final[tuple[tuple[IPv4Network | IPv6Network, str], ...]] = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("168.63.129.16/32", "the address of a cloud's own service"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("127.0.0.0/8", "this machine itself"),
        ("0.0.0.0/8", "this machine itself"),
        ("100.64.0.0/10", "shared by a provider's network"),
        ("192.0.0.0/24", "reserved, and a cloud's metadata"),
        ("192.88.99.0/24", "reserved"),
        ("::1/128", "this machine itself"),
        ("::/96", "reserved"),
        ("64:ff9b:1::/48", "private"),
        ("2001::/32", "a tunnel"),
        ("2002::/16", "a tunnel"),
        ("3fff::/20", "reserved"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("fc00::/7", "private"),
    )
)
"""More than `ipaddress` of every Python refuses, or with a better word for it."""


def why_closed(text: str) -> str | None:
    """What an address is, in words, where no tool may connect to it by itself; None for a public one.

    `text` is an address as the resolver gives it, perhaps with a zone (`fe80::1%eth0`). What is none is closed.
    """
    try:
        address = _embedded(ip_address(text.partition("%")[0]))
    except ValueError:
        return "no address"
    closed = next((kind for network, kind in _CLOSED if address in network), None)
    if closed is not None:
        return closed
    if address.is_multicast:
        return "for groups of machines"
    return None if address.is_global and not address.is_reserved else "private or reserved"


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, where it stands for one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


@record
class AllowedHosts:
    """The hosts that a declaration names in `allowHosts`, as names or addresses, each perhaps with a port."""

    entries: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entries: Iterable[str]) -> AllowedHosts:
        return cls(frozenset(_plain(entry) for entry in entries))

    def include(self, host: str, port: int) -> bool:
        """Whether `host`, as the URL has it, is named, for every port or for this one."""
        name = _plain(host)
        bracketed = f"[{name}]" if ":" in name else name
        return not self.entries.isdisjoint((name, bracketed, f"{bracketed}:{port}"))


def _plain(host: str) -> str:
    return host.strip().lower().removesuffix(".")

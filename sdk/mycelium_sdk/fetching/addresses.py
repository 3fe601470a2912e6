"""Which addresses may be connected to on the word of a stranger: public ones, and nothing else.

The lists are those of the IANA special-purpose address registries (RFC 6890 and its updates). An IPv6 address
that carries an IPv4 address is judged by that one, since that is where the packets go.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Address", "Network", "is_allowed", "parse_address", "targets"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by carriers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, where clouds serve their secrets
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
_GLOBAL_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def parse_address(text: str) -> Address | None:
    """The address that a resolver gave, or that stands in a URL; None if it is none, or names a zone."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if getattr(address, "scope_id", None) else address


def is_allowed(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Whether to connect to this address: it is public, or in one of the networks that were allowed."""
    return all(_is_public(target) or _within(target, allowed) for target in targets(address))


def targets(address: Address) -> Iterator[Address]:
    """Where packets for this address go: itself, or the IPv4 addresses that it carries."""
    if isinstance(address, IPv4Address):
        yield address
        return
    number = int(address)
    if address in _MAPPED or address in _NAT64:
        yield IPv4Address(number & 0xFFFF_FFFF)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address((number >> 80) & 0xFFFF_FFFF)
    elif address in _TEREDO:
        yield IPv4Address((number >> 64) & 0xFFFF_FFFF)
        yield IPv4Address((number & 0xFFFF_FFFF) ^ 0xFFFF_FFFF)
    else:
        yield address
        if (number >> 32) & 0xFFFF_FFFF in _ISATAP:
            yield IPv4Address(number & 0xFFFF_FFFF)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not _within(address, _NOT_PUBLIC_4)
    return address in _GLOBAL_UNICAST_6 and not _within(address, _NOT_PUBLIC_6)


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)

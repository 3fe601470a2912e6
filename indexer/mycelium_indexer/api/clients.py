"""Who is asking, and how often: the client's address behind trusted proxies, and the rate limit."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mycelium_indexer.api.settings import IpNetwork

__all__ = ["RateLimit", "client_of"]

_MOST_HOPS = 32
_IPV6_PREFIX = 64
"""One customer has at least this much, so a client is not one address of it."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_of(peer: str | None, forwarded: Sequence[str], trusted: Sequence[IpNetwork]) -> str:
    """The client behind a connection: an IPv4 address, an IPv6 network, or '' where it cannot be told.

    `forwarded` are the values of X-Forwarded-For. They count only if the peer is trusted, and are read from
    the end: the last address that no trusted proxy has is the client. What stands before it is hearsay.
    """
    address = _parse(peer or "")
    if address is None:
        return ""
    hops = ",".join(forwarded).split(",")[-_MOST_HOPS:] if forwarded else []
    while hops and _is_in(address, trusted):
        further = _parse(hops.pop().strip())
        if further is None:
            break
        address = further
    if address.version == 6:
        return str(ipaddress.ip_network((int(address), _IPV6_PREFIX), strict=False))
    return str(address)


def _parse(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if address.version == 6 else None
    return address if mapped is None else mapped


def _is_in(address: _Address, networks: Sequence[IpNetwork]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


class RateLimit:
    """So many requests per minute from each client, a whole minute's at once if they come so.

    Keeps one number for a client (the generic cell rate algorithm), of the clients that asked last.
    `clock`: seconds, never going back. Belongs to one event loop.
    """

    def __init__(
        self, per_minute: int, *, clock: Callable[[], float] = time.monotonic, most_clients: int = 100_000
    ) -> None:
        self._spacing = 60.0 / per_minute
        self._burst = 60.0
        self._clock = clock
        self._most = most_clients
        self._due: OrderedDict[str, float] = OrderedDict()

    def take(self, client: str) -> int | None:
        """None if the client may ask now, else after how many whole seconds it may."""
        now = self._clock()
        due = max(self._due.get(client, now), now) + self._spacing
        wait = due - self._burst - now
        if wait > 1e-9:
            return max(1, math.ceil(wait))
        self._due[client] = due
        self._due.move_to_end(client)
        while len(self._due) > self._most:
            self._due.popitem(last=False)
        return None

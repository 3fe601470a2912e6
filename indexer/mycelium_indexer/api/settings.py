"""How the API is set up: which anchors it answers about by default, and what it spends on whom."""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.networks import MAINNET_PASSPHRASE, STANDALONE_PASSPHRASE, TESTNET_PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["NETWORK_NAMES", "REMOTE_RATE_LIMIT", "ApiSettings", "IpNetwork", "is_loopback", "parse_networks"]

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

NETWORK_NAMES = {
    "local": STANDALONE_PASSPHRASE,
    "standalone": STANDALONE_PASSPHRASE,
    "testnet": TESTNET_PASSPHRASE,
    "mainnet": MAINNET_PASSPHRASE,
}
"""What `?network=` may be besides a passphrase."""

REMOTE_RATE_LIMIT = 600
"""Requests per minute and client, where none is configured and others than this machine can connect."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What the API is told.

    `network` (a passphrase) and `contract` (C...) are answered about unless a request names others; None
    leaves the choice to what the database holds, if that is one contract only. `rate_limit`: requests per
    minute and client, 0 for no limit. `trusted_proxies`: whose X-Forwarded-For counts. `access_log`: one line
    for each request. `readers`: threads that ask the database; `most_waiting`: requests that may wait for
    one, others are sent away with 503. `standing_seconds`: how long it is remembered how far the chain was
    followed. `clock`: Unix seconds.
    """

    network: str | None = None
    contract: str | None = None
    rate_limit: int = 0
    trusted_proxies: tuple[IpNetwork, ...] = ()
    access_log: bool = True
    readers: int = 4
    most_waiting: int = 256
    standing_seconds: float = 0.1
    clock: Callable[[], float] = time.time


def parse_networks(texts: Iterable[str]) -> tuple[IpNetwork, ...]:
    """IP addresses and networks, as the configuration has checked them."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to what listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Accounts with names, whose keys everybody can know: the same on every chain of a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from stellar_sdk import Keypair

NAMES: Final = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy")


@dataclass(frozen=True, slots=True)
class NamedAccount:
    """`address`: G...; `secret`: S..., worth nothing anywhere else; `funded`: whether the account is there.

    Never send anything of value to such an address, on any network.
    """

    name: str
    address: str
    secret: str = field(repr=False)
    funded: bool


def keypair(network_id: bytes, name: str) -> Keypair:
    """The key of a named account. It depends on the network, so that a public one has others."""
    seed = sha256(b"mycelium-localnet account\0" + network_id + name.encode()).digest()
    return Keypair.from_raw_ed25519_seed(seed)

"""The networks by name: their passphrases, and where their RPC server is.

A network's passphrase is part of everything that is signed, so a signature for one network is worth nothing
on another. `local` is the chain embedded in this process and has no URL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ConfigError

if TYPE_CHECKING:
    from mycelium_sdk.config import Configuration

STANDALONE_PASSPHRASE = "Standalone Network ; February 2017"  # noqa: S105 - public
TESTNET_PASSPHRASE = "Test SDF Network ; September 2015"  # noqa: S105
MAINNET_PASSPHRASE = "Public Global Stellar Network ; September 2015"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Network:
    """One network. `public` is true where strangers see what is anchored. The URL may hold an access key."""

    name: str
    passphrase: str
    rpc_url: str | None = field(repr=False)
    public: bool


_NETWORKS = {
    network.name: network
    for network in (
        Network("local", STANDALONE_PASSPHRASE, None, public=False),
        Network("standalone", STANDALONE_PASSPHRASE, "http://localhost:8000/rpc", public=False),
        Network("testnet", TESTNET_PASSPHRASE, "https://soroban-testnet.stellar.org", public=True),
        Network("mainnet", MAINNET_PASSPHRASE, None, public=True),
    )
}


def resolve_network(name: str | None, configuration: Configuration) -> Network:
    """The network of that name (default: the configured one), with what the configuration says about it.

    `rpc_url` and `network_passphrase` of the configuration belong to the network that it names, so they are
    not used for another; where it names none, they belong to whichever is asked for. Raises `ConfigError` for
    an unknown name, for `mainnet` without an `rpc_url` (there is no free default), for `local` with one (it
    has no server), and for a passphrase that contradicts a public network's.
    """
    from mycelium_sdk.config_values import nearest

    settings = configuration.onchain
    name = settings.network if name is None else name
    known = _NETWORKS.get(name)
    if known is None:
        close = nearest(name.lower(), tuple(_NETWORKS))
        raise ConfigError(
            f"unknown network {name!r}",
            hint=f"did you mean {close!r}?" if close else f"the networks are {', '.join(_NETWORKS)}",
        )
    described = settings.network in {name, "local"}
    passphrase = (settings.network_passphrase if described else None) or known.passphrase
    if known.public and passphrase != known.passphrase:
        raise ConfigError(
            f"network_passphrase is not that of {name}",
            hint="remove it, or use the network `standalone` with this passphrase and an rpc_url",
        )
    if name == "local":
        if described and settings.rpc_url is not None:
            raise ConfigError(
                "an RPC server is given, and the network local is embedded: it has none",
                hint="name the server's network, e.g. `--network standalone`; or leave out --rpc-url,"
                " MYCELIUM_RPC_URL and `rpc_url` in mycelium.toml",
            )
        return Network(name, passphrase, None, public=False)
    url = (settings.rpc_url if described else None) or known.rpc_url
    if url is None:
        raise ConfigError(
            f"the network {name} needs the URL of an RPC server, and there is no free default",
            hint="set `rpc_url` under [onchain] in mycelium.toml, or MYCELIUM_RPC_URL",
        )
    return Network(name, passphrase, url, public=known.public)

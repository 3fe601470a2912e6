"""The networks, and what the configuration says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Network as StellarNetwork

from mycelium_sdk.config import NETWORKS, Configuration, load_configuration
from mycelium_sdk.errors import ConfigError
from mycelium_sdk.networks import resolve_network

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://rpc.example.org/v1/secret-key"


@pytest.fixture
def plain(tmp_path: Path) -> Configuration:
    """A configuration without anything in it."""
    return load_configuration(tmp_path, {})


def _configured(tmp_path: Path, **settings: str) -> Configuration:
    return load_configuration(tmp_path, {}, {f"onchain.{name}": value for name, value in settings.items()})


def test_passphrases_are_those_of_stellar_sdk(plain: Configuration) -> None:
    configuration = plain
    standalone = StellarNetwork.STANDALONE_NETWORK_PASSPHRASE
    assert resolve_network("local", configuration).passphrase == standalone
    assert resolve_network("standalone", configuration).passphrase == standalone
    assert resolve_network("testnet", configuration).passphrase == StellarNetwork.TESTNET_NETWORK_PASSPHRASE


def test_what_is_known_without_configuration(plain: Configuration) -> None:
    seen = {
        name: (network.rpc_url, network.public)
        for name in ("local", "standalone", "testnet")
        for network in [resolve_network(name, plain)]
    }
    assert seen == {
        "local": (None, False),
        "standalone": ("http://localhost:8000/rpc", False),
        "testnet": ("https://soroban-testnet.stellar.org", True),
    }


def test_the_default_is_the_configured_network(tmp_path: Path, plain: Configuration) -> None:
    assert resolve_network(None, plain).name == "local"
    assert resolve_network(None, _configured(tmp_path, network="testnet")).name == "testnet"


def test_mainnet_needs_a_url(tmp_path: Path, plain: Configuration) -> None:
    with pytest.raises(ConfigError, match="mainnet needs the URL") as caught:
        resolve_network("mainnet", plain)
    assert "rpc_url" in (caught.value.hint or "")
    network = resolve_network("mainnet", _configured(tmp_path, rpc_url=URL))
    assert (network.rpc_url, network.public) == (URL, True)
    assert network.passphrase == StellarNetwork.PUBLIC_NETWORK_PASSPHRASE
    assert "secret-key" not in repr(network)


def test_settings_of_one_network_are_not_used_for_another(tmp_path: Path) -> None:
    configuration = _configured(tmp_path, network="testnet", rpc_url=URL)
    assert resolve_network("testnet", configuration).rpc_url == URL
    assert resolve_network("standalone", configuration).rpc_url == "http://localhost:8000/rpc"
    assert resolve_network("local", configuration).rpc_url is None
    with pytest.raises(ConfigError, match="needs the URL"):
        resolve_network("mainnet", configuration)


def test_a_private_network_may_have_its_own_passphrase(tmp_path: Path) -> None:
    own = _configured(tmp_path, network="standalone", network_passphrase="Our Network ; 2026")
    assert resolve_network("standalone", own).passphrase == "Our Network ; 2026"
    assert resolve_network("local", own).passphrase == StellarNetwork.STANDALONE_NETWORK_PASSPHRASE


def test_a_public_network_has_only_one_passphrase(tmp_path: Path) -> None:
    wrong = _configured(tmp_path, network="testnet", network_passphrase="Our Network ; 2026")
    with pytest.raises(ConfigError, match="not that of testnet"):
        resolve_network(None, wrong)
    right = _configured(
        tmp_path, network="testnet", network_passphrase=StellarNetwork.TESTNET_NETWORK_PASSPHRASE
    )
    assert resolve_network(None, right).public


def test_an_unknown_network_names_the_nearest(plain: Configuration) -> None:
    with pytest.raises(ConfigError, match="unknown network 'Testnt'") as caught:
        resolve_network("Testnt", plain)
    assert caught.value.hint == "did you mean 'testnet'?"
    with pytest.raises(ConfigError) as caught:
        resolve_network("x", plain)
    assert all(name in (caught.value.hint or "") for name in NETWORKS)


@pytest.mark.parametrize(
    ("file", "env", "overrides", "refused"),
    [
        ("", {}, {"rpc_url": URL}, True),
        ("", {"MYCELIUM_RPC_URL": URL}, {}, True),
        ("", {"MYCELIUM_RPC_URL": URL}, {"network": "local"}, True),
        ('network = "local"\nrpc_url = "https://a.org"', {}, {}, True),
        ('rpc_url = "https://a.org"', {}, {}, True),
        ('network = "testnet"', {}, {"network": "local", "rpc_url": URL}, True),
        # A server of another network, which was not chosen, is no concern of this one.
        ('rpc_url = "https://a.org"', {}, {"network": "local"}, False),
        ('network = "testnet"\nrpc_url = "https://a.org"', {}, {"network": "local"}, False),
        ("", {"MYCELIUM_NETWORK": "testnet", "MYCELIUM_RPC_URL": URL}, {"network": "local"}, False),
    ],
)
def test_a_server_for_the_embedded_chain_is_refused(
    tmp_path: Path, file: str, env: dict[str, str], overrides: dict[str, str], *, refused: bool
) -> None:
    (tmp_path / "mycelium.toml").write_text(f"[onchain]\n{file}\n")
    found = load_configuration(tmp_path, env, {f"onchain.{key}": value for key, value in overrides.items()})
    if not refused:
        assert resolve_network(None, found).rpc_url is None
        return
    with pytest.raises(ConfigError, match="network local is embedded") as caught:
        resolve_network(None, found)
    assert "--network standalone" in (caught.value.hint or "")
    assert URL not in str(caught.value)
    assert resolve_network("testnet", found).rpc_url in {URL, "https://a.org"}

"""The first ledger: what every chain begins with, and what tells chains apart."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, xdr

from mycelium_localnet import Chain, errors
from mycelium_localnet.clock import FROZEN_START
from mycelium_localnet.genesis import STANDALONE_PASSPHRASE

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_localnet.profiles import ProfileName

NULL_ACCOUNT = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"


def entry_of(chain: Chain, address: str) -> xdr.AccountEntry | None:
    account = xdr.LedgerKeyAccount(Keypair.from_public_key(address).xdr_account_id())
    key = xdr.LedgerKey(xdr.LedgerEntryType.ACCOUNT, account=account)
    with chain.read() as view:
        found = view.entry(key.to_xdr_bytes())
    return None if found is None else xdr.LedgerEntry.from_xdr_bytes(found[0]).data.account


def test_the_first_ledger() -> None:
    with Chain.open(":memory:", clock="frozen") as chain, chain.read() as view:
        ledger = view.latest()
        assert view.oldest() == ledger
        assert (ledger.sequence, ledger.close_time) == (1, FROZEN_START)
        assert ledger.hash == sha256(ledger.header).digest()
        header = xdr.LedgerHeader.from_xdr_bytes(ledger.header)
        assert header.to_xdr_bytes() == ledger.header
        assert header.ledger_version.uint32 == 28
        assert header.base_fee.uint32 == 100
        assert header.base_reserve.uint32 == 5_000_000
        assert header.total_coins.int64 == 10**18


def test_identity_as_of_the_usual_local_network() -> None:
    with Chain.open(":memory:") as chain:
        assert chain.passphrase == STANDALONE_PASSPHRASE == "Standalone Network ; February 2017"
        assert chain.network_id == sha256(STANDALONE_PASSPHRASE.encode()).digest()
        # The root account that every tool for standalone networks knows.
        root = entry_of(chain, "GBZXN7PIRZGNMHGA7MUUUF4GWPY5AYPV6LY4UV2GL6VJGIQRXFDNMADI")
        friendbot = entry_of(chain, chain.friendbot)
        null = entry_of(chain, NULL_ACCOUNT)
        assert root is not None
        assert friendbot is not None
        assert null is not None
        assert root.balance.int64 + friendbot.balance.int64 + null.balance.int64 == 10**18
        assert null.seq_num.sequence_number.int64 == 1 << 32


def test_another_passphrase_is_another_network() -> None:
    with Chain.open(":memory:", passphrase="A network of my own") as chain:
        assert chain.network_id == sha256(b"A network of my own").digest()
        assert entry_of(chain, "GBZXN7PIRZGNMHGA7MUUUF4GWPY5AYPV6LY4UV2GL6VJGIQRXFDNMADI") is None


def test_the_chain_id_is_random_unless_seeded() -> None:
    found = []
    for seed in (None, None, b"one", b"one", b"two"):
        with Chain.open(":memory:", seed=seed, clock="frozen") as chain, chain.read() as view:
            assert len(bytes.fromhex(chain.chain_id)) == 32
            found.append((chain.chain_id, view.latest().hash))
    assert found[2] == found[3]
    assert len({chain_id for chain_id, _ in found}) == len({ledger for _, ledger in found}) == 4


@pytest.mark.parametrize(
    ("profile", "minimum", "maximum"),
    [("testnet", 120_960, 3_110_400), ("mainnet", 2_073_600, 3_110_400), ("short-ttl", 10, 40)],
)
def test_profiles(profile: ProfileName, minimum: int, maximum: int) -> None:
    with Chain.open(":memory:", profile=profile) as chain:
        assert chain.profile == profile
        assert chain.settings.min_persistent_entry_ttl == minimum
        assert chain.settings.max_entry_ttl == maximum
        # What all of them share with protocol 28's network.
        assert chain.settings.tx_max_instructions == 100_000_000
        assert chain.settings.fee_per_write_entry == 10_000


def test_the_configuration_is_on_the_ledger() -> None:
    kind = xdr.ConfigSettingID.CONFIG_SETTING_STATE_ARCHIVAL
    key = xdr.LedgerKey(xdr.LedgerEntryType.CONFIG_SETTING, config_setting=xdr.LedgerKeyConfigSetting(kind))
    with Chain.open(":memory:", profile="mainnet") as chain, chain.read() as view:
        found = view.entry(key.to_xdr_bytes())
        assert found is not None
        entry, live_until = xdr.LedgerEntry.from_xdr_bytes(found[0]), found[1]
        assert live_until is None
        assert entry.last_modified_ledger_seq.uint32 == 1
        assert entry.data.config_setting is not None
        archival = entry.data.config_setting.state_archival_settings
        assert archival is not None
        assert archival.min_persistent_ttl.uint32 == 2_073_600


def test_an_existing_chain_keeps_its_options(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, profile="short-ttl", seed=b"s", closing="manual", passphrase="Mine") as chain:
        chain_id = chain.chain_id
    with Chain.open(path) as again:
        assert (again.profile, again.passphrase, again.chain_id) == ("short-ttl", "Mine", chain_id)
    with Chain.open(path, profile="short-ttl", seed=b"s", closing="manual", passphrase="Mine", clock="wall"):
        pass


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "testnet"},
        {"seed": b"other"},
        {"clock": "frozen"},
        {"closing": "instant"},
        {"passphrase": "Another"},
    ],
)
def test_a_conflicting_option_is_refused(tmp_path: Path, options: dict[str, object]) -> None:
    path = tmp_path / "chain.db"
    seed = b"a seed that is long enough to be no part of a path"
    Chain.open(path, profile="short-ttl", seed=seed, closing="manual", passphrase="Mine").close()
    with pytest.raises(errors.OptionConflictError, match=next(iter(options))) as caught:
        Chain.open(path, **options)  # type: ignore[arg-type]
    assert caught.value.hint
    assert seed.hex() not in str(caught.value)  # only its owner needs it


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "moonnet"},
        {"seed": b""},
        {"seed": b"x" * 65},
        {"clock": "sun"},
        {"closing": "never"},
        {"passphrase": ""},
    ],
)
def test_an_impossible_option_leaves_no_file(tmp_path: Path, options: dict[str, object]) -> None:
    path = tmp_path / "chain.db"
    with pytest.raises(errors.InvalidRequestError):
        Chain.open(path, **options)  # type: ignore[arg-type]
    assert not path.exists()

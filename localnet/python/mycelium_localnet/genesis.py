"""The first ledger: the network's configuration and three accounts.

Root holds what nobody else does, as on any network that starts; its key is known (the network id is its
seed). The friendbot pays for new accounts. The null account belongs to nobody: the Python client's reads load
it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from stellar_sdk import Keypair, xdr

from mycelium_localnet import _native, headers, keys, profiles
from mycelium_localnet.accounts import new_account, starting_sequence
from mycelium_localnet.errors import InvalidRequestError
from mycelium_localnet.state import stored_state

if TYPE_CHECKING:
    import sqlite3

    from mycelium_localnet.clock import Clock
    from mycelium_localnet.profiles import ProfileName

STANDALONE_PASSPHRASE: Final = "Standalone Network ; February 2017"  # noqa: S105 - known to all
"""The passphrase that local networks usually have."""

BASE_FEE: Final = 100
BASE_RESERVE: Final = 5_000_000
_TOTAL_COINS: Final = 10**18  # 100 billion XLM
_FRIENDBOT_BALANCE: Final = _TOTAL_COINS // 2
_NULL_BALANCE: Final = 10_000 * 10**7
_NULL_KEY: Final = bytes(32)
_MAX_TX_SET_SIZE: Final = 1_000
_FIRST_LEDGER: Final = 1
_MAX_SEED: Final = 64


@dataclass(frozen=True)
class Identity:
    """What tells one chain from another. `seed`: hex; the chain id follows from it."""

    passphrase: str
    profile: ProfileName
    seed: str

    @classmethod
    def make(cls, passphrase: str | None, profile: ProfileName | None, seed: bytes | None) -> Identity:
        """Defaults filled in. Raises InvalidRequestError for what cannot be one."""
        if profile is not None and profile not in profiles.PROFILES:
            known = ", ".join(profiles.PROFILES)
            raise InvalidRequestError(f"there is no profile {profile!r}", hint=f"the profiles are {known}")
        if seed is not None and not 1 <= len(seed) <= _MAX_SEED:
            raise InvalidRequestError(f"a seed has 1 to {_MAX_SEED} bytes, not {len(seed)}")
        if passphrase is not None and not passphrase:
            raise InvalidRequestError("a network passphrase is not empty")
        return cls(
            STANDALONE_PASSPHRASE if passphrase is None else passphrase,
            profile or "testnet",
            (secrets.token_bytes(32) if seed is None else seed).hex(),
        )

    @property
    def network_id(self) -> bytes:
        return sha256(self.passphrase.encode()).digest()

    @property
    def chain_id(self) -> bytes:
        """32 bytes that name this very chain: another chain of the same network has another."""
        return sha256(b"mycelium-localnet chain\0" + self.network_id + bytes.fromhex(self.seed)).digest()


def root_keypair(network_id: bytes) -> Keypair:
    """The account that holds everything at first, as stellar-core derives it."""
    return Keypair.from_raw_ed25519_seed(network_id)


def friendbot_keypair(network_id: bytes) -> Keypair:
    """The account that pays for new ones: the same on every chain of a network, so that runs repeat."""
    return Keypair.from_raw_ed25519_seed(sha256(b"mycelium-localnet friendbot\0" + network_id).digest())


def create(connection: sqlite3.Connection, identity: Identity, clock: Clock) -> None:
    """Write the first ledger into an empty chain file, within the caller's transaction."""
    state = stored_state(connection, _FIRST_LEDGER)
    for setting in profiles.config_entries(identity.profile):
        data = xdr.LedgerEntryData(xdr.LedgerEntryType.CONFIG_SETTING, config_setting=setting)
        entry = xdr.LedgerEntry(xdr.Uint32(0), data, xdr.LedgerEntryExt(0)).to_xdr_bytes()
        state.put(keys.config_setting(setting.config_setting_id), entry, None)
    root = root_keypair(identity.network_id).raw_public_key()
    friendbot = friendbot_keypair(identity.network_id).raw_public_key()
    for public_key, balance in (
        (root, _TOTAL_COINS - _FRIENDBOT_BALANCE - _NULL_BALANCE),
        (friendbot, _FRIENDBOT_BALANCE),
        (_NULL_KEY, _NULL_BALANCE),
    ):
        sequence = starting_sequence(_FIRST_LEDGER)
        state.put(keys.account(public_key), new_account(public_key, balance, sequence), None)
    state.store(connection)
    close_time = clock.close_time(0)
    header = headers.Header(
        protocol=_native.PROTOCOL_VERSION,
        previous=bytes(32),
        tx_set_hash=headers.digest(headers.tx_set(bytes(32), (), (), BASE_FEE)),
        close_time=close_time,
        result_hash=headers.results_hash(()),
        state_hash=state.digest(identity.chain_id),
        sequence=_FIRST_LEDGER,
        total_coins=_TOTAL_COINS,
        fee_pool=0,
        base_fee=BASE_FEE,
        base_reserve=BASE_RESERVE,
        max_tx_set_size=_MAX_TX_SET_SIZE,
        skip_list=bytes(128),
    ).pack()
    connection.execute(
        "INSERT INTO ledgers (sequence, hash, close_time, header) VALUES (?, ?, ?, ?)",
        (_FIRST_LEDGER, headers.digest(header), close_time, header),
    )


def load_settings(connection: sqlite3.Connection) -> _native.NetworkSettings:
    """The host's view of the configuration that the chain file holds."""
    query = "SELECT entry FROM entries WHERE key = ?"
    found = [
        connection.execute(query, (keys.config_setting(identifier),)).fetchone()
        for identifier in xdr.ConfigSettingID
    ]
    # LedgerEntry: ledger and type before, extension behind the ConfigSettingEntry.
    return _native.NetworkSettings([row[0][8:-4] for row in found if row is not None])

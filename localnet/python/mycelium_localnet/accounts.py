"""Accounts: reserves, sequence numbers, signers, and making new ones. Amounts are in stroops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import xdr

from mycelium_localnet import keys
from mycelium_localnet.envelopes import present

if TYPE_CHECKING:
    from mycelium_localnet.state import State

_LOW, _MEDIUM = 1, 2  # places in the thresholds; place 0 is the master key's weight


class Account:
    """An account while a transaction works on it; `save` writes it back."""

    __slots__ = ("_entry", "entry", "key")

    def __init__(self, key: bytes, data: bytes) -> None:
        self.key = key
        self._entry = xdr.LedgerEntry.from_xdr_bytes(data)
        self.entry = present(self._entry.data.account)

    @classmethod
    def load(cls, state: State, public_key: bytes) -> Account | None:
        """The account as it stands; None when there is none."""
        key = keys.account(public_key)
        found = state.get(key)
        return None if found is None else cls(key, found.data)

    def save(self, state: State) -> None:
        """Write the account into the state."""
        state.put(self.key, self._entry.to_xdr_bytes(), None)

    @property
    def balance(self) -> int:
        return self.entry.balance.int64

    @property
    def sequence(self) -> int:
        return self.entry.seq_num.sequence_number.int64

    def add_balance(self, amount: int) -> None:
        """Add, or take away a negative amount; the caller has checked that it is there."""
        self.entry.balance = xdr.Int64(self.balance + amount)

    def available_balance(self, base_reserve: int) -> int:
        """What lies above the reserve and what offers hold; negative below it."""
        sponsored = sponsoring = liabilities = 0
        v1 = self.entry.ext.v1
        if v1 is not None:
            liabilities = v1.liabilities.selling.int64
            if v1.ext.v2 is not None:
                sponsored, sponsoring = v1.ext.v2.num_sponsored.uint32, v1.ext.v2.num_sponsoring.uint32
        units = 2 + self.entry.num_sub_entries.uint32 + sponsoring - sponsored
        return self.balance - units * base_reserve - liabilities

    @property
    def signers(self) -> list[tuple[bytes, int]]:
        """`(raw ed25519 public key, weight)` of the master key and every signer that has a weight."""
        master = (keys.account_of(self.key), self.entry.thresholds.thresholds[0])
        others = [
            (signer.key.ed25519.uint256, signer.weight.uint32)
            for signer in self.entry.signers
            if signer.key.ed25519 is not None
        ]
        return [master, *others] if master[1] else others

    @property
    def low_threshold(self) -> int:
        return self.entry.thresholds.thresholds[_LOW]

    @property
    def medium_threshold(self) -> int:
        return self.entry.thresholds.thresholds[_MEDIUM]

    @property
    def sequence_set(self) -> tuple[int, int]:
        """`(ledger, Unix seconds)` at which the sequence number got its value; zeros when not recorded."""
        v1 = self.entry.ext.v1
        v3 = v1.ext.v2.ext.v3 if v1 is not None and v1.ext.v2 is not None else None
        return (0, 0) if v3 is None else (v3.seq_ledger.uint32, v3.seq_time.time_point.uint64)

    def set_sequence(self, sequence: int, ledger: int, close_time: int) -> None:
        """Use up a sequence number, and record when."""
        account = self.entry
        account.seq_num = xdr.SequenceNumber(xdr.Int64(sequence))
        v1 = account.ext.v1
        if v1 is None:
            nothing = xdr.Liabilities(xdr.Int64(0), xdr.Int64(0))
            v1 = xdr.AccountEntryExtensionV1(nothing, xdr.AccountEntryExtensionV1Ext(0))
            account.ext = xdr.AccountEntryExt(1, v1)
        v2 = v1.ext.v2
        if v2 is None:
            unsponsored: list[xdr.SponsorshipDescriptor] = [
                xdr.SponsorshipDescriptor(None) for _ in account.signers
            ]
            v2 = xdr.AccountEntryExtensionV2(
                xdr.Uint32(0), xdr.Uint32(0), unsponsored, xdr.AccountEntryExtensionV2Ext(0)
            )
            v1.ext = xdr.AccountEntryExtensionV1Ext(2, v2)
        v2.ext = xdr.AccountEntryExtensionV2Ext(
            3,
            xdr.AccountEntryExtensionV3(
                xdr.ExtensionPoint(0), xdr.Uint32(ledger), xdr.TimePoint(xdr.Uint64(close_time))
            ),
        )


def new_account(public_key: bytes, balance: int, sequence: int) -> bytes:
    """LedgerEntry of a fresh account: master weight 1, thresholds 0, nothing else. The state stamps its
    ledger."""
    account = xdr.AccountEntry(
        account_id=xdr.AccountID(
            xdr.PublicKey(xdr.PublicKeyType.PUBLIC_KEY_TYPE_ED25519, xdr.Uint256(public_key))
        ),
        balance=xdr.Int64(balance),
        seq_num=xdr.SequenceNumber(xdr.Int64(sequence)),
        num_sub_entries=xdr.Uint32(0),
        inflation_dest=None,
        flags=xdr.Uint32(0),
        home_domain=xdr.String32(b""),
        thresholds=xdr.Thresholds(b"\x01\x00\x00\x00"),
        signers=[],
        ext=xdr.AccountEntryExt(0),
    )
    data = xdr.LedgerEntryData(xdr.LedgerEntryType.ACCOUNT, account=account)
    return xdr.LedgerEntry(xdr.Uint32(0), data, xdr.LedgerEntryExt(0)).to_xdr_bytes()


def starting_sequence(ledger: int) -> int:
    """The sequence number of an account that is created in `ledger`."""
    return ledger << 32

"""The chain: opening a chain file, handing in transactions, closing ledgers, and reading."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Self

from stellar_sdk import Asset, StrKey
from stellar_sdk.xdr import TransactionResultCode

from mycelium_localnet import closing as ledgers
from mycelium_localnet import genesis, options, results
from mycelium_localnet.clock import FROZEN_START, Clock
from mycelium_localnet.context import LedgerContext, Network
from mycelium_localnet.envelopes import UnsupportedEnvelope, decode
from mycelium_localnet.errors import InvalidRequestError
from mycelium_localnet.headers import Header
from mycelium_localnet.rows import EventPosition, EventRow, LedgerRow, Submission, TransactionRow
from mycelium_localnet.storage import Storage, create_tables, is_new
from mycelium_localnet.view import ReadView
from mycelium_localnet.writer import Writer

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Iterator
    from types import TracebackType

    from mycelium_localnet._native import LedgerInfo, NetworkSettings
    from mycelium_localnet.clock import ClockMode
    from mycelium_localnet.options import ClosingMode
    from mycelium_localnet.profiles import ProfileName

__all__ = ["Chain", "EventPosition", "EventRow", "LedgerRow", "ReadView", "Submission", "TransactionRow"]

_MAX_SKIP: Final = 10_000_000
_FUNDED: Final = 10_000 * 10**7


class Chain:
    """One embedded chain. Thread-safe; several processes may open the same file at once.

    Attributes: `path`, `passphrase`, `network_id` (32 bytes, SHA-256 of the passphrase), `chain_id` (64 hex
    digits, random unless seeded), `profile`, `settings` (the host's parsed network settings), `friendbot`
    (G...).
    """

    path: str
    passphrase: str
    network_id: bytes
    chain_id: str
    profile: ProfileName
    settings: NetworkSettings
    friendbot: str

    def __init__(self, storage: Storage) -> None:
        """Use `open`, which makes the first ledger when there is none."""
        self._storage = storage
        self.path = storage.path
        with storage.read() as connection:
            identity = options.load_identity(connection)
            settings = genesis.load_settings(connection)
        self.passphrase, self.profile = identity.passphrase, identity.profile
        self.network_id, self.chain_id = identity.network_id, identity.chain_id.hex()
        self._friendbot = genesis.friendbot_keypair(self.network_id)
        self.friendbot = self._friendbot.public_key
        native_contract = StrKey.decode_contract(Asset.native().contract_id(self.passphrase))
        self._network = Network(self.network_id, settings, native_contract)
        self.settings = settings

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        profile: ProfileName | None = None,
        seed: bytes | None = None,
        clock: ClockMode | None = None,
        closing: ClosingMode | None = None,
        passphrase: str | None = None,
    ) -> Self:
        """Open the chain at `path`, with its first ledger when it is new. `":memory:"`: a chain of this
        object's own, gone when it is closed.

        Options apply to a new chain; None takes what an existing chain has, or the default: profile
        "testnet", a random seed, clock "wall", closing "instant", passphrase `Standalone Network ; February
        2017`. `seed`: 1 to 64 bytes, the chain id follows from it. `closing`: "instant" closes a ledger for
        each accepted transaction, "manual" keeps transactions pending until `close_ledger`.

        Raises OptionConflictError, InvalidRequestError, ForeignFileError, NewerFileError, UnsafeFileError,
        ChainFileError (no such folder, unreadable), ChainBusyError.
        """
        requested = options.Requested(passphrase, profile, seed, clock, closing)
        requested.check()
        storage = Storage(path)
        try:
            # Looking first keeps a chain that is there from waiting for its writers.
            with storage.read() as connection:
                known = None if is_new(connection) else options.load(connection)
            if known is None:
                with storage.write() as connection:
                    if is_new(connection):
                        _create(connection, requested)
                    known = options.load(connection)
            requested.check_against(known, storage.path)
            return cls(storage)
        except BaseException:
            storage.close()
            raise

    @contextmanager
    def read(self) -> Iterator[ReadView]:
        """One consistent state to read from. Raises ChainClosedError, ChainReplacedError."""
        with self._storage.read() as connection:
            yield ReadView(connection, self.settings.fee_per_write_1kb)

    def ledger_info(self, ledger: LedgerRow) -> LedgerInfo:
        """What the host needs to know of a ledger, such as the last closed one for a simulation."""
        header = Header.unpack(ledger.header)
        return LedgerContext.of(self._network, header, ledger.sequence, ledger.close_time).host_info

    def submit(self, envelope: bytes) -> Submission:
        """Hand in a TransactionEnvelope (XDR), with the meaning of the RPC's sendTransaction. With instant
        closing an accepted transaction is applied, and its ledger closed, before this returns.

        Raises MalformedEnvelopeError, ChainBusyError, ChainClosedError, ChainReplacedError.
        """
        decoded = decode(envelope, self.network_id)
        with self._storage.write() as connection:
            writer = Writer(self._network, connection)
            if isinstance(decoded, UnsupportedEnvelope):
                return writer.refuse(decoded.hash, results.refused(TransactionResultCode.txNOT_SUPPORTED), 0)
            return writer.submit(decoded)

    def close_ledger(self) -> int:
        """Close one ledger with what is pending (perhaps nothing) and return its number."""
        with self._storage.write() as connection:
            return Writer(self._network, connection).close().sequence

    def skip_ledgers(self, count: int) -> int:
        """Close `count` ledgers at once: the first with what is pending, the others empty. Returns the last
        number.

        The clock does not move: time bounds are the wall clock's. History older than 120,960 ledgers is
        forgotten, as the RPC does. Raises InvalidRequestError unless 1 <= count <= 10,000,000.
        """
        if not 1 <= count <= _MAX_SKIP:
            raise InvalidRequestError(f"1 to {_MAX_SKIP:,} ledgers can be skipped at once, not {count:,}")
        with self._storage.write() as connection:
            first = Writer(self._network, connection).close()
            return first.sequence if count == 1 else ledgers.skip(connection, first, count - 1)

    def fund(self, address: str, amount: int = _FUNDED) -> str:
        """Create an account with `amount` stroops (10,000 XLM), by a transaction of the friendbot, and return
        that transaction's hash (64 hex digits). With manual closing the transaction is pending.

        Raises InvalidRequestError for an address that is not a G... or an amount that is none,
        AccountExistsError, FundingError.
        """
        if not 0 <= amount < 1 << 63:
            raise InvalidRequestError(f"{amount} stroops cannot be an account's balance")
        with self._storage.write() as connection:
            return Writer(self._network, connection).fund(self._friendbot, address, amount).hex()

    def close(self) -> None:
        """Release the file. Idempotent; other chains on the file go on."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _create(connection: sqlite3.Connection, requested: options.Requested) -> None:
    """Make a chain file's tables and its first ledger."""
    identity = requested.identity()
    clock = Clock(frozen_at=FROZEN_START) if requested.clock == "frozen" else Clock()
    create_tables(connection)
    options.save(connection, identity, clock, requested.closing or "instant")
    genesis.create(connection, identity, clock)

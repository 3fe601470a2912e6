"""What a chain client offers and the values it gives: the seam between memory, indexer and any chain.

Importing this module loads no Stellar library; XDR types appear in annotations only. Amounts are in stroops
(10^7 are 1 XLM), times in Unix seconds, hashes lower-case hex, ledgers sequence numbers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stellar_sdk import Keypair, xdr
    from stellar_sdk.operation import ExtendFootprintTTL, InvokeHostFunction, RestoreFootprint

__all__ = [
    "EXPIRING_WITHIN",
    "LEDGER_SECONDS",
    "VALIDITY_SECONDS",
    "AnchorReceipt",
    "BeforeSend",
    "ChainClient",
    "ChainEvent",
    "ChainIdentity",
    "EntryState",
    "EntryStatus",
    "EventPage",
    "LedgerHead",
    "Receipt",
    "Resources",
    "SignedTransaction",
    "Simulation",
    "TransactionState",
    "TransactionStatus",
    "Work",
]

LEDGER_SECONDS = 5
"""How long a ledger of the public networks takes; turns ledgers of a time to live into time."""

EXPIRING_WITHIN = 3 * 86_400 // LEDGER_SECONDS
"""An entry with fewer ledgers left than this (3 days) is EXPIRING. Less than what testnet gives a new entry
(7 days)."""

VALIDITY_SECONDS = 60
"""How long a transaction may be applied: until this long after the later of ledger time and local time when
it was signed. One that is not found by a ledger that closed later than that, in a history that goes back to
its signing, will never take effect."""


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """A transaction that is ready to be sent: its hash, its envelope (base64 of the XDR), until when it can
    be applied (Unix seconds of ledger time), and the latest ledger when it was signed.

    It can only be in a later ledger than `signed_ledger`, so a server whose history begins after that cannot
    say that it never was applied. 0 where the ledger is not known.
    """

    hash: str
    envelope: str
    valid_until: int
    signed_ledger: int


BeforeSend = Callable[[SignedTransaction], None]
"""Called with a signed transaction before it is sent. Raising stops it from being sent. Called again, with
another one, when the transaction had to be rebuilt because it can no longer take effect."""


class EntryStatus(enum.StrEnum):
    """Where a persistent ledger entry is in its life (chain.md section 4)."""

    LIVE = "LIVE"
    EXPIRING = "EXPIRING"
    ARCHIVED = "ARCHIVED"
    """It exists, and only a restore brings it back to where transactions see it. Simulations still read
    it."""
    ABSENT = "ABSENT"


class TransactionStatus(enum.StrEnum):
    """What the network knows about a transaction hash."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    NOT_FOUND = "NOT_FOUND"


@dataclass(frozen=True, slots=True)
class ChainIdentity:
    """Which chain answered, and how far it is.

    `chain_id` is served by the project's own chains only (a chain made anew has another one). `close_time`
    is that of `latest_ledger`.
    """

    passphrase: str
    chain_id: str | None
    protocol: int
    latest_ledger: int
    close_time: int


@dataclass(frozen=True, slots=True)
class Work:
    """What one transaction does: its only operation, and the ledger keys that a restore or an extension
    names."""

    operation: InvokeHostFunction | RestoreFootprint | ExtendFootprintTTL
    data: xdr.SorobanTransactionData | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """What a simulated transaction declares: instructions, bytes read from disk and written, entries
    touched."""

    instructions: int
    read_bytes: int
    write_bytes: int
    read_entries: int
    write_entries: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of running something at the latest ledger without a trace."""

    value: xdr.SCVal | None
    resource_fee: int
    resources: Resources
    latest_ledger: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """A transaction that took effect: where, when, at what price, and what it returned.

    `value` is None where it returned nothing, or the server does not keep what it did.
    """

    hash: str
    ledger: int
    close_time: int
    fee_charged: int
    value: xdr.SCVal | None


@dataclass(frozen=True, slots=True)
class AnchorReceipt:
    """An anchor that was made: whose, which version, and the transaction that made it.

    `compared` is True where the contract itself compared the version before it set the anchor; False where
    the anchor was set whatever was there, or was compared by this program only (older deployments).
    """

    owner: str
    version: int
    hash: str
    ledger: int
    close_time: int
    fee_charged: int
    compared: bool


@dataclass(frozen=True, slots=True)
class TransactionState:
    """The network's answer about a hash.

    Only `status`, `hash` and the ledgers that the server knows, from `oldest_ledger` to `latest_ledger`, are
    known for NOT_FOUND. `result_code` is the network's code, the operation's where the operation failed.
    `contract_error` is the number a contract failed with, where the server keeps diagnostic events. `value`
    is what the call returned, None also where the server does not keep it.
    """

    status: TransactionStatus
    hash: str
    oldest_ledger: int
    latest_ledger: int
    latest_close_time: int
    ledger: int | None = None
    close_time: int | None = None
    fee_charged: int | None = None
    result_code: str | None = None
    value: xdr.SCVal | None = None
    contract_error: int | None = None


@dataclass(frozen=True, slots=True)
class EntryState:
    """One ledger entry as of `latest_ledger`.

    `live_until` is the last ledger the entry is live in: None for an absent one, one without a time to
    live, and an archived one. `data` is None for an absent one.
    """

    status: EntryStatus
    latest_ledger: int
    live_until: int | None = None
    last_modified: int | None = None
    data: xdr.LedgerEntryData | None = None

    @property
    def remaining(self) -> int | None:
        """Ledgers left to live, None where `live_until` is."""
        return None if self.live_until is None else self.live_until - self.latest_ledger


@dataclass(frozen=True, slots=True)
class ChainEvent:
    """One event of a contract. `id` orders all events of a chain.

    Topics and data are kept as the XDR that the server gave, and decoded when they are asked for: one that
    cannot be decoded is no reason to lose the others. For the same reason `contract_id` and `transaction` are
    whatever texts the server gave.
    """

    id: str
    contract_id: str
    ledger: int
    close_time: int
    transaction: str
    topic_xdr: tuple[bytes, ...]
    value_xdr: bytes

    @property
    def topics(self) -> tuple[xdr.SCVal, ...]:
        """The topics, decoded. Raises what `chain.translate.UNREADABLE` lists."""
        from stellar_sdk import xdr

        return tuple(xdr.SCVal.from_xdr_bytes(topic) for topic in self.topic_xdr)

    @property
    def value(self) -> xdr.SCVal:
        """The data, decoded. Raises what `chain.translate.UNREADABLE` lists."""
        from stellar_sdk import xdr

        return xdr.SCVal.from_xdr_bytes(self.value_xdr)


@dataclass(frozen=True, slots=True)
class LedgerHead:
    """A closed ledger: its hash, and when it closed."""

    sequence: int
    hash: str
    close_time: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in the chain's order, where to go on, and which ledgers the server can still be asked about."""

    events: tuple[ChainEvent, ...]
    cursor: str
    latest_ledger: int
    oldest_ledger: int
    latest_close_time: int


class ChainClient(Protocol):
    """A chain, as everything above it sees one. Implementations may be used from several threads.

    Every method raises `ChainUnavailable` when the chain cannot be asked, which says nothing about its
    state, and `WrongDomain` when what answers is another network.
    """

    def identity(self) -> ChainIdentity:
        """Which chain this is and its latest ledger, asked anew each time."""
        ...

    def simulate(self, work: Work, *, source: str | None = None) -> Simulation:
        """Run at the latest ledger and change nothing; archived entries are read as if they were live.

        Raises:
            ContractFailed: the contract ended with one of its error numbers.
            ContractNotFound: there is no contract at the address.
            ChainError: the host refused for another reason.
        """
        ...

    def submit(self, work: Work, signer: Keypair, *, before_send: BeforeSend | None = None) -> Receipt:
        """Simulate, sign, send and wait for the result. Never two transactions that could both take effect.

        Raises:
            TransactionFailed: refused or failed, finally.
            Unsettled: sent, and the outcome is not known; the hash finds it again.
            ContractFailed, ContractNotFound, ChainError: as `simulate`, before anything was sent, or when the
                transaction failed for that reason in the ledger.
        """
        ...

    def resume(self, signed: SignedTransaction) -> Receipt:
        """Find out what became of a transaction that an earlier run signed, sending the same one again if
        needed.

        Raises:
            TransactionFailed, ContractFailed: it failed or can never take effect, and that is final.
            Unsettled: the outcome is still not known.
        """
        ...

    def transaction(self, transaction_hash: str) -> TransactionState:
        """What is known about a hash. NOT_FOUND is no proof that it did not or will not take effect (see
        VALIDITY_SECONDS)."""
        ...

    def entries(
        self, keys: Sequence[xdr.LedgerKey], *, expiring_within: int = EXPIRING_WITHIN
    ) -> tuple[EntryState, ...]:
        """The state of each key, in the order of the keys (at most 200), all as of one ledger."""
        ...

    def events(
        self,
        contract_id: str,
        *,
        start_ledger: int | None = None,
        cursor: str | None = None,
        topics: Sequence[xdr.SCVal | None] | None = None,
        limit: int = 100,
    ) -> EventPage:
        """A page of a contract's events: from `start_ledger`, or after `cursor`, one of them.

        `topics`: one value per topic, None for any; None instead of a list takes all events.
        """
        ...

    def ledger(self, sequence: int) -> LedgerHead | None:
        """A closed ledger; None where the server does not have it any more, or not yet."""
        ...

    def close(self) -> None:
        """Release connections and files. Closing twice is harmless."""
        ...

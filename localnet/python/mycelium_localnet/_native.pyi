"""The network's own Soroban host, over bytes (typed face of the compiled module; sources in `localnet/src`).

Every value that crosses this boundary is XDR bytes, an int or a str. Nothing here keeps ledger state: what a
call needs it gets through its arguments, and what it changed it gives back. Fees are stroops (10^-7 XLM),
sizes are bytes, times are ledger sequence numbers unless said otherwise.

Threads: each call runs the host on a thread of its own with a large stack, with the GIL released. The `get`
callback runs on the thread that made the call (so it may use that thread's SQLite connection), and an
exception that it raises ends the call and comes out of it unchanged.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, Self, TypeAlias, final

__all__ = [
    "PROTOCOL_VERSION",
    "Change",
    "HostError",
    "Invocation",
    "LedgerInfo",
    "ModuleCache",
    "NetworkSettings",
    "Simulation",
    "StateChange",
    "entry_size_for_rent",
    "invoke",
    "rent_fee",
    "simulate_extend_ttl",
    "simulate_invoke",
    "simulate_restore",
    "transaction_resource_fee",
]

# get(LedgerKey) -> (LedgerEntry, live-until ledger) | None, asked at most once for each key and call. The
# live-until ledger is None exactly for entries without a TTL (anything but contract data and code). Archived
# persistent entries must be returned, with their expired live-until ledger; expired temporary ones count as
# missing whether returned or not.
_Lookup: TypeAlias = Callable[[bytes], tuple[bytes, int | None] | None]

PROTOCOL_VERSION: Final[int]
"""The only ledger protocol this host speaks (28)."""

class HostError(Exception):
    """The caller handed over something the host cannot work with, or the host failed inside (an internal
    error, a caught panic). Never raised because a contract failed or ran out of resources: those are
    results."""

@final
class NetworkSettings:
    """The network's configuration, parsed once; immutable and safe to share between threads.

    `config_entries`: the ConfigSettingEntry XDRs of the ledger, in any order. Needed: contract compute,
    ledger cost and its extension, historical data, events, bandwidth, execution lanes, both lists of cost
    parameters, state archival, and the three size limits of contracts, data keys and data entries. Others
    are accepted and not used.

    `soroban_state_size`: bytes of Soroban state that the rent rate follows (on the network, the average of a
    window of sizes). None takes the window among `config_entries`, or 0 without one.

    Raises HostError for an entry that does not decode, one that is missing, and unusable cost parameters.
    """

    def __new__(cls, config_entries: Sequence[bytes], soroban_state_size: int | None = None) -> Self: ...

    # State archival, in ledgers.
    @property
    def min_persistent_entry_ttl(self) -> int: ...
    @property
    def min_temporary_entry_ttl(self) -> int: ...
    @property
    def max_entry_ttl(self) -> int: ...
    # Limits of one transaction.
    @property
    def tx_max_instructions(self) -> int: ...
    @property
    def tx_memory_limit(self) -> int: ...
    @property
    def tx_max_size_bytes(self) -> int: ...
    @property
    def tx_max_disk_read_entries(self) -> int: ...
    @property
    def tx_max_disk_read_bytes(self) -> int: ...
    @property
    def tx_max_write_entries(self) -> int: ...
    @property
    def tx_max_write_bytes(self) -> int: ...
    @property
    def tx_max_footprint_entries(self) -> int: ...
    @property
    def tx_max_contract_events_size_bytes(self) -> int: ...
    # Limits of the Soroban transactions of one ledger, together.
    @property
    def ledger_max_tx_count(self) -> int: ...
    @property
    def ledger_max_instructions(self) -> int: ...
    @property
    def ledger_max_txs_size_bytes(self) -> int: ...
    @property
    def ledger_max_disk_read_entries(self) -> int: ...
    @property
    def ledger_max_disk_read_bytes(self) -> int: ...
    @property
    def ledger_max_write_entries(self) -> int: ...
    @property
    def ledger_max_write_bytes(self) -> int: ...
    # Limits of one entry.
    @property
    def max_contract_size_bytes(self) -> int: ...
    @property
    def max_contract_data_key_size_bytes(self) -> int: ...
    @property
    def max_contract_data_entry_size_bytes(self) -> int: ...
    # Fee rates, in stroops.
    @property
    def fee_per_10k_instructions(self) -> int: ...
    @property
    def fee_per_disk_read_entry(self) -> int: ...
    @property
    def fee_per_write_entry(self) -> int: ...
    @property
    def fee_per_disk_read_1kb(self) -> int: ...
    @property
    def fee_per_write_1kb(self) -> int: ...
    @property
    def fee_per_historical_1kb(self) -> int: ...
    @property
    def fee_per_contract_event_1kb(self) -> int: ...
    @property
    def fee_per_transaction_size_1kb(self) -> int: ...
    @property
    def fee_per_rent_1kb(self) -> int: ...
    @property
    def persistent_rent_rate_denominator(self) -> int: ...
    @property
    def temporary_rent_rate_denominator(self) -> int: ...

@final
class LedgerInfo:
    """The ledger a call runs at; immutable.

    `sequence`: ledger number; `close_time`: Unix seconds; `network_id`: 32 bytes, SHA-256 of the passphrase;
    `base_reserve`: stroops. Raises ValueError for a network id of another length and OverflowError for
    numbers out of range.
    """

    def __new__(
        cls,
        *,
        sequence: int,
        close_time: int,
        network_id: bytes,
        base_reserve: int,
        settings: NetworkSettings,
    ) -> Self: ...
    @property
    def sequence(self) -> int: ...
    @property
    def close_time(self) -> int: ...
    @property
    def network_id(self) -> bytes: ...
    @property
    def base_reserve(self) -> int: ...
    @property
    def settings(self) -> NetworkSettings: ...

@final
class ModuleCache:
    """Compiled contract code, found by its hash; one for the whole process is right, and threads may share
    it.

    `invoke` fills it with the code it is given and forgets everything when there are more than 256 modules.
    """

    def __new__(cls) -> Self: ...
    @property
    def module_count(self) -> int: ...

@final
class StateChange:
    """One entry that a simulated invocation would write: LedgerKey, and LedgerEntry before and after.

    None: not there (an archived entry counts as not there). At least one of the two is set.
    """

    @property
    def key(self) -> bytes: ...
    @property
    def before(self) -> bytes | None: ...
    @property
    def after(self) -> bytes | None: ...

@final
class Simulation:
    """What a simulation found.

    On failure `error` is set, `transaction_data` and `result` are None, `auth` and `modified` are empty;
    `events`, `instructions` and `memory` tell how far it got.
    """

    @property
    def error(self) -> str | None:
        """The host's words and the event log, newest first, as the network's RPC gives them."""

    @property
    def transaction_data(self) -> bytes | None:
        """SorobanTransactionData: footprint, resources with leeway, archivedSorobanEntries and the resource
        fee."""

    @property
    def min_resource_fee(self) -> int:
        """Stroops; the resource fee inside `transaction_data`, 0 on failure."""

    @property
    def restore_preamble(self) -> tuple[bytes, int] | None:
        """(SorobanTransactionData, resource fee in stroops) of the RestoreFootprint that must come first.

        Only for an extension that touches archived entries: an invocation restores by itself."""

    @property
    def auth(self) -> list[bytes]:
        """SorobanAuthorizationEntry each: recorded and unsigned, or as passed in."""

    @property
    def result(self) -> bytes | None:
        """SCVal; None for extend and restore."""

    @property
    def events(self) -> list[bytes]:
        """DiagnosticEvent each: contract, system and diagnostic ones, in order."""

    @property
    def modified(self) -> list[StateChange]: ...
    @property
    def instructions(self) -> int:
        """CPU instructions metered, without leeway."""

    @property
    def memory(self) -> int:
        """Bytes of memory metered."""

@final
class Change:
    """One key of the footprint after an invocation; all are listed, read-only ones first, in footprint order.

    To apply: unless `read_only`, store `new_value`, or erase the entry and its TTL when it is None. When
    `new_live_until` is greater than `old_live_until`, it is the entry's new TTL, of read-only entries too.
    """

    @property
    def key(self) -> bytes:
        """LedgerKey."""

    @property
    def read_only(self) -> bool: ...
    @property
    def new_value(self) -> bytes | None:
        """LedgerEntry, for read-write keys. Its lastModifiedLedgerSeq is for the ledger to set."""

    @property
    def old_size_for_rent(self) -> int:
        """Bytes; 0 for new, auto-restored and classic entries."""

    @property
    def new_size_for_rent(self) -> int:
        """Bytes; 0 for read-only and erased entries."""

    @property
    def old_live_until(self) -> int | None:
        """None for keys without a TTL; 0 when the entry was not there or is being auto-restored."""

    @property
    def new_live_until(self) -> int | None:
        """None for keys without a TTL; 0 when there is no entry; otherwise never below `old_live_until`."""

@final
class Invocation:
    """What an enforcing invocation did. Unless `ok`, `result` is None and there are no changes and no events
    but diagnostic ones."""

    @property
    def ok(self) -> bool: ...
    @property
    def result(self) -> bytes | None:
        """SCVal."""

    @property
    def error(self) -> str | None:
        """The host's error, such as `Error(Contract, #3)`."""

    @property
    def error_kind(self) -> Literal["trapped", "resource_limit"] | None:
        """`resource_limit`: more instructions metered than the transaction declared, or more memory than the
        network allows, which is how the network decides; `trapped`: any other failure. (Code that runs out of
        instructions inside a Wasm loop stops just below its limit, and so is `trapped`, on the network
        too.)"""

    @property
    def changes(self) -> list[Change]: ...
    @property
    def contract_events(self) -> list[bytes]:
        """ContractEvent each: contract and system events of calls that succeeded, in order."""

    @property
    def diagnostic_events(self) -> list[bytes]:
        """DiagnosticEvent each, on failure too (the last one is then `host_fn_failed`); none unless
        `diagnostics`."""

    @property
    def instructions(self) -> int:
        """CPU instructions metered."""

    @property
    def memory(self) -> int:
        """Bytes of memory metered."""

    @property
    def rent_fee(self) -> int:
        """Stroops of rent for `changes`, a refundable part of the resource fee; 0 on failure."""

def simulate_invoke(
    *,
    ledger: LedgerInfo,
    get: _Lookup,
    host_function: bytes,
    auth: Sequence[bytes] = (),
    auth_mode: Literal["enforce", "record", "record_allow_nonroot"],
    upgraded_auth: bool = False,
    source_account: bytes,
    prng_seed: bytes,
    instruction_leeway: int = 0,
) -> Simulation:
    """Run a host function in recording mode and quote its resources and fee, as the network's RPC does.

    `get`: LedgerKey -> (LedgerEntry, live-until ledger) or None, asked once for each key. The live-until
    ledger is None exactly for entries without a TTL; archived persistent entries come with their expired one.
    `host_function`: HostFunction. `auth`: SorobanAuthorizationEntry each, for "enforce" only.
    `upgraded_auth`: record ADDRESS_V2 credentials. `source_account`: AccountId. `prng_seed`: 32 bytes.
    `instruction_leeway`: instructions added to the quote, if more than the 50,000 or 4 % that are added
    anyway.
    Raises HostError for XDR that does not decode or does not fit, ValueError for a bad mode or seed, and
    whatever `get` raises.
    """

def simulate_extend_ttl(
    *, ledger: LedgerInfo, get: _Lookup, keys: Sequence[bytes], extend_to: int
) -> Simulation:
    """Quote an ExtendFootprintTTL of `keys` (LedgerKey each) to `extend_to` ledgers from now.

    Missing keys and those that live long enough are left out of the footprint. Archived ones are quoted as if
    just restored, and `restore_preamble` holds what restores them. A classic key is an `error`.
    Raises HostError for keys that do not decode and for ledgers beyond 2^32, and whatever `get` raises.
    """

def simulate_restore(*, ledger: LedgerInfo, get: _Lookup, keys: Sequence[bytes]) -> Simulation:
    """Quote a RestoreFootprint of `keys` (LedgerKey each).

    Live keys are left out of the footprint; a missing, temporary or classic one is an `error`.
    Raises HostError for keys that do not decode, and whatever `get` raises.
    """

def invoke(
    *,
    ledger: LedgerInfo,
    cache: ModuleCache,
    host_function: bytes,
    resources: bytes,
    restored_rw_indices: Sequence[int] = (),
    auth: Sequence[bytes],
    source_account: bytes,
    entries: Sequence[tuple[bytes, int | None] | None],
    prng_seed: bytes,
    diagnostics: bool = True,
) -> Invocation:
    """Run a host function for real, within the transaction's footprint and instructions.

    `host_function`: HostFunction. `resources`: the transaction's SorobanResources. `restored_rw_indices`: its
    archivedSorobanEntries. `auth`: SorobanAuthorizationEntry each. `source_account`: AccountId of the
    operation's source. `prng_seed`: 32 bytes. `diagnostics`: collect diagnostic events.
    `entries`: one item for each key of the footprint, read-only keys first: (LedgerEntry, live-until ledger,
    or None for entries without a TTL), or None when there is no entry. Entries to be restored come with the
    live-until ledger `ledger.sequence + min_persistent_entry_ttl - 1`. Any other expired entry raises, so the
    ledger decides first: expired temporary entries are None, and archived ones that are not listed fail as
    ENTRY_ARCHIVED.
    Raises HostError for XDR that does not decode, entries that do not fit the footprint, and failures inside
    the host (txINTERNAL_ERROR on the network); ValueError for a bad seed.
    """

def entry_size_for_rent(settings: NetworkSettings, entry: bytes) -> int:
    """Bytes that rent is paid for: the size of a LedgerEntry and, for contract code, of its module in
    memory."""

def transaction_resource_fee(
    settings: NetworkSettings,
    *,
    instructions: int,
    disk_read_entries: int,
    write_entries: int,
    disk_read_bytes: int,
    write_bytes: int,
    contract_events_size: int,
    transaction_size: int,
) -> tuple[int, int]:
    """Stroops (non-refundable, refundable) of a transaction's resources, without rent.

    `disk_read_entries`: classic keys of the footprint and archived ones to be restored. `write_entries`:
    read-write keys. `contract_events_size`: bytes of contract events and return value. `transaction_size`:
    bytes of the envelope.
    """

def rent_fee(
    settings: NetworkSettings,
    *,
    changes: Sequence[tuple[bool, bool, int, int, int, int]],
    ledger_sequence: int,
) -> int:
    """Stroops of rent for changes of TTLs and sizes, writing the TTL entries included (refundable).

    `changes`: (is persistent, is contract code, old size, new size, old live-until, new live-until ledger)
    each, sizes by `entry_size_for_rent`; new and restored entries have an old size and an old live-until
    ledger of 0.
    """

"""How quickly the embedded chain starts, and how many transactions a second it takes.

Ready-made ones are signed in advance and handed in. Whole anchors go through the SDK: simulated, signed,
sent, and asked for. Over HTTP eight clients anchor at once, each for an account of its own. Everything is
measured on a chain that holds little and on one that holds 100,000 accounts and as many contract entries, in
turns, so that the ratios can be compared anywhere.

    python -m benchmarks.localnet
"""

from __future__ import annotations

import contextlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from stellar_sdk import Address, Keypair, SorobanServer, TransactionBuilder, scval, xdr
from stellar_sdk.account import Account

from benchmarks.table import print_table, seconds, spread
from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient, keys
from mycelium_localnet.accounts import new_account
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.deployment import ensure_local_contract
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.networks import STANDALONE_PASSPHRASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.chain.base import ChainClient

CROWD = 100_000
CLIENTS = 8
ROUNDS = 5
READY_MADE = 200  # a round
ANCHORS = 80
STARTS = 10
PROCESS_STARTS = 5
BATCH = 5_000

SERVER = ("-m", "mycelium_localnet", "--port", "0")

OWNERS = [
    Keypair.from_raw_ed25519_seed(sha256(f"owner {number}".encode()).digest()) for number in range(CLIENTS)
]
ROOT, URI = b"\x01" * 32, b"https://example.org/memory.json"


def run() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "small.db"), Path(folder, "large.db")]
        for path in paths:
            prepare(path)
        started = time.perf_counter()
        fill(paths[1])
        took = time.perf_counter() - started
        print(f"putting {CROWD:,} accounts and entries into a chain file took {took:.1f} s\n")
        starting(paths)
        print()
        throughput(paths)


def prepare(path: Path) -> None:
    """A chain file with the contract, and the clients' accounts, each with one anchor."""
    with contextlib.closing(EmbeddedChain(Chain.open(path), STANDALONE_PASSPHRASE)) as chain:
        client = MemoryAnchorClient(chain, ensure_local_contract(chain, None))
        for owner in OWNERS:
            client.set_anchor(owner, ROOT, URI)


def fill(path: Path) -> None:
    """Put accounts and contract entries straight into the file of a chain that nobody has open."""
    entry, name = _data_entry(), b"\xaa" * 32
    key = xdr.LedgerKey(
        xdr.LedgerEntryType.CONTRACT_DATA,
        contract_data=xdr.LedgerKeyContractData(
            _data(entry).contract, _data(entry).key, xdr.ContractDataDurability.PERSISTENT
        ),
    ).to_xdr_bytes()
    template = entry.to_xdr_bytes()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    for first in range(0, CROWD, BATCH):
        rows: list[tuple[bytes, bytes, int | None, int | None, int]] = []
        for number in range(first, first + BATCH):
            someone = sha256(f"somebody {number}".encode()).digest()
            rows.append(
                (keys.account(someone), new_account(someone, 10**9, 1 << 32), None, None, keys.ACCOUNT)
            )
            changed = key.replace(name, someone), template.replace(name, someone)
            rows.append((*changed, 3_000_000, 1, keys.CONTRACT_DATA))
        with connection:
            connection.executemany(
                "INSERT INTO entries (key, entry, live_until, ttl_modified, type) VALUES (?, ?, ?, ?, ?)",
                rows,
            )
    connection.close()


def _data_entry() -> xdr.LedgerEntry:
    """Something like an anchor, of the owner whose key is all `aa`."""
    owner = scval.to_address(Address.from_raw_account(b"\xaa" * 32))
    data = xdr.ContractDataEntry(
        xdr.ExtensionPoint(0),
        Address.from_raw_contract(b"\xbb" * 32).to_xdr_sc_address(),
        owner,
        xdr.ContractDataDurability.PERSISTENT,
        scval.to_bytes(bytes(200)),
    )
    return xdr.LedgerEntry(
        xdr.Uint32(1),
        xdr.LedgerEntryData(xdr.LedgerEntryType.CONTRACT_DATA, contract_data=data),
        xdr.LedgerEntryExt(0),
    )


def _data(entry: xdr.LedgerEntry) -> xdr.ContractDataEntry:
    assert entry.data.contract_data is not None
    return entry.data.contract_data


def starting(paths: list[Path]) -> None:
    """Chains in a process that has imported everything, and the server as a process of its own."""
    imports = "import mycelium_localnet.ledger, mycelium_localnet.server.run; print(flush=True)"
    rows = [
        ("a new chain in memory", seconds(lambda: Chain.open(":memory:").close(), runs=STARTS)),
        ("a chain file", seconds(lambda: Chain.open(paths[0]).close(), runs=STARTS)),
        (f"a chain file with {CROWD:,} more", seconds(lambda: Chain.open(paths[1]).close(), runs=STARTS)),
        ("the server as a process, until it is ready", _until_first_line(*SERVER)),
        ("  of that python and imports", _until_first_line("-c", imports)),
    ]
    print_table(("start-up", "ms, median (range)"), [(name, spread(taken)) for name, taken in rows])


def _until_first_line(*arguments: str) -> list[float]:
    """How long some starts of Python take until something is printed, in seconds."""
    taken = []
    for _ in range(PROCESS_STARTS):
        started = time.perf_counter()
        with first_line(*arguments):
            taken.append(time.perf_counter() - started)
    return taken


def throughput(paths: list[Path]) -> None:
    """Transactions a second, in turns on both chains."""
    kinds: list[tuple[str, int, Callable[[Path], contextlib.AbstractContextManager[Callable[[], int]]]]] = [
        ("ready-made, in process", 250, ready_made),
        ("whole anchors through the SDK, in process", 100, anchors),
        (f"whole anchors over HTTP, {CLIENTS} clients", 80, anchors_over_http),
    ]
    rows = []
    for name, aim, kind in kinds:
        with contextlib.ExitStack() as stack:
            actions = [stack.enter_context(kind(path)) for path in paths]
            rates: list[list[float]] = [[], []]
            for _ in range(ROUNDS):
                for place, action in enumerate(actions):
                    started = time.perf_counter()
                    number = action()
                    rates[place].append(number / (time.perf_counter() - started))
        small, large = map(statistics.median, rates)
        rows.append((name, f"{small:.0f}", f"{large:.0f}", f"{large / small:.2f}", f"{aim}"))
    print_table(("transactions a second, median of rounds", "small", f"{CROWD:,} more", "ratio", "aim"), rows)


@contextlib.contextmanager
def ready_made(path: Path) -> Iterator[Callable[[], int]]:
    """A round hands in transactions that were signed before."""
    with Chain.open(path) as chain:
        batches = iter([_signed(chain, round_) for round_ in range(ROUNDS)])

        def hand_in() -> int:
            envelopes = next(batches)
            for envelope in envelopes:
                assert chain.submit(envelope).status == "PENDING"
            return len(envelopes)

        yield hand_in
        with chain.read() as view:
            assert all(row.successful for row in view.transactions((0, 0), 10_000))


def _signed(chain: Chain, round_: int) -> list[bytes]:
    """Updates of the clients' anchors, in turns, with the resources that simulation quotes for one."""
    server = SorobanServer(IN_PROCESS_URL, InProcessClient(chain))
    contract_id = ensure_local_contract(EmbeddedChain(chain, STANDALONE_PASSPHRASE), None)
    each = READY_MADE // CLIENTS
    envelopes: list[list[bytes]] = []
    for owner in OWNERS:
        arguments = [scval.to_address(owner.public_key), *map(scval.to_bytes, (ROOT, URI, b""))]
        account = server.load_account(owner.public_key)
        start = account.sequence + round_ * each

        def build(
            sequence: int, arguments: list[xdr.SCVal] = arguments, owner: Keypair = owner
        ) -> TransactionBuilder:
            builder = TransactionBuilder(Account(owner.public_key, sequence), STANDALONE_PASSPHRASE, 100)
            builder.append_invoke_contract_function_op(contract_id, "set_anchor", arguments)
            return builder.add_time_bounds(0, 0)

        prepared = server.prepare_transaction(build(account.sequence).build())
        operation = prepared.transaction.operations[0]
        made = []
        for number in range(each):
            envelope = build(start + number).build()
            envelope.transaction.operations = [operation]
            envelope.transaction.soroban_data = prepared.transaction.soroban_data
            envelope.transaction.fee = prepared.transaction.fee
            envelope.sign(owner)
            made.append(envelope.to_xdr_object().to_xdr_bytes())
        envelopes.append(made)
    return [envelope for turn in zip(*envelopes, strict=True) for envelope in turn]


@contextlib.contextmanager
def anchors(path: Path) -> Iterator[Callable[[], int]]:
    """A round makes anchors one after the other, for each client in turns."""
    with contextlib.closing(EmbeddedChain(Chain.open(path), STANDALONE_PASSPHRASE)) as chain:
        client = MemoryAnchorClient(chain, ensure_local_contract(chain, None))

        def anchor() -> int:
            for number in range(ANCHORS):
                client.set_anchor(OWNERS[number % CLIENTS], ROOT, URI)
            return ANCHORS

        yield anchor


@contextlib.contextmanager
def anchors_over_http(path: Path) -> Iterator[Callable[[], int]]:
    """A round makes anchors by as many threads as there are clients, each with its own connection."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(serving(path))
        chains = [
            stack.enter_context(contextlib.closing(RpcChain(url, STANDALONE_PASSPHRASE))) for _ in OWNERS
        ]
        contract_id = ensure_local_contract(chains[0], None)
        threads = stack.enter_context(ThreadPoolExecutor(CLIENTS))

        def work(chain: ChainClient, owner: Keypair) -> None:
            client = MemoryAnchorClient(chain, contract_id)
            for _ in range(ANCHORS // CLIENTS):
                client.set_anchor(owner, ROOT, URI)

        def anchor() -> int:
            list(threads.map(work, chains, OWNERS))
            return ANCHORS

        anchor()  # connections and compiled code
        yield anchor


@contextlib.contextmanager
def serving(path: Path) -> Iterator[str]:
    """A server in a process of its own; gives the URL of its RPC."""
    with first_line(*SERVER, "--state", str(path)) as ready:
        yield ready.split()[-1]


@contextlib.contextmanager
def first_line(*arguments: str) -> Iterator[str]:
    """Python with these arguments, terminated at the end; gives the first line that it prints."""
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.terminate()
            process.communicate()


if __name__ == "__main__":
    run()

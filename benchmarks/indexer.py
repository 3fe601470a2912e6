"""How quickly the ingester takes in events, from an RPC server's JSON to a SQLite file, and what they take
there.

The server is one within the process that has its answers ready. The baseline is what one would write in an
afternoon: `stellar_sdk` decodes each event, SQLite keeps it, a commit for each, and nothing is checked.

    python -m benchmarks.indexer [events]
"""

from __future__ import annotations

import hashlib
import logging
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stellar_sdk import SorobanServer, scval
from stellar_sdk.soroban_rpc import EventFilter, EventFilterType
from stellar_sdk.xdr import SCVal

from benchmarks.table import print_table
from mycelium_indexer.ingest import Ingester
from mycelium_indexer.store import open_store
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.strkey import encode_account
from mycelium_sdk.testing.event_server import EventServer, forged_history

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

EVENTS = 100_000
BASELINE_EVENTS = 5_000
VERSIONS = 10
PER_LEDGER = 50


def run(events: int = EVENTS) -> None:
    """Print the tables."""
    logging.getLogger("mycelium_indexer").setLevel(logging.ERROR)
    server = forged(events)
    rows = []
    with tempfile.TemporaryDirectory(prefix="mycelium-bench-") as name:
        folder = Path(name)
        naive = _naive(server, folder / "naive.db", min(BASELINE_EVENTS, events))
        before = _peak()
        wall, cpu = _follow(server, str(folder / "index.db"))
        grown = _peak() - before
        size = sum(file.stat().st_size for file in folder.glob("index.db*"))
        again = _follow(server, str(folder / "index.db"))
    rows.append(
        ("ingester, with the hash chain checked", *_rates(events, wall, cpu), f"{naive / wall * events:.0f}")
    )
    rows.append(("baseline", f"{1 / naive:,.0f}", "", "1"))
    print_table(("", "events/s", "events/s of CPU", "times the baseline"), rows)
    owners = events // VERSIONS
    print(f"disk: {size / events:.0f} bytes an event, {size / owners:.0f} an owner of {VERSIONS} versions")
    print(f"memory: {grown >> 10} MiB more than before, for {events:,} events in pages of 1,000")
    print(f"nothing new: {again[0] * 1000:.1f} ms to open the database and look")


def forged(events: int) -> EventServer:
    """A server with so many events, `PER_LEDGER` in a ledger."""
    server = EventServer()
    histories = [
        forged_history(encode_account(hashlib.sha256(b"owner %d" % number).digest()), VERSIONS)
        for number in range(events // VERSIONS)
    ]
    for version in range(VERSIONS):
        for start in range(0, len(histories), PER_LEDGER):
            server.add(*(history[version] for history in histories[start : start + PER_LEDGER]))
    return server


def _follow(server: EventServer, database: str) -> tuple[float, float]:
    """Seconds and seconds of CPU for reading everything."""
    began, used = time.perf_counter(), time.process_time()
    store: IndexStore = open_store(database)
    chain = RpcChain(server.URL, server.PASSPHRASE, client=server)
    ingester = Ingester(MemoryAnchorClient(chain, server.CONTRACT), store)
    while ingester.poll_once():
        pass
    taken = time.perf_counter() - began, time.process_time() - used
    totals = store.totals(ingester.source)
    assert (totals.gaps, totals.set_aside) == (0, 0), totals
    store.close()
    return taken


def _naive(server: EventServer, database: Path, events: int) -> float:
    """Seconds for each event, the way that comes to mind first."""
    connection = sqlite3.connect(database)
    connection.execute(
        "CREATE TABLE anchors(owner TEXT, version INTEGER, root BLOB, uri BLOB, id TEXT UNIQUE)"
    )
    rpc = SorobanServer(server.URL, server)
    wanted = [EventFilter(type=EventFilterType.CONTRACT, contractIds=[server.CONTRACT])]
    began, done = time.perf_counter(), 0
    page = rpc.get_events(start_ledger=1, filters=wanted)
    while done < events:
        for event in page.events:
            owner = scval.from_address(SCVal.from_xdr(event.topic[1])).address
            fields = scval.to_native(SCVal.from_xdr(event.value))
            assert isinstance(fields, dict)
            connection.execute(
                "INSERT OR IGNORE INTO anchors VALUES (?, ?, ?, ?, ?)",
                (owner, fields["version"], fields["root"], fields["uri"], event.id),
            )
            connection.commit()
            done += 1
        page = rpc.get_events(cursor=page.cursor, filters=wanted)
    taken = time.perf_counter() - began
    connection.close()
    return taken / done


def _rates(events: int, wall: float, cpu: float) -> tuple[str, str]:
    return f"{events / wall:,.0f}", f"{events / cpu:,.0f}"


def _peak() -> int:
    """The most memory that this process had so far, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    run(*map(int, sys.argv[1:2]))

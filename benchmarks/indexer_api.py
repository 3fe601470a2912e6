"""How quickly the indexer answers `GET /memory/{owner}`: a million owners, 500 requests a second, asked by
another process.

The database is filled through the tables' own columns by bulk inserts, since what is measured is reading. The
requests are sent when they are due, whether or not the one before was answered, and the time to an answer
counts from when it was due: a server that stalls cannot hide it. Beside it, the same requests to a server
that answers without looking, which is the least that this HTTP server and this client take.

    python -m benchmarks.indexer_api [owners]
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, update

from benchmarks.table import print_table
from mycelium_indexer.store import tables
from mycelium_indexer.store.database import open_database
from mycelium_indexer.store.sql import SqlStore
from mycelium_indexer.values import Progress
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.strkey import encode_account

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OWNERS = 1_000_000
RATE = 500  # requests a second
SECONDS = 10
CONNECTIONS = 16
BATCH = 20_000
CONTRACT = "CAC27VKJEPDJJNI36NP7D7VH6WCHT6N5EITKSKPZIQNWA2VPEPBIXJSB"
SERVE = (
    *("-m", "mycelium_cli", "indexer", "serve", "--port", "0"),
    *("--network", "standalone", "--anchor-address", CONTRACT),
)


def run(owners: int = OWNERS) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory(prefix="mycelium-bench-") as folder:
        file = Path(folder) / "index.db"
        began = time.perf_counter()
        fill(file, owners)
        filled = time.perf_counter() - began
        size = sum(path.stat().st_size for path in file.parent.glob("index.db*"))
        print(f"{owners:,} owners in {filled:.0f} s, {size / owners:.0f} bytes of disk each")
        measure(file, owners)


def measure(file: Path, owners: int) -> None:
    """Print how quickly a server over the database answers."""
    rows = []
    paths = [f"/memory/{owner(number)}" for number in _numbers(owners)]
    for name, arguments in (("with a log line each", ()), ("without", ("--no-access-log",))):
        with serving(file, arguments) as (process, port):
            before = _resident(process.pid)
            rows.append(_row(f"/memory/{{owner}}, {name}", asyncio.run(_ask(port, paths))))
            after = _resident(process.pid)
    with serving(file, ("--no-access-log",)) as (_, port):
        rows.append(
            _row("/healthz: no database", asyncio.run(_ask(port, ["/healthz"] * (RATE * SECONDS // 2))))
        )
    print_table(("asked for", "requests", "median ms", "p99 ms", "p99.9 ms", "most ms"), rows)
    print(f"memory of the server: {before >> 20} MiB before, {after >> 20} MiB after")


def owner(number: int) -> str:
    """The address of one of the owners."""
    return encode_account(hashlib.sha256(b"%d" % number).digest())


def fill(file: Path, owners: int) -> None:
    """Make the database: each owner with one anchor."""
    database = open_database(str(file))
    store = SqlStore(database)
    source = store.source(STANDALONE_PASSPHRASE, CONTRACT, "")
    now = int(time.time())
    reached = Progress(
        cursor="1", ledger=owners, close_time=now, landmark=None, latest_ledger=owners, asked_at=now,
        first_ledger=1,
    )  # fmt: skip
    assert store.advance(source, reached, after=None)
    for start in range(0, owners, BATCH):
        numbers = range(start, min(start + BATCH, owners))
        with database.writing() as connection:
            connection.execute(insert(tables.owners), [_owner_row(source.id, number) for number in numbers])
            connection.execute(insert(tables.anchors), [_anchor_row(source.id, number) for number in numbers])
    with database.writing() as connection:
        counts = update(tables.sources).values(owners=owners, anchors=owners)
        connection.execute(counts)
    store.close()


def _owner_row(source: int, number: int) -> dict[str, Any]:
    return {"id": number + 1, "source": source, "owner": owner(number), "newest": 1, "place": number}


def _anchor_row(source: int, number: int) -> dict[str, Any]:
    root = hashlib.sha256(b"root %d" % number).digest()
    return {
        "owner": number + 1, "version": 1, "root": root, "acl": b"", "previous": root,
        "uri": f"https://blobs.example.org/{root.hex()}.json".encode(), "timestamp": number,
        "ledger": number, "transaction": root, "source": source, "event_id": f"{number:019d}-0000000001",
    }  # fmt: skip


@contextlib.contextmanager
def serving(file: Path, arguments: Sequence[str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The API over the database, in a process of its own, its log thrown away."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MYCELIUM_")}
    with subprocess.Popen(
        [sys.executable, *SERVE, "--database", str(file), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=file.parent,
        env=environment,
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().decode()
        try:
            yield process, int(ready.rsplit(":", 1)[1])
        finally:
            process.terminate()


def _numbers(owners: int) -> list[int]:
    chosen = random.Random(8)
    return [chosen.randrange(owners) for _ in range(RATE * SECONDS)]


async def _ask(port: int, paths: list[str]) -> list[float]:
    """Ask for each path when it is due; the seconds from then to the whole answer."""
    queue: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
    taken: list[float] = []
    workers = [asyncio.create_task(_worker(port, queue, taken)) for _ in range(CONNECTIONS)]
    await asyncio.sleep(0.5)
    begin = time.perf_counter()
    for number, path in enumerate(paths):
        due = begin + number / RATE
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        queue.put_nowait((due, path))
    for _ in workers:
        queue.put_nowait(None)
    await asyncio.gather(*workers)
    return taken


async def _worker(port: int, queue: asyncio.Queue[tuple[float, str] | None], taken: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (item := await queue.get()) is not None:
        due, path = item
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = int(head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        taken.append(time.perf_counter() - due)
    writer.close()
    await writer.wait_closed()


def _row(name: str, taken: list[float]) -> tuple[str, ...]:
    ordered = sorted(taken)

    def at(share: float) -> str:
        return f"{ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000:.2f}"

    return name, f"{len(taken):,}", at(0.5), at(0.99), at(0.999), f"{ordered[-1] * 1000:.2f}"


def _resident(process: int) -> int:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else OWNERS)

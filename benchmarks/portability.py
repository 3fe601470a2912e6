"""Loading a memory on another machine, and reading a stranger's, beside the least that each could be.

Loading is compared with reading the blob, decoding it as JSON and inserting its texts into SQLite, durably,
with nothing checked. Reading without importing is compared with hashing alone, and with decoding the JSON.

    python -m benchmarks.portability [--sizes 10000 100000]
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import random
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.floors import bare_import
from benchmarks.table import print_table, seconds, spread
from mycelium_sdk import canonical
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory, read_memory
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = (10_000, 100_000)
RUNS = 5
WORDS = 18
VOCABULARY = 3_000
PASSPHRASE = "benchmark"  # noqa: S105 - of a wallet that is thrown away


def run(sizes: Sequence[int] = SIZES) -> None:
    """Print both tables."""
    loading: list[tuple[str, ...]] = []
    reading: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wallet = Wallet.create(folder / "wallet" / "wallet.json", PASSPHRASE)
        for size in sizes:
            own = folder / str(size)
            own.mkdir()
            _measure(own, wallet, size, loading, reading)
    print_table(("memories", "rehydrate, ms: median (range)", "read, decode, insert: ms", "times"), loading)
    print()
    print_table(
        (
            "memories", "MB", "read and verify, MB/s", "canonical form alone", "json.loads", "SHA-256",
        ),
        reading,
    )  # fmt: skip


def _measure(
    folder: Path,
    wallet: Wallet,
    size: int,
    loading: list[tuple[str, ...]],
    reading: list[tuple[str, ...]],
) -> None:
    numbers = itertools.count()
    with _context(folder, "a", wallet) as context, AgentMemory(context) as memory:
        memory.backend.remember_many(_texts(size))
        memory.anchor()
        blob = memory.backend.export_blob()
        published = folder / "blob.json"
        published.write_bytes(blob)
        owner = memory.owner

        def rehydrate() -> None:
            name = f"machine {next(numbers)}"
            with _context(folder, name, wallet) as other, AgentMemory(other) as elsewhere:
                elsewhere.rehydrate(fetch=lambda _: blob)

        ours = seconds(rehydrate, runs=RUNS)
        floor = statistics.median(
            seconds(lambda: bare_import(folder / f"bare {next(numbers)}.db", published), runs=RUNS)
        )
        loading.append(
            (
                f"{size:,}",
                spread(ours),
                f"{floor * 1000:.1f}",
                f"{statistics.median(ours) / floor:.1f}",
            )
        )
        megabytes = len(blob) / 1e6
        times = [
            statistics.median(seconds(act, runs=RUNS))
            for act in (
                lambda: read_memory(owner, context=context, fetch=lambda _: blob),
                lambda: canonical.check(blob, owner, max_bytes=len(blob)),
                lambda: json.loads(blob),
                lambda: hashlib.sha256(blob).digest(),
            )
        ]
        reading.append((f"{size:,}", f"{megabytes:.1f}", *(f"{megabytes / each:,.0f}" for each in times)))


def _texts(size: int) -> list[str]:
    chance = random.Random(size)
    words = [f"word{number}" for number in range(VOCABULARY)]
    return [f"{' '.join(chance.choices(words, k=WORDS))} {number}" for number in range(size)]


def _context(folder: Path, home: str, wallet: Wallet) -> AgentContext:
    configuration = load_configuration(
        start=folder,
        env={"MYCELIUM_HOME": str(folder / home)},
        overrides={"onchain.chain_file": str(folder / "chain.db"), "wallet.path": str(wallet.path)},
    )
    return AgentContext(configuration=configuration, passphrase=PASSPHRASE)


def main() -> None:
    """`run` with arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    run(parser.parse_args().sizes)


if __name__ == "__main__":
    main()

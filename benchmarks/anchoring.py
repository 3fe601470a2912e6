"""One anchor from the public API to a closed ledger, beside what the host alone needs for it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.table import print_table, spread
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet

ANCHORS = 60
SIZES = (1, 100, 1_000, 10_000)
PASSPHRASE = "benchmark"  # noqa: S105 - of a wallet that is thrown away


def run() -> None:
    """Print the table: anchoring and rehydrating as the memory grows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wallet = Wallet.create(folder / "wallet" / "wallet.json", PASSPHRASE)
        rows = []
        for size in SIZES:
            anchor, rehydrate = _measure(folder / str(size), wallet, size)
            rows.append((f"{size:,}", spread(anchor), f"{rehydrate * 1000:.1f}"))
    print_table(("memories", "anchor, ms: median (range)", "rehydrate on another machine, ms"), rows)


def _measure(folder: Path, wallet: Wallet, size: int) -> tuple[list[float], float]:
    folder.mkdir()
    with _context(folder, "a", wallet) as context, AgentMemory(context) as memory:
        memory.backend.remember_many([f"memory number {number} of a benchmark" for number in range(size)])
        memory.anchor()
        taken = []
        for number in range(ANCHORS):
            memory.remember(f"one more memory, {number}")
            start = time.perf_counter()
            memory.anchor()
            taken.append(time.perf_counter() - start)
    with _context(folder, "b", wallet) as context, AgentMemory(context) as memory:
        start = time.perf_counter()
        memory.rehydrate()
        return taken, time.perf_counter() - start


def _context(folder: Path, home: str, wallet: Wallet) -> AgentContext:
    configuration = load_configuration(
        start=folder,
        env={"MYCELIUM_HOME": str(folder / home)},
        overrides={"onchain.chain_file": str(folder / "chain.db"), "wallet.path": str(wallet.path)},
    )
    return AgentContext(configuration=configuration, passphrase=PASSPHRASE)


if __name__ == "__main__":
    run()

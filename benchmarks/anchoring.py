"""One anchor from the public API to a closed ledger, beside the least that it could be.

That is the same contract call made with stellar-sdk by hand (simulate, sign, send and poll, and nothing else:
no intent, no compare-and-set, no check against what was verified before), and hashing the blob and writing it
durably (no look at whether rows were edited, no context file).

    python -m benchmarks.anchoring [--sizes 1 1000 10000 100000]
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.table import print_table, seconds, spread
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.files import replace_private
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ANCHORS = 60
ANCHORED_TOGETHER = 1_000_000
"""So many memories, about, are anchored for one line, in at least five anchors."""
SIZES = (1, 1_000, 10_000, 100_000)
PASSPHRASE = "benchmark"  # noqa: S105 - of a wallet that is thrown away


def run(sizes: Sequence[int] = SIZES) -> None:
    """Print the tables: anchoring and rehydrating as the memory grows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wallet = Wallet.create(folder / "wallet" / "wallet.json", PASSPHRASE)
        rows = [_row(folder / str(size), wallet, size) for size in sizes]
    print_table(
        (
            "memories", "anchor, ms: median (range)", "by hand", "hash, write", "times both", "verify, ms",
            "rehydrate elsewhere, ms",
        ),
        rows,
    )  # fmt: skip


def _row(folder: Path, wallet: Wallet, size: int) -> tuple[str, ...]:
    folder.mkdir()
    runs = max(5, min(ANCHORS, ANCHORED_TOGETHER // size))
    texts = iter(range(10_000_000))
    with _context(folder, "a", wallet) as context, AgentMemory(context) as memory:
        memory.backend.remember_many([f"memory number {number} of a benchmark" for number in range(size)])

        def anchor() -> None:
            memory.remember(f"one more memory, {next(texts)}")
            memory.anchor()

        anchored = seconds(anchor, runs=runs, warm=2)
        verified = seconds(memory.verify, runs=5)
        with _context(folder, "b", wallet) as other, AgentMemory(other) as elsewhere:
            (loaded,) = seconds(elsewhere.rehydrate, runs=1, warm=0)
        by_hand = statistics.median(seconds(_by_hand(context), runs=runs, warm=2))
        blob = memory.backend.export_blob()
    written = statistics.median(seconds(lambda: _hash_and_write(blob, folder / "blob"), runs=runs))
    milliseconds = (by_hand * 1000, written * 1000)
    return (
        f"{size:,}",
        spread(anchored),
        *(f"{each:.2f}" for each in milliseconds),
        f"{statistics.median(anchored) / (by_hand + written):.1f}",
        f"{statistics.median(verified) * 1000:.1f}",
        f"{loaded * 1000:.1f}",
    )


def _hash_and_write(blob: bytes, path: Path) -> None:
    hashlib.sha256(blob).digest()
    replace_private(path, blob)


def _by_hand(context: AgentContext) -> Callable[[], object]:
    """Anchoring a root with `ContractClient`, over the door that the SDK uses."""
    from stellar_sdk import scval
    from stellar_sdk.contract import AssembledTransaction, ContractClient

    from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient

    keypair = context.keypair()
    chain = Chain.open(str(context.configuration.onchain.chain_file))
    client = ContractClient(
        context.anchor_address(), IN_PROCESS_URL, context.network.passphrase, InProcessClient(chain)
    )
    arguments = [scval.to_address(keypair.public_key), *map(scval.to_bytes, (b"\x01" * 32, b"", b""))]

    def anchor() -> object:
        call: AssembledTransaction[object] = client.invoke(
            "set_anchor", arguments, source=keypair.public_key, signer=keypair
        )
        return call.sign_and_submit()

    return anchor


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
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of memories")
    run(parser.parse_args().sizes)


if __name__ == "__main__":
    main()

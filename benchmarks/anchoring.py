"""One anchor from the public API to a closed ledger, beside the same contract call made with stellar-sdk.

By hand means simulate, sign, send and poll, and nothing else: no blob written durably, no intent, no
compare-and-set, no check against what was verified before.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.table import print_table, seconds, spread
from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from collections.abc import Callable

ANCHORS = 60
SIZES = (1, 100, 1_000, 10_000)
PASSPHRASE = "benchmark"  # noqa: S105 - of a wallet that is thrown away


def run() -> None:
    """Print the tables: anchoring and rehydrating as the memory grows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wallet = Wallet.create(folder / "wallet" / "wallet.json", PASSPHRASE)
        rows = [_row(folder / str(size), wallet, size) for size in SIZES]
    print_table(
        ("memories", "anchor, ms: median (range)", "by hand, ms", "ratio", "rehydrate elsewhere, ms"), rows
    )


def _row(folder: Path, wallet: Wallet, size: int) -> tuple[str, ...]:
    folder.mkdir()
    texts = iter(range(10_000_000))
    with _context(folder, "a", wallet) as context, AgentMemory(context) as memory:
        memory.backend.remember_many([f"memory number {number} of a benchmark" for number in range(size)])

        def anchor() -> None:
            memory.remember(f"one more memory, {next(texts)}")
            memory.anchor()

        anchored = seconds(anchor, runs=ANCHORS, warm=3)
        with _context(folder, "b", wallet) as other, AgentMemory(other) as elsewhere:
            (loaded,) = seconds(elsewhere.rehydrate, runs=1, warm=0)
        by_hand = seconds(_by_hand(context), runs=ANCHORS, warm=3)
    ratio = statistics.median(anchored) / statistics.median(by_hand)
    return f"{size:,}", spread(anchored), spread(by_hand), f"{ratio:.1f}", f"{loaded * 1000:.1f}"


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


if __name__ == "__main__":
    run()

"""How quickly an agent learns another one's version: from an indexer, and from the RPC server.

Both are servers of their own on this machine, so that what differs is what each has to do; on a public
network the way to the server comes on top of every request that is made.

    python -m benchmarks.indexer_client
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

from stellar_sdk import Keypair

from benchmarks.table import print_table, seconds, spread
from mycelium_localnet import Chain
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.deployment import ensure_local_contract
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.chain.indexer import IndexerClient
from mycelium_sdk.chain.rpc import RpcChain
from mycelium_sdk.networks import STANDALONE_PASSPHRASE

RUNS = 200
VERSIONS = 20


def run() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="mycelium-bench-") as folder, ExitStack() as stack:
        file, owner = Path(folder) / "chain.db", Keypair.random()
        contract = _anchor(file, owner)
        rpc = _started(stack, "localnet", "--port", "0", "--state", str(file))
        indexer = _started(
            stack,
            *("indexer", "serve", "--ingest", "--port", "0", "--database", str(Path(folder) / "index.db")),
            *("--network", "standalone", "--rpc-url", rpc, "--anchor-address", contract),
        )
        chain = stack.enter_context(closing(RpcChain(rpc, STANDALONE_PASSPHRASE)))
        client = stack.enter_context(IndexerClient(indexer, STANDALONE_PASSPHRASE, contract))
        anchors = MemoryAnchorClient(chain, contract)
        while client.latest(owner.public_key) is None:  # each question is a round trip
            pass
        rows = [
            ("IndexerClient.latest", lambda: client.latest(owner.public_key)),
            ("MemoryAnchorClient.get_anchor", lambda: anchors.get_anchor(owner.public_key)),
        ]
        print_table(
            ("call", "milliseconds: median (range)"),
            [(name, spread(seconds(call, runs=RUNS, warm=5))) for name, call in rows],
        )


def _anchor(file: Path, owner: Keypair) -> str:
    """Some versions of the owner's on a new chain; the contract."""
    with closing(EmbeddedChain(Chain.open(file), STANDALONE_PASSPHRASE)) as chain:
        contract = ensure_local_contract(chain, None)
        chain.fund(owner.public_key)
        client = MemoryAnchorClient(chain, contract)
        for version in range(1, VERSIONS + 1):
            client.set_anchor(owner, bytes([version]) * 32, b"https://example.org/memory.json")
        return contract


def _started(stack: ExitStack, *arguments: str) -> str:
    """A server in a process of its own, and the address that it says when it is ready."""
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-m", "mycelium_cli", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
    )  # fmt: skip
    stack.callback(process.terminate)
    assert process.stdout is not None
    line = process.stdout.readline()
    return next(word for word in line.split() if word.startswith("http"))


if __name__ == "__main__":
    run()

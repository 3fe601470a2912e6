"""What each function of the MemoryAnchor contract costs on the network's host, beside the layout it replaced.

The numbers are what simulation quotes with protocol 28's settings and testnet's times to live; they are the
same on every machine. A URI of 30 bytes, an empty acl. The other layout is that of the older deployments,
five entries for each owner, written in the same language and compiled by the same compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stellar_sdk import Keypair, scval

from benchmarks.table import print_table
from mycelium_localnet import Chain
from mycelium_sdk.chain import operations
from mycelium_sdk.chain.artifact import memory_anchor_wasm
from mycelium_sdk.chain.build import build_contract
from mycelium_sdk.chain.deployment import deploy
from mycelium_sdk.chain.embedded import EmbeddedChain
from mycelium_sdk.networks import STANDALONE_PASSPHRASE

if TYPE_CHECKING:
    from mycelium_sdk.chain.base import Simulation, Work

LEGACY_SOURCE = Path(__file__).parents[1] / "tests" / "contract" / "legacy_anchor.py"
SIGNER = Keypair.from_raw_ed25519_seed(bytes(range(32)))
ROOT = scval.to_bytes(bytes(range(1, 33)))
URI = scval.to_bytes(b"https://example.org/memory.jso")
ACL = scval.to_bytes(b"")


@dataclass(frozen=True)
class Cost:
    """The quote for one call. `instructions` are the declared ones: the metered ones and what simulation
    adds, 50,000 or 4 %; `fee` is the resource fee in stroops."""

    call: str
    instructions: int
    read_bytes: int
    write_bytes: int
    fee: int


def measure(wasm: bytes, *, compare_and_set: bool) -> list[Cost]:
    """Every call, on a new chain in memory."""
    chain = EmbeddedChain(
        Chain.open(":memory:", seed=b"contract costs", clock="frozen"), STANDALONE_PASSPHRASE
    )
    try:
        return _measure(chain, wasm, compare_and_set=compare_and_set)
    finally:
        chain.close()


def _measure(chain: EmbeddedChain, wasm: bytes, *, compare_and_set: bool) -> list[Cost]:
    owner = scval.to_address(SIGNER.public_key)
    chain.fund(SIGNER.public_key)

    def quote(call: str, work: Work) -> Cost:
        simulation: Simulation = chain.simulate(work, source=SIGNER.public_key)
        used = simulation.resources
        return Cost(call, used.instructions, used.read_bytes, used.write_bytes, simulation.resource_fee)

    costs = [quote("upload the code", operations.upload_code(wasm))]
    made = deploy(chain, wasm, SIGNER, salt=bytes(32))
    create = operations.create_contract(made.code_hash, SIGNER.public_key, bytes(31) + b"\x01")
    costs.append(quote("create the contract", create))

    def setting(version: int) -> list[tuple[str, Work]]:
        calls = [("set_anchor", operations.invoke(made.contract_id, "set_anchor", [owner, ROOT, URI, ACL]))]
        if compare_and_set:
            arguments = [owner, scval.to_uint64(version), ROOT, URI, ACL]
            calls.append(("set_anchor_if", operations.invoke(made.contract_id, "set_anchor_if", arguments)))
        return calls

    costs += [quote(f"{name}, first", work) for name, work in setting(0)]
    chain.submit(setting(0)[0][1], SIGNER)
    chain.submit(setting(1)[0][1], SIGNER)
    costs += [quote(f"{name}, update", work) for name, work in setting(2)]
    for name in ("get_anchor", "get_version", "is_anchored"):
        costs.append(quote(name, operations.invoke(made.contract_id, name, [owner])))
    return costs


def run() -> None:
    """Print the table."""
    wasm, older = memory_anchor_wasm(), build_contract(LEGACY_SOURCE).wasm
    other = {cost.call: cost for cost in measure(older, compare_and_set=False)}
    rows = []
    for cost in measure(wasm, compare_and_set=True):
        beside = other.get(cost.call)
        rows.append(
            (
                cost.call,
                f"{cost.instructions:,}",
                f"{cost.read_bytes:,}",
                f"{cost.write_bytes:,}",
                f"{cost.fee:,}",
                "-" if beside is None else f"{beside.fee:,}",
            )
        )
    print(f"code: {len(wasm):,} bytes (five-entry layout: {len(older):,}); fees in stroops, 10^7 are 1 XLM")
    header = (
        "call",
        "instructions",
        "bytes read",
        "bytes written",
        "resource fee",
        "fee, five entries",
    )
    print_table(header, rows)


if __name__ == "__main__":
    run()

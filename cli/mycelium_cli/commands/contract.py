"""`mycelium contract ...`: compile the MemoryAnchor contract and put it on a network."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mycelium_cli.groups import LazyGroup, command
from mycelium_cli.output import amount, duration, progress, to_stderr
from mycelium_cli.session import current_session

if TYPE_CHECKING:
    from mycelium_sdk.context import AgentContext

_SOURCE = Path("contracts", "memory_anchor.py")


@command(
    "build",
    example="mycelium contract build\nmycelium contract build --source my_anchor.py --output my_anchor.wasm",
    shared=(),
    params=[
        click.Option(["--source"], metavar="FILE", help=f"The contract's source [default: {_SOURCE}]."),
        click.Option(
            ["--output"], metavar="FILE", help="Where the wasm goes [default: into the SDK package]."
        ),
    ],
)
def build(source: str | None, output: str | None) -> None:
    """Compile the contract to WebAssembly and say its size and SHA-256.

    The same source always gives the same bytes. Needs the extra `contract`.
    """
    from mycelium_sdk.chain.build import build_contract

    current = current_session()
    source_path = current.configuration.folder / _SOURCE if source is None else Path(source).expanduser()
    with progress("compiling"):
        built = build_contract(source_path)
    output_path = _packaged_wasm() if output is None else Path(output).expanduser()
    changed = _write_wasm(output_path, built.wasm)
    current.result(
        {
            "source": str(source_path),
            "output": str(output_path),
            "bytes": len(built.wasm),
            "sha256": built.sha256.hex(),
            "changed": changed,
        },
        f"wasm    {output_path}{'' if changed else ' (unchanged)'}",
        f"size    {len(built.wasm):,} bytes",
        f"sha256  {built.sha256.hex()}",
    )


@command(
    "deploy",
    example="mycelium contract deploy --network testnet\nmycelium contract deploy --wasm out.wasm --json",
    shared=("--network", "--rpc-url", "--wallet", "--home"),
    params=[
        click.Option(["--wasm"], metavar="FILE", help="The compiled contract [default: the packaged one].")
    ],
)
def deploy(wasm: str | None) -> None:
    """Put the contract on the chosen network and say how to configure it.

    The wallet's account pays. Nobody, also not the deployer, can change the contract afterwards. The network
    `local` needs none of this: its contract is made at the first anchor.
    """
    from mycelium_sdk.chain.artifact import memory_anchor_wasm
    from mycelium_sdk.chain.deployment import deploy as put
    from mycelium_sdk.chain.deployment import ensure_funded

    current = current_session()
    code = memory_anchor_wasm() if wasm is None else _read_wasm(Path(wasm).expanduser())
    with current.context(make_wallet=True, signs=True) as context, progress("deploying"):
        signer = context.keypair()
        _require_known_chain(context)
        if not context.network.public:
            ensure_funded(context.chain, signer.public_key, lambda text: to_stderr(f"note: {text}"))
        started = time.perf_counter()
        made = put(context.chain, code, signer)
        seconds = time.perf_counter() - started
        network = context.network.name
    current.result(
        {
            "contract": made.contract_id,
            "network": network,
            "sha256": made.code_hash.hex(),
            "uploaded": None if made.uploaded is None else made.uploaded.hash,
            "transaction": made.created.hash,
            "ledger": made.created.ledger,
            "fee_stroops": made.fee_charged,
            "seconds": round(seconds, 3),
        },
        f"contract     {made.contract_id}",
        f"network      {network}",
        f"sha256       {made.code_hash.hex()}",
        f"uploaded     {'(the code was there already)' if made.uploaded is None else made.uploaded.hash}",
        f"transaction  {made.created.hash}, ledger {made.created.ledger}",
        f"fee          {amount(made.fee_charged)}",
        f"time         {duration(seconds)}",
        "",
        "To use it, write into mycelium.toml:",
        "",
        "[memory]",
        f'anchor_address = "{made.contract_id}"',
    )


def _require_known_chain(context: AgentContext) -> None:
    """Make no new chain in the place of one that this wallet's memory was anchored on. Raises ChainReset."""
    from mycelium_sdk.errors import ChainReset
    from mycelium_sdk.state import StateStore

    if context.has_chain:
        return
    with StateStore(context.home.state_file) as state:
        if state.known(context.network.passphrase, context.anchor_address(), context.address):
            raise ChainReset("the file of the chain that this memory was anchored on is not there")


def _packaged_wasm() -> Path:
    return Path(str(resources.files("mycelium_sdk.chain.artifact").joinpath("memory_anchor.wasm")))


def _read_wasm(path: Path) -> bytes:
    from mycelium_sdk.errors import InputError

    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}", hint="give the path of a .wasm file"
        ) from error


def _write_wasm(path: Path, wasm: bytes) -> bool:
    """Replace the file unless it is the same already; whether it changed."""
    from mycelium_sdk.errors import InputError

    try:
        if path.is_file() and path.read_bytes() == wasm:
            return False
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(wasm)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", hint="choose another --output") from error
    return True


contract = LazyGroup(
    "contract",
    help="The MemoryAnchor contract: compile it, put it on a network.",
    sources={
        "build": "mycelium_cli.commands.contract:build",
        "deploy": "mycelium_cli.commands.contract:deploy",
    },
    example="mycelium contract deploy --network testnet",
)

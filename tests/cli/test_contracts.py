"""`contract build` and `contract deploy`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.chain.artifact import memory_anchor_wasm

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

SOURCE = Path(__file__).parents[2] / "contracts" / "memory_anchor.py"


def test_build_says_size_and_hash_and_is_reproducible(cli: Cli) -> None:
    options = ("--source", str(SOURCE), "--output", "out.wasm")
    outcome = cli("contract", "build", *options, "--json")
    assert outcome.code == 0, outcome.err
    wasm = Path("out.wasm").read_bytes()
    assert wasm == memory_anchor_wasm()
    assert outcome.json == {
        "source": str(SOURCE),
        "output": "out.wasm",
        "bytes": len(wasm),
        "sha256": hashlib.sha256(wasm).hexdigest(),
        "changed": True,
    }
    again = cli("contract", "build", *options)
    assert again.out == (
        f"wasm    out.wasm (unchanged)\nsize    {len(wasm):,} bytes\nsha256  {outcome.json['sha256']}\n"
    )


def test_build_names_what_it_cannot_read_write_or_compile(cli: Cli) -> None:
    missing = cli("contract", "build", "--output", "out.wasm")
    assert missing.code == 2
    assert "contracts/memory_anchor.py" in missing.err
    Path("bad.py").write_text("this is no contract\n")
    assert cli("contract", "build", "--source", "bad.py", "--output", "out.wasm").code == 2
    assert cli("contract", "build", "--source", str(SOURCE), "--output", "missing/out.wasm").code == 2
    assert not Path("out.wasm").exists()


def test_deploy_gives_the_address_and_how_to_configure_it(cli: Cli, wallet: Wallet) -> None:
    outcome = cli("contract", "deploy", "--json")
    assert outcome.code == 0, outcome.err
    made = outcome.json
    assert made["network"] == "local"
    assert made["sha256"] == hashlib.sha256(memory_anchor_wasm()).hexdigest()
    assert made["fee_stroops"] > 0
    assert len(made["transaction"]) == 64
    cli("memory", "remember", "x")
    assert cli("memory", "anchor", "--anchor-address", made["contract"], "--json").json["version"] == 1
    assert cli("memory", "status", "--json").json["verdict"] == "NOT_ANCHORED"
    Path("mycelium.toml").write_text(f'[memory]\nanchor_address = "{made["contract"]}"\n')
    assert cli("memory", "verify").code == 0

    text = cli("contract", "deploy")
    address = text.out.split()[1]
    assert address != made["contract"]
    assert text.out.endswith(f'\n[memory]\nanchor_address = "{address}"\n')
    assert "(the code was there already)" in text.out


def test_deploy_refuses_what_is_no_contract(cli: Cli, wallet: Wallet) -> None:
    Path("not.wasm").write_bytes(b"something")
    outcome = cli("contract", "deploy", "--wasm", "not.wasm")
    assert (outcome.code, outcome.out) == (2, "")
    assert cli("contract", "deploy", "--wasm", "missing.wasm").code == 2


def test_deploy_makes_no_chain_in_the_place_of_a_lost_one(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "x")
    assert cli("memory", "anchor").code == 0
    for file in (own_home / "localnet").glob("chain.db*"):
        file.unlink()
    outcome = cli("contract", "deploy", "--json")
    assert (outcome.code, outcome.json["error"]["verdict"]) == (6, "CHAIN_RESET")
    assert not (own_home / "localnet" / "chain.db").exists()
    assert cli("memory", "anchor", "--trust-chain-anew").code == 0
    assert cli("contract", "deploy").code == 0

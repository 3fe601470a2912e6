"""Every command's JSON document has the documented keys."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mycelium_cli.reference import RESULTS, walk

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

SOURCE = Path(__file__).parents[2] / "contracts" / "memory_anchor.py"
ARGUMENTS = {
    "memory remember": "x --tag y",
    "memory recall": "x",
    "memory export": "memories.jsonl",
    "memory forget": "1",
    "memory import": "memories.jsonl",
    "memory diff": "1",
    "memory purge": "--yes",
    "wallet new": "--wallet new.json",
    "contract build": f"--source {shlex.quote(str(SOURCE))} --output out.wasm",
}
FIRST = ["memory remember", "memory anchor"]
APART = {
    "indexer repair",
    "indexer run",
    "indexer serve",
    "localnet",
    "memory inspect",
    "memory repair",
}  # they need others; their own tests read their documents
ORDER = [*FIRST, *sorted({*RESULTS} - {*FIRST} - APART)]


def test_every_command_is_documented() -> None:
    commands = [context.command_path for context in walk() if not isinstance(context.command, click.Group)]
    documented = {f"mycelium {name.partition(' --')[0]}" for name in RESULTS}
    assert documented == set(commands)


def test_the_keys_are_the_documented_ones(cli: Cli, wallet: Wallet) -> None:
    for name in ORDER:
        outcome = cli(*name.split(), *shlex.split(ARGUMENTS.get(name, "")), "--json")
        assert outcome.code == 0, (name, outcome.err)
        document = outcome.json[0] if name == "memory recall" else outcome.json
        assert " ".join(document) == RESULTS[name], name

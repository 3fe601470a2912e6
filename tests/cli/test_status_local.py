"""`memory status --local` says what is known here, and no more."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.canaries import TEXT

from .test_doctor import anchored

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli


def dirty_line(out: str) -> str:
    """What is said about writes."""
    (line,) = [line for line in out.splitlines() if line.startswith("dirty")]
    return line


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_memory_that_was_lost_is_older_than_its_anchor(
    cli: Cli, wallet: Wallet, own_home: Path, how: str
) -> None:
    anchored(cli)
    file = own_home / "memory" / f"{wallet.address}.db"
    if how == "deleted":
        file.unlink()
    else:
        file.write_bytes(b"")
    found = cli("memory", "status", "--local", "--json").json
    assert (found["records"], found["dirty"], found["last_anchor"]["version"]) == (0, None, 1)
    out = cli("memory", "status", "--local").out
    assert dirty_line(out).startswith("dirty     not known here: the memory is older than its anchor")
    assert "next: load what was anchored: `mycelium memory rehydrate`" in out
    assert cli("memory", "status", "--json").json["verdict"] == "ROLLBACK"


def test_an_old_copy_is_older_than_its_anchor(
    cli: Cli, wallet: Wallet, own_home: Path, tmp_path: Path
) -> None:
    anchored(cli)
    file = own_home / "memory" / f"{wallet.address}.db"
    shutil.copy(file, tmp_path / "copy")
    cli("memory", "remember", f"{TEXT} y")
    cli("memory", "anchor")
    file.unlink()
    shutil.copy(tmp_path / "copy", file)
    assert cli("memory", "status", "--local", "--json").json["dirty"] is None


def test_without_the_state_nothing_is_known(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    anchored(cli)
    shutil.rmtree(own_home / "state")
    found = cli("memory", "status", "--local", "--json").json
    assert (found["records"], found["dirty"], found["last_anchor"]) == (1, None, None)
    out = cli("memory", "status", "--local").out
    assert "anchored  not known here\n" in out
    assert "state/ in the home folder" in dirty_line(out)
    assert cli("memory", "verify").code == 0  # what is said to be next
    assert dirty_line(cli("memory", "status", "--local").out) == "dirty     no"


def test_where_no_contract_is_chosen_it_says_what_is_here(cli: Cli, wallet: Wallet) -> None:
    cli("memory", "remember", f"{TEXT} x")
    outcome = cli("memory", "status", "--local", "--json", "--network", "testnet")
    assert outcome.code == 0
    assert outcome.json == {
        "owner": wallet.address,
        "network": "testnet",
        "backend": outcome.json["backend"],
        "lag": None,
        "records": 1,
        "dirty": None,
        "last_anchor": None,
    }
    out = cli("memory", "status", "--local", "--network", "testnet").out
    assert "no MemoryAnchor contract is chosen for the network testnet" in dirty_line(out)


def test_what_is_known_is_said(cli: Cli, wallet: Wallet) -> None:
    anchored(cli)
    assert cli("memory", "status", "--local", "--json").json["dirty"] is False
    cli("memory", "remember", f"{TEXT} y")
    assert cli("memory", "status", "--local", "--json").json["dirty"] is True

"""`wallet new` and `show`, and the wallet that the first `remember` makes."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.strkey import is_account
from mycelium_sdk.wallet import Wallet

from .conftest import PASSPHRASE

if TYPE_CHECKING:
    from .conftest import Cli


def test_new_makes_one_and_never_overwrites(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = cli("wallet", "new", "--json", "--wallet", "keys/agent.json")
    assert outcome.code == 0, outcome.err
    path = Path("keys/agent.json").absolute()
    made = Wallet.load(path)
    assert outcome.json == {"address": made.address, "path": str(path)}
    assert made.unlock(PASSPHRASE).seed.startswith("S")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()

    # Refused before a passphrase is asked for.
    monkeypatch.delenv("MYCELIUM_DECRYPT_KEY")
    again = cli("wallet", "new", "--wallet", "keys/agent.json")
    assert again.code == 4
    assert "never overwritten" in again.err
    assert path.read_bytes() == before


def test_a_place_where_no_wallet_can_be_is_called_what_it_is(cli: Cli) -> None:
    folder = cli("wallet", "new", "--wallet", ".")
    assert folder.code == 4
    assert folder.err.startswith(f"error: {Path.cwd()} is a folder\nhint: name a file, for example ")
    nowhere = cli("wallet", "new", "--wallet", "/proc/w.json")
    assert nowhere.code == 4
    assert nowhere.err == "error: no file can be made in /proc\nhint: choose another folder\n"


def test_a_variable_that_is_no_text_is_the_wallets_trouble(ended: Any) -> None:
    outcome = ended("wallet", "new", env={"MYCELIUM_DECRYPT_KEY": "\udcff"})
    assert outcome.code == 4
    assert outcome.err.startswith("error: the environment variable MYCELIUM_DECRYPT_KEY is not valid UTF-8\n")
    assert "\nhint: set it to the passphrase as UTF-8 text\n" in outcome.err


def test_sync_makes_no_wallet(cli: Cli, own_home: Path) -> None:
    outcome = cli("memory", "sync")
    assert outcome.code == 4
    assert "there is no wallet at " in outcome.err
    assert not Path(".mycelium").exists()
    assert not (own_home / "localnet").exists()


def test_show_needs_no_passphrase(cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYCELIUM_DECRYPT_KEY")
    outcome = cli("wallet", "show")
    assert outcome.code == 0
    assert outcome.out == f"account  {wallet.address}\nwallet   {wallet.path}\n"


def test_the_first_remember_on_local_makes_a_wallet_and_says_so(cli: Cli) -> None:
    outcome = cli("memory", "remember", "first", "--json")
    assert outcome.code == 0, outcome.err
    made = Wallet.load(Path(".mycelium/wallet.json"))
    assert is_account(made.address)
    assert outcome.err.count("note: ") == 2
    assert made.address in outcome.err
    assert PASSPHRASE not in outcome.err
    assert list(outcome.json) == ["id", "new"]
    assert [hit["content"] for hit in cli("memory", "recall", "first", "--json").json] == ["first"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory", "remember", "x", "--network", "testnet"),
        ("memory", "anchor", "--network", "testnet"),
        ("memory", "recall", "x"),
        ("memory", "status", "--local"),
        ("memory", "verify"),
        ("memory", "rehydrate"),
        ("wallet", "show"),
    ],
    ids=" ".join,
)
def test_a_missing_wallet_is_an_error_that_names_wallet_new(cli: Cli, arguments: tuple[str, ...]) -> None:
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out) == (4, "")
    assert "there is no wallet" in outcome.err
    assert "`mycelium wallet new`" in outcome.err
    assert not Path(".mycelium").exists()


def test_without_passphrase_and_terminal_the_variable_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (None, ""):
        if value is None:
            monkeypatch.delenv("MYCELIUM_DECRYPT_KEY")
        else:
            monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", value)
        outcome = cli("memory", "remember", "x")
        assert outcome.code == 4
        assert "MYCELIUM_DECRYPT_KEY" in outcome.err
        assert not Path(".mycelium").exists()


def test_a_wallet_that_others_can_read_is_refused_with_the_fix(cli: Cli, wallet: Wallet) -> None:
    wallet.path.chmod(0o640)
    outcome = cli("memory", "remember", "x", "--json")
    assert outcome.code == 4
    assert outcome.json["error"]["type"] == "WalletPermissions"
    assert outcome.json["error"]["hint"] == f"run `chmod 600 {wallet.path}`"

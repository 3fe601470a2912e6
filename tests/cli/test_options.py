"""The shared options: where they may stand, and what they override."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_cli.options import Given
from mycelium_cli.session import Session
from mycelium_sdk.errors import UsageError

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli


@pytest.mark.parametrize(
    "arguments",
    [
        ("--wallet", "other.json", "--json", "wallet", "show"),
        ("wallet", "--wallet", "other.json", "--json", "show"),
        ("wallet", "show", "--wallet", "other.json", "--json"),
        ("--wallet", "missing.json", "wallet", "show", "--json", "--wallet", "other.json"),
    ],
)
def test_they_are_taken_before_and_after_the_command(
    cli: Cli, wallet: Wallet, arguments: tuple[str, ...]
) -> None:
    wallet.path.rename("other.json")
    outcome = cli(*arguments)
    assert outcome.code == 0, outcome.err
    assert outcome.json == {"address": wallet.address, "path": str(Path("other.json").absolute())}


def test_options_override_the_environment_and_that_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("mycelium.toml").write_text('[onchain]\nnetwork = "standalone"\n[wallet]\npath = "a.json"\n')
    assert Session(Given()).configuration.onchain.network == "standalone"
    monkeypatch.setenv("MYCELIUM_NETWORK", "testnet")
    monkeypatch.setenv("MYCELIUM_WALLET", "b.json")
    assert Session(Given()).configuration.onchain.network == "testnet"
    given = Given(
        overrides={"onchain.network": "local", "wallet.path": "c.json", "memory.backend": "local"},
        home=str(tmp_path / "elsewhere"),
    )
    configuration = Session(given).configuration
    assert configuration.onchain.network == "local"
    assert configuration.wallet.path == Path("c.json").absolute()
    assert configuration.home.root == tmp_path / "elsewhere"


def test_an_empty_home_is_refused() -> None:
    with pytest.raises(UsageError, match="--home is empty"):
        _ = Session(Given(home=" ")).configuration


def test_another_home_is_another_memory(cli: Cli, wallet: Wallet, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    assert cli("memory", "remember", "only there", "--home", elsewhere).code == 0
    assert cli("memory", "recall", "there", "--json").json == []
    hits = cli("--home", elsewhere, "memory", "recall", "there", "--json").json
    assert [hit["content"] for hit in hits] == ["only there"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("memory", "status", "--network", "tesnet"), "testnet"),
        (("memory", "status", "--rpc-url", "ftp://x"), "error: --rpc-url is not an http or https URL"),
        (
            ("memory", "status", "--rpc-url", ""),
            "error: --rpc-url is empty\nhint: give a value, or leave it out",
        ),
        (("memory", "status", "--backend", "sqlite"), "none of"),
        (("memory", "status", "--wallet", ""), "error: --wallet is empty"),
        (("memory", "remember", "-dash text"), "goes after `--`: `mycelium memory remember -- ...`"),
        (("memory", "remember", "-- a dash and more"), "goes after `--`"),
        (("memory", "diff", "-1"), "goes after `--`: `mycelium memory diff -- ...`"),
        (("memory", "remember", "tea", "--sesion", "x"), "`mycelium memory remember --help` shows"),
        (("memory", "diff", "a"), "'a' is not a valid whole number"),
        (("memory", "purge", "a"), "'a' is not a valid whole number"),
        (("memory", "import", ""), "FILE is empty"),
        (("memory", "export", ""), "FILE is empty"),
        (("memory", "status", "--nonsense"), "--nonsense"),
        (("memory", "rember", "x"), "remember"),
        (("memory", "remember"), "TEXT"),
        (("wallet", "show", "--rpc-url", "http://x"), "--rpc-url"),
    ],
)
def test_a_bad_option_is_a_usage_error_with_a_hint(
    cli: Cli, wallet: Wallet, arguments: tuple[str, ...], part: str
) -> None:
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    first, *rest = outcome.err.splitlines()
    assert first.startswith("error: ")
    assert part in outcome.err
    assert any(line.startswith("hint: ") for line in rest)

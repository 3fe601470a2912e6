"""`doctor`: each finding with its state and the fix, and nothing made or changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mycelium_localnet import Chain
from mycelium_sdk.context import AgentContext

if TYPE_CHECKING:
    import pytest

    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli, Outcome

NAMES = ["versions", "configuration", "home", "wallet", "memory", "chain", "account", "contract", "anchor"]


def checks(outcome: Outcome) -> dict[str, Any]:
    """The findings by name."""
    return {check["name"]: check for check in outcome.json["checks"]}


def states(outcome: Outcome) -> dict[str, str]:
    """The states by name."""
    return {name: check["state"] for name, check in checks(outcome).items()}


def test_a_fresh_machine_is_fine_and_stays_as_it_is(cli: Cli, own_home: Path) -> None:
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    assert outcome.json["ok"] is True
    assert states(outcome) == {
        "versions": "ok",
        "configuration": "ok",
        "home": "ok",
        "wallet": "warning",
        "memory": "warning",
        "chain": "ok",
    }
    assert "remember" in checks(outcome)["wallet"]["fix"]
    assert not own_home.exists()
    assert list(Path.cwd().iterdir()) == []


def test_everything_in_order(cli: Cli, wallet: Wallet) -> None:
    cli("memory", "remember", "x")
    cli("memory", "anchor")
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    assert states(outcome) == dict.fromkeys(NAMES, "ok")
    found = {name: check["message"] for name, check in checks(outcome).items()}
    assert "SQLite" in found["versions"]
    assert "host protocol" in found["versions"]
    assert wallet.address in found["wallet"]
    assert "opens it" in found["wallet"]
    assert "1 memory" in found["memory"]
    assert "XLM" in found["account"]
    assert "more ledgers" in found["anchor"]

    lines = cli("doctor").out.splitlines()
    assert [line.split()[1] for line in lines] == NAMES
    assert all(line.startswith("ok ") for line in lines)


def test_before_the_first_anchor(cli: Cli, wallet: Wallet) -> None:
    cli("memory", "remember", "x")
    cli("memory", "status")
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    found = checks(outcome)
    assert "not there yet" in found["account"]["message"]
    assert found["anchor"]["message"] == "never anchored"


def test_a_wrong_passphrase_is_a_fault(cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", "wrong")
    outcome = cli("doctor", "--json")
    assert outcome.code == 4
    assert outcome.json["ok"] is False
    assert states(outcome)["wallet"] == "fault"
    monkeypatch.delenv("MYCELIUM_DECRYPT_KEY")
    assert cli("doctor").code == 0


def test_a_home_that_others_can_read_is_a_fault_with_the_fix(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    cli("memory", "remember", "x")
    file = own_home / "memory" / f"{wallet.address}.db"
    file.chmod(0o644)
    outcome = cli("doctor", "--json")
    assert outcome.code == 5
    assert checks(outcome)["home"]["fix"] == f"run `chmod 600 {file}`"
    text = cli("doctor").out
    assert "fault    home" in text
    assert f"fix: run `chmod 600 {file}`" in text


def test_a_bad_configuration_ends_it(cli: Cli) -> None:
    Path("mycelium.toml").write_text("[onchain]\nnetwork = 1\n")
    outcome = cli("doctor", "--json")
    assert outcome.code == 3
    assert states(outcome) == {"versions": "ok", "configuration": "fault"}


def test_an_unknown_variable_is_a_warning(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCELIUM_NETWROK", "local")
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    assert states(outcome)["configuration"] == "warning"
    assert "MYCELIUM_NETWROK" in checks(outcome)["configuration"]["message"]


def test_a_damaged_memory_is_a_fault(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "x" * 100_000)
    file = own_home / "memory" / f"{wallet.address}.db"
    data = bytearray(file.read_bytes())
    data[:100] = b"\x00" * 100
    file.write_bytes(data)
    outcome = cli("doctor", "--json")
    assert outcome.code == 5
    assert states(outcome)["memory"] == "fault"


def test_a_server_that_cannot_be_reached_is_a_fault_and_ends_it(cli: Cli, wallet: Wallet) -> None:
    outcome = cli(
        "doctor", "--json", "--network", "standalone", "--rpc-url", "http://127.0.0.1:1/rpc",
    )  # fmt: skip
    assert outcome.code == 6
    assert states(outcome)["chain"] == "fault"
    assert "account" not in states(outcome)


def test_an_archived_anchor_is_a_fault_that_anchoring_mends(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    file = own_home / "localnet" / "chain.db"
    file.parent.mkdir(parents=True, mode=0o700)
    own_home.chmod(0o700)
    with_short_lives = Chain.open(file, profile="short-ttl")
    with_short_lives.close()
    cli("memory", "remember", "x")
    cli("memory", "anchor")
    with AgentContext() as context:
        remaining = context.anchor_client().entry_state(wallet.address).remaining
    assert remaining is not None
    chain = Chain.open(file)
    chain.skip_ledgers(remaining + 1)
    chain.close()
    outcome = cli("doctor", "--json")
    assert outcome.code == 6
    assert states(outcome)["anchor"] == "fault"
    assert "archived" in checks(outcome)["anchor"]["message"]
    assert cli("memory", "status", "--json").json["verdict"] == "ARCHIVED"
    assert cli("memory", "anchor").code == 0
    assert cli("doctor").code == 0

"""`doctor` where the local chain is another one than the memory was anchored on, or was for a while."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from mycelium_localnet import Chain
from tests.faults.relay import Relay

from .test_doctor import anchored, chain_of, checks, states
from .test_doctor_obstacles import commands_of

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli


def chain_file(home: Path) -> Path:
    return home / "localnet" / "chain.db"


def wipe(home: Path) -> None:
    """The local chain is thrown away."""
    for file in (home / "localnet").iterdir():
        file.unlink()


def another(home: Path) -> None:
    """A new chain, without anything on it, takes the local one's place."""
    wipe(home)
    Chain.open(chain_file(home)).close()


def test_a_chain_that_nothing_was_anchored_on_yet_is_looked_at_as_verify_does(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    another(own_home)
    outcome = cli("doctor", "--json")
    found = checks(outcome)
    assert (outcome.code, found["verdict"]["state"]) == (7, "fault")
    assert found["verdict"]["message"].startswith("CHAIN_RESET: ")
    assert cli("memory", "verify", "--json").json["verdict"] == "CHAIN_RESET"
    after = checks(cli("doctor", "--json"))
    assert (after["state"]["state"], after["state"]["fix"]) == ("warning", "see the verdict's fix")


def test_the_fix_for_another_chain_names_the_place_and_leads_out(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    another(own_home)
    fix = checks(cli("doctor", "--json"))["verdict"]["fix"]
    assert str(chain_file(own_home)) in fix
    assert "`[onchain] chain_file`" in fix
    (command,) = [command for command in commands_of(fix) if command[0] == "mycelium"]
    assert command != ["mycelium", "doctor"]
    assert cli(*command[1:]).code == 0
    assert cli("doctor").code == 0


def test_an_empty_file_is_no_chain_and_stays_empty(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    anchored(cli)
    wipe(own_home)
    chain_file(own_home).touch(0o600)
    outcome = cli("doctor", "--json")
    found = checks(outcome)["chain"]
    assert (outcome.code, found["state"]) == (6, "fault")
    assert found["message"].endswith(f"is not at {chain_file(own_home)} any more")
    assert [file.name for file in (own_home / "localnet").iterdir()] == ["chain.db"]
    assert chain_file(own_home).stat().st_size == 0


@pytest.mark.parametrize("arguments", [(), ("--wallet", "none.json")])
def test_an_empty_file_is_none_yet_where_nothing_was_anchored(
    cli: Cli, wallet: Wallet, own_home: Path, arguments: tuple[str, ...]
) -> None:
    cli("memory", "remember", "x")
    (own_home / "localnet").mkdir(0o700)
    chain_file(own_home).touch(0o600)
    outcome = cli("doctor", "--json", *arguments)
    assert outcome.code == 0
    assert checks(outcome)["chain"]["message"].startswith(f"none yet at {chain_file(own_home)}; ")
    assert chain_file(own_home).stat().st_size == 0


def test_before_the_first_anchor_the_verdict_is_that_of_verify(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    cli("memory", "remember", "x")
    (own_home / "localnet").mkdir(0o700)
    Chain.open(chain_file(own_home)).close()
    outcome = cli("doctor", "--json")
    found = checks(outcome)
    assert outcome.code == 0
    assert found["verdict"]["message"].startswith("NOT_ANCHORED: ")
    assert "not there yet" in found["contract"]["message"]


def test_the_place_of_the_chain_is_shown(
    cli: Cli, wallet: Wallet, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored(cli)
    message = checks(cli("doctor", "--json"))["chain"]["message"]
    assert message.startswith("local at ledger ")
    assert message.endswith(f", in {chain_file(own_home)}")
    moved = shutil.move(own_home / "localnet", tmp_path / "moved")
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", f"{moved}/chain.db")
    assert checks(cli("doctor", "--json"))["chain"]["message"].endswith(f", in {moved}/chain.db")


def test_the_server_of_the_chain_is_shown_without_its_secret(
    cli: Cli, wallet: Wallet, tmp_path: Path
) -> None:
    with closing(Chain.open(tmp_path / "served.db")) as chain, closing(Relay(chain, {})) as server:
        url = f"{server.url}?key=hidden"
        message = checks(cli("doctor", "--json", "--network", "standalone", "--rpc-url", url))["chain"][
            "message"
        ]
    assert message.startswith("standalone at ledger ")
    assert message.endswith(f", served by {urlsplit(server.url).netloc}")


def test_a_contradiction_that_is_over_is_history(
    cli: Cli, wallet: Wallet, own_home: Path, tmp_path: Path
) -> None:
    anchored(cli)
    kept = shutil.copytree(own_home / "localnet", tmp_path / "kept")
    another(own_home)
    assert cli("memory", "verify").code == 7
    wipe(own_home)
    shutil.copytree(kept, own_home / "localnet", dirs_exist_ok=True)
    assert cli("memory", "verify").code == 0
    found = checks(cli("doctor", "--json"))["state"]
    assert (found["state"], found["fix"]) == ("ok", None)
    assert found["message"].startswith("based on version 1; the chain contradicted what was seen before once")
    assert " UTC (CHAIN_RESET)" in found["message"]
    cli("memory", "remember", "y")
    assert states(cli("doctor", "--json"))["state"] == "ok", "writes that wait contradict nothing"


def test_a_contradiction_on_a_chain_that_is_not_asked_stays_a_warning(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    another(own_home)
    assert cli("memory", "verify").code == 7
    wipe(own_home)
    found = checks(cli("doctor", "--json"))["state"]
    assert found["state"] == "warning"
    assert found["fix"] == "see whether it still does: `mycelium memory verify`", "there is no second server"


@pytest.mark.parametrize("verdict", ["FORK", "ROLLBACK"])
def test_the_fix_for_a_chain_file_that_was_set_back_leads_out(
    cli: Cli, wallet: Wallet, own_home: Path, verdict: str
) -> None:
    anchored(cli)
    with chain_of(own_home) as chain:
        snapshot = chain.snapshot()
    cli("memory", "remember", "y")
    assert cli("memory", "anchor").code == 0
    with chain_of(own_home) as chain:
        chain.revert(snapshot)
        chain.skip_ledgers(100)
    if verdict == "FORK":
        elsewhere = ("--home", str(own_home.with_name("elsewhere")))
        shared = ("MYCELIUM_CHAIN_FILE", str(chain_file(own_home)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(*shared)
            assert cli("memory", "rehydrate", *elsewhere).code == 0
            assert cli("memory", "remember", "z", *elsewhere).code == 0
            assert cli("memory", "anchor", *elsewhere).code == 0
    outcome = cli("doctor", "--json")
    found = checks(outcome)["verdict"]
    assert (outcome.code, found["state"]) == (7, "fault")
    assert found["message"].startswith(f"{verdict}: ")
    assert found["fix"].startswith("if the chain's file was set back with your knowledge: `")
    assert "server" not in found["fix"]
    (command,) = commands_of(found["fix"])
    assert command[-3:] == ["--trust-chain-anew", "--on-conflict", "merge"]
    assert cli(*command[1:]).code == 0
    assert cli("doctor").code == 0
    kept = cli("memory", "export", "-").out
    assert '"y"' in kept, "what is only here is kept"


def test_a_chain_set_back_to_before_the_first_anchor_is_anchored_on_anew(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    """There is nothing on it that could be loaded."""
    cli("memory", "remember", "x")
    (own_home / "localnet").mkdir(0o700)
    with chain_of(own_home) as chain:
        snapshot = chain.snapshot()
    assert cli("memory", "anchor").code == 0
    with chain_of(own_home) as chain:
        chain.revert(snapshot)
        chain.skip_ledgers(100)
    found = checks(cli("doctor", "--json"))["verdict"]
    assert found["message"].startswith("ROLLBACK: ")
    (command,) = commands_of(found["fix"])
    assert cli(*command[1:]).code == 0
    assert cli("doctor").code == 0


def test_an_old_copy_of_the_memory_is_no_fault_of_the_chain(
    cli: Cli, wallet: Wallet, own_home: Path, tmp_path: Path
) -> None:
    anchored(cli)
    kept = shutil.copytree(own_home / "memory", tmp_path / "kept")
    cli("memory", "remember", "y")
    assert cli("memory", "anchor").code == 0
    shutil.rmtree(own_home / "memory")
    shutil.copytree(kept, own_home / "memory")
    found = checks(cli("doctor", "--json"))["verdict"]
    assert "`mycelium memory rehydrate`" in found["fix"]
    assert "chain's file" not in found["fix"]


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_key_that_is_no_file_is_named_as_verify_names_it(
    cli: Cli, wallet: Wallet, own_home: Path, kind: str
) -> None:
    anchored(cli)
    (key,) = (own_home / "state" / "integrity").iterdir()
    key.unlink()
    if kind == "pipe":
        os.mkfifo(key, 0o600)
    else:
        key.mkdir(0o700)
    outcome = cli("doctor", "--json")
    found = checks(outcome)["memory"]
    said = cli("memory", "verify", "--json").json["error"]
    assert (outcome.code, found["state"], outcome.err) == (5, "fault", "")
    assert (found["message"], found["fix"]) == (said["message"], said["hint"])
    assert str(key) in found["message"]
    assert [path.name for path in own_home.iterdir() if path.name.startswith(".doctor-")] == []

"""`doctor`: each finding with its state and the fix, and nothing made or changed."""

from __future__ import annotations

import hashlib
import re
import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_localnet import Chain
from mycelium_sdk.chain import rpc
from mycelium_sdk.context import AgentContext
from mycelium_sdk.retry import RetryPolicy
from tests.canaries import TEXT

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli, Outcome

NAMES = [
    "versions", "configuration", "home", "wallet", "memory", "state", "publish", "chain", "account",
    "contract", "fees", "anchor", "blob", "verdict",
]  # fmt: skip


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
    assert "code 1" in found["contract"]
    assert "the account can pay 1," in found["fees"]
    assert found["state"] == "based on version 1"
    assert "as the chain commits to it" in found["blob"]
    assert found["verdict"].startswith("IN_SYNC: ")

    lines = cli("doctor").out.splitlines()
    assert [line.split()[1] for line in lines] == NAMES
    assert all(line.startswith("ok ") for line in lines)


def test_before_the_first_anchor(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "x")
    assert "NOT_ANCHORED" in cli("memory", "status").out
    assert not (own_home / "localnet").exists(), "to look makes no chain"
    with AgentContext.read_only("local") as other:
        other.anchor_client()  # as somebody else's first anchor makes it
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    found = checks(outcome)
    assert "not there yet" in found["account"]["message"]
    assert found["anchor"]["message"] == "never anchored"
    assert found["blob"]["message"] == "none is anchored"
    assert found["verdict"]["message"].startswith("NOT_ANCHORED: ")
    assert "`mycelium memory anchor`" in found["verdict"]["fix"]


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


def test_every_loose_mode_is_mended_by_the_fix(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "x")
    for path in (own_home, *own_home.rglob("*")):
        path.chmod(path.stat().st_mode | 0o044)
    found = checks(cli("doctor", "--json"))["home"]
    assert found["state"] == "fault"
    assert "more" in found["message"]
    for command in re.findall("`([^`]+)`", found["fix"]):
        subprocess.run(shlex.split(command), check=True)
    assert states(cli("doctor", "--json"))["home"] == "ok"


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


def test_what_an_unreachable_server_would_tell_is_not_checked(cli: Cli, wallet: Wallet) -> None:
    outcome = cli(
        "doctor", "--json", "--network", "standalone", "--rpc-url", "http://127.0.0.1:1/rpc",
    )  # fmt: skip
    assert outcome.code == 6
    assert states(outcome)["chain"] == "fault"
    assert checks(outcome)["account"] == {
        "name": "account",
        "state": "warning",
        "message": "not checked, because of the chain's fault",
        "fix": "see the chain's fix",
    }
    assert states(outcome)["contract"] == "fault"  # none is chosen, which needs no chain to be known
    assert set(NAMES) == set(states(outcome))


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
    assert checks(outcome)["contract"]["state"] == "warning"
    assert "archived: instance and code" in checks(outcome)["contract"]["message"]
    assert checks(outcome)["verdict"]["state"] == "warning"
    assert cli("memory", "status", "--json").json["verdict"] == "ARCHIVED"
    assert cli("memory", "anchor").code == 0
    assert cli("doctor").code == 0


def anchored(cli: Cli) -> None:
    """A memory with one anchor."""
    assert cli("memory", "remember", f"{TEXT} x").code == 0
    assert cli("memory", "anchor").code == 0


def chain_of(home: Path) -> closing[Chain]:
    return closing(Chain.open(home / "localnet" / "chain.db"))


def content(folder: Path) -> dict[str, tuple[int, str | None]]:
    """Every file and folder below, with its mode and what is in it."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("befalls", ["nothing", "a write", "an edit", "a lost key", "a fork", "a reset"])
def test_nothing_is_made_or_changed(cli: Cli, wallet: Wallet, own_home: Path, befalls: str) -> None:
    anchored(cli)
    verdict = {
        "nothing": "IN_SYNC", "a write": "AHEAD", "an edit": "TAMPERED", "a lost key": "IN_SYNC",
        "a fork": "FORK", "a reset": None,
    }[befalls]  # fmt: skip
    if befalls == "a write":
        cli("memory", "remember", "y")
    elif befalls == "an edit":
        with closing(sqlite3.connect(own_home / "memory" / f"{wallet.address}.db")) as editor, editor:
            editor.execute("UPDATE memories SET fragment = replace(fragment, 'x', 'z')")
    elif befalls == "a lost key":
        for key in (own_home / "state" / "integrity").iterdir():
            key.unlink()
    elif befalls == "a fork":
        with chain_of(own_home) as chain:
            chain.fault("fork", count=1000, methods=["simulateTransaction"])
    elif befalls == "a reset":
        for file in (own_home / "localnet").iterdir():
            file.unlink()
    # The chain counts which answers it falsified.
    before = {name: what for name, what in content(own_home).items() if not name.startswith("localnet/")}
    found = checks(cli("doctor", "--json"))
    after = {name: what for name, what in content(own_home).items() if not name.startswith("localnet/")}
    assert after == before
    if verdict is None:
        assert found["chain"]["state"] == "fault"
        assert list((own_home / "localnet").iterdir()) == []
    else:
        assert found["verdict"]["message"].startswith(f"{verdict}: ")


def test_the_verdict_is_a_fault_where_something_was_falsified(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    with chain_of(own_home) as chain:
        chain.fault("fork", count=1000, methods=["simulateTransaction"])
    outcome = cli("doctor", "--json")
    assert outcome.code == 8  # the chain's root is none that there is a blob of; the first fault counts
    assert states(outcome)["verdict"] == "fault"
    assert states(outcome)["state"] == "ok"
    assert cli("memory", "verify").code == 7
    with chain_of(own_home) as chain:
        chain.clear_faults()
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    assert states(outcome)["verdict"] == "ok"
    assert "contradicted what was seen before once" in checks(outcome)["state"]["message"]
    assert "(FORK)" in checks(outcome)["state"]["message"]
    assert states(outcome)["state"] == "ok"


def test_an_anchoring_in_flight_is_a_warning(
    cli: Cli, wallet: Wallet, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored(cli)
    cli("memory", "remember", "y")
    with chain_of(own_home) as chain:
        chain.fault("never_closes", count=1000)
    monkeypatch.setattr(rpc, "RetryPolicy", lambda: RetryPolicy(poll_seconds=0.0))
    sent = cli("memory", "anchor", "--json").json["error"]
    assert sent["verdict"] == "UNSETTLED"
    found = checks(cli("doctor", "--json"))["state"]
    assert found["state"] == "warning"
    assert found["message"].startswith("the outcome of anchoring version 2 is not known yet (transaction ")
    assert found["fix"] == "settle it: `mycelium memory anchor`"
    with chain_of(own_home) as chain:
        chain.clear_faults()
    assert cli("memory", "anchor").code == 0
    assert states(cli("doctor", "--json"))["state"] == "ok"


def test_a_blob_that_is_lost_or_changed_is_a_fault_that_anchoring_mends(
    cli: Cli, wallet: Wallet, own_home: Path, tmp_path: Path
) -> None:
    anchored(cli)
    blobs = own_home / "blobs"
    (blob,) = blobs.glob("*[0-9a-f].json")
    kept = blob.read_bytes()
    blob.write_bytes(kept + b" ")
    outcome = cli("doctor", "--json")
    assert outcome.code == 8
    assert "is not what version 1 commits to" in checks(outcome)["blob"]["message"]
    blob.unlink()
    outcome = cli("doctor", "--json")
    assert outcome.code == 8
    assert "is not at" in checks(outcome)["blob"]["message"]
    assert cli("memory", "anchor").code == 0
    assert states(cli("doctor", "--json"))["blob"] == "ok"


def test_a_blob_elsewhere_is_not_asked_for(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "x")
    assert cli("memory", "anchor", "--uri", "https://example.org/m.json").code == 0
    for blob in (own_home / "blobs").iterdir():
        blob.unlink()
    found = checks(cli("doctor", "--json"))["blob"]
    assert found["state"] == "ok"
    assert "which is not asked" in found["message"]


@pytest.mark.parametrize(
    ("left", "state"), [(15_000_000, "ok"), (10_500_000, "warning"), (10_000_100, "fault")]
)
def test_an_account_that_can_pay_for_few_anchors(
    cli: Cli, wallet: Wallet, own_home: Path, left: int, state: str
) -> None:
    """An account of nothing but itself keeps 1 XLM."""
    anchored(cli)
    with chain_of(own_home) as chain:
        chain.set_balance(wallet.address, left)
    outcome = cli("doctor", "--json")
    found = checks(outcome)["fees"]
    assert found["state"] == state
    assert found["fix"] == (None if state == "ok" else f"send some XLM to {wallet.address}")
    assert outcome.code == (6 if state == "fault" else 0)


def test_a_price_above_the_limit_is_a_fault(
    cli: Cli, wallet: Wallet, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored(cli)
    monkeypatch.setenv("MYCELIUM_MAX_FEE", "1000")
    outcome = cli("doctor", "--json")
    found = checks(outcome)["fees"]
    assert (outcome.code, found["state"]) == (6, "fault")
    assert "above the limit of 0.0001000 XLM" in found["message"]
    assert "[onchain] max_fee" in found["fix"]
    assert cli("memory", "anchor").code == 6


def test_lives_that_end_soon_are_warnings(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    anchored(cli)
    with AgentContext() as context:
        remaining = context.anchor_client().entry_state(wallet.address).remaining
    assert remaining is not None
    with chain_of(own_home) as chain:
        chain.skip_ledgers(100_000)
    outcome = cli("doctor", "--json")
    assert outcome.code == 0
    assert states(outcome)["contract"] == "warning"
    assert "archived soon: instance 20,9" in checks(outcome)["contract"]["message"]
    assert states(outcome)["anchor"] == "ok"
    with chain_of(own_home) as chain:
        chain.skip_ledgers(remaining - 100_000 - 100)
    found = checks(cli("doctor", "--json"))["anchor"]
    assert found["state"] == "warning"
    assert found["message"] == "lives for 100 more ledgers"
    assert "`mycelium memory keep-alive`" in found["fix"]


def test_what_a_killed_doctor_left_is_named_with_the_command_that_removes_it(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    cli("memory", "remember", "x")
    (own_home / ".doctor-abc").mkdir(mode=0o700)
    found = checks(cli("doctor", "--json"))["home"]
    assert found["state"] == "warning"
    assert found["fix"] == f"run `rm -r {own_home / '.doctor-abc'}`"

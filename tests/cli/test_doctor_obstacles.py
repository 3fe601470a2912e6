"""`doctor` and its neighbours where files are lost, in the way, or not this user's to use."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_cli.diagnosis import chain as chain_checks
from mycelium_localnet import Chain
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from tests.canaries import TEXT

from .conftest import TIMEOUT, Outcome
from .test_doctor import anchored, checks, states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

    Closing = Callable[[Path, int], None]

ABOVE_THE_CHAIN = ["fees", "anchor", "blob", "verdict"]


def commands_of(fix: str) -> list[list[str]]:
    """The commands that a fix names, each between backticks."""
    return [shlex.split(command) for command in fix.split("`")[1::2]]


@pytest.fixture
def ordinary() -> Callable[..., Outcome]:
    """The command line as a user whom modes stop, also where root runs the tests."""
    before: list[str] = []
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root, and no setpriv")
        before = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]

    def run(*arguments: str) -> Outcome:
        done = subprocess.run(
            [*before, sys.executable, "-m", "mycelium_cli", *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def closing_off(tmp_path: Path) -> Iterator[Closing]:
    """Takes rights away from a file or folder; given back at the end."""
    taken: list[tuple[Path, int]] = []

    def close(path: Path, mode: int) -> None:
        taken.append((path, path.stat().st_mode & 0o777))
        path.chmod(mode)

    yield close
    for path, mode in reversed(taken):
        if path.exists():
            path.chmod(mode)


# -- what is not where it was


def test_a_chain_that_is_gone_is_a_fault_until_that_is_said_to_be_intended(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    for file in (own_home / "localnet").iterdir():
        file.unlink()
    outcome = cli("doctor", "--json")
    found = checks(outcome)["chain"]
    assert (outcome.code, found["state"]) == (6, "fault")
    assert found["message"] == (
        f"the chain that this memory was anchored on is not at {own_home}/localnet/chain.db any more"
    )
    assert "`[onchain] chain_file`" in found["fix"]
    assert {states(outcome)[name] for name in ("account", "contract", *ABOVE_THE_CHAIN)} == {"warning"}
    (fix,) = [command for command in commands_of(found["fix"]) if command[0] == "mycelium"]
    assert cli(*fix[1:]).code == 0
    assert cli("doctor").code == 0


def test_a_mistyped_chain_file_is_a_fault(cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    anchored(cli)
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", "chian.db")
    assert checks(cli("doctor", "--json"))["chain"]["state"] == "fault"
    assert not Path("chian.db").exists()


@pytest.mark.parametrize("place", ["f", "f/sub"])
def test_a_home_that_can_never_be_made_is_a_fault(
    cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    file = Path("f").absolute()
    file.touch(0o600)
    monkeypatch.setenv("MYCELIUM_HOME", str(file.parent / place))
    outcome = cli("doctor", "--json")
    assert outcome.code == 5
    found = checks(outcome)
    assert found["home"]["state"] == "fault"
    assert f"{file} is not a folder" in found["home"]["message"]
    assert "chmod" not in found["home"]["fix"]
    for name in ("memory", "state", "publish", "chain"):
        assert found[name]["message"] == "not checked, because of the home's fault"


def test_a_memory_whose_file_is_gone_is_a_fault_that_loading_mends(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    for file in (own_home / "memory").iterdir():
        file.unlink()
    outcome = cli("doctor", "--json")
    assert (outcome.code, states(outcome)["memory"]) == (5, "fault")
    assert "version 1 was anchored from it" in checks(outcome)["memory"]["message"]
    assert list((own_home / "memory").iterdir()) == []
    fix = commands_of(checks(outcome)["memory"]["fix"])[0]
    assert cli(*fix[1:]).code == 0
    assert cli("doctor").code == 0


def test_a_memory_that_nothing_vouches_for_any_more_is_a_fault(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    anchored(cli)
    cli("memory", "remember", f"{TEXT} y")
    shutil.rmtree(own_home / "state")
    outcome = cli("doctor", "--json")
    assert outcome.code == 5
    assert "nothing on this machine vouches for" in checks(outcome)["memory"]["message"]
    assert checks(outcome)["verdict"]["message"].startswith("DIVERGED: ")
    assert ".doctor-" not in outcome.out
    assert not (own_home / "state").exists()


def test_a_damaged_key_is_named_by_its_real_path_and_once(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    anchored(cli)
    (key,) = (own_home / "state" / "integrity").iterdir()
    key.write_text("zz")
    outcome = cli("doctor", "--json")
    assert outcome.code == 5
    assert checks(outcome)["memory"]["message"] == f"{key} is damaged: it is not an integrity key"
    assert checks(outcome)["verdict"]["message"] == "not checked, because of the memory's fault"
    assert ".doctor-" not in outcome.out


def test_a_wrong_passphrase_hides_nothing(cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    anchored(cli)
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", "wrong")
    outcome = cli("doctor", "--json")
    assert outcome.code == 4
    assert [name for name, state in states(outcome).items() if state != "ok"] == ["wallet"]
    assert checks(outcome)["verdict"]["message"].startswith("IN_SYNC: ")


# -- where blobs go


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("mycelium.toml", 2, "belongs to the memory itself"),
        ("/nonexistent/", 8, "does not exist"),
        ("https://x/y", 2, "only folders, files and file:// URIs"),
    ],
)
def test_a_place_that_nothing_can_be_published_to_is_a_fault(
    cli: Cli, wallet: Wallet, target: str, code: int, said: str
) -> None:
    Path("mycelium.toml").write_text(f'[memory]\npublish = "{target}"\n')
    cli("memory", "remember", f"{TEXT} x")
    outcome = cli("doctor", "--json")
    found = checks(outcome)["publish"]
    assert (outcome.code, found["state"]) == (code, "fault")
    assert said in found["message"]
    assert "`[memory] publish`" in found["fix"]
    assert cli("memory", "anchor").code == code


def test_where_blobs_go_is_shown(
    cli: Cli, wallet: Wallet, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checks(cli("doctor", "--json"))["publish"]["message"] == f"to {own_home / 'blobs'}"
    Path("shared").mkdir()
    monkeypatch.setenv("MYCELIUM_PUBLISH", "shared/")
    assert checks(cli("doctor", "--json"))["publish"]["message"] == f"to {Path('shared').absolute()}/"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_in_a_blobs_place_is_removed_first(
    cli: Cli, wallet: Wallet, own_home: Path, kind: str
) -> None:
    anchored(cli)
    (blob,) = (own_home / "blobs").glob("*[0-9a-f].json")
    blob.unlink()
    if kind == "link":
        blob.symlink_to("elsewhere")
    else:
        os.mkfifo(blob, 0o600)
    outcome = cli("doctor", "--json")
    assert outcome.code == 8
    remove, publish = commands_of(checks(outcome)["blob"]["fix"])
    subprocess.run(remove, check=True)
    assert cli(*publish[1:]).code == 0
    assert cli("doctor").code == 0


# -- what this user may not do


@pytest.mark.parametrize("name", ["memory/{owner}.db", "state/state.db", "localnet/chain.db"])
def test_a_file_that_cannot_be_written_is_a_fault_that_the_fix_mends(
    cli: Cli, wallet: Wallet, ordinary: Callable[..., Outcome], closing_off: Closing, name: str
) -> None:
    own_home = Path(os.environ["MYCELIUM_HOME"])
    anchored(cli)
    file = own_home / name.format(owner=wallet.address)
    closing_off(file, 0o400)
    outcome = ordinary("doctor", "--json")
    found = checks(outcome)[{"memory": "memory", "state": "state", "localnet": "chain"}[file.parent.name]]
    assert (found["state"], outcome.code) == ("fault", 6 if file.name == "chain.db" else 5)
    assert found["message"] == f"{file} cannot be written: permission denied"
    (fix,) = commands_of(found["fix"])
    subprocess.run(fix, check=True)
    assert cli("doctor").code == 0


@pytest.mark.parametrize("name", ["", "state", "state/bases", "state/integrity", "localnet", "memory"])
def test_a_folder_that_cannot_be_entered_is_a_fault_with_the_fix(
    cli: Cli, wallet: Wallet, ordinary: Callable[..., Outcome], closing_off: Closing, name: str
) -> None:
    own_home = Path(os.environ["MYCELIUM_HOME"])
    anchored(cli)
    closing_off(own_home / name, 0)
    outcome = ordinary("doctor", "--json")
    assert (outcome.code, outcome.err) == (5, "")
    assert checks(outcome)["home"] == {
        "name": "home",
        "state": "fault",
        "message": f"{own_home / name} cannot be used: permission denied",
        "fix": f"run `chmod 700 {own_home / name}`",
    }


def test_what_lies_in_a_folder_that_cannot_be_entered_is_no_bug(
    cli: Cli, wallet: Wallet, ordinary: Callable[..., Outcome], closing_off: Closing
) -> None:
    dark = Path("dark").absolute()
    dark.mkdir(0o700)
    closing_off(dark, 0)
    outcome = ordinary("doctor", "--json", "--home", "dark/h")
    assert (outcome.code, outcome.err) == (5, "")
    assert checks(outcome)["home"]["fix"] == f"run `chmod 700 {dark}`"
    outcome = ordinary("wallet", "new", "--wallet", "dark/w.json")
    assert outcome.code == 4
    assert outcome.err.splitlines()[0] == f"error: cannot create {dark}/w.json: permission denied"


def test_a_key_that_cannot_be_reached_is_no_bug(
    cli: Cli, wallet: Wallet, own_home: Path, ordinary: Callable[..., Outcome], closing_off: Closing
) -> None:
    anchored(cli)
    keys = own_home / "state" / "integrity"
    closing_off(keys, 0)
    outcome = ordinary("memory", "recall", "x")
    assert (outcome.code, outcome.out) == (5, "")
    assert "Traceback" not in outcome.err
    assert "permission denied" in outcome.err


# -- what is said once, and on one line


def test_a_memory_that_is_a_folder_has_one_finding(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", f"{TEXT} x")
    file = own_home / "memory" / f"{wallet.address}.db"
    file.unlink()
    file.mkdir(0o755)
    outcome = cli("doctor", "--json")
    assert outcome.code == 5
    assert states(outcome)["home"] == "ok"
    assert checks(outcome)["memory"]["message"] == f"{file} is a folder, and should be a file"


def test_a_damaged_page_is_told_in_one_line(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "x" * 100_000)
    file = own_home / "memory" / f"{wallet.address}.db"
    data = bytearray(file.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 100] = b"\xff" * 100
    file.write_bytes(data)
    outcome = cli("doctor", "--json")
    assert states(outcome)["memory"] == "fault"
    assert "\n" not in checks(outcome)["memory"]["message"]
    starts = {line.split(" ", 1)[0] for line in cli("doctor").out.splitlines()}
    assert starts <= {"ok", "warning", "fault", ""}


def test_a_wrong_contract_is_one_fault(cli: Cli, wallet: Wallet) -> None:
    anchored(cli)
    elsewhere = "CAC27VKJEPDJJNI36NP7D7VH6WCHT6N5EITKSKPZIQNWA2VPEPBIXJSB"
    outcome = cli("doctor", "--json", "--anchor-address", elsewhere)
    assert outcome.code == 6
    found = states(outcome)
    assert [name for name, state in found.items() if state == "fault"] == ["contract"]
    for name in ABOVE_THE_CHAIN:
        assert checks(outcome)[name]["message"] == "not checked, because of the contract's fault"


# -- while others anchor


def raced(monkeypatch: pytest.MonkeyPatch, lost: int) -> list[int]:
    """Have the version that doctor reads be overtaken so many times."""
    real, asked = MemoryAnchorClient.get_version, [0]

    def overtaken(client: Any, owner: str) -> int:
        asked[0] += 1
        return real(client, owner) - (asked[0] <= lost)

    monkeypatch.setattr(MemoryAnchorClient, "get_version", overtaken)
    return asked


def test_the_price_is_asked_again_when_somebody_anchored_meanwhile(
    cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored(cli)
    raced(monkeypatch, 2)
    assert checks(cli("doctor", "--json"))["fees"]["state"] == "ok"


def test_a_price_that_never_comes_to_rest_is_no_fault_and_no_number(
    cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored(cli)
    asked = raced(monkeypatch, 1000)
    outcome = cli("doctor", "--json")
    found = checks(outcome)["fees"]
    assert (outcome.code, found["state"], asked[0]) == (0, "warning", chain_checks.ATTEMPTS)
    assert "error" not in found["message"]
    assert "try again" in found["fix"]


def test_a_verdict_that_a_write_overtook_is_reached_again(
    cli: Cli, wallet: Wallet, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain looks forked for one look, during which somebody writes."""
    anchored(cli)
    real, looks = MemoryAnchorClient.get_anchor, [0]

    def forked_once(client: Any, owner: str) -> Any:
        looks[0] += 1
        chain = closing(Chain.open(own_home / "localnet" / "chain.db"))
        with chain as opened:
            if looks[0] == 2:  # after the blob's look
                opened.fault("fork", count=1000, methods=["simulateTransaction"])
                os.utime(own_home / "state" / "state.db")
            else:
                opened.clear_faults()
        return real(client, owner)

    monkeypatch.setattr(MemoryAnchorClient, "get_anchor", forked_once)
    outcome = cli("doctor", "--json")
    assert looks[0] > 2
    assert checks(outcome)["verdict"]["message"].startswith("IN_SYNC: ")


def test_a_look_at_files_that_cannot_be_written_spoils_nothing(
    cli: Cli, wallet: Wallet, own_home: Path, ordinary: Callable[..., Outcome], closing_off: Closing
) -> None:
    cli("memory", "remember", "x")
    cli("memory", "anchor")
    files = [own_home / "state" / "state.db", own_home / "memory" / f"{wallet.address}.db"]
    for file in files:
        closing_off(file, 0o400)
    ordinary("memory", "status")
    ordinary("memory", "recall", "x")
    for file in files:
        file.chmod(0o600)
    assert ordinary("memory", "remember", "y").code == 0
    assert ordinary("memory", "anchor").code == 0

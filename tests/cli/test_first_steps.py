"""What people who are new to it run into: each is told what is wrong, in words that fit what they gave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_cli.diagnosis import indexed as indexed_check
from mycelium_cli.diagnosis.findings import Found, State
from mycelium_sdk.backends.arguments import checked_count, checked_text
from mycelium_sdk.errors import InputError

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli, Outcome

_ALONE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def memory_check(outcome: Outcome) -> dict[str, Any]:
    """What `doctor --json` says of the memory."""
    (found,) = [check for check in outcome.json["checks"] if check["name"] == "memory"]
    return dict(found)


@pytest.fixture(scope="module")
def mounting(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("probe")
    probe = [*_ALONE, "mount", "-t", "tmpfs", "none", str(folder)]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system of its own")


def on_read_only(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command while nothing in `folder` can be written."""
    program = [*_ALONE, "sh", "-c", _READ_ONLY, str(folder), sys.executable, "-m", "mycelium_cli", *arguments]
    return subprocess.run(program, check=False, capture_output=True, text=True)


@pytest.mark.usefixtures("mounting", "wallet")
def test_doctor_on_a_read_only_disk_never_says_that_the_memory_is_damaged(cli: Cli, own_home: Path) -> None:
    assert cli("memory", "remember", "x").code == 0
    done = on_read_only(own_home, "doctor")
    line, fix = next(
        lines
        for lines in zip(done.stdout.splitlines(), done.stdout.splitlines()[1:], strict=False)
        if " memory " in lines[0]
    )
    assert line.startswith("fault"), done
    assert "the file system is read-only" in line
    assert "fix: make it writable; or copy the home folder" in fix
    assert "damaged" not in done.stdout
    assert "move" not in done.stdout


def test_a_blob_in_a_folder_that_bars_the_way_is_not_said_to_be_missing(
    tmp_path: Path, wallet: Wallet
) -> None:
    program = [sys.executable, "-m", "mycelium_cli", "memory", "inspect", wallet.address, "--blob"]
    if os.getuid() == 0:  # whom no mode stops, unless it gives that up
        if shutil.which("setpriv") is None:
            pytest.skip("root, and no setpriv")
        program = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *program]
    dark = tmp_path / "dark"
    dark.mkdir()
    dark.chmod(0)
    try:
        done = subprocess.run([*program, str(dark / "f")], check=False, capture_output=True, text=True)
    finally:
        dark.chmod(0o700)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot read {dark / 'f'}: permission denied\nhint: ")


@pytest.mark.usefixtures("wallet")
def test_doctor_on_a_folder_without_the_right_to_write_says_so(cli: Cli, own_home: Path) -> None:
    assert cli("memory", "remember", "x").code == 0
    program = [sys.executable, "-m", "mycelium_cli", "doctor", "--json"]
    if os.getuid() == 0:  # whom no mode stops, unless it gives that up
        if shutil.which("setpriv") is None:
            pytest.skip("root, and no setpriv")
        program = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *program]
    folder = own_home / "memory"
    folder.chmod(0o500)
    try:
        done = subprocess.run(program, check=False, capture_output=True, text=True)
    finally:
        folder.chmod(0o700)
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "memory"]
    assert found["state"] == "fault"
    assert found["message"].endswith(": it cannot be written")
    assert found["fix"] == "check the permissions of the file and its folder"


@pytest.mark.usefixtures("mounting")
def test_the_hint_in_a_read_only_folder_fits_what_was_given(cli: Cli, wallet: Wallet, tmp_path: Path) -> None:
    assert cli("memory", "remember", "x").code == 0
    folder = tmp_path / "fixed"
    folder.mkdir(mode=0o700)
    for arguments, way in (
        (
            ("wallet", "new", "--wallet", f"{folder}/w.json"),
            "choose a path that can be written, e.g. with --wallet",
        ),
        (("memory", "anchor", "--publish", f"{folder}/mem.json"), "choose a path that can be written"),
        (("memory", "export", f"{folder}/x.jsonl"), "choose a path that can be written"),
    ):
        done = on_read_only(folder, *arguments)
        assert done.returncode != 0
        assert "the file system is read-only" in done.stderr
        assert done.stderr.rstrip().endswith(f"hint: {way}"), done.stderr


@pytest.mark.usefixtures("wallet")
@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        ('backend = "supermemory"', ("key", "SUPERMEMORY_API_KEY")),
        ('backend = "tiered"', ("needs a secondary", "[memory.tiered]")),
        ('backend = "postgres"', ("needs the address of a database", "MYCELIUM_DSN")),
        ('backend = "tiered"\n[memory.tiered]\nsecondary = "supermemory"', ("key", "SUPERMEMORY_API_KEY")),
    ],
)
def test_doctor_opens_the_backend_that_is_configured(
    cli: Cli, own_home: Path, monkeypatch: pytest.MonkeyPatch, memory: str, problem: tuple[str, str]
) -> None:
    said, way = problem
    monkeypatch.delenv("SUPERMEMORY_API_KEY", raising=False)
    Path("mycelium.toml").write_text(f"[memory]\n{memory}\n")
    outcome = cli("doctor", "--json")
    found = memory_check(outcome)
    assert (found["state"], outcome.code != 0) == ("fault", True)
    assert said in found["message"]
    assert way in found["fix"]
    assert not own_home.exists()


@pytest.mark.usefixtures("wallet")
def test_doctor_asks_the_database(cli: Cli) -> None:
    pytest.importorskip("psycopg")
    Path("mycelium.toml").write_text(
        '[memory]\nbackend = "postgres"\ndsn = "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2"\n'
    )
    outcome = cli("doctor", "--json")
    assert memory_check(outcome)["state"] == "fault"
    assert outcome.code == 5


@pytest.mark.usefixtures("wallet")
def test_a_server_for_the_embedded_chain_is_not_ignored(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    given = cli("memory", "status", "--rpc-url", "http://localhost:8000/rpc")
    assert given.code == 3
    assert "--network standalone" in given.err
    monkeypatch.setenv("MYCELIUM_RPC_URL", "http://localhost:8000/rpc")
    assert cli("memory", "status").code == 3
    monkeypatch.setenv("MYCELIUM_NETWORK", "standalone")
    assert cli("memory", "remember", "x").code == 0
    assert cli("memory", "recall", "x", "--network", "local").code == 0


@pytest.mark.usefixtures("wallet")
def test_remembering_again_says_so(cli: Cli) -> None:
    first = cli("memory", "remember", "likes tea", "--tag", "b", "--tag", "a", "--json").json
    assert first["new"] is True
    again = cli("memory", "remember", "likes tea", "--tag", "a", "--tag", "b", "--session", "monday")
    assert again.out == f"remembered already, id {first['id']}\n"
    other = cli("memory", "remember", "likes tea", "--json").json
    assert (other["new"], other["id"] == first["id"]) == (True, False)


@pytest.mark.usefixtures("wallet")
def test_a_target_that_is_not_there_is_refused_before_anything_is_sent(cli: Cli, own_home: Path) -> None:
    cli("memory", "remember", "x")
    chain = own_home / "localnet" / "chain.db"
    for target, said, way in (
        ("missing/", "the folder missing", "make it"),
        ("missing/mem.json", "its folder does not exist", "mkdir -p"),
        ("https://example.org/mem.json", "can be published to by name", "--uri"),
    ):
        outcome = cli("memory", "anchor", "--publish", target)
        assert outcome.code != 0
        assert said in outcome.err
        assert way in outcome.err
        assert not chain.exists()


def test_a_full_folder_is_refused_as_full_whatever_its_mode(cli: Cli, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    full.chmod(0o755)
    (full / "file").touch()
    outcome = cli("demo", "--keep", str(full))
    assert outcome.code == 2
    assert "is not empty" in outcome.err
    assert "chmod" not in outcome.err


@pytest.mark.parametrize(("value", "said"), [("3", "k is a str instead"), (None, "k is a NoneType instead")])
def test_a_kind_has_its_article(value: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        checked_count(value, "k")
    with pytest.raises(InputError, match="query is an int instead of a string") as caught:
        checked_text(3, "query")
    assert caught.value.hint == "give a str"


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"remember the milk" * 100, 3, "is not a chain file"),
        (b"SQLite format 3\0" + bytes(52) + b"MYLC" + b"\xff" * 4000, 6, "is damaged"),
    ],
)
def test_a_damaged_chain_is_the_chains_trouble_and_a_strangers_file_the_configurations(
    ended: Any, tmp_path: Path, content: bytes, code: int, said: str
) -> None:
    file = tmp_path / "chain.db"
    file.write_bytes(content)
    file.chmod(0o600)
    outcome = ended("localnet", "--state", str(file))
    assert (outcome.code, outcome.out) == (code, "")
    assert said in outcome.err
    assert "restore it from a copy" in outcome.err


class _Latest:
    """What an indexer has, as far as the check looks at it."""

    def __init__(self, version: int, lag: float) -> None:
        self.past = self
        self.anchor = self
        self.as_of_ledger = 7
        self.version = version
        self.lag = lag


@pytest.mark.parametrize(
    ("version", "lag", "warned"), [(1, 301.0, True), (1, 299.0, False), (2, 301.0, False)]
)
def test_an_indexer_that_stands_still_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, version: int, lag: float, *, warned: bool
) -> None:
    class Context:
        """A memory whose anchor on the chain is version 2."""

        address = "G"

        def anchor_address(self) -> str:
            return "C"

        def anchor_client(self, _: str) -> Context:
            return self

        def get_anchor(self, _: str) -> _Latest:
            return _Latest(2, 0.0)

    context: Any = Context()
    monkeypatch.setattr(indexed_check, "has_contract", lambda _: True)
    monkeypatch.setattr(indexed_check, "compared", lambda *_: _Latest(version, lag))
    if not warned:
        assert f"lag {lag:.0f} s" in indexed_check.indexed(context)
        return
    with pytest.raises(Found, match="behind the chain") as found:
        indexed_check.indexed(context)
    assert found.value.state is State.WARNING
    assert "`mycelium indexer run`" in (found.value.fix or "")

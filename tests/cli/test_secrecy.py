"""What is remembered, and what opens the wallet, come out nowhere but in the answers that are for them.

The watch over secrets (`tests.canaries.watch`) looks at logs, exceptions, arguments of processes, stderr and
files; the tests here lead the canaries past everything that could take them along.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_localnet import Chain
from mycelium_sdk import wallet as wallets
from mycelium_sdk.canonical import encode
from mycelium_sdk.records import Record
from mycelium_sdk.wallet import Wallet
from tests.canaries import PASSPHRASE, SEED, TEXT

if TYPE_CHECKING:
    from .conftest import Cli, Outcome

SECRETS = (PASSPHRASE, SEED)


@pytest.fixture
def planted(own_home: Path) -> Wallet:
    """A wallet of the canaries' seed, under their passphrase, where commands look for one."""
    return Wallet.create(Path(".mycelium/wallet.json"), PASSPHRASE, seed=SEED)


def quiet(outcome: Outcome, *, code: int | None = None) -> Outcome:
    """An outcome without the text in it; the watch looks at stderr as well."""
    assert TEXT.split()[0] not in outcome.out + outcome.err
    assert not [secret for secret in SECRETS if secret in outcome.out + outcome.err]
    assert code is None or outcome.code == code
    return outcome


def test_the_whole_story(ended: Any, planted: Wallet, own_home: Path) -> None:
    """As processes, whose stderr is looked at, with the text on stdin."""
    quiet(ended("memory", "remember", "-", "--tag", "bird", stdin=TEXT.encode()), code=0)
    quiet(ended("memory", "anchor", "--publish", "mem.json"), code=0)
    assert TEXT in ended("memory", "recall", "bell tower").out
    quiet(ended("memory", "status", "--json"), code=0)
    quiet(ended("memory", "verify"), code=0)
    quiet(ended("doctor"), code=0)
    chain = {"MYCELIUM_CHAIN_FILE": str(own_home / "localnet" / "chain.db")}
    other = ("--home", str(own_home.with_name("other")))
    quiet(ended("memory", "rehydrate", *other, env=chain), code=0)
    assert TEXT in ended("memory", "recall", "bell tower", *other, env=chain).out
    # What is shown to anybody else is none of it.
    quiet(ended("wallet", "show", "--json"), code=0)
    for path in (Path("mem.json"), *Path.cwd().glob("mem.*.json")):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory", "remember", "-"),
        ("memory", "recall", "-", "--tag", ""),
        ("memory", "remember", "-", "--session", ""),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "spoilt", [b"\xff", b"\xed\xa0\x80", b"\xf0\x9f"], ids=["byte", "surrogate", "cut off"]
)
def test_text_that_is_refused(cli: Cli, planted: Wallet, arguments: tuple[str, ...], spoilt: bytes) -> None:
    quiet(cli(*arguments, stdin=TEXT.encode() + spoilt), code=2)


def test_text_that_is_too_long(cli: Cli, planted: Wallet) -> None:
    for size in (1024 * 1024, 1024 * 1024 + 10):
        quiet(cli("memory", "remember", "-", stdin=TEXT.encode() + b" " * size), code=2)


def test_a_memory_that_was_edited_or_damaged(cli: Cli, planted: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "-", "--tag", "bird", stdin=TEXT.encode())
    cli("memory", "anchor")
    file = own_home / "memory" / f"{planted.address}.db"
    for statement in (
        "UPDATE memories SET fragment = replace(fragment, 'bird', 'cat')",
        "UPDATE memories SET fragment = fragment || '}'",
        "UPDATE memories SET fragment = CAST(fragment AS BLOB)",
    ):
        with closing(sqlite3.connect(file)) as editor, editor:
            editor.execute(statement)
        for command in ("status", "verify", "anchor", "rehydrate"):
            quiet(cli("memory", command))
        quiet(cli("memory", "recall", "-", stdin=TEXT.encode()))
        quiet(cli("doctor", "--json"))
    quiet(cli("memory", "rehydrate", "--on-conflict", "replace"), code=0)
    assert TEXT in cli("memory", "recall", "bell tower").out


def test_a_blob_that_was_changed(
    cli: Cli, planted: Wallet, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("memory", "remember", "-", stdin=TEXT.encode())
    cli("memory", "anchor")
    (blob,) = (own_home / "blobs").glob("*[0-9a-f].json")
    kept = blob.read_bytes()
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(own_home / "localnet" / "chain.db"))
    for data in (kept + b"\n", kept[:-4], kept.upper(), b"\xef\xbb\xbf" + kept):
        blob.write_bytes(data)
        quiet(cli("memory", "rehydrate", "--home", str(own_home.with_name("other"))), code=7)
        quiet(cli("doctor", "--json"), code=8)


def test_a_blob_of_somebody_else_that_is_anchored(
    cli: Cli, planted: Wallet, own_home: Path, tmp_path: Path
) -> None:
    cli("memory", "remember", "-", stdin=TEXT.encode())
    other = Wallet.create(tmp_path / "other" / "wallet.json", PASSPHRASE)
    quiet(cli("memory", "anchor", "--uri", f"file://{tmp_path}/none.json"), code=0)
    blob = tmp_path / "mem.json"
    blob.write_bytes(encode(other.address, [Record(TEXT, ())]))
    blob.chmod(0o600)
    quiet(cli("memory", "anchor", "--publish", str(blob)), code=8)


def test_a_chain_in_trouble(cli: Cli, planted: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "-", stdin=TEXT.encode())
    cli("memory", "anchor")
    with closing(Chain.open(own_home / "localnet" / "chain.db")) as chain:
        chain.fault("fork", count=100, methods=["simulateTransaction"])
    for command in ("status", "verify", "anchor", "rehydrate"):
        quiet(cli("memory", command))


def test_a_wallet_that_does_not_open(cli: Cli, planted: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", f"{PASSPHRASE}?")
    quiet(cli("memory", "anchor"), code=4)
    quiet(cli("doctor"), code=4)
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)
    # The seed of another account than the file says.
    monkeypatch.setattr(wallets, "_address_of", lambda _: "G" + "A" * 55)
    quiet(cli("memory", "anchor"), code=4)


def test_a_bug_shows_no_values(cli: Cli, planted: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback shows source lines and the exception's own text, which is not ours to know; the JSON for
    programs not even that."""
    monkeypatch.setattr("mycelium_sdk.memory.agent_memory.AgentMemory.remember", None)
    outcome = quiet(cli("memory", "remember", "-", "--json", stdin=TEXT.encode()), code=1)
    assert outcome.json["error"]["type"] == "TypeError"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("list.jsonl", '{"content": "%s", "tags": [1]}'),
        ("list.jsonl", '{"content": "%s"'),
        ("list.jsonl", '{"%s": 1}'),
        ("chat.json", '[{"role": "user", "content": {"%s": []}}]'),
        ("blob.json", '{"owner":"%s","records":[]}'),
        ("note.md", "* %s\udcff"),
        ("note.txt", "%s\x00\udcff"),
    ],
)
def test_files_that_cannot_be_imported(cli: Cli, planted: Wallet, name: str, data: str) -> None:
    Path(name).write_bytes((data % TEXT).encode("utf-8", "surrogateescape"))
    Path(name).chmod(0o600)
    outcome = quiet(cli("memory", "import", name, "--json"))
    assert outcome.code != 1


def test_what_is_exported_is_private_and_what_is_forgotten_is_not_repeated(cli: Cli, planted: Wallet) -> None:
    cli("memory", "remember", "-", "--tag", "bird", stdin=TEXT.encode())
    for name in ("memories.jsonl", "memories.md", "blob.json"):
        quiet(cli("memory", "export", name), code=0)
        assert Path(name).stat().st_mode & 0o077 == 0
    quiet(cli("memory", "anchor"), code=0)
    quiet(cli("memory", "forget", "--tag", "bird", "--yes"), code=0)

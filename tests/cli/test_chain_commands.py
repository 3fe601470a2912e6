"""`anchor`, `status`, `verify` and `rehydrate` on the embedded chain, for real."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory.agent_memory import AgentMemory

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli

pytestmark = pytest.mark.usefixtures("wallet")


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chain and a folder of blobs that several homes share."""
    folder = tmp_path / "published"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MYCELIUM_CHAIN_FILE", str(tmp_path / "shared-chain.db"))
    monkeypatch.setenv("MYCELIUM_PUBLISH", f"{folder}/")
    return folder


def test_the_first_anchor_makes_what_is_missing_and_says_so(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("memory", "remember", "one")
    outcome = cli("memory", "anchor", "--json")
    assert outcome.code == 0, outcome.err
    notes = outcome.err.splitlines()
    assert [note for note in notes if note.startswith("note: deployed the MemoryAnchor contract")]
    assert f"note: funded the account {wallet.address} with this network's play money" in notes
    done = outcome.json
    assert set(done) == {
        "version", "root", "uri", "transaction", "ledger", "timestamp", "fee_stroops", "seconds",
    }  # fmt: skip
    assert done["version"] == 1
    blob = own_home / "blobs" / f"{done['root']}.json"
    assert done["uri"] == blob.as_uri()
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == done["root"]
    assert json.loads(blob.read_bytes())["owner"] == wallet.address
    assert done["fee_stroops"] > 0
    with AgentContext() as context:
        found = context.chain.transaction(done["transaction"])
        assert found.ledger == done["ledger"]
        assert found.fee_charged == done["fee_stroops"]

    again = cli("memory", "anchor")
    assert again.code == 0
    assert again.err == "note: nothing had changed since version 1; the same root was anchored again\n"
    lines = dict(line.split(maxsplit=1) for line in again.out.splitlines())
    assert list(lines) == ["version", "root", "uri", "transaction", "fee", "time"]
    assert lines["version"] == "2"
    assert lines["root"] == done["root"]
    assert "XLM" in lines["fee"]


def test_verify_succeeds_only_in_sync(cli: Cli) -> None:
    never = cli("memory", "verify")
    assert never.code == 7
    assert never.out.startswith("NOT_ANCHORED: ")
    cli("memory", "remember", "one")
    cli("memory", "anchor")
    assert cli("memory", "verify").code == 0
    assert cli("memory", "verify").out == "IN_SYNC: The memory is exactly what the chain commits to.\n"
    cli("memory", "remember", "two")
    ahead = cli("memory", "verify", "--json")
    assert ahead.code == 7
    assert ahead.json["verdict"] == "AHEAD"
    assert ahead.json["in_sync"] is False
    assert set(ahead.json) == {
        "verdict", "in_sync", "message", "next_step", "local_root", "records", "version", "anchored_root",
        "warnings",
    }  # fmt: skip


def test_status_gives_the_verdict_and_the_next_step_and_is_no_test(cli: Cli, wallet: Wallet) -> None:
    cli("memory", "remember", "one")
    cli("memory", "anchor")
    cli("memory", "remember", "two")
    outcome = cli("memory", "status")
    assert outcome.code == 0
    first, second = outcome.out.splitlines()[:2]
    assert first == "AHEAD: The memory has writes that are not anchored yet."
    assert second == "next: Anchor them: `mycelium memory anchor`."
    assert f"owner     {wallet.address}\n" in outcome.out
    assert "anchored  version 1, " in outcome.out
    document = cli("memory", "status", "--json").json
    assert document["owner"] == wallet.address
    assert document["network"] == "local"
    assert document["contract"].startswith("C")
    assert document["version"] == 1
    assert document["uri"].startswith("file://")
    assert isinstance(document["timestamp"], int)
    local = cli("memory", "status", "--local", "--json").json
    assert local["dirty"] is True
    assert local["last_anchor"]["version"] == 1
    assert local["last_anchor"]["root"] == document["anchored_root"]


def test_publishing_to_a_file_keeps_a_copy_of_the_latest(cli: Cli) -> None:
    cli("memory", "remember", "one")
    done = cli("memory", "anchor", "--publish", "mem.json", "--json").json
    named = Path(f"mem.{done['root'][:16]}.json").absolute()
    assert done["uri"] == named.as_uri()
    assert Path("mem.json").read_bytes() == named.read_bytes()


def test_a_given_uri_is_anchored_and_a_copy_is_kept(cli: Cli, own_home: Path) -> None:
    cli("memory", "remember", "one")
    done = cli("memory", "anchor", "--uri", "https://example.org/memory.json", "--json").json
    assert done["uri"] == "https://example.org/memory.json"
    blob = f"{done['root']}.json"
    assert sorted(path.name for path in (own_home / "blobs").iterdir()) == [blob, f"{blob}.context.json"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--uri", "https://x/y", "--publish", "z.json"), "both"),
        (("--uri", "https://user:secret@example.org/y"), "user name"),
        (("--uri", "gopher://x/y"), "scheme"),
    ],
    ids=["both", "userinfo", "scheme"],
)
def test_bad_uris_are_usage_errors(cli: Cli, options: tuple[str, ...], part: str) -> None:
    cli("memory", "remember", "one")
    outcome = cli("memory", "anchor", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert part in outcome.err


def test_an_unwritable_place_to_publish_anchors_nothing(cli: Cli) -> None:
    cli("memory", "remember", "one")
    outcome = cli("memory", "anchor", "--publish", "missing/folder/", "--json")
    assert outcome.code == 8
    assert outcome.json["error"]["type"] == "PublishFailed"
    assert cli("memory", "status", "--json").json["verdict"] == "NOT_ANCHORED"


def test_a_wrong_passphrase_publishes_nothing(
    cli: Cli, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("memory", "remember", "one")
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", "wrong")
    outcome = cli("memory", "anchor", "--json")
    assert outcome.code == 4
    assert outcome.json["error"]["type"] == "WrongPassphrase"
    assert "wrong" not in outcome.json["error"]["message"].split()
    assert not list(own_home.rglob("*.json"))


def test_another_machine_rehydrates_and_verifies_without_a_passphrase(
    cli: Cli, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("one", "two", "three"):
        cli("memory", "remember", text)
    anchored = cli("memory", "anchor", "--json").json
    assert anchored["uri"] == (published / f"{anchored['root']}.json").as_uri()

    monkeypatch.delenv("MYCELIUM_DECRYPT_KEY")
    other = ("--home", str(tmp_path / "machine-b"))
    outcome = cli("memory", "rehydrate", *other)
    assert (outcome.code, outcome.out) == (0, "loaded version 1: 3 memories\n")
    assert cli("memory", "rehydrate", "--json", *other).json == {"version": 1, "records": 3}
    assert cli("memory", "verify", *other).code == 0
    assert [hit["content"] for hit in cli("memory", "recall", "two", "--json", *other).json] == ["two"]


def test_a_context_file_that_is_missing_or_does_not_fit_is_noted(
    cli: Cli, published: Path, tmp_path: Path
) -> None:
    cli("memory", "remember", "one", "--session", "monday")
    cli("memory", "anchor")
    _, context = sorted(published.iterdir())
    genuine = context.read_bytes()
    spoilt = genuine.replace(b"monday", b"friday")
    for name, data, note in (
        ("b", spoilt, "was not used"),
        ("c", None, "no context file"),
        ("d", genuine, ""),
    ):
        context.unlink(missing_ok=True)
        if data is not None:
            context.write_bytes(data)
        home = ("--home", str(tmp_path / name))
        outcome = cli("memory", "rehydrate", "--json", *home)
        assert (outcome.code, outcome.json) == (0, {"version": 1, "records": 1})
        lines = [line for line in outcome.err.splitlines() if line.startswith("note: ")]
        assert len(lines) == bool(note)
        assert note in "".join(lines)
        (hit,) = cli("memory", "recall", "one", "--json", *home).json
        assert hit["session"] == (None if note else "monday")


def test_a_changed_blob_is_refused_and_nothing_is_loaded(cli: Cli, published: Path, tmp_path: Path) -> None:
    cli("memory", "remember", "one")
    cli("memory", "anchor")
    blob, _ = sorted(published.iterdir())
    data = bytearray(blob.read_bytes())
    data[-5] ^= 1
    blob.write_bytes(data)
    other = ("--home", str(tmp_path / "machine-b"))
    outcome = cli("memory", "rehydrate", "--json", *other)
    assert outcome.code == 7
    assert outcome.json["error"]["verdict"] == "TAMPERED"
    assert cli("memory", "status", "--local", "--json", *other).json["records"] == 0


def test_an_empty_memory_does_not_bury_the_real_one(cli: Cli, published: Path, tmp_path: Path) -> None:
    cli("memory", "remember", "one")
    cli("memory", "anchor")
    other = ("--home", str(tmp_path / "machine-b"))
    refused = cli("memory", "anchor", *other)
    assert refused.code == 7
    assert "would bury it" in refused.err
    assert cli("memory", "verify").code == 0
    assert cli("memory", "anchor", "--overwrite", *other).code == 0
    assert cli("memory", "status", "--json").json["verdict"] == "DIVERGED"


def test_a_stale_machine_is_told_and_merges(cli: Cli, published: Path, tmp_path: Path) -> None:
    other = ("--home", str(tmp_path / "machine-b"))
    cli("memory", "remember", "one")
    cli("memory", "anchor")
    cli("memory", "rehydrate", *other)
    cli("memory", "remember", "two")
    cli("memory", "anchor")
    cli("memory", "remember", "three", *other)
    conflict = cli("memory", "anchor", "--json", *other)
    assert conflict.code == 6
    assert conflict.json["error"]["verdict"] == "VERSION_CONFLICT"
    refused = cli("memory", "rehydrate", "--json", *other)
    assert refused.code == 7
    assert refused.json["error"]["type"] == "UnanchoredWrites"
    assert cli("memory", "rehydrate", "--on-conflict", "merge", *other).code == 0
    assert cli("memory", "status", "--json", *other).json["verdict"] == "AHEAD"
    assert cli("memory", "anchor", "--json", *other).json["version"] == 3
    with AgentContext(home=tmp_path / "machine-b") as context, AgentMemory(context) as memory:
        assert memory.count() == 3


def test_a_chain_that_was_reset_is_said_and_left_behind_only_on_a_word(
    cli: Cli, published: Path, tmp_path: Path
) -> None:
    cli("memory", "remember", "one")
    cli("memory", "anchor")
    for file in tmp_path.glob("shared-chain.db*"):
        file.unlink()
    assert cli("memory", "status", "--json").json["verdict"] == "CHAIN_RESET"
    refused = cli("memory", "anchor", "--json")
    assert refused.code == 6
    assert refused.json["error"]["type"] == "ChainReset"
    assert cli("memory", "anchor", "--trust-chain-anew", "--json").json["version"] == 1
    assert cli("memory", "verify").code == 0


def test_a_server_that_cannot_be_reached_is_no_verdict(cli: Cli) -> None:
    address = cli("memory", "status", "--json").json["contract"]
    outcome = cli(
        "memory", "verify", "--json", "--network", "standalone", "--rpc-url", "http://127.0.0.1:1/rpc",
        "--anchor-address", address,
    )  # fmt: skip
    assert outcome.code == 6
    assert outcome.json["error"]["verdict"] == "UNAVAILABLE"


def test_a_public_network_without_a_contract_names_the_options(cli: Cli) -> None:
    outcome = cli("memory", "status", "--network", "testnet", "--json")
    assert outcome.code == 3
    assert "contract deploy" in outcome.json["error"]["hint"]

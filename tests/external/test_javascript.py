"""The JavaScript `@stellar/stellar-sdk`, unmodified, on a server of ours: it takes it for any network."""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mycelium_localnet import Chain
from tests.localnet.server.process import serving

FOLDER = Path(__file__).parent
VERSION = "15.1.0"
FUNCTIONS = ["set_anchor", "set_anchor_if", "get_anchor", "get_version", "is_anchored"]


def node(*arguments: str) -> Any:
    """What a script here wrote to stdout."""
    done = subprocess.run(
        ["node", *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_the_version_that_is_pinned() -> None:
    package = FOLDER / "node_modules" / "@stellar" / "stellar-sdk" / "package.json"
    assert json.loads(package.read_text("utf-8"))["version"] == VERSION
    lock = (FOLDER / "package-lock.json").read_text("utf-8")
    assert '"integrity": "sha512-' in lock
    assert '"resolved"' not in lock


@pytest.mark.parametrize("options", [(), ("--interval", "0.3")], ids=["instant", "interval"])
def test_from_the_friendbot_to_events(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "chain.db"
    wasm = files("mycelium_sdk.chain.artifact").joinpath("memory_anchor.wasm")
    with serving("--state", path, "--port", "0", *options) as server:
        found = node("stellar_sdk.mjs", server.url, str(wasm))
        assert server.end() == 0
        assert server.complaints() == ""
    assert found["protocol"] == 28
    assert found["friendbot"] == f"{server.origin}/friendbot"
    assert found["functions"] == FUNCTIONS
    assert found["versions"] == [1, 2]
    assert found["anchor"] == {
        "root": sha256(b"memory").hexdigest(),
        "uri": "file:///memory.json",
        "acl": "",
        "version": 2,
    }
    assert found["ledger"] == found["latest"]
    # With instant closing the first poll already says SUCCESS; else there is something to wait for.
    assert (found["polls"] > 0) is bool(options)
    check_history(path, found)


def check_history(path: Path, found: dict[str, Any]) -> None:
    """What the client was told against what the file holds."""
    with Chain.open(path) as chain, chain.read() as view:
        assert chain.passphrase == found["passphrase"]
        rows = view.transactions((0, 0), 1_000)
        assert [row.hash.hex() for row in rows] == found["transactions"]
        assert all(row.successful for row in rows)
        # Two accounts, the upload, the creation, three anchors of two owners.
        assert [row.source for row in rows] == [chain.friendbot] * 2 + [found["owner"]] * 5
        end = view.latest().sequence + 1
        events = list(view.events(after=(1, -1, 0, 0), end_ledger=end, contract_ids=[found["contract"]]))
    assert [event.tx_hash.hex() for event in events] == [event["transaction"] for event in found["events"]]
    assert [event.ledger for event in events] == [event["ledger"] for event in found["events"]]
    assert {event["type"] for event in found["events"]} == {"contract"}
    assert (len(events), found["byTopic"]) == (3, 2)

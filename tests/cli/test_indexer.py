"""`mycelium indexer run` and `repair`: from anchors of the SDK to a database, and gaps filled there."""

from __future__ import annotations

import json
import signal
import sqlite3
import stat
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mycelium_indexer.api.answers import anchor_as_json
from mycelium_indexer.store import open_store
from mycelium_localnet import Chain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli, Process

TIME_LIMIT = 60


def anchor(cli: Cli, number: int) -> None:
    for words in (["remember", f"memory {number}"], ["anchor"]):
        outcome = cli("memory", *words)
        assert outcome.code == 0, outcome.err


def versions(database: Path, owner: str) -> list[int]:
    store = open_store(str(database))
    (source,) = store.sources()
    found = store.history(source, owner, below=None, limit=99)
    store.close()
    return [one.anchor.version for one in found]


def test_anchors_of_the_sdk_are_there_after_one_run(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    assert cli("contract", "deploy").code == 0  # a chain, and not yet the contract that is followed
    first = cli("indexer", "run", "--once", "--json")
    assert (first.code, first.json["anchors"]) == (0, 0)
    anchor(cli, 1)
    anchor(cli, 2)
    outcome = cli("indexer", "run", "--once")
    assert outcome.code == 0, outcome.err
    assert "2 anchors of 1 owner, 0 gaps, 0 events set aside" in outcome.out
    database = own_home / "indexer" / "index.db"
    assert versions(database, wallet.address) == [2, 1]
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert "memory 1" not in outcome.err


@pytest.mark.parametrize("words", [("run", "--once"), ("run",), ("serve", "--ingest", "--port", "0")])
def test_who_only_looks_makes_no_chain(cli: Cli, own_home: Path, words: tuple[str, ...]) -> None:
    outcome = cli("indexer", *words, "--json")
    assert outcome.code == 6
    error = outcome.json["error"]
    assert error["message"] == f"there is no chain at {own_home / 'localnet' / 'chain.db'}"
    assert "`mycelium memory anchor`" in error["hint"]
    assert not (own_home / "localnet").exists()


def test_who_compares_with_an_indexer_makes_no_chain(
    cli: Cli, wallet: Wallet, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MYCELIUM_INDEXER_URL", "http://127.0.0.1:9")
    outcome = cli("memory", "status")
    assert outcome.code == 0
    assert "warning: the indexer was not asked: there is no chain here" in outcome.err
    assert not (own_home / "localnet" / "chain.db").exists()


def test_where_the_database_is(cli: Cli, wallet: Wallet, monkeypatch: pytest.MonkeyPatch) -> None:
    anchor(cli, 1)
    Path("mycelium.toml").write_text('[indexer]\ndatabase_url = "here.db"\n')
    Path("below").mkdir()
    monkeypatch.chdir("below")
    assert cli("indexer", "run", "--once").code == 0
    assert Path("../here.db").is_file(), "relative to the configuration"
    assert cli("indexer", "run", "--once", "--database", str(Path("../there.db").resolve())).code == 0
    assert Path("../there.db").is_file()
    assert cli("indexer", "run", "--once", "--database", "mysql://host/base").code == 2


def test_it_ends_in_order_when_it_is_told_to(
    cli: Cli, wallet: Wallet, own_home: Path, process: Process
) -> None:
    assert cli("contract", "deploy").code == 0
    for number in (signal.SIGTERM, signal.SIGINT):
        arguments = ["indexer", "run", "--interval", "0.05", "--log-format", "json"]
        with process(*arguments) as started:
            assert started.stdout is not None
            assert started.stderr is not None
            assert started.stdout.readline().startswith(b"following C")
            anchor(cli, int(number))
            log = (json.loads(line) for line in started.stderr)
            assert next(line for line in log if line["event"] == "read")["anchors"] == 1
            started.send_signal(number)
            out, _ = started.communicate(timeout=TIME_LIMIT)
            assert (started.returncode, out) == (0, b"")
    assert versions(own_home / "indexer" / "index.db", wallet.address) == [2, 1]


@pytest.fixture
def kept(cli: Cli, wallet: Wallet, own_home: Path) -> list[dict[str, Any]]:
    """What another indexer had, of an owner whose versions 2 to 5 the server dropped before ours read
    them."""
    anchor(cli, 1)
    cli("indexer", "run", "--once")
    for number in range(2, 9):
        anchor(cli, number)
    assert cli("indexer", "run", "--once", "--database", "other.db").code == 0
    other = open_store("other.db")
    (source,) = other.sources()
    items = [anchor_as_json(one) for one in other.history(source, wallet.address, below=None, limit=99)]
    other.close()
    chain = Chain.open(own_home / "localnet" / "chain.db")
    # Of each version there are two ledgers at most: one that anchored, and perhaps one that funded.
    chain.fault("retention", count=20, methods=["getEvents"], ledgers=3)
    outcome = cli("indexer", "run", "--once", "--json")
    chain.clear_faults()
    chain.close()
    assert outcome.json["gaps"] == 1
    return items


def test_repaired_by_a_file(cli: Cli, wallet: Wallet, own_home: Path, kept: list[dict[str, Any]]) -> None:
    database = own_home / "indexer" / "index.db"
    assert versions(database, wallet.address) == [8, 7, 6, 1]
    forged = json.loads(json.dumps(kept))
    forged[4]["root"] = "ab" * 32
    Path("forged.json").write_text(json.dumps({"items": forged, "next": None}))
    outcome = cli("indexer", "repair", "forged.json")
    assert outcome.code == 7
    assert f"version 4 of {wallet.address}" in outcome.err
    assert "TAMPERED" in outcome.err
    assert versions(database, wallet.address) == [8, 7, 6, 1]
    Path("kept.jsonl").write_text("\n".join(json.dumps(item) for item in kept[:6]))
    outcome = cli("indexer", "repair", "kept.jsonl", "--json")
    assert outcome.json == {
        "contract": outcome.json["contract"], "given": 6, "filled": 3, "unproved": 0, "gaps": 1,
    }  # fmt: skip
    Path("kept.json").write_text(json.dumps({"items": kept, "next": None}))
    outcome = cli("indexer", "repair", "kept.json")
    assert (outcome.code, "gaps    0 left" in outcome.out) == (0, True)
    assert versions(database, wallet.address) == list(range(8, 0, -1))


def test_an_owner_who_anchored_before_it_was_followed(
    cli: Cli, wallet: Wallet, kept: list[dict[str, Any]]
) -> None:
    begin = cli("indexer", "run", "--once", "--json", "--database", "all.db").json["ledger"]
    late = ["--database", "late.db"]
    outcome = cli("indexer", "run", "--once", "--json", "--start-ledger", str(begin), *late)
    assert outcome.json["anchors"] <= 1
    Path("kept.json").write_text(json.dumps(kept[2:]))
    outcome = cli("indexer", "repair", "kept.json", "--json", *late)
    assert (outcome.json["filled"], outcome.json["unproved"]) == (0, 6), "version 7 is missing"
    Path("kept.json").write_text(json.dumps(kept))
    outcome = cli("indexer", "repair", "kept.json", "--json", *late)
    assert (outcome.json["filled"], outcome.json["gaps"]) == (7, 0)
    assert versions(Path("late.db"), wallet.address) == list(range(8, 0, -1))


def test_what_nothing_proves_is_said(cli: Cli, kept: list[dict[str, Any]]) -> None:
    Path("kept.json").write_text(json.dumps(kept[-2:]))
    outcome = cli("indexer", "repair", "kept.json")
    assert outcome.code == 0
    assert "left out 1 anchor: " in outcome.err


class _Pages(BaseHTTPRequestHandler):
    """A history in pages of three."""

    items: list[dict[str, Any]]

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        start = int(query.get("cursor", ["0"])[0])
        following = str(start + 3) if start + 3 < len(self.items) else None
        body = json.dumps({"items": self.items[start : start + 3], "next": following, "gaps": []}).encode()
        self.send_response(200 if self.path.startswith("/memory/") else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url(kept: list[dict[str, Any]]) -> Iterator[str]:
    _Pages.items = kept
    server = HTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_repaired_by_another_indexer(cli: Cli, wallet: Wallet, own_home: Path, url: str) -> None:
    assert cli("indexer", "repair", f"{url}/elsewhere").code == 8
    assert cli("indexer", "repair", "http://127.0.0.1:1/").code == 8
    outcome = cli("indexer", "repair", f"{url}/memory/{wallet.address}/history?limit=3", "--json")
    assert outcome.code == 0, outcome.err
    assert (outcome.json["filled"], outcome.json["gaps"]) == (4, 0)
    assert versions(own_home / "indexer" / "index.db", wallet.address) == list(range(8, 0, -1))


def test_what_cannot_be_repaired(cli: Cli, wallet: Wallet) -> None:
    Path("kept.json").write_text("[]")
    assert cli("indexer", "repair", "kept.json").code == 2, "nothing is followed yet"
    assert cli("indexer", "repair", "missing.json").code == 2
    Path("kept.json").write_text("nothing of the kind")
    outcome = cli("indexer", "repair", "kept.json")
    assert (outcome.code, "line 1 of kept.json" in outcome.err) == (2, True)


def test_a_newer_database_is_refused(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    cli("indexer", "run", "--once")
    connection = sqlite3.connect(own_home / "indexer" / "index.db")
    connection.execute("INSERT INTO schema_versions VALUES (99, 0)")
    connection.commit()
    connection.close()
    outcome = cli("indexer", "run", "--once")
    assert (outcome.code, "newer release" in outcome.err) == (5, True)

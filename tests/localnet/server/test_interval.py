"""Servers that close ledgers at intervals, alone and with others on one file."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

from stellar_sdk import Keypair, SorobanServer, TransactionBuilder
from stellar_sdk.soroban_rpc import GetTransactionStatus, SendTransactionStatus

from mycelium_localnet import Chain
from tests.localnet.ledger.test_headers import check_chained
from tests.localnet.server.process import serving, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localnet.server.process import Answer

SOMEBODY = Keypair.from_raw_ed25519_seed(b"somebody".ljust(32, b"."))
INTERVAL = 0.05


def count(path: Path) -> int:
    """The last ledger in a file. Unlike any look through a chain this closes none."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT max(sequence) FROM ledgers").fetchone()[0])


def make_due(path: Path) -> None:
    """Let the next ledger be due by now."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE settings SET value = '1000' WHERE key = 'due'")


def test_ledgers_close_though_nobody_asks(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    begun = time.time()
    with serving("--state", path, "--interval", INTERVAL) as server:
        until(lambda: count(path) >= 10)
        # Never more often than they should.
        assert count(path) - 1 <= (time.time() - begun) / INTERVAL
        assert server.end() == 0
    with Chain.open(path) as chain, chain.read() as view:
        check_chained(view.ledgers(1, 1_000))


def test_two_processes_on_one_file_close_each_ledger_once(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    begun = time.time()
    options = ("--state", path, "--interval", INTERVAL)
    with serving(*options) as first, serving(*options) as second:
        at_two = count(path)
        for _ in range(5):
            for server in (first, second):
                server.call("getHealth")
        until(lambda: count(path) >= at_two + 10)
        assert count(path) - 1 <= (time.time() - begun) / INTERVAL
        transactions = [server.fund(Keypair.random().public_key).json["hash"] for server in (first, second)]
        # Each sees what the other one took in, and both the same.
        for transaction in transactions:
            seen = [server.call("getTransaction", {"hash": transaction}) for server in (first, second)]
            assert [one["status"] for one in seen] == ["SUCCESS", "SUCCESS"]
            assert seen[0]["ledger"] == seen[1]["ledger"]
        # One ends, the other one goes on.
        assert first.end() == 0
        left = count(path)
        until(lambda: count(path) >= left + 3)
        assert second.end() == 0
    with Chain.open(path) as chain, chain.read() as view:
        check_chained(view.ledgers(1, 10_000))
        assert len(view.transactions((0, 0), 10)) == 2


def test_a_server_takes_over_what_a_process_left_pending(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, interval=3_600) as chain:
        transaction = chain.fund(SOMEBODY.public_key)
    make_due(path)
    with serving("--state", path) as server:
        assert server.call("getTransaction", {"hash": transaction})["status"] == "SUCCESS"


def test_a_transaction_is_pending_until_its_ledger_closes(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path, "--interval", 3_600) as server, SorobanServer(server.url) as client:
        answers: list[Answer] = []
        asking = threading.Thread(target=lambda: answers.append(server.fund(SOMEBODY.public_key)))
        asking.start()
        until(lambda: pending(path) == 1)
        assert (answers, count(path)) == ([], 1)
        make_due(path)
        asking.join()
        assert [(one.status, one.json["ledger"]) for one in answers] == [(200, 2)]
        envelope = (
            TransactionBuilder(client.load_account(SOMEBODY.public_key), client.get_network().passphrase, 100)
            .append_create_account_op(Keypair.random().public_key, "5")
            .set_timeout(0)
            .build()
        )
        envelope.sign(SOMEBODY)
        sent = client.send_transaction(envelope)
        assert sent.status is SendTransactionStatus.PENDING
        assert client.send_transaction(envelope).status is SendTransactionStatus.DUPLICATE
        assert client.get_transaction(sent.hash).status is GetTransactionStatus.NOT_FOUND
        assert client.get_health().status == "healthy"
        assert count(path) == 2
        make_due(path)
        found = client.get_transaction(sent.hash)
        assert (found.status, found.ledger) == (GetTransactionStatus.SUCCESS, 3)


def pending(path: Path) -> int:
    """How many transactions wait for a ledger."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM pending").fetchone()[0])


def test_a_friendbot_that_waits_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path, "--interval", 3_600) as server:
        statuses: list[int] = []
        asking = threading.Thread(target=lambda: statuses.append(server.fund(SOMEBODY.public_key).status))
        asking.start()
        until(lambda: pending(path) == 1)
        assert server.end() == 0
        asking.join()
        assert (statuses, server.complaints()) == ([503], "")
    # What was handed in is still there.
    assert pending(path) == 1


def test_a_server_keeps_to_an_interval_that_is_set_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path) as server:
        assert server.call("getHealth")["latestLedger"] == 1
        server.call("localnet_setInterval", {"interval": INTERVAL})
        until(lambda: count(path) >= 5)
        server.call("localnet_setInterval", {"closing": "manual"})
        assert server.call("getHealth")["latestLedger"] == count(path)

"""Paging over HTTP while ledgers close: everything comes once, in order, whoever writes meanwhile."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair

from mycelium_localnet import Chain
from mycelium_localnet.rpc.pages import event_id
from tests.localnet.server.process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localnet.server.process import ServerProcess

WRITERS = 4
EACH = 15
LIMITS = {"getTransactions": (1, 3, 200), "getEvents": (1, 7, 10_000), "getLedgers": (1, 2, 200)}
ITEMS = {"getTransactions": "transactions", "getEvents": "events", "getLedgers": "ledgers"}


def place(item: dict[str, Any]) -> tuple[object, ...]:
    """Where an item of any of the three stands among its like."""
    if "id" in item:
        return (item["id"],)
    return (item["sequence"],) if "sequence" in item else (item["ledger"], item["applicationOrder"])


class Follower(threading.Thread):
    """Reads pages of one method from ledger 2 on, as a client does that never stops, until `enough` is set
    and the tip of that moment is reached."""

    def __init__(self, server: ServerProcess, method: str, limit: int, enough: threading.Event) -> None:
        super().__init__()
        self.server, self.method, self.limit, self.enough = server, method, limit, enough
        self.found: list[dict[str, Any]] = []
        self.failure: AssertionError | None = None

    def run(self) -> None:
        try:
            self.follow()
        except AssertionError as error:
            self.failure = error

    def follow(self) -> None:
        params: dict[str, Any] = {"startLedger": 2}
        tip = None
        while True:
            if tip is None and self.enough.is_set():
                tip = self.server.call("getHealth")["latestLedger"]
            page = self.server.call(
                self.method, {**params, "pagination": {**params.get("pagination", {}), "limit": self.limit}}
            )
            items = page[ITEMS[self.method]]
            assert len(items) <= self.limit
            for item in items:
                # Told at once: one that repeats a page would never come to the end.
                assert not self.found or place(self.found[-1]) < place(item)
                self.found.append(item)
            if tip is not None and (len(items) < self.limit or items[-1].get("sequence", 0) >= tip):
                return
            params = {"pagination": {"cursor": page["cursor"]}}


@pytest.mark.parametrize("options", [(), ("--interval", "0.02")], ids=["instant", "interval"])
def test_nothing_is_lost_or_repeated(tmp_path: Path, options: tuple[str, ...]) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path, *options) as server:
        enough = threading.Event()
        server.fund(Keypair.random().public_key)  # ledger 2, where the followers begin
        followers = [
            Follower(server, method, limit, enough) for method, limits in LIMITS.items() for limit in limits
        ]
        answers: list[int] = []

        def write() -> None:
            answers.extend(server.fund(Keypair.random().public_key).status for _ in range(EACH))

        writers = [threading.Thread(target=write) for _ in range(WRITERS)]
        for thread in (*followers, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        enough.set()
        for thread in followers:
            thread.join()
        assert answers == [200] * (WRITERS * EACH)
        assert server.end() == 0
    check(path, followers)


def check(path: Path, followers: list[Follower]) -> None:
    """What the followers saw against what the file holds."""
    with Chain.open(path) as chain, chain.read() as view:
        transactions = [
            (row.ledger, row.application_order, row.hash.hex()) for row in view.transactions((0, 0), 9_999)
        ]
        end = view.latest().sequence + 1
        events = [event_id(row.position) for row in view.events(after=(2, -1, 0, 0), end_ledger=end)]
        ledgers = [(row.sequence, row.hash.hex()) for row in view.ledgers(2, end)]
    assert len(transactions) == 1 + WRITERS * EACH
    assert len(events) >= len(transactions)
    for follower in followers:
        assert follower.failure is None
        name = f"{follower.method} by {follower.limit}"
        found = follower.found
        if follower.method == "getTransactions":
            seen = [(one["ledger"], one["applicationOrder"], one["txHash"]) for one in found]
            assert seen == transactions, name
        elif follower.method == "getEvents":
            assert [one["id"] for one in found] == events, name
        else:
            # Empty ledgers may have closed after it had seen enough.
            assert [(one["sequence"], one["hash"]) for one in found] == ledgers[: len(found)], name
            assert found[-1]["sequence"] >= transactions[-1][0], name

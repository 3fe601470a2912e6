"""Servers that lag, forget or are on another branch: each answer as such a server would give it."""

from __future__ import annotations

import random
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import SorobanServer, scval, xdr
from stellar_sdk.exceptions import SorobanRpcErrorResponse

from mycelium_localnet import IN_PROCESS_URL
from tests.localnet.cheats.conftest import live
from tests.localnet.ledger.lab import create, keypair, meta_of
from tests.localnet.ledger.test_headers import check_chained

if TYPE_CHECKING:
    from mycelium_localnet.ledger import LedgerRow
    from mycelium_localnet.view import ReadView
    from tests.localnet.faults.conftest import Door

ALICE = keypair("alice")


def all_keys(door: Door) -> list[bytes]:
    """The keys of all entries that are or were there."""
    with door.chain._storage.read() as connection:
        query = "SELECT key FROM entries UNION SELECT key FROM former"
        return sorted(key for (key,) in connection.execute(query))


def shown(view: ReadView, keys: list[bytes]) -> dict[str, Any]:
    """Everything that a view can say, with a latest ledger that others may lie behind."""
    last = view.latest().sequence
    rows = view.transactions((0, 0), 10_000)
    return {
        "latest": view.latest(),
        "oldest": view.oldest(),
        "ledgers": view.ledgers(view.oldest().sequence, 10_000),
        "beyond": (view.ledger(last + 1), view.ledgers(last + 1, 5)),
        "transactions": rows,
        "page": view.transactions((last, 0), 5),
        "by hash": [view.transaction(row.hash) for row in rows],
        "kinds": view.kinds(1),
        "events": list(view.events(after=(1, -1, 0, 0), end_ledger=10_000)),
        "entries": [view.entry(key) for key in keys],
    }


def test_a_server_that_lags_shows_exactly_what_was(door: Door) -> None:
    """Every older state of an eventful chain, as it was read when it was the latest one."""
    live(door.lab, 1)
    snapshots: dict[int, int] = {}
    first = door.lab.latest().sequence
    for number in range(2, 4):
        snapshots[door.lab.latest().sequence] = door.chain.snapshot()
        live(door.lab, number)
    last = door.lab.latest().sequence
    keys = all_keys(door)
    lagging = {}
    for sequence in range(first, last + 1):
        if sequence < last:
            door.chain.fault("stale", ledgers=last - sequence)
        with door.chain.serving("getEvents").read() as view:
            lagging[sequence] = shown(view, keys)
    # Going back for real, ledger by ledger: what a revert leaves is what lagging showed.
    for sequence in sorted(snapshots, reverse=True):
        door.chain.revert(snapshots[sequence])
        with door.chain.read() as view:
            assert view.latest().sequence == sequence
            assert shown(view, keys) == lagging[sequence]
    entries = [tuple(state["entries"]) for state in lagging.values()]
    assert len(set(entries)) > 10


def test_each_step_of_a_story_is_what_lagging_shows_later(door: Door) -> None:
    chance = random.Random(7)  # noqa: S311
    keys = [door.lab.data_key(number).to_xdr_bytes() for number in range(4)]
    keys += [bytes(8) + keypair(name).raw_public_key() for name in ("alice", "a", "b", "c")]
    past: dict[int, dict[str, Any]] = {}
    for step in range(40):
        number = chance.randrange(4)
        kind = chance.randrange(4)
        if kind == 0:
            door.lab.apply(door.lab.prepare(ALICE, door.lab.put_call(number, step)))
        elif kind == 1:
            door.chain.set_balance(keypair("abc"[number % 3]).public_key, step)
        elif kind == 2:
            door.chain.close_ledger()
        else:
            door.lab.apply(door.lab.build(ALICE, create(f"account {step}")))
        with door.chain.read() as view:
            past[view.latest().sequence] = shown(view, keys)
    last = max(past)
    for sequence, state in past.items():
        if sequence < last:
            door.chain.fault("stale", ledgers=last - sequence)
            with door.chain.serving("simulateTransaction").read() as view:
                assert shown(view, keys) == state


def test_lagging_as_clients_see_it(door: Door) -> None:
    lab, key = door.lab, door.lab.data_key(1)
    tip = lab.latest().sequence
    late = lab.build(ALICE, create("late"))
    lab.succeed(late)
    (now,) = door.ask("getLedgerEntries", keys=[key.to_xdr()])["entries"]
    door.chain.fault("stale", ledgers=2, count=6)
    answer = door.ask("getLedgerEntries", keys=[key.to_xdr()])
    assert answer["latestLedger"] == tip - 1
    (old,) = answer["entries"]
    assert (
        scval.to_bytes(b"\x01" * 32).to_xdr_bytes() in xdr.LedgerEntryData.from_xdr(old["xdr"]).to_xdr_bytes()
    )
    assert old["lastModifiedLedgerSeq"] == now["lastModifiedLedgerSeq"] - 1
    assert door.ask("getLatestLedger")["sequence"] == tip - 1
    assert door.status(late) == "NOT_FOUND"
    assert door.ask("getHealth")["latestLedger"] == tip - 1
    server = SorobanServer(IN_PROCESS_URL, door.client)
    with pytest.raises(SorobanRpcErrorResponse) as caught:
        server.get_events(start_ledger=tip + 1)
    assert caught.value.code == -32600
    assert server.get_ledgers(start_ledger=tip - 2).ledgers[-1].sequence == tip - 1
    assert door.status(late) == "SUCCESS"


def test_lagging_further_than_history_goes(door: Door) -> None:
    door.chain.fault("stale", ledgers=1_000)
    assert door.ask("getLatestLedger")["sequence"] == 1


def test_sending_is_no_reading(door: Door) -> None:
    door.chain.fault("stale")
    envelope = door.lab.build(ALICE, create("new"))
    assert door.send(envelope) == "PENDING"
    assert len(door.chain.faults()) == 1


def test_a_simulation_of_a_server_that_lags(door: Door) -> None:
    get = door.lab.prepare(ALICE, door.lab.call("put", scval.to_uint32(9), scval.to_uint64(1)))
    tip = door.lab.latest().sequence
    door.lab.put(ALICE, 9, 1)
    changes = door.ask("simulateTransaction", transaction=get.to_xdr())["stateChanges"]
    assert [change["type"] for change in changes if change["key"] == door.lab.data_key(9).to_xdr()] == [
        "updated"
    ]
    door.chain.fault("stale")
    answer = door.ask("simulateTransaction", transaction=get.to_xdr())
    assert answer["latestLedger"] == tip
    changes = answer["stateChanges"]
    assert [change["type"] for change in changes if change["key"] == door.lab.data_key(9).to_xdr()] == [
        "created"
    ]


def test_trimmed_history(door: Door) -> None:
    tip = door.lab.latest().sequence
    old = door.lab.build(ALICE, create("old"))
    door.lab.succeed(old)
    new = door.lab.build(ALICE, create("new"))
    door.lab.succeed(new)
    server = SorobanServer(IN_PROCESS_URL, door.client)
    door.chain.fault("retention", ledgers=1, count=8)
    assert door.status(old) == "NOT_FOUND"
    assert door.status(new) == "SUCCESS"
    assert door.ask("getHealth")["oldestLedger"] == tip + 2
    for call in (server.get_events, server.get_transactions, server.get_ledgers):
        with pytest.raises(SorobanRpcErrorResponse) as caught:
            call(start_ledger=tip + 1)
        assert caught.value.code == -32600
    assert {event.ledger for event in server.get_events(start_ledger=tip + 2).events} == {tip + 2}
    assert [row.ledger for row in server.get_transactions(start_ledger=tip + 2).transactions] == [tip + 2]
    assert door.status(old) == "SUCCESS"
    door.ask("getLedgerEntries", keys=[door.lab.data_key(1).to_xdr()])


def test_trimmed_history_hides_what_cursors_point_to(door: Door) -> None:
    door.chain.fault("retention", ledgers=2)
    with door.chain.serving("getEvents").read() as view:
        tip = view.latest().sequence
        assert view.oldest().sequence == tip - 1
        assert {row.ledger for row in view.transactions((0, 0), 1_000)} == {tip - 1, tip}
        assert {row.ledger for row in view.events(after=(1, -1, 0, 0), end_ledger=10_000)} == {tip - 1, tip}
        assert {ledger for ledger, _soroban in view.kinds(0)} == {tip - 1, tip}
        assert view.ledger(tip - 2) is None


def forked(door: Door, *, ledgers: int = 1, seed: int = 0) -> dict[str, Any]:
    door.chain.fault("fork", ledgers=ledgers, seed=seed)
    with door.chain.serving("getEvents").read() as view:
        return shown(view, [door.lab.data_key(1).to_xdr_bytes()])


def true(door: Door) -> dict[str, Any]:
    with door.chain.read() as view:
        return shown(view, [door.lab.data_key(1).to_xdr_bytes()])


def check_closed(row: LedgerRow) -> None:
    """The close meta names the ledger, its set of transactions and its predecessor."""
    meta = xdr.LedgerCloseMeta.from_xdr_bytes(row.close_meta).v2
    assert meta is not None
    assert meta.ledger_header.hash.hash == row.hash == sha256(row.header).digest()
    assert meta.ledger_header.header.to_xdr_bytes() == row.header
    header = meta.ledger_header.header
    assert header.scp_value.tx_set_hash.hash == sha256(meta.tx_set.to_xdr_bytes()).digest()
    assert meta.tx_set.v1_tx_set is not None
    assert meta.tx_set.v1_tx_set.previous_ledger_hash == header.previous_ledger_hash


@pytest.mark.parametrize("ledgers", [1, 2, 3])
def test_a_branch_is_well_chained_and_another_one(door: Door, ledgers: int) -> None:
    door.chain.close_ledger()
    honest, other = true(door), forked(door, ledgers=ledgers)
    check_chained(other["ledgers"])
    for row in other["ledgers"][-ledgers:]:
        check_closed(row)
    same = len(honest["ledgers"]) - ledgers
    assert other["ledgers"][:same] == honest["ledgers"][:same]
    pairs = list(zip(honest["ledgers"][same:], other["ledgers"][same:], strict=True))
    assert all(mine.hash != theirs.hash for mine, theirs in pairs)
    assert all(mine.sequence == theirs.sequence for mine, theirs in pairs)
    assert other["latest"] == other["ledgers"][-1]
    assert true(door) == honest
    assert (other["entries"] == honest["entries"]) is (ledgers == 1)  # the last ledger wrote nothing


def test_a_branch_holds_other_values(door: Door) -> None:
    honest, other = true(door), forked(door)
    assert forked(door) == other
    assert forked(door, seed=1)["entries"] != other["entries"]
    assert [row.hash for row in other["transactions"]] == [row.hash for row in honest["transactions"]]
    assert other["transactions"][:-1] == honest["transactions"][:-1]
    ((mine, live_until),), ((theirs, also),) = honest["entries"], other["entries"]
    value = (b"\x02" * 32, sha256(b"mycelium fork 0\0" + b"\x02" * 32).digest())
    assert value[0] in mine
    assert theirs == mine.replace(*value)
    assert also == live_until
    # The transaction that wrote it tells the same story, of what was there before as well.
    (mine,) = meta_of(honest["transactions"][-1]).operations
    (theirs,) = meta_of(other["transactions"][-1]).operations
    changes = theirs.to_xdr_bytes()
    assert changes == mine.to_xdr_bytes().replace(*value)
    assert value[1] in changes
    assert b"\x01" * 32 in changes


def test_events_of_a_branch(door: Door) -> None:
    door.lab.invoke(ALICE, "shout", scval.to_bytes(b"\x05" * 32))
    honest, other = true(door), forked(door)
    assert other["events"][:-2] == honest["events"][:-2]
    told = [row for row in other["events"] if row.contract_id == door.lab.contract_id][-1]
    assert told.value == scval.to_bytes(sha256(b"mycelium fork 0\0" + b"\x05" * 32).digest()).to_xdr_bytes()
    row = other["transactions"][-1]
    ((event,),) = row.contract_events
    body = xdr.ContractEvent.from_xdr_bytes(event).body.v0
    assert body is not None
    assert body.data.to_xdr_bytes() == told.value


def test_a_branch_as_clients_see_it(door: Door) -> None:
    honest = door.ask("getLatestLedger")
    door.chain.fault("fork", count=3, seed=5)
    assert door.ask("getLatestLedger")["id"] != honest["id"]
    (entry,) = door.ask("getLedgerEntries", keys=[door.lab.data_key(1).to_xdr()])["entries"]
    value = sha256(b"mycelium fork 5\0" + b"\x02" * 32).digest()
    assert value in xdr.LedgerEntryData.from_xdr(entry["xdr"]).to_xdr_bytes()
    put = door.lab.prepare(ALICE, door.lab.call("put_bytes", scval.to_uint32(1), scval.to_bytes(b"x")))
    (change,) = [
        change
        for change in door.ask("simulateTransaction", transaction=put.to_xdr())["stateChanges"]
        if change["key"] == door.lab.data_key(1).to_xdr()
    ]
    assert value in xdr.LedgerEntry.from_xdr(change["before"]).to_xdr_bytes()
    assert door.ask("getLatestLedger") == honest

"""Ledger entries as servers give them: live, expiring, archived in either way of saying so, and absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import StrKey, scval, xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.base import EXPIRING_WITHIN, EntryStatus

if TYPE_CHECKING:
    from stellar_sdk.client.response import Response

    from mycelium_sdk.chain.rpc import RpcChain
    from tests.chain.conftest import FakeServer, Replies

CONTRACT = StrKey.encode_contract(bytes(range(32)))
KEY = operations.data_key(CONTRACT, scval.to_symbol("entry"))
LATEST = 100


def entry(key: xdr.LedgerKey, live_until: int | None) -> dict[str, Any]:
    assert key.contract_data is not None
    data = xdr.LedgerEntryData(
        xdr.LedgerEntryType.CONTRACT_DATA,
        contract_data=xdr.ContractDataEntry(
            ext=xdr.ExtensionPoint(0),
            contract=key.contract_data.contract,
            key=key.contract_data.key,
            durability=key.contract_data.durability,
            val=scval.to_uint32(7),
        ),
    )
    answer = {"key": key.to_xdr(), "xdr": data.to_xdr(), "lastModifiedLedgerSeq": 5}
    return answer if live_until is None else answer | {"liveUntilLedgerSeq": live_until}


def serve(server: FakeServer, reply: type[Replies], entries: list[dict[str, Any]] | None) -> None:
    def answer(_server: FakeServer, _params: dict[str, Any]) -> Response:
        return reply.result({"entries": entries, "latestLedger": LATEST})

    server.script["getLedgerEntries"] = [answer]


@pytest.mark.parametrize(
    ("live_until", "status", "remaining"),
    [
        (LATEST + EXPIRING_WITHIN, EntryStatus.LIVE, EXPIRING_WITHIN),
        (LATEST + EXPIRING_WITHIN - 1, EntryStatus.EXPIRING, EXPIRING_WITHIN - 1),
        (LATEST, EntryStatus.EXPIRING, 0),
        (LATEST - 1, EntryStatus.ARCHIVED, None),
        (0, EntryStatus.ARCHIVED, None),
        (None, EntryStatus.LIVE, None),
    ],
)
def test_the_states_of_an_entry(
    chain: RpcChain,
    server: FakeServer,
    reply: type[Replies],
    *,
    live_until: int | None,
    status: EntryStatus,
    remaining: int | None,
) -> None:
    serve(server, reply, [entry(KEY, live_until)])
    (state,) = chain.entries([KEY])
    assert (state.status, state.remaining, state.latest_ledger) == (status, remaining, LATEST)
    assert state.data is not None
    assert state.last_modified == 5


def test_the_bound_of_expiring_can_be_chosen(
    chain: RpcChain, server: FakeServer, reply: type[Replies]
) -> None:
    serve(server, reply, [entry(KEY, LATEST + 10)])
    (state,) = chain.entries([KEY], expiring_within=10)
    assert state.status is EntryStatus.LIVE


@pytest.mark.parametrize("nothing", [[], None])
def test_an_absent_entry(
    chain: RpcChain, server: FakeServer, reply: type[Replies], nothing: list[dict[str, Any]] | None
) -> None:
    serve(server, reply, nothing)
    (state,) = chain.entries([KEY])
    assert (state.status, state.data, state.remaining) == (EntryStatus.ABSENT, None, None)


def test_answers_are_in_the_order_of_the_questions(
    chain: RpcChain, server: FakeServer, reply: type[Replies]
) -> None:
    """Servers leave missing entries out, so positions in their answer mean nothing."""
    keys = [operations.data_key(CONTRACT, scval.to_symbol(name)) for name in "abc"]
    serve(server, reply, [entry(keys[2], LATEST + 10**6), entry(keys[0], 0)])
    states = chain.entries(keys)
    assert [state.status for state in states] == [
        EntryStatus.ARCHIVED,
        EntryStatus.ABSENT,
        EntryStatus.LIVE,
    ]

"""Ledgers: each names the one before it, skipped ones as well, and history ends where the RPC's does."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import xdr
from stellar_sdk.operation import CreateAccount

from mycelium_localnet import Chain, errors, headers
from tests.localnet.ledger.lab import Lab, keypair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet.ledger import LedgerRow


def check_chained(ledgers: Sequence[LedgerRow]) -> None:
    """Every promise that a row of ledgers makes."""
    for ledger in ledgers:
        header = xdr.LedgerHeader.from_xdr_bytes(ledger.header)
        assert ledger.hash == sha256(ledger.header).digest()
        assert header.ledger_seq.uint32 == ledger.sequence
        assert header.scp_value.close_time.time_point.uint64 == ledger.close_time
        close = xdr.LedgerCloseMeta.from_xdr_bytes(ledger.close_meta)
        assert close.v2 is not None
        assert close.v2.ledger_header.hash.hash == ledger.hash
        assert close.v2.ledger_header.header == header
        assert close.v2.ledger_header.to_xdr_bytes() == ledger.history_entry
        envelopes = close.v2.tx_set
        assert sha256(envelopes.to_xdr_bytes()).digest() == header.scp_value.tx_set_hash.hash
        assert envelopes.v1_tx_set is not None
        assert envelopes.v1_tx_set.previous_ledger_hash == header.previous_ledger_hash
        results = xdr.TransactionResultSet([part.result for part in close.v2.tx_processing])
        assert sha256(results.to_xdr_bytes()).digest() == header.tx_set_result_hash.hash
    for before, after in pairwise(ledgers):
        assert after.sequence == before.sequence + 1
        assert xdr.LedgerHeader.from_xdr_bytes(after.header).previous_ledger_hash.hash == before.hash
        assert after.close_time >= before.close_time


def test_ledgers_are_chained(lab: Lab) -> None:
    alice = lab.account("alice")
    lab.deploy(alice)
    lab.chain.close_ledger()
    lab.put(alice, 1, 2)
    ledgers = lab.ledgers()
    assert [ledger.sequence for ledger in ledgers] == [1, 2, 3, 4, 5, 6]
    check_chained(ledgers)


def test_skipping_computes_what_closing_one_by_one_would() -> None:
    with (
        Chain.open(":memory:", seed=b"s", clock="frozen") as one,
        Chain.open(":memory:", seed=b"s", clock="frozen") as other,
    ):
        assert one.skip_ledgers(700) == 701
        for _ in range(700):
            other.close_ledger()
        with one.read() as skipped, other.read() as closed:
            assert skipped.ledgers(1, 1000) == closed.ledgers(1, 1000)
            assert skipped.latest() == closed.latest()
            assert skipped.ledger(400) == closed.ledger(400)
            check_chained(skipped.ledgers(1, 1000))


def test_a_chain_goes_on_behind_skipped_ledgers(lab: Lab) -> None:
    alice = lab.account("alice")
    lab.chain.skip_ledgers(300)
    lab.deploy(alice)
    lab.chain.skip_ledgers(1)
    lab.put(alice, 1, 2)
    check_chained(lab.ledgers())


def test_pages_of_skipped_ledgers_meet(lab: Lab) -> None:
    lab.chain.skip_ledgers(600)
    with lab.chain.read() as view:
        pages = [view.ledgers(start, 100) for start in range(1, 602, 100)]
        assert [len(page) for page in pages] == [100] * 6 + [1]
        assert [ledger for page in pages for ledger in page] == view.ledgers(1, 10_000)
        assert view.ledgers(602, 10) == []
        assert view.ledgers(0, 10) == []
        assert view.ledgers(5, 0) == []
        assert view.ledger(601) == view.latest()


def test_history_ends_where_the_rpc_ends_it(lab: Lab) -> None:
    alice = lab.account("alice")
    row = lab.succeed(lab.build(alice, CreateAccount(keypair("bob").public_key, "2")))
    assert lab.chain.skip_ledgers(headers.RETENTION - 1) == row.ledger + headers.RETENTION - 1
    with lab.chain.read() as view:
        assert view.oldest().sequence == row.ledger
        assert view.transaction(row.hash) == row
        assert view.ledger(row.ledger - 1) is None
    lab.chain.close_ledger()
    with lab.chain.read() as view:
        oldest = view.oldest()
        assert oldest.sequence == row.ledger + 1
        assert view.transaction(row.hash) is None
        assert list(view.events(after=(0, -1, 0, 0), end_ledger=1 << 31)) == []
        check_chained(view.ledgers(oldest.sequence, 600))
    # The state has no end of history.
    assert lab.sequence(alice) == (row.ledger - 1 << 32) + 1


def test_millions_of_ledgers_leave_few_rows(lab: Lab) -> None:
    lab.chain.skip_ledgers(500_000)
    with lab.chain._storage.read() as connection:
        assert connection.execute("SELECT count(*) FROM ledgers").fetchone()[0] < 1_000
    with lab.chain.read() as view:
        latest = view.latest().sequence
        assert latest == 500_001
        assert view.oldest().sequence == latest - headers.RETENTION + 1
        check_chained(view.ledgers(latest - 300, 1_000))
        check_chained(view.ledgers(latest - headers.RETENTION + 1, 300))


@pytest.mark.parametrize("count", [0, -1, 10_000_001])
def test_only_a_sensible_number_can_be_skipped(lab: Lab, count: int) -> None:
    with pytest.raises(errors.InvalidRequestError):
        lab.chain.skip_ledgers(count)


def test_the_skip_list_moves_as_the_networks() -> None:
    """Slot 0 at every 50th ledger; the next ones take over 50, 5,050 and 55,050 ledgers behind their
    multiples."""
    slots = bytes(32) + b"1" * 32 + b"2" * 32 + b"3" * 32
    state = b"s" * 32

    def moved(sequence: int) -> str:
        after = headers.next_skip_list(sequence, slots, state)
        return "".join(chr(after[at]) for at in range(0, 128, 32)).replace("\0", "0")

    assert moved(49) == "0123"
    assert moved(50) == "s123"
    assert moved(5_000) == "s123"
    assert moved(5_050) == "s023"
    assert moved(50_050) == "s023"
    assert moved(55_050) == "s013"
    assert moved(500_050) == "s023"
    assert moved(555_050) == "s012"


def test_the_fee_pool_collects_what_is_charged(lab: Lab) -> None:
    alice = lab.account("alice")
    lab.deploy(alice)
    lab.put(alice, 1, 2)
    charged = 0
    with lab.chain.read() as view:
        for row in view.transactions((0, 0), 100):
            charged += xdr.TransactionResult.from_xdr_bytes(row.result).fee_charged.int64
    assert xdr.LedgerHeader.from_xdr_bytes(lab.latest().header).fee_pool.int64 == charged

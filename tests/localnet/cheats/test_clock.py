"""The clock moves and stands without ledgers, and ledgers close without the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from mycelium_localnet import Chain, errors
from mycelium_localnet.clock import FROZEN_START
from tests.localnet.ledger.lab import CODES, Lab, create, keypair

if TYPE_CHECKING:
    from pathlib import Path


def close_time(chain: Chain) -> int:
    with chain.read() as view:
        return view.latest().close_time


def test_a_frozen_clock_stands_where_it_is_put(lab: Lab) -> None:
    chain, last = lab.chain, lab.latest()
    assert chain.set_time(FROZEN_START + 86_400) == FROZEN_START + 86_400
    assert lab.latest() == last  # no ledger needs to close for it
    chain.close_ledger()
    chain.skip_ledgers(100)
    assert close_time(chain) == FROZEN_START + 86_400
    assert chain.freeze_time() == FROZEN_START + 86_400


def test_a_running_clock_goes_on_from_where_it_is_put() -> None:
    with Chain.open(":memory:") as chain:
        ahead = int(time.time()) + 1_000_000
        assert ahead <= chain.set_time(ahead) <= ahead + 60
        chain.close_ledger()
        assert ahead <= close_time(chain) <= ahead + 60
        with chain._storage.read() as connection:
            kept = dict(connection.execute("SELECT key, value FROM settings WHERE key LIKE 'clock%'"))
        assert kept["clock"] == "wall"
        assert abs(int(kept["clock_offset"]) - 1_000_000) <= 60
        assert set(kept) == {"clock", "clock_offset"}


def test_freezing_and_running_again_keep_the_time(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as chain:
        shown = chain.freeze_time()
        assert abs(shown - time.time()) <= 60
        chain.set_time(shown + 500)
        assert chain.freeze_time() == shown + 500  # it stands already
    with Chain.open(path) as chain:  # a restart does not start it
        chain.close_ledger()
        assert close_time(chain) == shown + 500
        running = chain.freeze_time(frozen=False)
        assert shown + 500 <= running <= shown + 560
        assert chain.freeze_time(frozen=False) >= running
        chain.close_ledger()
        assert shown + 500 <= close_time(chain) <= shown + 560


def test_ledgers_do_not_go_back(lab: Lab) -> None:
    lab.chain.set_time(FROZEN_START + 100)
    lab.chain.close_ledger()
    for moment in (FROZEN_START + 99, 0, -5, 253_402_300_800):
        with pytest.raises(errors.InvalidRequestError, match=str(moment)) as caught:
            lab.chain.set_time(moment)
        assert caught.value.hint
    assert lab.chain.set_time(FROZEN_START + 100) == FROZEN_START + 100
    assert lab.chain.set_time(253_402_300_799) == 253_402_300_799


def test_a_clock_that_runs_ahead_makes_transactions_too_late(lab: Lab) -> None:
    alice = keypair("alice")
    envelope = lab.build(
        alice, create("new"), change=lambda builder: builder.add_time_bounds(0, FROZEN_START + 300)
    )
    lab.chain.set_time(FROZEN_START + 301)
    assert lab.refused(envelope) == CODES.txTOO_LATE
    early = lab.build(
        alice, create("new"), change=lambda builder: builder.add_time_bounds(FROZEN_START + 400, 0)
    )
    assert lab.refused(early) == CODES.txTOO_EARLY
    lab.chain.set_time(FROZEN_START + 400)
    lab.succeed(early)

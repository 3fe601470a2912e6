"""When ledgers close by themselves: the arithmetic, and chains whose machine's clock a test moves."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Account, Keypair, SorobanServer, TransactionBuilder
from stellar_sdk.soroban_rpc import GetTransactionStatus, SendTransactionStatus

from mycelium_localnet import IN_PROCESS_URL, Chain, InProcessClient, options, schedule
from mycelium_localnet.errors import InvalidRequestError, OptionConflictError
from mycelium_localnet.rpc import friendbot as rpc_friendbot
from mycelium_localnet.rpc.friendbot import friendbot
from mycelium_localnet.schedule import Schedule

if TYPE_CHECKING:
    from pathlib import Path

SOMEBODY = Keypair.from_raw_ed25519_seed(b"somebody".ljust(32, b"."))
OTHER = Keypair.from_raw_ed25519_seed(b"other".ljust(32, b"."))


MODES: tuple[schedule.ClosingMode, ...] = ("instant", "manual")


class Clock:
    """The machine's clock, in milliseconds, as the chains of a test see it."""

    def __init__(self) -> None:
        self.moment = 1_800_000_000_000

    def __call__(self) -> int:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += round(seconds * 1000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(schedule, "now", made)
    return made


def latest(chain: Chain) -> int:
    with chain.read() as view:
        return view.latest().sequence


@pytest.mark.parametrize(
    ("mode", "seconds", "expected"),
    [
        (None, None, Schedule("instant")),
        ("instant", None, Schedule("instant")),
        ("manual", None, Schedule("manual")),
        ("interval", None, Schedule("interval", 5_000)),
        (None, 2.5, Schedule("interval", 2_500)),
        ("interval", 0.01, Schedule("interval", 10)),
        (None, 86_400, Schedule("interval", 86_400_000)),
    ],
)
def test_what_can_be_asked_for(
    mode: schedule.ClosingMode | None, seconds: float | None, expected: Schedule
) -> None:
    made = Schedule.make(mode, seconds)
    assert made == expected
    assert Schedule.from_settings(made.to_settings()) == made
    started = made.started(1_000_000)
    assert started.due == (None if made.interval is None else 1_000_000 + made.interval)
    assert Schedule.from_settings(started.to_settings()) == started


@pytest.mark.parametrize(
    ("mode", "seconds"),
    [
        ("instant", 5),
        ("manual", 5),
        ("interval", 0),
        (None, 0.0099),
        (None, 86_401),
        (None, -1),
        (None, float("nan")),
    ],
)
def test_what_cannot_be(mode: schedule.ClosingMode | None, seconds: float) -> None:
    with pytest.raises(InvalidRequestError):
        Schedule.make(mode, seconds)


def test_waiting() -> None:
    planned = Schedule("interval", 100, due=1_000)
    assert [planned.wait(moment) for moment in (900, 901, 999, 1_000, 1_001, 99_999)] == [
        100,
        99,
        1,
        0,
        0,
        0,
    ]
    # The machine's clock was set back: waiting for the old time would take too long.
    assert planned.wait(899) == 0
    assert Schedule("instant").wait(5) is None
    assert Schedule("manual").wait(5) is None


def test_what_is_due_next() -> None:
    planned = Schedule("interval", 100, due=1_000)
    # A late closing does not move those after it; a very late one, or a clock that went back, begins anew.
    expected = {1_000: 1_100, 1_001: 1_100, 1_099: 1_100, 1_100: 1_200, 5_000: 5_100, 500: 600}
    assert {moment: planned.after_closing(moment).due for moment in expected} == expected
    for mode in MODES:
        other = Schedule.make(mode, None)
        assert other.after_closing(1_000) == other.started(1_000) == other


def test_a_ledger_closes_when_it_is_due_and_not_before(clock: Clock) -> None:
    with Chain.open(":memory:", interval=5) as chain:
        assert latest(chain) == 1
        assert chain.close_due_ledger() == 5
        clock.move(4.999)
        assert (chain.close_due_ledger(), latest(chain)) == (0.001, 1)
        clock.move(0.001)
        assert (chain.close_due_ledger(), latest(chain)) == (5, 2)
        assert (chain.close_due_ledger(), latest(chain)) == (5, 2)
        clock.move(6)
        # Looking is enough, and the ones after it keep their pace.
        assert latest(chain) == 3
        assert chain.close_due_ledger() == 4


def test_what_was_missed_is_not_made_up_for(clock: Clock) -> None:
    with Chain.open(":memory:", interval=5) as chain:
        clock.move(3_601)
        assert (latest(chain), chain.close_due_ledger()) == (2, 5)


def test_time_closes_nothing_in_other_modes(clock: Clock) -> None:
    for mode in MODES:
        with Chain.open(":memory:", closing=mode) as chain:
            clock.move(1_000)
            assert (chain.close_due_ledger(), latest(chain)) == (None, 1)


def test_a_transaction_waits_for_its_ledger(clock: Clock) -> None:
    with Chain.open(":memory:", interval=5) as chain:
        server = SorobanServer(IN_PROCESS_URL, InProcessClient(chain))
        funding = [chain.fund(keypair.public_key) for keypair in (SOMEBODY, OTHER)]
        for transaction in funding:
            assert server.get_transaction(transaction).status is GetTransactionStatus.NOT_FOUND
        clock.move(5)
        found = [server.get_transaction(transaction) for transaction in funding]
        assert [(one.status, one.ledger) for one in found] == [(GetTransactionStatus.SUCCESS, 2)] * 2
        envelope = (
            TransactionBuilder(server.load_account(SOMEBODY.public_key), chain.passphrase, 100)
            .append_create_account_op(Keypair.random().public_key, "5")
            .set_timeout(0)
            .build()
        )
        envelope.sign(SOMEBODY)
        sent = server.send_transaction(envelope)
        assert (sent.status, sent.latest_ledger) == (SendTransactionStatus.PENDING, 2)
        assert server.send_transaction(envelope).status is SendTransactionStatus.DUPLICATE
        assert server.get_transaction(sent.hash).status is GetTransactionStatus.NOT_FOUND
        assert server.get_health().status == "healthy"
        clock.move(100_000)
        assert server.get_health().status == "healthy"
        assert server.get_transaction(sent.hash).status is GetTransactionStatus.SUCCESS


def test_handing_in_comes_after_what_is_due(clock: Clock) -> None:
    """The ledger that is due closes first, as it would have if anybody had looked in time."""
    with Chain.open(":memory:", interval=5) as chain:
        first = chain.fund(SOMEBODY.public_key)
        clock.move(5)
        second = chain.fund(OTHER.public_key)
        with chain.read() as view:
            found = view.transaction(bytes.fromhex(first))
            assert found is not None
            assert found.ledger == 2
            assert view.is_pending(bytes.fromhex(second))
        # Whether it is accepted does not matter here.
        builder = TransactionBuilder(Account(SOMEBODY.public_key, 1), chain.passphrase, 100)
        envelope = builder.append_bump_sequence_op(5).set_timeout(0).build()
        clock.move(5)
        assert chain.submit(envelope.to_xdr_object().to_xdr_bytes()).latest_ledger == 3


def test_many_at_once_close_one_ledger(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "chain.db"
    chains = [Chain.open(path, interval=5) for _ in range(4)]
    ready = threading.Barrier(len(chains))

    def close(chain: Chain) -> None:
        ready.wait()
        chain.close_due_ledger()
        with chain.read():
            pass

    for closed in range(2, 12):
        clock.move(5)
        threads = [threading.Thread(target=close, args=(chain,)) for chain in chains]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert latest(chains[0]) == closed
    for chain in chains:
        chain.close()


def test_the_schedule_is_in_the_file(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, interval=5):
        clock.move(2)
    with Chain.open(path) as chain, Chain.open(path, closing="interval"), Chain.open(path, interval=5.0):
        assert chain.close_due_ledger() == 3
    for wanted in ({"interval": 6}, {"closing": "instant"}, {"closing": "manual"}):
        with pytest.raises(OptionConflictError):
            Chain.open(path, **wanted)


def test_ledgers_closed_by_hand_do_not_move_the_next_one(clock: Clock) -> None:
    with Chain.open(":memory:", interval=5) as chain:
        clock.move(2)
        transaction = chain.fund(SOMEBODY.public_key)
        assert (chain.close_ledger(), chain.skip_ledgers(2)) == (2, 4)
        with chain.read() as view:
            assert view.transaction(bytes.fromhex(transaction)) is not None
        assert chain.close_due_ledger() == 3


def test_the_friendbot_waits_for_the_ledger(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.move(seconds)

    monkeypatch.setattr(rpc_friendbot, "time", SimpleNamespace(sleep=sleep))
    with Chain.open(":memory:", interval=0.6) as chain:
        status, body = friendbot(chain, SOMEBODY.public_key)
        assert (status, body["ledger"]) == (200, 2)
        # No longer at once than it takes to notice that somebody else closed the ledger.
        assert waits == [0.25, 0.25, pytest.approx(0.1)]
        assert friendbot(chain, SOMEBODY.public_key)[0] == 400


def test_an_account_that_is_asked_for_twice_before_its_ledger_closes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_friendbot, "time", SimpleNamespace(sleep=clock.move))
    with Chain.open(":memory:", interval=5) as chain:
        chain.fund(SOMEBODY.public_key)
        status, body = friendbot(chain, SOMEBODY.public_key)
        assert (status, body["status"]) == (400, 400)
        assert "createAccountAlreadyExist" in str(body["detail"])
        with chain.read() as view:
            rows = view.transactions((0, 0), 10)
        assert [(row.ledger, row.successful) for row in rows] == [(2, True)]


def test_the_chains_own_clock_may_stand_still(clock: Clock) -> None:
    with Chain.open(":memory:", interval=5, clock="frozen") as chain:
        clock.move(5)
        with chain.read() as view:
            assert (view.latest().sequence, view.latest().close_time) == (2, 1_767_225_600)


def test_old_files_have_no_interval(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path) as chain, chain._storage.read() as connection:
        assert {"interval", "due"}.isdisjoint(options.load(connection))

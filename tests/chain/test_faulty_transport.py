"""Every fault, seen by the chain client: a typed error or a successful retry, and never a transaction twice.

Each test runs twice: with the faults of the embedded chain, and with those of the transport that can stand
in front of any network.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import stellar_sdk.exceptions
from stellar_sdk import Keypair, SorobanServer
from stellar_sdk.soroban_rpc import GetTransactionStatus, SendTransactionStatus

from mycelium_localnet import IN_PROCESS_URL
from mycelium_sdk.chain.base import TransactionStatus
from mycelium_sdk.errors import (
    ChainUnavailable,
    TransactionFailed,
    Unsettled,
)
from mycelium_sdk.verdicts import Verdict
from tests.chain.faulty import OWNER, SIGNER, Scene, open_scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mycelium_sdk.testing.faults import FaultKind


DOOR: tuple[FaultKind, ...] = ("http_503", "http_504", "html", "drop")


@pytest.fixture(params=["chain", "transport"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with open_scene(request.param) as opened:
        yield opened


@pytest.mark.parametrize("kind", DOOR)
def test_reads_survive_a_few_and_name_what_stays(scene: Scene, kind: FaultKind) -> None:
    reads: list[Callable[[], int]] = [
        lambda: scene.anchors.get_version(OWNER),
        lambda: scene.chain.identity().latest_ledger,
    ]
    for read in reads:
        true = read()
        scene.trouble.fault(kind, count=4)
        assert read() == true
        assert scene.trouble.faults() == ()
        scene.trouble.fault(kind, count=100)
        with pytest.raises(ChainUnavailable) as caught:
            read()
        assert caught.value.verdict is Verdict.UNAVAILABLE
        assert caught.value.hint
        assert scene.trouble.clear_faults() == 1
        assert read() == true


def test_slow_answers_are_waited_for(scene: Scene) -> None:
    scene.trouble.fault("slow", seconds=9, count=2)
    assert scene.anchors.get_version(OWNER) == 1
    assert scene.anchor(2) == 2
    assert scene.slept == [9, 9]


@pytest.mark.parametrize("kind", [*DOOR, "try_again_later"])
@pytest.mark.parametrize("carried_out", [True, False, None])
@pytest.mark.parametrize("count", [1, 3])
def test_a_lost_answer_never_sends_twice(
    scene: Scene, kind: FaultKind, carried_out: bool | None, count: int
) -> None:
    options: dict[str, Any] = {}
    if kind not in ("http_503", "try_again_later"):
        options["carried_out"] = carried_out
    scene.trouble.fault(kind, count=count, methods=["sendTransaction"], **options)
    before = scene.applied()
    assert scene.anchor(2) == 2
    assert len(set(scene.hashes)) == 1
    assert scene.applied() == [*before, scene.hashes[0]]
    assert scene.version() == 2


@pytest.mark.parametrize("kind", DOOR)
def test_trouble_of_every_method_on_the_way_of_a_write(scene: Scene, kind: FaultKind) -> None:
    scene.trouble.fault(kind, count=3, seed=4)
    assert scene.anchor(2) == 2
    assert len(scene.applied()) == scene.version() == 2


def test_a_busy_network_takes_nothing_and_it_is_said(scene: Scene) -> None:
    scene.trouble.fault("try_again_later", count=1_000)
    with pytest.raises(ChainUnavailable, match="busy") as caught:
        scene.anchor(2)
    assert "nothing was sent" in str(caught.value.hint)
    assert len(scene.applied()) == 1
    scene.trouble.clear_faults()
    assert scene.anchor(2) == 2


def test_not_found_for_a_while_is_waited_for(scene: Scene) -> None:
    scene.trouble.fault("not_found", count=4)
    assert scene.anchor(2) == 2
    assert scene.trouble.faults() == ()
    assert scene.applied()[1:] == scene.hashes


def test_not_found_forever_is_unsettled_and_was_applied_once(scene: Scene) -> None:
    scene.trouble.fault("not_found", count=100_000)
    with pytest.raises(Unsettled) as caught:
        scene.anchor(2)
    assert [caught.value.hash] == scene.hashes == scene.applied()[1:]
    assert caught.value.verdict is Verdict.UNSETTLED
    scene.trouble.clear_faults()
    assert scene.chain.transaction(scene.hashes[0]).status is TransactionStatus.SUCCESS
    assert scene.anchor(3) == 3


def test_never_closed_is_unsettled_and_was_not_applied(scene: Scene) -> None:
    scene.trouble.fault("never_closes", count=100_000)
    with pytest.raises(Unsettled) as caught:
        scene.anchor(2)
    assert [caught.value.hash] == scene.hashes
    assert len(scene.applied()) == 1
    scene.trouble.clear_faults()
    assert scene.chain.transaction(scene.hashes[0]).status is TransactionStatus.NOT_FOUND
    assert scene.anchor(2) == 2
    assert scene.applied()[1:] == scene.hashes[1:]


def test_a_client_of_the_library_sees_the_same(scene: Scene) -> None:
    """`stellar_sdk` without our transport: statuses, pages and hang-ups as they come."""
    server = SorobanServer(IN_PROCESS_URL, scene.client)
    for kind in ("http_503", "http_504", "html"):
        scene.trouble.fault(kind)
        with pytest.raises((ValueError, stellar_sdk.exceptions.BaseRequestError)):
            server.get_latest_ledger()
    scene.trouble.fault("drop")
    with pytest.raises(stellar_sdk.exceptions.ConnectionError):
        server.get_latest_ledger()
    scene.trouble.fault("not_found")
    assert server.get_transaction(scene.applied()[0]).status is GetTransactionStatus.NOT_FOUND
    assert server.get_transaction(scene.applied()[0]).status is GetTransactionStatus.SUCCESS
    assert server.get_latest_ledger().sequence > 1


def test_statuses_of_sending_by_the_library(scene: Scene) -> None:
    server = SorobanServer(IN_PROCESS_URL, scene.client)
    signed = _signed(scene, server)
    before = scene.applied()
    scene.trouble.fault("try_again_later", count=2)
    scene.trouble.fault("never_closes", count=3)
    found = [server.send_transaction(signed) for _ in range(5)]
    again, pending = SendTransactionStatus.TRY_AGAIN_LATER, SendTransactionStatus.PENDING
    duplicate = SendTransactionStatus.DUPLICATE
    assert [answer.status for answer in found] == [again, again, pending, duplicate, duplicate]
    assert {answer.hash for answer in found} == {signed.hash_hex()}
    assert scene.applied() == before
    assert server.send_transaction(signed).status is pending
    assert scene.applied() == [*before, signed.hash_hex()]


def _signed(scene: Scene, server: SorobanServer) -> Any:
    from stellar_sdk import TransactionBuilder

    source = server.load_account(OWNER)
    builder = TransactionBuilder(source, scene.localnet.passphrase, 100).set_timeout(60)
    envelope = builder.append_create_account_op(Keypair.random().public_key, "5").build()
    envelope.sign(SIGNER)
    return envelope


@pytest.mark.parametrize("seed", range(12))
def test_whatever_goes_wrong_each_success_is_one_transaction(scene: Scene, seed: int) -> None:
    """Faults at random, many at a time: what is reported as done is done once, what is reported as not sent
    is not there, and what is unsettled is the only doubt."""
    chance = random.Random(seed)  # noqa: S311
    done: set[str] = set()
    doubtful: set[str] = set()
    clean: set[str] = set()
    kinds: list[FaultKind] = [
        "try_again_later",
        "not_found",
        "http_503",
        "http_504",
        "html",
        "drop",
        "never_closes",
        "stale",
    ]
    for number in range(2, 9):
        for _ in range(chance.randrange(4)):
            scene.trouble.fault(
                chance.choice(kinds), count=chance.choice([1, 2, 3, 8, 40]), seed=chance.randrange(1 << 30)
            )
        scene.hashes.clear()
        try:
            scene.anchor(number)
        except Unsettled:
            doubtful.update(scene.hashes)
        except (ChainUnavailable, TransactionFailed):
            clean.update(scene.hashes)
        else:
            done.add(scene.hashes[-1])
            clean.update(scene.hashes[:-1])
        if chance.randrange(2):
            scene.trouble.clear_faults()
    applied = scene.applied()
    assert len(applied) == len(set(applied)) == scene.version()
    assert done <= set(applied)
    assert set(applied[1:]) <= done | doubtful
    assert not clean & set(applied)

"""The client against the real API: what it gives, what it compares, and how it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.chain.indexer import IndexerClient
from mycelium_sdk.errors import ChainUnavailable, ConfigError, InputError, Rollback, Tampered, WrongDomain
from mycelium_sdk.networks import STANDALONE_PASSPHRASE
from mycelium_sdk.strkey import encode_account

from .conftest import VERSIONS, Ground, at_once

if TYPE_CHECKING:
    from mycelium_sdk.chain.history import PastAnchor

STRANGER = encode_account(b"somebody who has never anchored.")
OTHER_CONTRACT = "CAC27VKJEPDJJNI36NP7D7VH6WCHT6N5EITKSKPZIQNWA2VPEPBIXJSB"


def versions(anchors: tuple[PastAnchor, ...]) -> list[int]:
    return [one.anchor.version for one in anchors]


def test_the_latest_anchor_is_the_chain_s(anchored: Ground, honest: str) -> None:
    client, chain = anchored.client(honest), anchored.latest()
    found = client.latest(anchored.owner)
    assert found is not None
    assert found.past.anchor == chain.anchor
    assert found.past.ledger == chain.ledger
    assert found.past.transaction is not None
    assert chain.ledger is not None
    assert found.as_of_ledger >= chain.ledger
    assert found.lag >= 0
    compared = client.compare(chain.anchor, ledger=chain.ledger)
    assert compared is not None
    assert compared.past == found.past
    assert client.latest(STRANGER) is None


def test_a_history_is_complete_and_proved(
    anchored: Ground, honest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mycelium_sdk.chain.indexer._PAGE", 2)  # so that there are cursors
    history = anchored.client(honest).history(anchored.latest())
    assert versions(history.anchors) == list(range(VERSIONS, 0, -1))
    assert (history.verified, history.complete, history.notes) == (True, True, ())
    assert all(one.ledger is not None and one.transaction is not None for one in history.anchors)


def test_an_indexer_that_is_behind_lies_not(ground: Ground) -> None:
    memory = ground.memory()
    ground.anchor(memory, "one")
    ground.follow()
    client = ground.client(ground.serve())
    ground.anchor(memory, "two", "three")
    chain = ground.latest()
    found = client.compare(chain.anchor, ledger=chain.ledger)
    assert found is not None
    assert found.past.anchor.version == 1
    history = client.history(chain)
    assert (versions(history.anchors), history.complete) == ([3], False)


def test_one_that_began_later_admits_its_gap(ground: Ground) -> None:
    memory = ground.memory()
    ground.anchor(memory, "one", "two", "three", "four")
    ground.fault("retention", methods=["getEvents"], ledgers=2)
    ground.follow()
    client, chain = ground.client(ground.serve()), ground.latest()
    history = client.history(chain)
    assert history.anchors[0] == client.history(chain).anchors[0]
    assert history.verified
    assert not history.complete
    assert versions(history.anchors)[0] == 4
    assert versions(history.anchors)[-1] > 1


def test_one_that_began_after_an_anchor_need_not_know_it(ground: Ground) -> None:
    """The first ledger that it looked at is later; an anchor after that one would have to be known."""
    ground.anchor(ground.memory(), "one")
    chain = ground.latest()
    assert chain.ledger is not None
    ground.fault("retention", methods=["getEvents"], ledgers=1)
    ground.skip(3)
    ground.follow()
    client = ground.client(ground.serve())
    assert client.latest(ground.owner) is None
    assert client.compare(chain.anchor, ledger=chain.ledger) is None
    with pytest.raises(Tampered, match="leaves out version 1"):
        client.compare(chain.anchor, ledger=chain.ledger + 3)


def test_an_anchor_that_was_made_meanwhile_is_no_contradiction(anchored: Ground, honest: str) -> None:
    client, latest = anchored.client(honest), anchored.latest()
    history = client.history(latest)
    older = history.anchors[1]
    found = client.compare(older.anchor, ledger=older.ledger, again=anchored.contract().get_anchor)
    assert found is not None
    assert found.past.anchor.version == VERSIONS
    with pytest.raises(Rollback, match=r"the indexer at 127\.0\.0\.1:\d+ has version 5 .* serves version 4"):
        client.compare(older.anchor, ledger=older.ledger)


def test_nothing_ingested_is_not_nothing_anchored(ground: Ground) -> None:
    waits: list[float] = []
    client = ground.client(ground.serve(), retries=at_once(3, waits))
    with pytest.raises(ChainUnavailable, match="has not taken in anything") as caught:
        client.latest(ground.owner)
    assert caught.value.retry_after == 5
    assert waits == [5, 5]


def test_a_contract_that_is_not_followed(anchored: Ground, honest: str) -> None:
    for network, contract in (
        (STANDALONE_PASSPHRASE, OTHER_CONTRACT),
        ("Another Network ; November 2026", anchored.contract().contract_id),
    ):
        with (
            IndexerClient(honest, network, contract) as client,
            pytest.raises(WrongDomain, match="does not follow"),
        ):
            client.latest(anchored.owner)


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", "https://x/?a=b", "https://x/#a"])
def test_an_address_that_cannot_be_one(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        IndexerClient(url, STANDALONE_PASSPHRASE, OTHER_CONTRACT)
    assert "[indexer] url" in (caught.value.hint or "")


def test_what_is_no_address_of_an_owner_is_not_sent_or_repeated(anchored: Ground, honest: str) -> None:
    seed = "S" + "A" * 55
    with pytest.raises(InputError) as caught:
        anchored.client(honest).latest(seed)
    assert seed not in str(caught.value)


def test_several_threads_share_a_client(anchored: Ground, honest: str) -> None:
    client, latest = anchored.client(honest), anchored.latest()
    begun = threading.Barrier(8)
    found: list[bool] = []

    def ask() -> None:
        begun.wait(60)
        for _ in range(5):
            found.append(client.latest(anchored.owner) is not None)
            found.append(client.history(latest).complete)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 80
    assert all(found)


def test_a_forked_child_asks_on_a_connection_of_its_own(anchored: Ground, honest: str) -> None:
    """As a process that forks: parent and child read at once, and each gets its own answers."""
    script = f"""
import os, sys
from mycelium_sdk.chain.indexer import IndexerClient
client = IndexerClient({honest!r}, {STANDALONE_PASSPHRASE!r}, {anchored.contract().contract_id!r})
owner, stranger = {anchored.owner!r}, {STRANGER!r}
assert client.latest(owner) is not None
child = os.fork()
who = stranger if child == 0 else owner
right = all((client.latest(who) is None) == (child == 0) for _ in range(50))
client.close()
if child == 0:
    os._exit(0 if right else 1)
_, status = os.waitpid(child, 0)
sys.exit(0 if right and status == 0 else 1)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_left_open(anchored: Ground, honest: str) -> None:
    """A closed client closes its connections; closing the context closes its client; it can be used anew."""
    anchored.url = honest
    try:
        context = anchored.context("closing")
    finally:
        anchored.url = None
    client = context.indexer_client()
    assert client is not None
    assert client is context.indexer_client()
    assert client.latest(anchored.owner) is not None
    session = client._api._session
    assert session is not None
    pools = [adapter.poolmanager for adapter in session.adapters.values()]  # type: ignore[attr-defined]
    assert sum(len(pool.pools) for pool in pools) == 1
    context.close()
    assert sum(len(pool.pools) for pool in pools) == 0
    assert client._api._session is None
    assert client.latest(anchored.owner) is not None
    client.close()
    client.close()


def test_without_a_configured_indexer_there_is_no_client(anchored: Ground) -> None:
    assert anchored.context("without").indexer_client() is None


def test_the_client_is_exported_without_loading_it() -> None:
    script = (
        "import sys, mycelium_sdk.memory as m; assert 'IndexerClient' in m.__all__;"
        "assert 'mycelium_sdk.chain.indexer' not in sys.modules; m.IndexerClient;"
        "assert 'stellar_sdk' not in sys.modules and 'requests' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)

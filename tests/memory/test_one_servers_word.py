"""What one server says of an anchor that was just made, or invents, is not believed by itself."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import scval, xdr
from stellar_sdk.client.base_sync_client import BaseSyncClient
from stellar_sdk.client.response import Response

from mycelium_localnet import Chain
from mycelium_sdk.chain.anchor_client import MemoryAnchorClient
from mycelium_sdk.chain.anchors import Anchor, previous_of
from mycelium_sdk.chain.base import ChainIdentity, EntryState, EntryStatus
from mycelium_sdk.errors import (
    ChainError,
    ChainUnavailable,
    Fork,
    Rollback,
    Unsettled,
)
from mycelium_sdk.memory.trust import TrustedChain
from mycelium_sdk.state import StateStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


class Liar(BaseSyncClient):
    """Passes requests on, and what `change` makes of each true answer back."""

    def __init__(self, inner: BaseSyncClient, change: Callable[[str, dict[str, Any]], object]) -> None:
        self._inner = inner
        self._change = change

    def post(
        self, url: str, data: dict[str, str] | None = None, json_data: dict[str, Any] | None = None
    ) -> Response:
        answer = self._inner.post(url, data, json_data)
        body = json.loads(answer.text)
        if json_data is not None and "result" in body:
            self._change(json_data["method"], body["result"])
        return Response(answer.status_code, json.dumps(body), answer.headers, answer.url)

    def get(
        self, url: str, params: dict[str, str] | None = None, max_content_size: int | None = None
    ) -> Response:
        return self._inner.get(url, params, max_content_size)

    def stream(self, url: str, params: dict[str, str] | None = None) -> Any:
        return self._inner.stream(url, params)

    def close(self) -> None:
        self._inner.close()  # type: ignore[no-untyped-call]


def lied_to(memory: AgentMemory, change: Callable[[str, dict[str, Any]], object]) -> AgentMemory:
    transport = memory.context.chain._transport
    transport._inner = Liar(transport._inner, change)
    return memory


def test_a_version_that_cannot_have_been_made_is_not_believed(world: World) -> None:
    def change(method: str, result: dict[str, Any]) -> None:
        if method == "getTransaction" and result.get("status") == "SUCCESS":
            meta = xdr.TransactionMeta.from_xdr(result["resultMetaXdr"])
            assert meta.v4 is not None
            assert meta.v4.soroban_meta is not None
            meta.v4.soroban_meta.return_value = scval.to_uint64(1000)
            result["resultMetaXdr"] = meta.to_xdr()

    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.remember("two")
    with pytest.raises(Unsettled, match="version 1000"):
        lied_to(memory, change).anchor()
    honest = world.machine("a")
    assert honest.anchor() == 3
    assert honest.verify()


def test_the_ledger_of_a_receipt_moves_no_mark(world: World) -> None:
    def change(method: str, result: dict[str, Any]) -> None:
        if method == "getTransaction" and result.get("status") == "SUCCESS":
            result["ledger"] = 4_000_000_000

    memory = world.machine("a")
    memory.remember("one")
    assert lied_to(memory, change).anchor() == 1
    assert world.machine("a").verify()


def test_an_anchor_of_which_the_server_says_two_things_is_a_fork(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    memory.remember("two")
    read = MemoryAnchorClient.get_anchor

    def other(self: MemoryAnchorClient, owner: str) -> Anchor | None:
        true = read(self, owner)
        if true is None or true.version == 1:
            return true
        return dataclasses.replace(true, root=b"\7" * 32)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryAnchorClient, "get_anchor", other)
        with pytest.raises(Unsettled, match="names another root"):
            memory.anchor()
    with pytest.raises(Fork):
        world.machine("a").get_anchor()


@pytest.mark.parametrize("error", [ChainUnavailable("gone")])
def test_an_anchor_that_cannot_be_looked_at_is_made_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, error: ChainError
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    read = MemoryAnchorClient.get_anchor
    answers = iter([None])

    def once(self: MemoryAnchorClient, owner: str) -> Anchor | None:
        for _ in answers:
            return read(self, owner)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(MemoryAnchorClient, "get_anchor", once)
        assert memory.anchor() == 1
    assert not memory.is_dirty
    assert memory.verify()


def test_an_invented_anchor_has_no_blob_purged_that_is_needed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    for number in range(3):
        memory.remember(f"memory {number}")
        memory.anchor()
    last = memory.last_anchor
    assert last is not None
    read = MemoryAnchorClient.get_anchor

    def invented(self: MemoryAnchorClient, owner: str) -> Anchor | None:
        true = read(self, owner)
        assert true is not None
        return Anchor(owner, true.version + 1, b"\7" * 32, b"", b"", previous_of(true), true.timestamp)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryAnchorClient, "get_anchor", invented)
        assert {one.version for one in memory.purge()} == {1, 2}
    assert (memory.context.home.blobs / f"{last.root.hex()}.json").exists()


# -- witnesses


PASSPHRASE, CONTRACT, OWNER = "a network", "C" + "A" * 55, "G" + "A" * 55


@dataclasses.dataclass
class Server:
    """One of a public network whose clock the test turns: `clock[0]` is its latest ledger."""

    version: int
    root: bytes
    clock: list[int]
    ahead: int = 0
    written: int | None = None
    contract_id: str = CONTRACT

    def identity(self) -> ChainIdentity:
        ledger = self.clock[0] + self.ahead
        return ChainIdentity(PASSPHRASE, None, 28, ledger, 5 * ledger)

    def get_anchor(self, owner: str) -> Anchor | None:
        return Anchor(owner, self.version, self.root, b"", b"", bytes(32), 1)

    def entry_state(self, owner: str) -> EntryState:
        del owner
        ledger = self.clock[0] + self.ahead
        return EntryState(EntryStatus.LIVE, ledger, 10**6, self.written or ledger)

    def history_sources(self) -> Sequence[Any]:
        return ()


def test_what_was_written_by_an_earlier_look_is_not_written_again_later(tmp_path: Path) -> None:
    """A server that invents an anchor could else say each time that its witness does not know it yet."""
    clock = [1000]
    liar = Server(9, b"\7" * 32, clock, ahead=1)
    honest = Server(3, b"\3" * 32, clock, written=500)
    with StateStore(tmp_path / "state.db") as state:
        trusted = TrustedChain(liar, state, OWNER, PASSPHRASE, lambda: [honest])
        assert trusted.look().version == 9, "it may be so"
        clock[0] += 20_000
        with pytest.raises(Fork, match="both cannot be true"):
            trusted.look()


def test_servers_that_contradict_each_other_are_no_reason_to_forget_what_was_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    chain = Chain.open(world.chain_file)
    snapshot = chain.snapshot()
    memory.remember("two")
    memory.anchor()
    client = memory._commitment._desk._opened()

    class Lying:
        contract_id = client.contract_id
        identity = staticmethod(client.identity)
        entry_state = staticmethod(client.entry_state)

        @staticmethod
        def get_anchor(owner: str) -> Anchor | None:
            true = client.get_anchor(owner)
            return None if true is None else dataclasses.replace(true, root=b"\1" * 32)

    with monkeypatch.context() as patch:
        patch.setattr(memory._commitment._trusted, "_witnesses", lambda: [Lying()])
        with pytest.raises(Fork, match="both cannot be true"):
            memory.trust_chain_anew()
    assert memory.verify()
    chain.revert(snapshot)
    chain.skip_ledgers(50)
    chain.close()
    with pytest.raises(Rollback):
        memory.get_anchor()

"""An RPC server made of anchors that were never on a chain: many of them within a second, and a server that
forgets, repeats itself or starts anew.

    server = EventServer()
    server.add(anchor)                                  # a ledger for each, or `ledger=...`
    chain = RpcChain(EventServer.URL, EventServer.PASSPHRASE, client=server)

It answers what whoever follows events asks: getNetwork, getHealth, getLatestLedger, getLedgers, getEvents and
getLedgerEntries. What comes from a real chain is better tested on the embedded one.
"""

from __future__ import annotations

import bisect
import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from stellar_sdk import StrKey, scval, xdr
from stellar_sdk.client.base_sync_client import BaseSyncClient
from stellar_sdk.client.response import Response

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchors import EVENT_NAME, Anchor, anchor_to_value, previous_of, previous_of_first
from mycelium_sdk.chain.artifact import memory_anchor_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["EventServer", "forged_history"]

_OUT_OF_RANGE = -32600
_SCAN_LEDGERS = 10_000
_TOPIC = scval.to_symbol(EVENT_NAME).to_xdr()


def forged_history(
    owner: str, versions: int, *, since: int = 1_800_000_000, uri: bytes = b"https://example.org/"
) -> list[Anchor]:
    """An owner's anchors, oldest first, with a true hash chain. `since`: the time of the first (Unix
    seconds)."""
    anchors: list[Anchor] = []
    previous = previous_of_first(owner)
    for version in range(1, versions + 1):
        root = hashlib.sha256(f"{owner} {version}".encode()).digest()
        anchors.append(
            Anchor(owner, version, root, uri + str(version).encode(), b"", previous, since + 5 * version)
        )
        previous = previous_of(anchors[-1])
    return anchors


class EventServer(BaseSyncClient):
    """Wherever `stellar_sdk` takes a client. For use on one thread at a time.

    `seed` makes the ledgers' hashes; a chain that starts anew has another one. `chain_id` is served if it is
    not None. `oldest`, `latest`: the ledgers that are served. `intercept`: called with method and parameters
    before anything is answered; what it returns, if anything, is the response.
    """

    URL: ClassVar[str] = "https://events.invalid/rpc"
    PASSPHRASE: ClassVar[str] = "Scripted Network ; November 2026"  # noqa: S105 - public
    CONTRACT: ClassVar[str] = StrKey.encode_contract(hashlib.sha256(b"a contract of anchors").digest())

    def __init__(
        self, *, seed: str = "first", chain_id: str | None = None, since: int = 1_800_000_000
    ) -> None:
        self.seed = seed
        self.chain_id = chain_id
        self.oldest = 1
        self.latest = 1
        self.intercept: Callable[[str, dict[str, Any]], Response | None] = lambda _method, _params: None
        self.calls: list[str] = []
        self._since = since
        self._ids: list[str] = []
        self._events: list[str] = []
        self._newest: dict[str, tuple[Anchor, int]] = {}

    def add(self, *anchors: Anchor, ledger: int | None = None) -> None:
        """Events of anchors, all in one ledger, by default the next one."""
        for anchor in anchors:
            topics = [_TOPIC, scval.to_address(anchor.owner).to_xdr()]
            at = self.add_event(topics, anchor_to_value(anchor).to_xdr(), ledger=ledger)
            ledger = at
            self._newest[anchor.owner] = anchor, at

    def add_event(self, topics: list[str], value: str, *, ledger: int | None = None) -> int:
        """Any event (base64 of XDR, or whatever it shall be). Returns its ledger."""
        ledger = self.latest + 1 if ledger is None else ledger
        # The transactions of a ledger come one after the other.
        before = bisect.bisect_left(self._ids, f"{ledger << 32:019d}")
        number = len(self._ids) - before + 1
        identity = f"{ledger << 32 | number << 12:019d}-{0:010d}"
        event = {
            "type": "contract", "ledger": ledger, "ledgerClosedAt": self._iso(ledger),
            "contractId": self.CONTRACT, "id": identity, "operationIndex": 0, "transactionIndex": number,
            "txHash": hashlib.sha256(f"{self.seed} {identity}".encode()).hexdigest(),
            "topic": topics, "value": value,
        }  # fmt: skip
        self._ids.append(identity)
        self._events.append(json.dumps(event))
        self.latest = max(self.latest, ledger)
        return ledger

    @property
    def last_id(self) -> str:
        """The id of the last event."""
        return self._ids[-1]

    def close_time(self, ledger: int) -> int:
        """When a ledger closed (Unix seconds)."""
        return self._since + 5 * ledger

    def post(
        self,
        url: str,  # noqa: ARG002
        data: dict[str, str] | None = None,  # noqa: ARG002
        json_data: dict[str, Any] | None = None,
    ) -> Response:
        """Answer a request."""
        method, params = (json_data or {})["method"], (json_data or {}).get("params") or {}
        self.calls.append(method)
        taken = self.intercept(method, params)
        return self.answer(method, params) if taken is None else taken

    def answer(self, method: str, params: dict[str, Any]) -> Response:
        """The honest answer."""
        return getattr(self, f"_{method}")(params)  # type: ignore[no-any-return]

    def get(self, *_args: object, **_kwargs: object) -> Response:
        """There is no friendbot."""
        return Response(404, "", {}, self.URL)

    def stream(self, *_args: object, **_kwargs: object) -> Generator[dict[str, Any], None, None]:
        """RPC servers have none."""
        raise NotImplementedError("there are no streams")

    def close(self) -> None:
        """Nothing to release."""

    def _getNetwork(self, _params: dict[str, Any]) -> Response:  # noqa: N802
        named = {} if self.chain_id is None else {"chainId": self.chain_id}
        return _result(
            {"passphrase": self.PASSPHRASE, "protocolVersion": 28, "friendbotUrl": None} | named
        )  # fmt: skip

    def _getHealth(self, _params: dict[str, Any]) -> Response:  # noqa: N802
        return _result(
            {
                "status": "healthy", "latestLedger": self.latest, "oldestLedger": self.oldest,
                "ledgerRetentionWindow": 120_960,
            }
        )  # fmt: skip

    def _getLatestLedger(self, _params: dict[str, Any]) -> Response:  # noqa: N802
        return _result(
            {
                "id": self._hash(self.latest), "protocolVersion": 28, "sequence": self.latest,
                "closeTime": str(self.close_time(self.latest)), "headerXdr": "", "metadataXdr": "",
            }
        )  # fmt: skip

    def _getLedgers(self, params: dict[str, Any]) -> Response:  # noqa: N802
        start = params["startLedger"]
        if not self.oldest <= start <= self.latest:
            return _out_of_range()
        head = {
            "hash": self._hash(start), "sequence": start, "ledgerCloseTime": str(self.close_time(start)),
            "headerXdr": "", "metadataXdr": "",
        }  # fmt: skip
        return _result({"ledgers": [head], "cursor": str(start)} | self._range(as_text=False))

    def _getEvents(self, params: dict[str, Any]) -> Response:  # noqa: N802
        paging = params.get("pagination") or {}
        limit, cursor = paging.get("limit") or 100, str(paging.get("cursor") or "")
        start = params.get("startLedger") or int(cursor.partition("-")[0]) >> 32
        if not self.oldest <= start <= self.latest:
            return _out_of_range()
        end = min(self.latest, start + _SCAN_LEDGERS - 1)
        first = bisect.bisect_right(self._ids, cursor or f"{start << 32:019d}")
        last = min(first + limit, bisect.bisect_left(self._ids, f"{end + 1 << 32:019d}"))
        full = last - first == limit
        place = self._ids[last - 1] if full else f"{(end + 1 << 32) - 1:019d}-4294967295"
        rest = json.dumps({"cursor": place} | self._range(as_text=True))
        events = ",".join(self._events[first:last])
        return _response(f'{{"jsonrpc":"2.0","id":1,"result":{{"events":[{events}],{rest[1:]}}}')

    def _getLedgerEntries(self, params: dict[str, Any]) -> Response:  # noqa: N802
        entries = [self._entry(key) for key in params["keys"]]
        return _result({"entries": [one for one in entries if one], "latestLedger": self.latest})

    def _entry(self, text: str) -> dict[str, Any] | None:
        asked = xdr.LedgerKey.from_xdr(text)
        if asked.contract_data is None:
            return None
        if asked == operations.instance_key(self.CONTRACT):
            value, modified = _instance(), 1
        else:
            owner = scval.from_address(asked.contract_data.key).address
            if owner not in self._newest:
                return None
            anchor, modified = self._newest[owner]
            value = anchor_to_value(anchor)
        data = xdr.ContractDataEntry(
            xdr.ExtensionPoint(0), asked.contract_data.contract, asked.contract_data.key,
            asked.contract_data.durability, value,
        )  # fmt: skip
        entry = xdr.LedgerEntryData(xdr.LedgerEntryType.CONTRACT_DATA, contract_data=data)
        return {
            "key": text, "xdr": entry.to_xdr(), "lastModifiedLedgerSeq": modified,
            "liveUntilLedgerSeq": self.latest + 2_000_000,
        }  # fmt: skip

    def _range(self, *, as_text: bool) -> dict[str, Any]:
        latest, oldest = self.close_time(self.latest), self.close_time(self.oldest)
        return {
            "latestLedger": self.latest, "oldestLedger": self.oldest,
            "latestLedgerCloseTime": str(latest) if as_text else latest,
            "oldestLedgerCloseTime": str(oldest) if as_text else oldest,
        }  # fmt: skip

    def _hash(self, ledger: int) -> str:
        return hashlib.sha256(f"{self.seed} {ledger}".encode()).hexdigest()

    def _iso(self, ledger: int) -> str:
        return datetime.fromtimestamp(self.close_time(ledger), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _instance() -> xdr.SCVal:
    executable = xdr.ContractExecutable(
        xdr.ContractExecutableType.CONTRACT_EXECUTABLE_WASM, xdr.Hash(memory_anchor_sha256())
    )
    return xdr.SCVal(
        xdr.SCValType.SCV_CONTRACT_INSTANCE, instance=xdr.SCContractInstance(executable, None)
    )  # fmt: skip


def _result(value: object) -> Response:
    return _response(json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}))


def _out_of_range() -> Response:
    error = {"code": _OUT_OF_RANGE, "message": "the ledger is not within the ledger range"}
    return _response(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}))


def _response(text: str) -> Response:
    return Response(200, text, {"Content-Type": "application/json"}, EventServer.URL)

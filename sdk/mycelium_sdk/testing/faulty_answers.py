"""What a misled RPC server answers: true answers of a network, changed as a fault wants them."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from stellar_sdk import FeeBumpTransactionEnvelope, StrKey, TransactionEnvelope, xdr

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk.client.response import Response

    from mycelium_sdk.testing.faults import Fault

__all__ = ["HISTORY", "READS", "SEND", "Answer", "FaultyAnswers"]

SEND: Final = "sendTransaction"
HISTORY: Final = ("getEvents", "getHealth", "getLedgers", "getTransaction", "getTransactions")
READS: Final = (*HISTORY, "getFeeStats", "getLatestLedger", "getLedgerEntries", "simulateTransaction")

Answer: TypeAlias = "Response | dict[str, Any]"
"""A whole answer, or the member `result` or `error` of one."""

_OUT_OF_RANGE: Final = -32600
_BAD_CURSOR: Final = -32602
_QUESTIONS: Final = 1_024
_ANSWERS: Final = 64
_FRAME: Final = (
    "txHash", "latestLedger", "latestLedgerCloseTime", "oldestLedger", "oldestLedgerCloseTime",
)  # fmt: skip
# Where answers hold what ledgers wrote, and where each item says which ledger that was; what a simulation
# returns stems from the last one.
_PARTS: Final = {
    "getLedgers": ("ledgers", "sequence"),
    "getLedgerEntries": ("entries", "lastModifiedLedgerSeq"),
    "getEvents": ("events", "ledger"),
    "getTransaction": (None, "ledger"),
    "getTransactions": ("transactions", "ledger"),
    "simulateTransaction": ("results", None),
}


class FaultyAnswers:
    """Changes answers, and remembers them for later. `ask`: the network's answer to a method without
    parameters."""

    def __init__(self, ask: Callable[[str], dict[str, Any]]) -> None:
        self._ask = ask
        self._passphrase: str | None = None
        self._held: set[str] = set()
        self._past: OrderedDict[str, list[Response]] = OrderedDict()

    def remember(self, method: str, params: dict[str, Any], answer: Response) -> None:
        """Keep a true answer."""
        if method not in READS or _result(answer) is None:
            return
        question = _question(method, params)
        known = self._past.setdefault(question, [])
        known.append(answer)
        del known[:-_ANSWERS]
        self._past.move_to_end(question)
        if len(self._past) > _QUESTIONS:
            self._past.popitem(last=False)

    def answer(
        self, fault: Fault, method: str, params: dict[str, Any], send: Callable[[], Response]
    ) -> Answer | None:
        """What a client gets who is hit by a fault; `send` gets the true answer. None: there is nothing to
        mislead with."""
        if fault.kind in ("try_again_later", "never_closes"):
            return self._not_taken(fault, params)
        if fault.kind == "stale":
            return self._older(fault, method, params)
        true = send()
        result = _result(true)
        if result is None:
            return true
        if fault.kind == "not_found":
            return {"result": _without_transaction(result)}
        if fault.kind == "retention":
            return _trimmed(fault, method, params, result)
        if fault.kind == "archive":
            return {"result": _archived(fault, result)}
        return {"result": _forked(fault, method, result)}

    def _not_taken(self, fault: Fault, params: dict[str, Any]) -> Answer:
        if self._passphrase is None:
            self._passphrase = str(self._ask("getNetwork")["passphrase"])
        name, status = _hash_of(params["transaction"], self._passphrase), "TRY_AGAIN_LATER"
        if fault.kind == "never_closes":
            status = "DUPLICATE" if name in self._held else "PENDING"
            self._held.add(name)
        latest = self._ask("getLatestLedger")
        return {
            "result": {
                "status": status,
                "hash": name,
                "latestLedger": latest["sequence"],
                "latestLedgerCloseTime": latest["closeTime"],
            }
        }

    def _older(self, fault: Fault, method: str, params: dict[str, Any]) -> Response | None:
        """The last answer to the same question that is old enough."""
        oldest_enough = int(self._ask("getLatestLedger")["sequence"]) - fault.ledgers
        for answer in reversed(self._past.get(_question(method, params), [])):
            if _ledger(_result(answer) or {}) <= oldest_enough:
                return answer
        return None


def _hash_of(envelope: str, passphrase: str) -> str:
    decoded = xdr.TransactionEnvelope.from_xdr(envelope)
    if decoded.fee_bump is not None:
        return FeeBumpTransactionEnvelope.from_xdr_object(decoded, passphrase).hash_hex()
    return TransactionEnvelope.from_xdr_object(decoded, passphrase).hash_hex()


def _question(method: str, params: dict[str, Any]) -> str:
    return json.dumps([method, params], sort_keys=True)


def _result(answer: Response) -> dict[str, Any] | None:
    """The member `result`; None where there is none."""
    try:
        body = json.loads(answer.text)
    except ValueError:
        return None
    result = body.get("result") if isinstance(body, dict) else None
    return result if isinstance(result, dict) else None


def _ledger(result: dict[str, Any]) -> int:
    """The last ledger that an answer knows of."""
    return int(result.get("latestLedger") or result.get("sequence") or 0)


def _without_transaction(result: dict[str, Any]) -> dict[str, Any]:
    return {"status": "NOT_FOUND"} | {key: result[key] for key in _FRAME if key in result}


def _trimmed(fault: Fault, method: str, params: dict[str, Any], result: dict[str, Any]) -> Answer:
    latest = _ledger(result)
    first = max(int(result["oldestLedger"]), latest - fault.ledgers + 1)
    wanted, code = _wanted(method, params)
    if wanted is not None and wanted < first:
        message = f"startLedger must be within the ledger range: {first} - {latest}"
        return {"error": {"code": code, "message": message}}
    if first == int(result["oldestLedger"]):
        return {"result": result}
    result = result | {"oldestLedger": first}
    # When that ledger closed is not known here; it was not later than this.
    for key in result:
        if key.startswith("oldestLedgerClose"):
            result[key] = result[key.replace("oldest", "latest")]
    if method == "getTransaction" and int(result.get("ledger") or first) < first:
        result = _without_transaction(result)
    return {"result": result}


def _wanted(method: str, params: dict[str, Any]) -> tuple[int | None, int]:
    """The first ledger that a page asks for, and the error code when it is not kept. None: no page."""
    cursor = (params.get("pagination") or {}).get("cursor")
    if not cursor:
        return params.get("startLedger"), _OUT_OF_RANGE
    if method == "getEvents":
        return int(cursor.partition("-")[0]) >> 32, _OUT_OF_RANGE
    if method == "getTransactions":
        return int(cursor) >> 32, _BAD_CURSOR
    return int(cursor) + 1, _BAD_CURSOR


def _archived(fault: Fault, result: dict[str, Any]) -> dict[str, Any]:
    def wanted(entry: dict[str, Any]) -> bool:
        if fault.key is not None:
            return bool(entry["key"] == fault.key)
        data = xdr.LedgerKey.from_xdr(entry["key"]).contract_data
        if data is None or data.key.type is xdr.SCValType.SCV_LEDGER_KEY_CONTRACT_INSTANCE:
            return False
        # SCAddress of an account: its type, the key's type, the key.
        part = b"" if fault.owner is None else bytes(8) + StrKey.decode_ed25519_public_key(fault.owner)
        persistent = data.durability is xdr.ContractDataDurability.PERSISTENT
        return persistent and part in base64.b64decode(entry["key"])

    entries = [
        entry | {"liveUntilLedgerSeq": 0} if "liveUntilLedgerSeq" in entry and wanted(entry) else entry
        for entry in result.get("entries") or ()
    ]
    return result | {"entries": entries}


def _forked(fault: Fault, method: str, result: dict[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(result))
    items, number = _PARTS.get(method, (None, None))
    latest = _ledger(copy)
    bend = _Bender(fault.seed, latest - fault.ledgers)
    for item in [copy] if items is None else copy.get(items) or ():
        if (latest if number is None else item.get(number, 0)) > latest - fault.ledgers:
            bend.item(method, item)
    return copy


class _Bender:
    """Puts other 32-byte values in the place of true ones, the same for the same one."""

    def __init__(self, seed: int, ancestor: int) -> None:
        self._seed = b"mycelium fork %d\0" % seed
        self._ancestor = ancestor

    def __call__(self, node: object) -> None:
        """Change every 32-byte value in a tree of XDR objects, in place."""
        if isinstance(node, list):
            for item in node:
                self(item)
        elif isinstance(node, xdr.LedgerEntry) and node.last_modified_ledger_seq.uint32 <= self._ancestor:
            return  # what a change says was there before, and both branches have
        elif isinstance(node, xdr.DiagnosticEvent):
            return  # no ledger commits to these, and they name contracts by 32 bytes
        elif isinstance(node, xdr.SCVal) and node.bytes is not None:
            if len(node.bytes.sc_bytes) == 32:
                node.bytes = xdr.SCBytes(self._other(node.bytes.sc_bytes))
        elif not isinstance(node, Enum) and type(node).__module__.startswith("stellar_sdk.xdr."):
            for value in vars(node).values():
                self(value)

    def item(self, method: str, item: dict[str, Any]) -> None:
        """Change one item of an answer of `method`, in place."""
        if method == "getLatestLedger":
            item["id"] = self._hash(item["id"])
        elif method == "getLedgers":
            item["hash"] = self._hash(item["hash"])
        elif method == "getLedgerEntries":
            data = xdr.LedgerEntryData.from_xdr(item["xdr"])
            if data.contract_data is not None:
                self(data.contract_data.val)
                item["xdr"] = data.to_xdr()
        elif method == "getEvents":
            item["topic"] = [self._value(topic) for topic in item["topic"]]
            item["value"] = self._value(item["value"])
        elif method == "simulateTransaction":
            item["xdr"] = self._value(item["xdr"])
        elif "resultMetaXdr" in item:
            meta = xdr.TransactionMeta.from_xdr(item["resultMetaXdr"])
            self(meta)
            item["resultMetaXdr"] = meta.to_xdr()
            events = item.get("events") or {}
            events["contractEventsXdr"] = [
                [self._event(event) for event in operation]
                for operation in events.get("contractEventsXdr") or ()
            ]

    def _event(self, text: str) -> str:
        event = xdr.ContractEvent.from_xdr(text)
        self(event)
        return event.to_xdr()

    def _value(self, text: str) -> str:
        value = xdr.SCVal.from_xdr(text)
        self(value)
        return value.to_xdr()

    def _hash(self, text: str) -> str:
        return self._other(bytes.fromhex(text)).hex()

    def _other(self, value: bytes) -> bytes:
        return sha256(self._seed + value).digest()

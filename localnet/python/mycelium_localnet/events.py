"""Events of the network itself: fees, refunds and native transfers, and taking events apart for queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from stellar_sdk import StrKey, xdr

from mycelium_localnet import pack
from mycelium_localnet.envelopes import present

if TYPE_CHECKING:
    from collections.abc import Sequence

BEFORE_ALL: Final = 0
"""TransactionEventStage of the fee: before any transaction of the ledger is applied."""
AFTER_ALL: Final = 2
"""TransactionEventStage of the refund: after all of them."""

_CONTRACT_EVENT = 1
_MEMO = xdr.MemoType


def fee_event(contract: bytes, account: bytes, amount: int, stage: int) -> bytes:
    """TransactionEvent: `account` paid `amount` stroops of fees; a negative amount is a refund.

    `contract`: the native asset's contract id, which all these events name.
    """
    topics = [pack.sc_symbol("fee"), pack.sc_account(account)]
    return pack.u32(stage) + _contract_event(contract, topics, pack.sc_i128(amount))


def native_transfer(contract: bytes, source: bytes, destination: bytes, amount: int, memo: xdr.Memo) -> bytes:
    """ContractEvent: `amount` stroops moved. A memo of the transaction goes along as `to_muxed_id`."""
    topics = [
        pack.sc_symbol("transfer"),
        pack.sc_account(source),
        pack.sc_account(destination),
        pack.sc_string("native"),
    ]
    data = pack.sc_i128(amount)
    if memo.type != _MEMO.MEMO_NONE:
        identity = _memo_value(memo)
        data = pack.sc_map([(pack.sc_symbol("amount"), data), (pack.sc_symbol("to_muxed_id"), identity)])
    return _contract_event(contract, topics, data)


@dataclass(frozen=True, slots=True)
class EventParts:
    """A ContractEvent taken apart. `contract_id`: C... or None; `topics` and `value`: SCVals."""

    type: Literal["contract", "system"]
    contract_id: str | None
    topics: tuple[bytes, ...]
    value: bytes


def take_apart(event: bytes) -> EventParts:
    """The parts of a ContractEvent that queries ask for."""
    decoded = xdr.ContractEvent.from_xdr_bytes(event)
    body = present(decoded.body.v0)
    identity = decoded.contract_id
    return EventParts(
        "system" if decoded.type == xdr.ContractEventType.SYSTEM else "contract",
        None if identity is None else StrKey.encode_contract(identity.contract_id.hash),
        tuple(topic.to_xdr_bytes() for topic in body.topics),
        body.data.to_xdr_bytes(),
    )


def _contract_event(contract: bytes, topics: Sequence[bytes], data: bytes) -> bytes:
    return pack.ZERO + pack.ONE + contract + pack.u32(_CONTRACT_EVENT) + pack.ZERO + pack.array(topics) + data


def _memo_value(memo: xdr.Memo) -> bytes:
    if memo.id is not None:
        return pack.sc_u64(memo.id.uint64)
    if memo.text is not None:
        return pack.sc_string(memo.text)
    return pack.sc_bytes(present(memo.hash or memo.ret_hash).hash)

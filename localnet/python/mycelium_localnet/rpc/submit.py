"""Handing in transactions: sendTransaction."""

from __future__ import annotations

from binascii import a2b_base64
from typing import TYPE_CHECKING

from mycelium_localnet.errors import MalformedEnvelopeError

from .faults import INVALID_PARAMS, RpcFault, invalid_params
from .params import check_format
from .wire import text, texts

if TYPE_CHECKING:
    from .context import Context, Result
    from .params import Params


def send_transaction(context: Context, params: Params) -> Result:
    """Submit a transaction; with instant closing a ledger holds it before this answers PENDING."""
    check_format(params)
    source = params.required_text("transaction")
    try:
        envelope = a2b_base64(source, strict_mode=True)
    except ValueError as error:
        raise invalid_params("invalid_xdr") from error
    try:
        submission = context.chain.submit(envelope)
    except MalformedEnvelopeError as error:
        raise RpcFault(INVALID_PARAMS, "invalid_xdr", error.message) from error
    answer: dict[str, object] = {
        "status": submission.status,
        "hash": submission.hash.hex(),
        "latestLedger": submission.latest_ledger,
        "latestLedgerCloseTime": str(submission.close_time),
    }
    if submission.result is not None:
        answer["errorResultXdr"] = text(submission.result)
    if submission.diagnostic_events:
        answer["diagnosticEventsXdr"] = texts(submission.diagnostic_events)
    return answer

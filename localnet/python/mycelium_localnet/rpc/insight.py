"""What a transaction cost and what happened in it: localnet_report and localnet_trace, which no other network
has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_localnet.calls import Call
from mycelium_localnet.errors import InvalidRequestError

from .faults import RpcFault, invalid_params

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mycelium_localnet.calls import Step
    from mycelium_localnet.report import Resource

    from .context import Context, Result
    from .params import Params


def localnet_report(context: Context, params: Params) -> Result:
    """The fee and the resources of the applied transaction `hash`. Amounts are strings, in stroops; `text` is
    the same as tables."""
    try:
        report = context.chain.report(params.required_text("hash"))
    except InvalidRequestError as error:
        raise _refusal(error) from error
    return {
        "hash": report.hash,
        "ledger": report.ledger,
        "source": report.source,
        "successful": report.successful,
        "code": report.code,
        "operationCodes": list(report.operation_codes),
        "bid": str(report.bid),
        "resourceFee": str(report.resource_fee),
        "charged": str(report.charged),
        "inclusion": str(report.inclusion),
        "nonRefundable": str(report.non_refundable),
        "nonRefundableParts": [{"name": name, "amount": str(amount)} for name, amount in report.parts],
        "rent": str(report.rent),
        "events": str(report.events),
        "refund": str(report.refund),
        "resources": _resources(report.resources),
        "text": str(report),
    }


def localnet_trace(context: Context, params: Params) -> Result:
    """What happened in the applied transaction `hash`, or happens when `transaction` (a TransactionEnvelope)
    is simulated; `text` tells it with nested calls indented."""
    transaction_hash, transaction = params.text("hash"), params.text("transaction")
    if (transaction_hash is None) == (transaction is None):
        raise invalid_params("either hash or transaction must be set")
    try:
        if transaction is None:
            trace = context.chain.trace(transaction_hash or "")
        else:
            trace = context.chain.trace_simulation(transaction)
    except InvalidRequestError as error:
        raise _refusal(error) from error
    return {
        "subject": trace.subject,
        "successful": trace.successful,
        "outcome": trace.outcome,
        "cause": trace.cause,
        "hint": trace.hint,
        "steps": _steps(trace.steps),
        "resources": _resources(trace.resources),
        "text": str(trace),
    }


def _refusal(error: InvalidRequestError) -> RpcFault:
    fault = invalid_params(error.message)
    fault.data = error.hint
    return fault


def _steps(steps: Sequence[Step]) -> list[dict[str, object]]:
    return [
        _call(step) if isinstance(step, Call) else {"type": step.kind, "text": step.text} for step in steps
    ]


def _call(call: Call) -> dict[str, object]:
    return {
        "type": "call",
        "contract": call.contract,
        "function": call.function,
        "arguments": [{"name": name, "value": value} for name, value in call.arguments],
        "steps": _steps(call.steps),
        "returned": call.returned,
        "failure": call.failure,
        "error": call.error,
    }


def _resources(resources: Sequence[Resource]) -> list[dict[str, object]]:
    return [
        {
            "name": resource.name,
            "declared": resource.declared,
            "used": resource.used,
            "limit": resource.limit,
            "exceeded": resource.exceeded,
        }
        for resource in resources
    ]

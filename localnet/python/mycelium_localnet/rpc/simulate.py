"""Trying a transaction out: simulateTransaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk.xdr import TransactionEnvelope

from mycelium_localnet import _native
from mycelium_localnet.simulation import Options, RefusedError, simulate

from .params import format_problem
from .wire import decode, text, texts

if TYPE_CHECKING:
    from stellar_sdk.xdr import Transaction

    from .context import Context, Result
    from .params import Params


def simulate_transaction(context: Context, params: Params) -> Result:
    """Run a transaction's only operation at the last closed ledger, and quote its resources and fee.

    Whatever is wrong with the transaction is a result with `error`, as on the network. Signatures, sequence
    number and fee are not looked at.
    """
    problem = format_problem(params)
    source = params.text("transaction") or ""
    options = Options(
        params.text("authMode") or "",
        params.flag("useUpgradedAuth"),
        params.group("resourceConfig").integer("instructionLeeway"),
    )
    with context.chain.read() as view:
        latest = view.latest()
        try:
            transaction = _transaction(source, problem)
            simulation = simulate(view, context.chain.ledger_info(latest), transaction, options)
        except RefusedError as refused:
            return {"error": str(refused), "latestLedger": latest.sequence}
        except _native.HostError as error:
            return {"error": f"the host failed: {error}", "latestLedger": latest.sequence}
    return _answer(simulation, latest.sequence)


def _transaction(source: str, problem: str | None) -> Transaction:
    if problem is not None:
        raise RefusedError(problem)
    try:
        envelope, _data = decode(TransactionEnvelope, source)
    except ValueError as error:
        raise RefusedError("Could not unmarshal transaction") from error
    if envelope.v1 is None:
        raise RefusedError(f"Transactions of type {envelope.type.name} are not supported")
    return envelope.v1.tx


def _answer(simulation: _native.Simulation, latest: int) -> Result:
    if simulation.error is not None or simulation.transaction_data is None:
        return {"error": simulation.error, "events": texts(simulation.events), "latestLedger": latest}
    answer: dict[str, object] = {
        "transactionData": text(simulation.transaction_data),
        "minResourceFee": str(simulation.min_resource_fee),
        "events": texts(simulation.events),
        "stateChanges": [_change(change) for change in simulation.modified],
        "latestLedger": latest,
    }
    if simulation.restore_preamble is not None:
        data, fee = simulation.restore_preamble
        answer["restorePreamble"] = {"transactionData": text(data), "minResourceFee": str(fee)}
    if simulation.result is not None:
        answer["results"] = [{"auth": texts(simulation.auth), "xdr": text(simulation.result)}]
    return answer


def _change(change: _native.StateChange) -> dict[str, object]:
    before, after = change.before, change.after
    kind = "created" if before is None else "deleted" if after is None else "updated"
    return {
        "type": kind,
        "key": text(change.key),
        "before": None if before is None else text(before),
        "after": None if after is None else text(after),
    }

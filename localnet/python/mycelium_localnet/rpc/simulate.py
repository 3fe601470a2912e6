"""Trying a transaction out: simulateTransaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from stellar_sdk.xdr import AccountID, PublicKey, PublicKeyType, TransactionEnvelope

from mycelium_localnet import _native

from .params import format_problem
from .wire import decode, text, texts

if TYPE_CHECKING:
    from stellar_sdk.xdr import (
        ExtendFootprintTTLOp,
        InvokeHostFunctionOp,
        LedgerFootprint,
        LedgerKey,
        MuxedAccount,
        Transaction,
    )

    from mycelium_localnet.rows import LedgerRow
    from mycelium_localnet.view import ReadView

    from .context import Context, Result
    from .params import Params

AuthMode: TypeAlias = Literal["enforce", "record", "record_allow_nonroot"]
AUTH_MODES: Final[tuple[AuthMode, ...]] = get_args(AuthMode)


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of this program
    """The transaction cannot be simulated; the message becomes the `error` of the result."""


class Options(NamedTuple):
    """What a request says besides the transaction; an `auth_mode` of "" follows from the transaction."""

    auth_mode: str
    upgraded_auth: bool
    instruction_leeway: int


class Site(NamedTuple):
    """Where a simulation runs: the last closed ledger, and the state after it."""

    host_ledger: _native.LedgerInfo
    ledger: LedgerRow
    view: ReadView


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
            site = Site(context.chain.ledger_info(latest), latest, view)
            simulation = _simulate(site, transaction, options)
        except Refused as refused:
            return {"error": str(refused), "latestLedger": latest.sequence}
        except _native.HostError as error:
            return {"error": f"the host failed: {error}", "latestLedger": latest.sequence}
    return _answer(simulation, latest.sequence)


def _transaction(source: str, problem: str | None) -> Transaction:
    if problem is not None:
        raise Refused(problem)
    try:
        envelope, _data = decode(TransactionEnvelope, source)
    except ValueError as error:
        raise Refused("Could not unmarshal transaction") from error
    if envelope.v1 is None:
        raise Refused(f"Transactions of type {envelope.type.name} are not supported")
    return envelope.v1.tx


def _simulate(site: Site, transaction: Transaction, options: Options) -> _native.Simulation:
    if len(transaction.operations) != 1:
        raise Refused("Transaction must contain exactly one operation")
    operation = transaction.operations[0]
    body = operation.body
    if body.invoke_host_function_op is not None:
        account = operation.source_account or transaction.source_account
        return _invoke(site, body.invoke_host_function_op, _account_id(account), options)
    if body.extend_footprint_ttl_op is not None:
        return _extend(site, body.extend_footprint_ttl_op, _footprint(transaction, options))
    if body.restore_footprint_op is not None:
        return _restore(site, _footprint(transaction, options))
    raise Refused(f"Transaction contains unsupported operation type: {body.type.name}")


def _invoke(
    site: Site, operation: InvokeHostFunctionOp, source: bytes, options: Options
) -> _native.Simulation:
    return _native.simulate_invoke(
        ledger=site.host_ledger,
        get=site.view.entry,
        host_function=operation.host_function.to_xdr_bytes(),
        auth=[entry.to_xdr_bytes() for entry in operation.auth],
        auth_mode=_auth_mode(options.auth_mode, has_auth=bool(operation.auth)),
        upgraded_auth=options.upgraded_auth,
        source_account=source,
        # Any 32 bytes do; these make equal questions get equal answers.
        prng_seed=site.ledger.hash,
        instruction_leeway=options.instruction_leeway,
    )


def _auth_mode(wanted: str, *, has_auth: bool) -> AuthMode:
    if not wanted:
        return "enforce" if has_auth else "record"
    for mode in AUTH_MODES:
        if mode == wanted:
            if has_auth and mode != "enforce":
                raise Refused(f"cannot set authMode to '{mode}' with an auth footprint")
            return mode
    raise Refused(f"optional 'authMode' must be one of {','.join(AUTH_MODES)} when included")


def _extend(site: Site, operation: ExtendFootprintTTLOp, footprint: LedgerFootprint) -> _native.Simulation:
    if footprint.read_write:
        raise Refused("ExtendFootprintTTL takes its keys in the read-only footprint")
    return _native.simulate_extend_ttl(
        ledger=site.host_ledger,
        get=site.view.entry,
        keys=_keys(footprint.read_only),
        extend_to=operation.extend_to.uint32,
    )


def _restore(site: Site, footprint: LedgerFootprint) -> _native.Simulation:
    if footprint.read_only:
        raise Refused("RestoreFootprint takes its keys in the read-write footprint")
    return _native.simulate_restore(
        ledger=site.host_ledger, get=site.view.entry, keys=_keys(footprint.read_write)
    )


def _footprint(transaction: Transaction, options: Options) -> LedgerFootprint:
    if options.auth_mode:
        raise Refused("cannot set authMode with non-InvokeHostFunction operations")
    if transaction.ext.soroban_data is None:
        raise Refused(
            "To perform a SimulateTransaction for ExtendFootprintTtl or RestoreFootprint operations,"
            " SorobanTransactionData must be provided"
        )
    return transaction.ext.soroban_data.resources.footprint


def _keys(ledger_keys: list[LedgerKey]) -> list[bytes]:
    return [key.to_xdr_bytes() for key in ledger_keys]


def _account_id(account: MuxedAccount) -> bytes:
    key = account.ed25519 if account.med25519 is None else account.med25519.ed25519
    return AccountID(PublicKey(PublicKeyType.PUBLIC_KEY_TYPE_ED25519, key)).to_xdr_bytes()


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

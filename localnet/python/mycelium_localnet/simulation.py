"""Trying a transaction out on a state: what the host says of its only operation, and what it would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from stellar_sdk.xdr import AccountID, PublicKey, PublicKeyType

from mycelium_localnet import _native

if TYPE_CHECKING:
    from stellar_sdk.xdr import (
        ExtendFootprintTTLOp,
        InvokeHostFunctionOp,
        LedgerFootprint,
        LedgerKey,
        MuxedAccount,
        Transaction,
    )

    from mycelium_localnet._native import LedgerInfo, Simulation
    from mycelium_localnet.view import ReadView

AuthMode: TypeAlias = Literal["enforce", "record", "record_allow_nonroot"]
AUTH_MODES: Final[tuple[AuthMode, ...]] = get_args(AuthMode)


class RefusedError(Exception):
    """The transaction cannot be simulated; the message says why, as the network does."""


class Options(NamedTuple):
    """How to simulate; an `auth_mode` of "" follows from the transaction."""

    auth_mode: str = ""
    upgraded_auth: bool = False
    instruction_leeway: int = 0


class _Site(NamedTuple):
    """Where a simulation runs: a state, and the ledger that it is the state after."""

    view: ReadView
    ledger: LedgerInfo


def simulate(
    view: ReadView, ledger: LedgerInfo, transaction: Transaction, options: Options | None = None
) -> Simulation:
    """Run a transaction's only operation on `view`, at `ledger`, and quote its resources and fee. Signatures,
    sequence number and fee are not looked at.

    Raises RefusedError, and HostError when the host itself fails.
    """
    site, options = _Site(view, ledger), options or Options()
    if len(transaction.operations) != 1:
        raise RefusedError("Transaction must contain exactly one operation")
    operation = transaction.operations[0]
    body = operation.body
    if body.invoke_host_function_op is not None:
        account = operation.source_account or transaction.source_account
        return _invoke(site, body.invoke_host_function_op, _account_id(account), options)
    if body.extend_footprint_ttl_op is not None:
        return _extend(site, body.extend_footprint_ttl_op, _footprint(transaction, options))
    if body.restore_footprint_op is not None:
        return _restore(site, _footprint(transaction, options))
    raise RefusedError(f"Transaction contains unsupported operation type: {body.type.name}")


def _invoke(site: _Site, operation: InvokeHostFunctionOp, source: bytes, options: Options) -> Simulation:
    return _native.simulate_invoke(
        ledger=site.ledger,
        get=site.view.entry,
        host_function=operation.host_function.to_xdr_bytes(),
        auth=[entry.to_xdr_bytes() for entry in operation.auth],
        auth_mode=_auth_mode(options.auth_mode, has_auth=bool(operation.auth)),
        upgraded_auth=options.upgraded_auth,
        source_account=source,
        # Any 32 bytes do; these make equal questions get equal answers.
        prng_seed=site.view.latest().hash,
        instruction_leeway=options.instruction_leeway,
    )


def _auth_mode(wanted: str, *, has_auth: bool) -> AuthMode:
    if not wanted:
        return "enforce" if has_auth else "record"
    for mode in AUTH_MODES:
        if mode == wanted:
            if has_auth and mode != "enforce":
                raise RefusedError(f"cannot set authMode to '{mode}' with an auth footprint")
            return mode
    raise RefusedError(f"optional 'authMode' must be one of {','.join(AUTH_MODES)} when included")


def _extend(site: _Site, operation: ExtendFootprintTTLOp, footprint: LedgerFootprint) -> Simulation:
    if footprint.read_write:
        raise RefusedError("ExtendFootprintTTL takes its keys in the read-only footprint")
    extend_to = operation.extend_to.uint32
    if site.ledger.sequence + extend_to >= 1 << 32:
        # The host adds these two without looking.
        raise RefusedError(
            f"the TTL cannot be extended by {extend_to} ledgers: ledgers are counted in 32 bits"
        )
    return _native.simulate_extend_ttl(
        ledger=site.ledger,
        get=site.view.entry,
        keys=_keys(footprint.read_only),
        extend_to=extend_to,
    )


def _restore(site: _Site, footprint: LedgerFootprint) -> Simulation:
    if footprint.read_only:
        raise RefusedError("RestoreFootprint takes its keys in the read-write footprint")
    return _native.simulate_restore(ledger=site.ledger, get=site.view.entry, keys=_keys(footprint.read_write))


def _footprint(transaction: Transaction, options: Options) -> LedgerFootprint:
    if options.auth_mode:
        raise RefusedError("cannot set authMode with non-InvokeHostFunction operations")
    if transaction.ext.soroban_data is None:
        raise RefusedError(
            "To perform a SimulateTransaction for ExtendFootprintTtl or RestoreFootprint operations,"
            " SorobanTransactionData must be provided"
        )
    return transaction.ext.soroban_data.resources.footprint


def _keys(ledger_keys: list[LedgerKey]) -> list[bytes]:
    return [key.to_xdr_bytes() for key in ledger_keys]


def _account_id(account: MuxedAccount) -> bytes:
    key = account.ed25519 if account.med25519 is None else account.med25519.ed25519
    return AccountID(PublicKey(PublicKeyType.PUBLIC_KEY_TYPE_ED25519, key)).to_xdr_bytes()

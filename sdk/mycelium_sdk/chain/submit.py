"""The one submit loop: simulate, sign, announce, send, wait. Never two transactions that could both take
effect.

What makes that true: one signed envelope is sent, and resent, until its fate is known. Another one is built
only when the network refused the first for its sequence number and never had it otherwise, so that it can
no longer take effect. Whatever stays unknown is `Unsettled`, with the hash by which it can be looked up
(chain.md section 3).
"""

from __future__ import annotations

import enum
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk import Account, TransactionBuilder, xdr
from stellar_sdk.contract import AssembledTransaction
from stellar_sdk.contract.exceptions import ExpiredStateError, NeedsMoreSignaturesError, SimulationFailedError
from stellar_sdk.soroban_rpc import SendTransactionStatus

from mycelium_sdk.chain import translate
from mycelium_sdk.chain.base import (
    VALIDITY_SECONDS,
    Receipt,
    SignedTransaction,
    TransactionState,
    TransactionStatus,
)
from mycelium_sdk.chain.diagnostics import transaction_result_code
from mycelium_sdk.errors import (
    AnchorArchived,
    ChainError,
    ChainUnavailable,
    ContractFailed,
    TransactionFailed,
    Unsettled,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair, SorobanServer
    from stellar_sdk.soroban_rpc import SimulateTransactionResponse

    from mycelium_sdk.chain.base import BeforeSend, Work
    from mycelium_sdk.chain.retry import RetryPolicy

__all__ = ["Submitter"]

_REBUILDS = 5

_BAD_SEQUENCE = xdr.TransactionResultCode.txBAD_SEQ.name
_TOO_LATE = xdr.TransactionResultCode.txTOO_LATE.name


class _Sent(enum.Enum):
    """What became of one attempt to send."""

    ACCEPTED = enum.auto()
    BUSY = enum.auto()  # TRY_AGAIN_LATER: not taken
    LOST = enum.auto()  # no answer: it may have been taken


_locks: dict[tuple[str, str], threading.Lock] = {}
_locks_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Submitter:
    """What the loop needs to know of a chain.

    `look_up` is the chain client's `transaction`, `chain_time` gives the latest ledger's close time,
    `refused` makes the error of a failed simulation. `inclusion_fee` is the bid in stroops on top of the
    resource fee.
    """

    server: SorobanServer
    passphrase: str
    policy: RetryPolicy
    inclusion_fee: int
    look_up: Callable[[str], TransactionState]
    chain_time: Callable[[], int]
    refused: Callable[[Work, SimulateTransactionResponse], ChainError]

    def submit(self, work: Work, signer: Keypair, before_send: BeforeSend | None) -> Receipt:
        """Do `work` as the account of `signer`; errors as `ChainClient.submit` says."""
        # One transaction in flight per account: the network refuses a second one, and its sequence number
        # would be a guess. Other processes are met by rebuilding.
        with _lock_of(self.passphrase, signer.public_key):
            for _, delay in zip(range(_REBUILDS), self.policy.delays(), strict=False):
                signed = self._prepare(work, signer)
                if before_send is not None:
                    before_send(signed)
                state = self._send(signed)
                if state is not None:
                    return _receipt(state)
                self.policy.pace.sleep(delay)  # for the server to see what used the number up
            raise translate.transaction_failed(_BAD_SEQUENCE, signed.hash)

    def resume(self, signed: SignedTransaction) -> Receipt:
        """Bring a transaction to its end that was signed before; errors as `ChainClient.resume` says."""
        state = self.look_up(signed.hash)
        if state.status is not TransactionStatus.NOT_FOUND:
            return _receipt(state)
        if state.latest_close_time > signed.valid_until:
            raise translate.transaction_failed(_TOO_LATE, signed.hash)
        sent = self._send(signed)
        if sent is None:
            raise translate.transaction_failed(_BAD_SEQUENCE, signed.hash)
        return _receipt(sent)

    def _prepare(self, work: Work, signer: Keypair) -> SignedTransaction:
        """Simulate and sign."""
        valid_until = max(int(self.policy.pace.now()), self.chain_time()) + VALIDITY_SECONDS
        builder = (
            TransactionBuilder(Account(signer.public_key, 0), self.passphrase, base_fee=self.inclusion_fee)
            .append_operation(work.operation)
            .add_time_bounds(_distinct_start(), valid_until)
        )
        if work.data is not None:
            builder.set_soroban_data(work.data)
        assembled: AssembledTransaction[xdr.SCVal] = AssembledTransaction(
            builder, self.server, signer, use_upgraded_auth=False
        )
        try:
            with translate.decoding(self.server.server_url):
                assembled.simulate(restore=False)
        except SimulationFailedError as error:
            assert assembled.simulation is not None  # noqa: S101 - it is what failed
            raise self.refused(work, assembled.simulation) from error
        try:
            assembled.sign(force=True)
        except ExpiredStateError as error:
            # Only before protocol 23, where an invocation could not restore by itself.
            raise AnchorArchived("an entry that the call needs is archived: restore it first") from error
        except NeedsMoreSignaturesError as error:
            raise ChainError(
                "the call needs the authorisation of another account than the one that sends it",
                hint="an anchor is moved by its owner only: use the owner's wallet",
            ) from error
        envelope = assembled.built_transaction
        assert envelope is not None  # noqa: S101 - signed above
        return SignedTransaction(envelope.hash_hex(), envelope.to_xdr(), valid_until)

    def _send(self, signed: SignedTransaction) -> TransactionState | None:
        """Send until it is accepted, then wait. None: it can never take effect, and another must be built."""
        pace = self.policy.pace
        deadline = pace.monotonic() + self.policy.total_seconds
        maybe_accepted = False
        for delay in self.policy.delays():
            outcome = self._attempt(signed)
            if outcome is _Sent.ACCEPTED:
                return self._wait(signed)
            maybe_accepted = maybe_accepted or outcome is _Sent.LOST
            # Not taken, as far as this answer goes. An earlier attempt may have been: look before going on.
            state = self._look(signed.hash)
            if state is not None and state.status is not TransactionStatus.NOT_FOUND:
                return state
            if isinstance(outcome, ChainError):
                if maybe_accepted:
                    return self._wait(signed)
                if isinstance(outcome, TransactionFailed) and outcome.result_code == _BAD_SEQUENCE:
                    return None
                raise outcome
            if pace.monotonic() + delay > deadline:
                break
            pace.sleep(delay)
        if maybe_accepted:
            raise _unsettled(signed.hash)
        raise ChainUnavailable(
            "the network is busy and did not take the transaction", hint="nothing was sent: try again later"
        )

    def _wait(self, signed: SignedTransaction) -> TransactionState:
        """Ask for an accepted transaction until its fate is known, or the time for asking is over."""
        pace = self.policy.pace
        deadline = pace.monotonic() + self.policy.poll_seconds
        for delay in self.policy.delays():
            state = self._look(signed.hash)
            if state is not None:
                if state.status is not TransactionStatus.NOT_FOUND:
                    return state
                if state.latest_close_time > signed.valid_until:
                    raise translate.transaction_failed(_TOO_LATE, signed.hash)
            if pace.monotonic() + delay > deadline:
                break
            pace.sleep(delay)
        raise _unsettled(signed.hash)

    def _attempt(self, signed: SignedTransaction) -> _Sent | ChainError:
        """Send once. An error that is returned is the network's or the server's refusal of this attempt."""
        try:
            with translate.decoding(self.server.server_url):
                answer = self.server.send_transaction(signed.envelope)
        except ChainUnavailable:
            return _Sent.LOST
        except ChainError as refusal:
            return refusal
        if answer.status is not SendTransactionStatus.ERROR:
            return _Sent.BUSY if answer.status is SendTransactionStatus.TRY_AGAIN_LATER else _Sent.ACCEPTED
        code = xdr.TransactionResultCode.txINTERNAL_ERROR.name
        if answer.error_result_xdr is not None:
            with translate.decoding(self.server.server_url):
                code = transaction_result_code(xdr.TransactionResult.from_xdr(answer.error_result_xdr))
        return translate.transaction_failed(code, signed.hash)

    def _look(self, transaction_hash: str) -> TransactionState | None:
        """What is known about the hash; None while the server cannot or will not say."""
        try:
            return self.look_up(transaction_hash)
        except ChainError:
            return None


def _receipt(state: TransactionState) -> Receipt:
    """The receipt of an applied transaction, or the error that it failed with."""
    if state.status is TransactionStatus.FAILED:
        if state.contract_error is not None:
            raise ContractFailed(
                f"the contract failed with error {state.contract_error}", code=state.contract_error
            )
        raise translate.transaction_failed(state.result_code or "txFAILED", state.hash)
    if state.ledger is None or state.close_time is None or state.fee_charged is None:
        raise _unsettled(state.hash)
    return Receipt(
        hash=state.hash,
        ledger=state.ledger,
        close_time=state.close_time,
        fee_charged=state.fee_charged,
        value=state.value,
    )


def _distinct_start() -> int:
    """A lower time bound that is long past, and with it bytes that no other transaction has.

    Two processes that do the same for one account within a second would otherwise sign the same
    transaction, and both would take its one effect for theirs.
    """
    return 1 + secrets.randbelow(2**30)  # Unix seconds, before the year 2005


def _unsettled(transaction_hash: str) -> Unsettled:
    return Unsettled(f"the outcome of transaction {transaction_hash} is not known yet", hash=transaction_hash)


def _lock_of(passphrase: str, account: str) -> threading.Lock:
    with _locks_guard:
        return _locks.setdefault((passphrase, account), threading.Lock())

"""The one submit loop: simulate, sign, announce, send, wait. Never two transactions that could both take
effect.

What makes that true: one signed envelope is sent, and resent, until its fate is known. Another one is built
only when the first can no longer take effect: the network refused it for its sequence number and never had it
otherwise, or it failed in the ledger without a trace. Whatever stays unknown is `Unsettled`, with the hash by
which it can be looked up (chain.md section 3).
"""

from __future__ import annotations

import enum
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stellar_sdk import Account, TransactionBuilder, TransactionEnvelope, xdr
from stellar_sdk.contract import AssembledTransaction
from stellar_sdk.contract.exceptions import ExpiredStateError, NeedsMoreSignaturesError, SimulationFailedError
from stellar_sdk.soroban_rpc import SendTransactionStatus

from mycelium_sdk.chain import answers, fees, translate
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
    MyceliumError,
    TransactionFailed,
    Unsettled,
)
from mycelium_sdk.threads import ThreadLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from stellar_sdk import Keypair, SorobanServer
    from stellar_sdk.soroban_rpc import SimulateTransactionResponse

    from mycelium_sdk.chain.base import BeforeSend, Work
    from mycelium_sdk.retry import RetryPolicy

__all__ = ["Submitter"]

_REBUILDS = 5

_BAD_SEQUENCE = xdr.TransactionResultCode.txBAD_SEQ.name
_TOO_LATE = xdr.TransactionResultCode.txTOO_LATE.name
_ENTRY_ARCHIVED = xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_ENTRY_ARCHIVED.name


class _Sent(enum.Enum):
    """What became of one attempt to send."""

    ACCEPTED = enum.auto()
    BUSY = enum.auto()  # TRY_AGAIN_LATER: not taken
    LOST = enum.auto()  # no answer that tells: it may have been taken


class _NeverTaken(Exception):  # noqa: N818 - it is no error yet
    """Refused for its sequence number, and never sent before: another transaction must be built."""


_locks: dict[tuple[str, str], ThreadLock] = {}
"""By network and account."""


@dataclass(frozen=True, slots=True)
class Submitter:
    """What the loop needs to know of a chain.

    `look_up` is the chain client's `transaction`. `sequence` gives the sequence number of an account (None
    for one that is not there) and the ledger as of which it is. So often, `lagging_looks`, an answer that a
    transaction is not there may be older than the ledger that it names. `latest` gives the latest ledger
    and its close time, `refused` makes the error of a failed simulation, `unquoted_fee` gives what a
    simulation's quote leaves out. `inclusion_fee` is the bid in stroops on top of the resource fee,
    `max_fee` the most that both together may come to.
    """

    server: SorobanServer
    passphrase: str
    policy: RetryPolicy
    inclusion_fee: int
    max_fee: int
    look_up: Callable[[str], TransactionState]
    sequence: Callable[[str], tuple[int | None, int]]
    lagging_looks: int
    latest: Callable[[], tuple[int, int]]
    refused: Callable[[Work, SimulateTransactionResponse], ChainError]
    unquoted_fee: Callable[[Work, xdr.SorobanTransactionData], int]

    def submit(self, work: Work, signer: Keypair, before_send: BeforeSend | None) -> Receipt:
        """Do `work` as the account of `signer`; errors as `ChainClient.submit` says."""
        # One transaction in flight per account: the network refuses a second one, and its sequence number
        # would be a guess. Other processes are met by rebuilding.
        with _lock_of(self.passphrase, signer.public_key):
            expired_between = False
            for _, delay in zip(range(_REBUILDS), self.policy.delays(), strict=False):
                signed = self._prepare(work, signer)
                if before_send is not None:
                    before_send(signed)
                try:
                    state = self._send(signed, maybe_sent=False)
                except _NeverTaken:
                    pass
                else:
                    # An entry's time to live ended between simulation and ledger. Nothing was changed, and
                    # the next simulation restores the entry.
                    if state.result_code != _ENTRY_ARCHIVED or expired_between:
                        return _receipt(state)
                    expired_between = True
                self.policy.pace.sleep(delay)  # for the server to see what happened meanwhile
            raise translate.transaction_failed(_BAD_SEQUENCE, signed.hash)

    def resume(self, signed: SignedTransaction) -> Receipt:
        """Bring a transaction to its end that was signed before; errors as `ChainClient.resume` says."""
        state = self.look_up(signed.hash)
        if state.status is TransactionStatus.NOT_FOUND:
            _check_still_valid(signed, state, None)
            # Whoever signed it may have sent it too, so that no refusal proves anything by itself.
            state = self._send(signed, maybe_sent=True)
        return _receipt(state)

    def _prepare(self, work: Work, signer: Keypair) -> SignedTransaction:
        """Simulate, judge the price, and sign."""
        signed_ledger, close_time = self.latest()
        valid_until = max(int(self.policy.pace.now()), close_time) + VALIDITY_SECONDS
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
                envelope = assembled.built_transaction
                assert envelope is not None  # noqa: S101 - simulated above
                assert assembled.simulation is not None  # noqa: S101 - likewise
                quoted = answers.simulation(assembled.simulation).resource_fee
                data = answers.transaction_data(assembled.simulation)
        except SimulationFailedError as error:
            assert assembled.simulation is not None  # noqa: S101 - it is what failed
            raise self.refused(work, assembled.simulation) from error
        resource_fee = quoted + self.unquoted_fee(work, data)
        fees.check_fee(resource_fee + self.inclusion_fee, self.max_fee)
        envelope.transaction.fee = resource_fee + self.inclusion_fee
        data.resource_fee = xdr.Int64(resource_fee)
        envelope.transaction.soroban_data = data
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
        return SignedTransaction(envelope.hash_hex(), envelope.to_xdr(), valid_until, signed_ledger)

    def _send(self, signed: SignedTransaction, *, maybe_sent: bool) -> TransactionState:
        """Send until it is accepted, then wait for what becomes of it. `maybe_sent`: it may have been sent
        before. Raises `_NeverTaken` when another must be built."""
        pace = self.policy.pace
        deadline = pace.monotonic() + self.policy.total_seconds
        for delay in self.policy.delays():
            outcome = self._attempt(signed)
            if outcome is _Sent.ACCEPTED:
                return self._wait(signed)
            maybe_sent = maybe_sent or outcome is _Sent.LOST
            # Not taken, as far as this answer goes. An earlier attempt may have been: look before going on.
            state = self._look(signed.hash)
            if state is not None and state.status is not TransactionStatus.NOT_FOUND:
                return state
            if isinstance(outcome, MyceliumError):
                if maybe_sent:
                    return self._wait(signed, refusal=outcome)
                if isinstance(outcome, TransactionFailed) and outcome.result_code == _BAD_SEQUENCE:
                    raise _NeverTaken
                raise outcome
            if pace.monotonic() + delay > deadline:
                break
            pace.sleep(delay)
        if maybe_sent:
            raise _unsettled(signed.hash)
        raise ChainUnavailable(
            "the network is busy and did not take the transaction", hint="nothing was sent: try again later"
        )

    def _wait(self, signed: SignedTransaction, refusal: MyceliumError | None = None) -> TransactionState:
        """Ask for a transaction until its fate is known, or the time for asking is over. `refusal`: what was
        said last, which counts when it is known not to have been applied."""
        pace = self.policy.pace
        deadline = pace.monotonic() + self.policy.poll_seconds
        overtaken = isinstance(refusal, TransactionFailed) and refusal.result_code == _BAD_SEQUENCE
        for looks, delay in enumerate(self.policy.delays(), start=1):
            spent = self._spent_by(signed) if overtaken else None  # before the look, which must be as new
            state = self._look(signed.hash)
            if state is not None:
                if state.status is not TransactionStatus.NOT_FOUND:
                    return state
                _check_still_valid(signed, state, refusal)
                remembers = state.oldest_ledger <= signed.signed_ledger + 1
                settled = spent is not None and spent <= state.latest_ledger and remembers
                if refusal is not None and settled and looks > self.lagging_looks:
                    raise refusal
            if pace.monotonic() + delay > deadline:
                break
            pace.sleep(delay)
        raise _unsettled(signed.hash)

    def _attempt(self, signed: SignedTransaction) -> _Sent | MyceliumError:
        """Send once. An error that is returned is the network's or the server's refusal of this attempt."""
        try:
            with translate.decoding(self.server.server_url):
                answer = self.server.send_transaction(signed.envelope)
                if answer.status is SendTransactionStatus.TRY_AGAIN_LATER:
                    return _Sent.BUSY
                if answer.status is not SendTransactionStatus.ERROR:
                    return _Sent.ACCEPTED
                if answer.error_result_xdr is None:
                    return _Sent.LOST
                code = transaction_result_code(xdr.TransactionResult.from_xdr(answer.error_result_xdr))
                return translate.transaction_failed(code, signed.hash)
        except ChainUnavailable:
            return _Sent.LOST
        except MyceliumError as refusal:
            return refusal

    def _spent_by(self, signed: SignedTransaction) -> int | None:
        """The ledger as of which the account has used the transaction's sequence number, or a later one, so
        that it was applied by then or never is; None where that is not so, or nobody says."""
        transaction = TransactionEnvelope.from_xdr(signed.envelope, self.passphrase).transaction
        try:
            sequence, ledger = self.sequence(transaction.source.account_id)
        except MyceliumError:
            return None
        return ledger if sequence is not None and sequence >= transaction.sequence else None

    def _look(self, transaction_hash: str) -> TransactionState | None:
        """What is known about the hash; None while the server cannot or will not say."""
        try:
            return self.look_up(transaction_hash)
        except MyceliumError:
            return None


def _check_still_valid(
    signed: SignedTransaction, not_found: TransactionState, refusal: MyceliumError | None
) -> None:
    """Raise once a transaction that is not found can no longer be applied.

    Raises:
        TransactionFailed: it never was applied: the refusal, if it is one, else txTOO_LATE.
        Unsettled: the server's history begins after the signing, so it may have been applied before that.
    """
    if not_found.latest_close_time <= signed.valid_until:
        return
    if not_found.oldest_ledger > signed.signed_ledger + 1:
        raise _unsettled(
            signed.hash, hint="this server keeps no history of that time: ask one that does, by its hash"
        )
    if isinstance(refusal, TransactionFailed):
        raise refusal
    raise translate.transaction_failed(_TOO_LATE, signed.hash) from refusal


def _receipt(state: TransactionState) -> Receipt:
    """The receipt of an applied transaction, or the error that it failed with."""
    if state.status is TransactionStatus.FAILED:
        if state.contract_error is not None:
            raise translate.contract_failed(state.contract_error)
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


def _unsettled(transaction_hash: str, *, hint: str | None = None) -> Unsettled:
    message = f"the outcome of transaction {transaction_hash} is not known yet"
    return Unsettled(message, hash=transaction_hash, hint=hint)


def _lock_of(passphrase: str, account: str) -> ThreadLock:
    return _locks.setdefault((passphrase, account), ThreadLock())

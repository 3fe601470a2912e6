"""One write transaction on a chain: taking transactions in, and closing the next ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stellar_sdk.xdr import TransactionResultCode

from mycelium_localnet import closing, fees, friendbot, headers, options
from mycelium_localnet.accounts import Account
from mycelium_localnet.clock import Clock
from mycelium_localnet.context import LedgerContext
from mycelium_localnet.envelopes import decode_transaction, present
from mycelium_localnet.headers import Header
from mycelium_localnet.pending import Pending
from mycelium_localnet.results import refused
from mycelium_localnet.rows import Submission
from mycelium_localnet.state import stored_state
from mycelium_localnet.validation import malformed, soroban_refusal, validate

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from stellar_sdk import Keypair

    from mycelium_localnet.context import Network
    from mycelium_localnet.envelopes import Transaction
    from mycelium_localnet.results import Outcome
    from mycelium_localnet.rows import LedgerRow, SubmissionStatus

_BAN_LEDGERS: Final = 10
"""An applied transaction that comes again is put off for so many ledgers; only then is its sequence number
looked at."""

_Code = TransactionResultCode


class Writer:
    """What may be done to a chain inside one transaction on `connection`. Use each writer for one thing."""

    def __init__(self, network: Network, connection: sqlite3.Connection) -> None:
        self._network = network
        self._connection = connection
        settings = options.load(connection)
        self._instant = settings["closing"] == "instant"
        self._last = headers.latest(connection, network.settings.fee_per_write_1kb)
        self._header = Header.unpack(self._last.header)
        self._context = LedgerContext.of(
            network,
            self._header,
            self._last.sequence + 1,
            Clock.from_settings(settings).close_time(self._last.close_time),
        )
        self._pending = Pending(connection, network.network_id)

    def submit(self, transaction: Transaction) -> Submission:
        """Check a transaction and queue it; with instant closing, close its ledger."""
        if self._recently_applied(transaction):
            return self._answer("TRY_AGAIN_LATER", transaction)
        if self._pending.contains(transaction):
            return self._answer("DUPLICATE", transaction)
        queued = self._pending.of_source(transaction)
        if queued is not None:
            outcome = self._check_behind(transaction, queued)
            if outcome is not None:
                return self._refuse(transaction, outcome)
            return self._answer("TRY_AGAIN_LATER", transaction)
        state = stored_state(self._connection, self._context.sequence)
        validation = validate(transaction, state, self._context)
        if not validation.valid:
            return self._refuse(transaction, validation.outcome)
        self._accept(transaction)
        return self._answer("PENDING", transaction)

    def close(self, accepted: Sequence[Transaction] = ()) -> LedgerRow:
        """Close the next ledger with what is pending, as far as there is room; the rest stays pending.
        `accepted`: found valid in this same write transaction."""
        queued = self._pending.all()
        chosen = list(accepted)
        if queued:
            state = stored_state(self._connection, self._context.sequence)
            chosen, waiting = closing.select([*queued, *accepted], state, self._context)
            waiting_hashes = {transaction.hash for transaction in waiting}
            self._pending.remove(one for one in queued if one.hash not in waiting_hashes)
            for transaction in accepted:
                if transaction.hash in waiting_hashes:
                    self._pending.add(transaction, self._context.close_time)
        self._last = closing.close(self._connection, self._last, self._header, self._context, chosen)
        return self._last

    def fund(self, keypair: Keypair, address: str, amount: int) -> bytes:
        """Create `address` with `amount` stroops, paid by the friendbot with `keypair`. Returns the
        transaction's hash."""
        destination = friendbot.public_key_of(address)
        state = stored_state(self._connection, self._context.sequence)
        if Account.load(state, destination) is not None:
            raise friendbot.account_exists(address, self._context.base_fee)
        source = present(Account.load(state, keypair.raw_public_key()))
        waiting = self._pending.all()
        mine = [transaction for transaction in waiting if transaction.source == keypair.raw_public_key()]
        for transaction in mine:
            if friendbot.creates(transaction, destination):
                raise friendbot.account_exists(address, self._context.base_fee, pending=transaction.hash)
        envelope = friendbot.funding_envelope(
            keypair,
            self._network.network_id,
            source.sequence + 1 + len(mine),
            destination,
            amount,
            fee=self._context.base_fee,
        )
        transaction = decode_transaction(envelope, self._network.network_id)
        selection = closing.select([*waiting, transaction], state, self._context)
        if not any(one is transaction for one in (*selection.chosen, *selection.waiting)):
            raise friendbot.failed(None)
        self._accept(transaction)
        if self._instant:
            query = "SELECT successful, result FROM transactions WHERE hash = ?"
            row = self._connection.execute(query, (transaction.hash,)).fetchone()
            if row is not None and not row[0]:
                raise friendbot.failed(row[1])
        return transaction.hash

    def refuse(self, transaction_hash: bytes, outcome: Outcome, fee: int) -> Submission:
        """The answer ERROR. `fee`: what the result shows as the fee; nothing was charged."""
        return Submission(
            "ERROR",
            transaction_hash,
            self._last.sequence,
            self._last.close_time,
            outcome.result(fee),
            tuple(outcome.diagnostics),
        )

    def _refuse(self, transaction: Transaction, outcome: Outcome) -> Submission:
        fee = 0 if malformed(transaction) else fees.quoted_fee(transaction, self._context.base_fee)
        return self.refuse(transaction.hash, outcome, fee)

    def _answer(self, status: SubmissionStatus, transaction: Transaction) -> Submission:
        return Submission(status, transaction.hash, self._last.sequence, self._last.close_time)

    def _accept(self, transaction: Transaction) -> None:
        if self._instant:
            self.close([transaction])
        else:
            self._pending.add(transaction, self._context.close_time)

    def _recently_applied(self, transaction: Transaction) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM transactions WHERE hash = ? AND ledger > ?",
            (transaction.hash, self._last.sequence - _BAN_LEDGERS),
        ).fetchone()
        return row is not None

    def _check_behind(self, transaction: Transaction, queued: Transaction) -> Outcome | None:
        """Why a transaction is refused while another of its source waits; None when it may come again
        later."""
        if transaction.sequence < queued.sequence:
            return refused(_Code.txBAD_SEQ)
        if transaction.is_soroban and not malformed(transaction):
            return soroban_refusal(transaction, self._network.settings)
        return None

"""Free money for new accounts: what `/friendbot?addr=G...` answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

from mycelium_localnet.errors import (
    AccountExistsError,
    ChainClosedError,
    ChainFileError,
    FundingError,
    InvalidRequestError,
    LocalnetError,
)
from mycelium_localnet.friendbot import is_existing_account

from .wire import text

if TYPE_CHECKING:
    from mycelium_localnet.ledger import Chain
    from mycelium_localnet.rows import TransactionRow

Answer: TypeAlias = tuple[int, dict[str, object]]
"""HTTP status and JSON body."""

_TITLES = {400: "Bad Request", 500: "Internal Server Error", 503: "Service Unavailable"}
_EXISTS = "createAccountAlreadyExist"
_LOOK_SECONDS = 0.25


def friendbot(chain: Chain, address: str | None) -> Answer:
    """Create `address` (G...) with 10,000 XLM, and answer when a ledger holds it; see `Funding`.

    Raises ChainClosedError, and ChainFileError instead of answering 503 for it.
    """
    funding = Funding(chain, address)
    while (wait := funding.look()) is not None:
        time.sleep(wait)
    if isinstance(funding.trouble, ChainFileError):
        raise funding.trouble
    return funding.answer


class Funding:
    """One request to the friendbot: the transaction is handed in at once, and `answer` is complete when
    `look` says so.

    200: the transaction, with its `hash`. 400: the address cannot be used, or `detail` holds
    `createAccountAlreadyExist`, by which clients know that the account is there. 503: the chain is busy, or
    its file is gone (`trouble`). 500: the friendbot cannot pay.
    """

    def __init__(self, chain: Chain, address: str | None) -> None:
        self._chain = chain
        self._hash: bytes | None = None
        self._again: bytes | None = None
        self.answer: Answer = _problem(500, "the funding transaction was lost")
        self.trouble: LocalnetError | None = None
        try:
            self._hash = bytes.fromhex(chain.fund(address or ""))
        except AccountExistsError as error:
            if error.pending is None:
                self.answer = _problem(400, _EXISTS, error.result)
            # Clients take the answer to mean that the account is there: it must wait until it is.
            self._hash, self._again = error.pending, error.result
        except InvalidRequestError:
            # What came instead is not repeated: it may be a secret seed.
            self.answer = _problem(400, "the parameter addr must be the address of an account, G...")
        except FundingError as error:
            self.answer = _problem(500, error.message, error.result)
        except ChainClosedError:
            raise
        except LocalnetError as error:
            self._fail(error)

    def look(self) -> float | None:
        """None when `answer` is complete, else how many seconds to wait before the next look.

        With manual closing this closes a ledger: nobody else would while the caller waits.
        """
        if self._hash is None:
            return None
        try:
            with self._chain.read() as view:
                found, pending = view.transaction(self._hash), view.is_pending(self._hash)
            if found is None and pending:
                wait = self._chain.close_due_ledger()
                if wait is None:
                    self._chain.close_ledger()
                # Somebody may close it before it is due.
                return min(wait or 0.0, _LOOK_SECONDS)
        except ChainClosedError:
            raise
        except LocalnetError as error:
            self._fail(error)
        else:
            if found is not None and found.successful and self._again is not None:
                self.answer = _problem(400, _EXISTS, self._again)
            elif found is not None:
                self.answer = _outcome(found)
        return None

    def _fail(self, trouble: LocalnetError) -> None:
        self.trouble, self.answer = trouble, _problem(503, trouble.message)


def _outcome(found: TransactionRow) -> Answer:
    if not found.successful:
        # Somebody else may make the account in the same ledger.
        existing = is_existing_account(found.result)
        status, detail = (400, _EXISTS) if existing else (500, "the funding transaction failed")
        return _problem(status, detail, found.result)
    return 200, {
        "hash": found.hash.hex(),
        "successful": True,
        "ledger": found.ledger,
        "source_account": found.source,
        "envelope_xdr": text(found.envelope),
        "result_xdr": text(found.result),
        "result_meta_xdr": text(found.meta),
    }


def _problem(status: int, detail: str, result: bytes | None = None) -> Answer:
    """The body that the network's friendbot gives (RFC 7807), with the transaction's result behind the
    detail."""
    return status, {
        "type": "about:blank",
        "title": _TITLES[status],
        "status": status,
        "detail": detail if result is None else f"{detail} ({text(result)})",
    }

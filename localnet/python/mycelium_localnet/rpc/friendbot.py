"""Free money for new accounts: what `/friendbot?addr=G...` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_localnet.errors import AccountExistsError, ChainBusyError, FundingError, InvalidRequestError

from .wire import text

if TYPE_CHECKING:
    from mycelium_localnet.ledger import Chain
    from mycelium_localnet.rows import TransactionRow

_TITLES = {400: "Bad Request", 500: "Internal Server Error", 503: "Service Unavailable"}


def friendbot(chain: Chain, address: str | None) -> tuple[int, dict[str, object]]:
    """Create `address` (G...) with 10,000 XLM, and answer when a ledger holds it: HTTP status and JSON body.

    200: the transaction, with its `hash`. 400: the address cannot be used, or `detail` holds
    `createAccountAlreadyExist`, by which clients know that the account is there. 503: the chain is busy. 500:
    the friendbot cannot pay. With manual closing this closes a ledger: nobody else would while the caller
    waits.
    """
    try:
        transaction_hash = bytes.fromhex(chain.fund(address or ""))
    except AccountExistsError as error:
        return _problem(400, "createAccountAlreadyExist", error.result)
    except InvalidRequestError:
        # What came instead is not repeated: it may be a secret seed.
        return _problem(400, "the parameter addr must be the address of an account, G...")
    except FundingError as error:
        return _problem(500, error.message, error.result)
    except ChainBusyError as error:
        return _problem(503, error.message)
    found = _find(chain, transaction_hash)
    if found is None:
        chain.close_ledger()
        found = _find(chain, transaction_hash)
    if found is None or not found.successful:
        return _problem(500, "the funding transaction failed", found.result if found else None)
    return 200, {
        "hash": found.hash.hex(),
        "successful": True,
        "ledger": found.ledger,
        "source_account": found.source,
        "envelope_xdr": text(found.envelope),
        "result_xdr": text(found.result),
        "result_meta_xdr": text(found.meta),
    }


def _find(chain: Chain, transaction_hash: bytes) -> TransactionRow | None:
    with chain.read() as view:
        return view.transaction(transaction_hash)


def _problem(status: int, detail: str, result: bytes | None = None) -> tuple[int, dict[str, object]]:
    """The body that the network's friendbot gives (RFC 7807), with the transaction's result behind the
    detail."""
    return status, {
        "type": "about:blank",
        "title": _TITLES[status],
        "status": status,
        "detail": detail if result is None else f"{detail} ({text(result)})",
    }

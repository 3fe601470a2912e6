"""Everything that the embedded chain raises, in one tree.

```
LocalnetError
├── ChainFileError               the chain file cannot be used
│   ├── ForeignFileError         it is something else than a chain
│   ├── NewerFileError           a later version of this package made it
│   ├── UnsafeFileError          other users of the machine may read or write it
│   ├── ChainReplacedError       it was deleted or replaced while it was open
│   └── UnusableFileError        it is damaged, or its disk is full or gives no access
├── ChainBusyError               another process held the write lock for too long
├── OptionConflictError          an option differs from what the existing chain was made with
├── ListenError                  a server cannot take requests at this host and port
│   └── PortInUseError           another program does
├── InvalidRequestError          the caller's input cannot be used (also ValueError)
│   ├── DumpError                a dump cannot be read or written
│   ├── MalformedEnvelopeError   not the XDR of a transaction envelope
│   └── UnknownTransactionError  no ledger that is kept holds the transaction
├── FundingError                 the friendbot's transaction was not accepted, or failed
│   └── AccountExistsError       the account to fund is there already, or being made
└── ChainClosedError             the chain was closed by its owner
```
"""

from __future__ import annotations


class LocalnetError(Exception):
    """Base of the tree. `message` says what is wrong, `hint` names the fix (None when the message does)."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ChainFileError(LocalnetError):
    """The chain file cannot be used."""


class ForeignFileError(ChainFileError):
    """The file is not a chain of this package; it was left as it is."""


class NewerFileError(ChainFileError):
    """A later version of this package made the file; it was left as it is."""


class UnsafeFileError(ChainFileError):
    """Other users of the machine may read or write the file."""


class ChainReplacedError(ChainFileError):
    """The file was deleted or replaced while the chain was open: nothing written now would be found again."""


class UnusableFileError(ChainFileError):
    """The file is the right one, and is damaged, or its disk is full or gives no access."""


class ChainBusyError(LocalnetError):
    """Another process held the write lock for longer than the busy timeout."""


class OptionConflictError(LocalnetError):
    """An option differs from what the existing chain was made with."""


class ListenError(LocalnetError):
    """A server cannot listen on the host and port that it was given."""


class PortInUseError(ListenError):
    """Another program listens on the port."""


class InvalidRequestError(LocalnetError, ValueError):
    """The caller's input cannot be used."""


class DumpError(InvalidRequestError):
    """What was given is no dump, one of a later version, or a damaged one; or its file cannot be used."""


class MalformedEnvelopeError(InvalidRequestError):
    """The bytes are not the XDR of a transaction envelope."""


class UnknownTransactionError(InvalidRequestError):
    """No ledger that is kept holds the transaction."""


class FundingError(LocalnetError):
    """The friendbot's transaction was not accepted, or failed.

    `result`: TransactionResult XDR, None when there is none.
    """

    def __init__(self, message: str, *, result: bytes | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class AccountExistsError(FundingError):
    """The account to fund is there already, or about to be.

    `pending`: the hash of the friendbot's transaction that waits for its ledger to make it (32 bytes); None
    when the account is there.
    """

    def __init__(
        self,
        message: str,
        *,
        result: bytes | None = None,
        hint: str | None = None,
        pending: bytes | None = None,
    ) -> None:
        super().__init__(message, result=result, hint=hint)
        self.pending = pending


class ChainClosedError(LocalnetError):
    """The chain was closed; open it again to use it."""

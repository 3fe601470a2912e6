"""Everything that the embedded chain raises, in one tree.

```
LocalnetError
├── ChainFileError               the chain file cannot be used
│   ├── ForeignFileError         it is something else than a chain
│   ├── NewerFileError           a later version of this package made it
│   ├── UnsafeFileError          other users of the machine may read or write it
│   └── ChainReplacedError       it was deleted or replaced while it was open
├── ChainBusyError               another process held the write lock for too long
├── OptionConflictError          an option differs from what the existing chain was made with
├── InvalidRequestError          the caller's input cannot be used (also ValueError)
│   └── MalformedEnvelopeError   not the XDR of a transaction envelope
├── FundingError                 the friendbot's transaction was not accepted, or failed
│   └── AccountExistsError       the account to fund is there already
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


class ChainBusyError(LocalnetError):
    """Another process held the write lock for longer than the busy timeout."""


class OptionConflictError(LocalnetError):
    """An option differs from what the existing chain was made with."""


class InvalidRequestError(LocalnetError, ValueError):
    """The caller's input cannot be used."""


class MalformedEnvelopeError(InvalidRequestError):
    """The bytes are not the XDR of a transaction envelope."""


class FundingError(LocalnetError):
    """The friendbot's transaction was not accepted, or failed.

    `result`: TransactionResult XDR, None when there is none.
    """

    def __init__(self, message: str, *, result: bytes | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class AccountExistsError(FundingError):
    """The account to fund is there already."""


class ChainClosedError(LocalnetError):
    """The chain was closed; open it again to use it."""

"""Every error that this package raises on purpose, in one tree.

    MyceliumError                    exit code
    ├── UsageError                   2  (also a ValueError)
    │   └── InputError                  a text, tag, address or option that cannot be accepted
    ├── ConfigError                  3  mycelium.toml, a MYCELIUM_ variable or a network setting
    ├── WalletError                  4
    │   ├── WalletNotFound
    │   ├── WalletExists                creating would overwrite
    │   ├── WalletPermissions           others could read the file
    │   ├── WalletDamaged               not a wallet file: truncated, unknown or malformed fields
    │   ├── WalletMismatch              the decrypted key is not that of `public_key`
    │   ├── PassphraseRequired
    │   └── WrongPassphrase
    ├── BackendError                 5  where memories are kept
    │   ├── StoreLocked                 another process is writing (retryable)
    │   ├── StoreUnavailable            the service that keeps them does not answer (retryable)
    │   ├── ForeignFile                 another owner's or another program's file
    │   ├── NewerFile                   written by a newer version
    │   └── IntegrityKeyMissing         what vouches for the rows is not on this machine
    ├── ChainError                   6
    │   ├── ChainUnavailable            UNAVAILABLE (retryable)
    │   ├── TransactionFailed           final: the network refused or failed it
    │   ├── Unsettled                   UNSETTLED: sent, outcome unknown, look it up by hash
    │   ├── ContractFailed              the contract answered with an error code
    │   ├── VersionConflict             VERSION_CONFLICT
    │   ├── AnchorArchived              ARCHIVED
    │   ├── ContractNotFound
    │   ├── WrongDomain                 WRONG_DOMAIN: another network or contract
    │   └── ChainReset                  CHAIN_RESET
    ├── VerificationError            7  (also a ValueError); always has a verdict
    │   ├── NonCanonical                NON_CANONICAL, with a `Reason`
    │   ├── WrongOwner                  WRONG_OWNER
    │   ├── LimitExceeded               LIMIT
    │   ├── Tampered                    TAMPERED
    │   ├── Rollback                    ROLLBACK
    │   ├── Fork                        FORK
    │   ├── NotAnchored                 NOT_ANCHORED
    │   ├── UntrustedSource             UNTRUSTED_SOURCE
    │   └── UnanchoredWrites            AHEAD: going on would lose writes
    └── BlobError                    8  where published blobs are kept
        ├── BlobNotFound
        ├── BlobUnavailable             the server that has it does not give it (retryable)
        ├── PublishFailed
        └── ContextUnusable             a context file that does not fit its blob; loading goes on without

Rules: a message says what is wrong, `hint` says what to do about it. Neither ever holds memory text, a seed
or a passphrase. Errors of lower layers are mapped in one place each, with `raise ... from`. Whatever
reaches the command line from outside this tree is a bug (exit code 1).
"""

# ruff: noqa: N818 - the names say what happened

from __future__ import annotations

from typing import Any, ClassVar

from mycelium_sdk.verdicts import Reason, Verdict, next_step


class MyceliumError(Exception):
    """Base of the tree.

    `hint` defaults to the next step of the verdict, where there is a verdict. `exit_code` is the command
    line's (formats.md section 9). `retryable` means that the same call may succeed later without any
    change, and not before `retry_after` seconds, where a server said so.
    """

    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False
    retry_after: float | None = None
    default_verdict: ClassVar[Verdict | None] = None

    def __init__(self, message: str, *, hint: str | None = None, verdict: Verdict | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.verdict = verdict if verdict is not None else self.default_verdict
        if hint is None and self.verdict is not None:
            hint = next_step(self.verdict)
        self.hint = hint
        if hint is not None:
            self.add_note(f"hint: {hint}")  # what a traceback shows below the message

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with `args` alone, which fails for required keywords; an error must
        # survive the way back from a worker process.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[MyceliumError], args: tuple[Any, ...], state: dict[str, Any]) -> MyceliumError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class UsageError(MyceliumError, ValueError):
    """The call itself is wrong: an argument, an option or a combination of them."""

    exit_code: ClassVar[int] = 2


class InputError(UsageError):
    """A value given by the caller cannot be accepted. Raised before anything is written."""


class ConfigError(MyceliumError):
    """The configuration cannot be used; the message names file and key, or the variable."""

    exit_code: ClassVar[int] = 3


class WalletError(MyceliumError):
    """The wallet file cannot be used."""

    exit_code: ClassVar[int] = 4


class WalletNotFound(WalletError):
    """There is no wallet file at the path."""


class WalletExists(WalletError):
    """There is a wallet file already; it is never overwritten."""


class WalletPermissions(WalletError):
    """Somebody other than the owner of the file may read it."""


class WalletDamaged(WalletError):
    """The file is not a wallet as formats.md section 2 defines it."""


class WalletMismatch(WalletError):
    """The decrypted key belongs to another account than the file's `public_key`."""


class PassphraseRequired(WalletError):
    """No passphrase was given, or an empty one."""


class WrongPassphrase(WalletError):
    """The passphrase does not open the wallet, or its encrypted part was changed: no cipher tells which."""


class BackendError(MyceliumError):
    """The place where memories are kept cannot be used."""

    exit_code: ClassVar[int] = 5


class StoreLocked(BackendError):
    """Another process held the store longer than the busy timeout."""

    retryable: ClassVar[bool] = True


class StoreUnavailable(BackendError):
    """The service that keeps the memories could not be reached, or did not answer in time."""

    retryable: ClassVar[bool] = True


class ForeignFile(BackendError):
    """The file belongs to another owner or another program."""


class NewerFile(BackendError):
    """The file was written by a newer version of this software."""


class IntegrityKeyMissing(BackendError):
    """The key that vouches for a store's rows is not on this machine, so edited ones could not be told."""


class ChainError(MyceliumError):
    """The chain refused something, or cannot be asked."""

    exit_code: ClassVar[int] = 6


class ChainUnavailable(ChainError):
    """The chain could not be reached or did not answer in time. Says nothing about what is anchored."""

    retryable: ClassVar[bool] = True
    default_verdict = Verdict.UNAVAILABLE


class TransactionFailed(ChainError):
    """The transaction was refused or failed, and that is final.

    `result_code` is the network's own code, e.g. `txBAD_SEQ`; `hash` is lower-case hex, None if it was
    never sent.
    """

    def __init__(
        self,
        message: str,
        *,
        result_code: str,
        hash: str | None = None,  # noqa: A002
        hint: str | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        super().__init__(message, hint=hint, verdict=verdict)
        self.result_code = result_code
        self.hash = hash


class Unsettled(ChainError):
    """The transaction was sent and its outcome is unknown; `hash` (lower-case hex) finds it again."""

    default_verdict = Verdict.UNSETTLED

    def __init__(
        self,
        message: str,
        *,
        hash: str,  # noqa: A002
        hint: str | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        super().__init__(message, hint=hint, verdict=verdict)
        self.hash = hash


class ContractFailed(ChainError):
    """A contract ended with one of its own error codes; `name` is the code's name where it is known."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        name: str | None = None,
        hint: str | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        super().__init__(message, hint=hint, verdict=verdict)
        self.code = code
        self.name = name


class VersionConflict(ChainError):
    """The owner's version on the chain is not the expected one; `actual` is None where unknown."""

    default_verdict = Verdict.VERSION_CONFLICT

    def __init__(
        self,
        message: str,
        *,
        expected: int,
        actual: int | None = None,
        hint: str | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        super().__init__(message, hint=hint, verdict=verdict)
        self.expected = expected
        self.actual = actual


class AnchorArchived(ChainError):
    """The anchor's entry is archived: it exists, and must be restored before it can be read."""

    default_verdict = Verdict.ARCHIVED


class ContractNotFound(ChainError):
    """There is no contract at the address on this network."""


class WrongDomain(ChainError):
    """The server answers for another network, or the address is another contract."""

    default_verdict = Verdict.WRONG_DOMAIN


class ChainReset(ChainError):
    """The chain was started anew since it was last seen."""

    default_verdict = Verdict.CHAIN_RESET


class VerificationError(MyceliumError, ValueError):
    """A check failed, and nothing was loaded or accepted."""

    exit_code: ClassVar[int] = 7
    verdict: Verdict

    def __init__(self, message: str, *, hint: str | None = None, verdict: Verdict | None = None) -> None:
        super().__init__(message, hint=hint, verdict=verdict)
        if self.verdict is None:
            raise TypeError("a VerificationError needs a verdict")


class _Refused(VerificationError):
    """A refusal of bytes as a canonical blob, with the documented reason."""

    default_reason: ClassVar[Reason | None] = None

    def __init__(
        self,
        message: str,
        *,
        reason: Reason | None = None,
        hint: str | None = None,
        verdict: Verdict | None = None,
    ) -> None:
        super().__init__(message, hint=hint, verdict=verdict)
        self.reason = reason if reason is not None else self.default_reason


class NonCanonical(_Refused):
    """Bytes are not a canonical blob; `reason` says which rule they break."""

    default_verdict = Verdict.NON_CANONICAL


class WrongOwner(_Refused):
    """The blob or store is well-formed and belongs to another account."""

    default_verdict = Verdict.WRONG_OWNER
    default_reason = Reason.OWNER


class LimitExceeded(_Refused):
    """Something is larger than its limit."""

    default_verdict = Verdict.LIMIT
    default_reason = Reason.SIZE


class Tampered(VerificationError):
    """Stored or fetched data is not what was written or anchored."""

    default_verdict = Verdict.TAMPERED


class Rollback(VerificationError):
    """An older state was served than one already verified."""

    default_verdict = Verdict.ROLLBACK


class Fork(VerificationError):
    """Another root was served for a version already verified."""

    default_verdict = Verdict.FORK


class UntrustedSource(VerificationError):
    """The place where a blob should come from is one that is not fetched from. Nothing was loaded."""

    default_verdict = Verdict.UNTRUSTED_SOURCE


class NotAnchored(VerificationError):
    """The owner has never anchored on this chain and contract."""

    default_verdict = Verdict.NOT_ANCHORED


class UnanchoredWrites(VerificationError):
    """Going on would lose writes that are not anchored."""

    default_verdict = Verdict.AHEAD


class BlobError(MyceliumError):
    """The place where published blobs are kept cannot be used."""

    exit_code: ClassVar[int] = 8


class BlobNotFound(BlobError):
    """There is no blob at the URI."""


class BlobUnavailable(BlobError):
    """The server that should have a blob could not be reached, or did not give it in time and whole."""

    retryable: ClassVar[bool] = True
    default_verdict = Verdict.UNAVAILABLE


class PublishFailed(BlobError):
    """A blob could not be published, and nothing was anchored. The cause, if any, is chained."""


class ContextUnusable(BlobError):
    """A context file is not what its owner signed for the blob, or cannot be written. It never keeps a memory
    from being anchored or loaded: its message becomes part of a note."""

"""Transactions as they come in: decoding an envelope, its hash, and what the ledger asks of it."""

from __future__ import annotations

from binascii import a2b_base64
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Final, TypeVar

from stellar_sdk import StrKey, xdr
from xdrlib3 import Error as XdrError

from mycelium_localnet import pack
from mycelium_localnet.errors import MalformedEnvelopeError

T = TypeVar("T")

_OPERATION = xdr.OperationType
SOROBAN_OPERATIONS: Final = frozenset(
    (_OPERATION.INVOKE_HOST_FUNCTION, _OPERATION.EXTEND_FOOTPRINT_TTL, _OPERATION.RESTORE_FOOTPRINT)
)
_UNREADABLE = (ValueError, EOFError, OverflowError, RecursionError, TypeError, IndexError, XdrError)


@dataclass(frozen=True)
class Soroban:
    """The Soroban part of a transaction: declared resources, footprint (LedgerKeys), and the resource fee in
    stroops."""

    resources: bytes
    """SorobanResources."""
    instructions: int
    disk_read_bytes: int
    write_bytes: int
    read_only: tuple[bytes, ...]
    read_write: tuple[bytes, ...]
    archived: tuple[int, ...]
    """archivedSorobanEntries: indices into `read_write` of what is to be restored first."""
    resource_fee: int

    @property
    def footprint(self) -> tuple[bytes, ...]:
        """Every key, in the host's order."""
        return self.read_only + self.read_write


@dataclass(frozen=True, eq=False)
class Transaction:
    """A decoded transaction. `fee`: the whole bid in stroops; keys are raw ed25519 public keys."""

    envelope: bytes
    """TransactionEnvelope, V1."""
    hash: bytes
    body: xdr.Transaction
    signatures: tuple[tuple[bytes, bytes], ...]
    """`(hint, signature)` each."""
    verified: dict[tuple[bytes, int], bool] = field(default_factory=dict)
    """Signatures already checked, by key and index: a transaction is validated more than once."""

    @property
    def operations(self) -> list[xdr.Operation]:
        return self.body.operations

    @property
    def fee(self) -> int:
        return self.body.fee.uint32

    @property
    def sequence(self) -> int:
        return self.body.seq_num.sequence_number.int64

    @cached_property
    def source(self) -> bytes:
        return account_of(self.body.source_account)

    @property
    def source_address(self) -> str:
        return StrKey.encode_ed25519_public_key(self.source)

    def operation_source(self, operation: xdr.Operation) -> bytes:
        """The account that an operation acts for."""
        return self.source if operation.source_account is None else account_of(operation.source_account)

    @property
    def is_soroban(self) -> bool:
        return bool(self.operations) and self.operations[0].body.type in SOROBAN_OPERATIONS

    @cached_property
    def soroban(self) -> Soroban | None:
        """The Soroban part, None when the envelope carries none."""
        data = self.body.ext.soroban_data
        if data is None:
            return None
        resources, extension = data.resources, data.ext.resource_ext
        return Soroban(
            resources=resources.to_xdr_bytes(),
            instructions=resources.instructions.uint32,
            disk_read_bytes=resources.disk_read_bytes.uint32,
            write_bytes=resources.write_bytes.uint32,
            read_only=tuple(key.to_xdr_bytes() for key in resources.footprint.read_only),
            read_write=tuple(key.to_xdr_bytes() for key in resources.footprint.read_write),
            archived=() if extension is None else tuple(
                index.uint32 for index in extension.archived_soroban_entries
            ),
            resource_fee=data.resource_fee.int64,
        )  # fmt: skip

    @property
    def inclusion_bid(self) -> int:
        """What is offered for being included, in stroops: the bid without the resource fee."""
        return self.fee - (self.soroban.resource_fee if self.is_soroban and self.soroban else 0)

    @property
    def has_muxed_source(self) -> bool:
        """Whether the transaction or an operation names an M... account as its source."""
        muxed = xdr.CryptoKeyType.KEY_TYPE_MUXED_ED25519
        return self.body.source_account.type == muxed or any(
            operation.source_account is not None and operation.source_account.type == muxed
            for operation in self.operations
        )


@dataclass(frozen=True)
class UnsupportedEnvelope:
    """A well-formed envelope of a kind that this chain does not apply: a fee bump."""

    envelope: bytes
    hash: bytes


def decode(envelope: bytes, network_id: bytes) -> Transaction | UnsupportedEnvelope:
    """Decode a TransactionEnvelope. A V0 envelope is read as the V1 envelope that the network turns it into.

    Raises MalformedEnvelopeError for bytes that are not exactly one envelope in its one encoding.
    """
    try:
        decoded = xdr.TransactionEnvelope.from_xdr_bytes(envelope)
        canonical = decoded.to_xdr_bytes() == envelope
    except _UNREADABLE as error:
        raise MalformedEnvelopeError(f"not a TransactionEnvelope: {error}") from error
    if not canonical:
        raise MalformedEnvelopeError("not a TransactionEnvelope: the bytes are not its XDR encoding")
    if decoded.fee_bump is not None:
        payload = decoded.fee_bump.tx.to_xdr_bytes()
        return UnsupportedEnvelope(envelope, _contents_hash(network_id, decoded.type, payload))
    if decoded.v0 is not None:
        decoded = _as_v1(decoded.v0)
        envelope = decoded.to_xdr_bytes()
    v1 = present(decoded.v1)
    return Transaction(
        envelope=envelope,
        hash=_contents_hash(network_id, decoded.type, v1.tx.to_xdr_bytes()),
        body=v1.tx,
        signatures=tuple(
            (signature.hint.signature_hint, signature.signature.signature) for signature in v1.signatures
        ),
    )


def decode_transaction(envelope: bytes, network_id: bytes) -> Transaction:
    """Decode an envelope that is known to hold a transaction. Raises MalformedEnvelopeError."""
    decoded = decode(envelope, network_id)
    if not isinstance(decoded, Transaction):
        raise MalformedEnvelopeError("the envelope holds a fee bump")
    return decoded


def as_envelope(envelope: str | bytes) -> bytes:
    """The bytes of an envelope that may be given in base64. Raises MalformedEnvelopeError."""
    if isinstance(envelope, bytes):
        return envelope
    try:
        return a2b_base64(envelope, strict_mode=True)
    except ValueError as error:
        raise MalformedEnvelopeError("not a TransactionEnvelope: the text is not base64") from error


def present(arm: T | None) -> T:
    """The arm of a decoded union that its tag promises."""
    if arm is None:
        raise ValueError("a union holds another arm than its tag says")
    return arm


def account_of(muxed: xdr.MuxedAccount) -> bytes:
    """The raw public key of the account behind a G... or M... address."""
    if muxed.med25519 is not None:
        return muxed.med25519.ed25519.uint256
    return present(muxed.ed25519).uint256


def account_of_id(account: xdr.AccountID) -> bytes:
    """The raw public key of an AccountID."""
    return present(account.account_id.ed25519).uint256


def _contents_hash(network_id: bytes, kind: xdr.EnvelopeType, transaction: bytes) -> bytes:
    return sha256(network_id + pack.u32(kind) + transaction).digest()


def _as_v1(envelope: xdr.TransactionV0Envelope) -> xdr.TransactionEnvelope:
    tx = envelope.tx
    kind = xdr.PreconditionType.PRECOND_TIME if tx.time_bounds else xdr.PreconditionType.PRECOND_NONE
    body = xdr.Transaction(
        source_account=xdr.MuxedAccount(
            xdr.CryptoKeyType.KEY_TYPE_ED25519, ed25519=tx.source_account_ed25519
        ),
        fee=tx.fee,
        seq_num=tx.seq_num,
        cond=xdr.Preconditions(kind, time_bounds=tx.time_bounds),
        memo=tx.memo,
        operations=tx.operations,
        ext=xdr.TransactionExt(0),
    )
    v1 = xdr.TransactionV1Envelope(tx=body, signatures=envelope.signatures)
    return xdr.TransactionEnvelope(xdr.EnvelopeType.ENVELOPE_TYPE_TX, v1=v1)

"""The client of a MemoryAnchor contract: reads anchors, moves the signer's own, and tells archived from
absent.

Works with the present contract and with older deployments (formats.md section 3), which have neither
compare-and-set nor a hash chain: there the version is read and compared before it is set, which another
machine can slip through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stellar_sdk import scval, xdr

from mycelium_sdk.chain import operations
from mycelium_sdk.chain.anchors import MAX_ACL_BYTES, MAX_URI_BYTES, ROOT_BYTES, Anchor, anchor_from_value
from mycelium_sdk.chain.base import EXPIRING_WITHIN, AnchorReceipt, EntryState, EntryStatus
from mycelium_sdk.chain.contracts import function_names
from mycelium_sdk.errors import (
    ContractFailed,
    InputError,
    MyceliumError,
    TransactionFailed,
    Unsettled,
    VersionConflict,
    WrongDomain,
)
from mycelium_sdk.strkey import check_contract, is_account, is_contract

if TYPE_CHECKING:
    from stellar_sdk import Keypair

    from mycelium_sdk.chain.base import BeforeSend, ChainClient, ChainIdentity, Receipt

__all__ = ["MemoryAnchorClient"]

_NOT_ANCHORED = 1
_VERSION_CONFLICT = 2
_ERROR_NAMES = {
    _NOT_ANCHORED: "NOT_ANCHORED",
    _VERSION_CONFLICT: "VERSION_CONFLICT",
    3: "BAD_ROOT",
    4: "URI_TOO_LONG",
    5: "ACL_TOO_LONG",
}

_NEEDED = frozenset({"set_anchor", "get_anchor", "get_version", "is_anchored"})
_COMPARE_AND_SET = "set_anchor_if"
_TRAPPED = xdr.InvokeHostFunctionResultCode.INVOKE_HOST_FUNCTION_TRAPPED.name
_LEGACY_PREFIXES = ("root:", "uri:", "acl:", "ver:", "has:")

# From the state that needs care most to the one that needs none.
_URGENCY = (EntryStatus.ARCHIVED, EntryStatus.ABSENT, EntryStatus.EXPIRING, EntryStatus.LIVE)


class MemoryAnchorClient:
    """Anchors of one MemoryAnchor contract on one chain. May be used from several threads.

    Every method raises `ChainUnavailable` when the chain cannot be asked, `ContractNotFound` when there is
    no contract at the address and `WrongDomain` when there is another one.
    """

    def __init__(self, chain: ChainClient, contract_id: str) -> None:
        self.chain = chain
        self.contract_id = check_contract(contract_id)
        self._legacy: bool | None = None

    @property
    def is_legacy(self) -> bool:
        """True for an older deployment: no compare-and-set, no `previous`, no `timestamp`. Asks the chain
        once."""
        if self._legacy is None:  # under no lock: threads that ask at once get the same answer
            names = function_names(self.chain, self.contract_id)
            if not names >= _NEEDED:
                raise WrongDomain(f"the contract {self.contract_id} is not a MemoryAnchor contract")
            self._legacy = _COMPARE_AND_SET not in names
        return self._legacy

    def identity(self) -> ChainIdentity:
        """Which chain this is and its latest ledger, asked anew each time."""
        return self.chain.identity()

    def get_anchor(self, owner: str) -> Anchor | None:
        """The owner's anchor, also an archived one; None if the owner never anchored."""
        try:
            value = self._read("get_anchor", owner)
        except ContractFailed as error:
            if error.code == _NOT_ANCHORED:
                return None
            raise
        return anchor_from_value(owner, value)

    def get_version(self, owner: str) -> int:
        """The owner's version, 0 if never anchored."""
        value = self._read("get_version", owner)
        if value.u64 is None:
            raise self._not_ours("its version is no number")
        return value.u64.uint64

    def is_anchored(self, owner: str) -> bool:
        """Whether the owner has ever anchored; an archived anchor counts."""
        value = self._read("is_anchored", owner)
        if value.b is None:
            raise self._not_ours("is_anchored gives no truth value")
        return value.b

    def set_anchor(
        self,
        signer: Keypair,
        root: bytes,
        uri: bytes = b"",
        acl: bytes = b"",
        *,
        before_send: BeforeSend | None = None,
    ) -> AnchorReceipt:
        """Make the signer's next anchor, whatever the present one is.

        Raises:
            InputError: root, uri or acl are outside the contract's limits; nothing was sent.
            TransactionFailed, Unsettled, ContractFailed: as `ChainClient.submit` says.
        """
        _check(root, uri, acl)
        leading = [scval.to_address(signer.public_key)]
        return self._set("set_anchor", leading, (root, uri, acl), signer, before_send)

    def set_anchor_if(
        self,
        signer: Keypair,
        expected_version: int,
        root: bytes,
        uri: bytes = b"",
        acl: bytes = b"",
        *,
        before_send: BeforeSend | None = None,
    ) -> AnchorReceipt:
        """Make the signer's next anchor if the present version is `expected_version` (0 if never anchored).

        An older deployment cannot compare by itself: the receipt's `compared` is False there, and another
        machine may have come in between; where the new version shows that it did, `VersionConflict` is
        raised all the same.

        Raises:
            VersionConflict: the version is another one, and (but for that one case) nothing was changed.
            InputError: root, uri or acl are outside the contract's limits; nothing was sent.
            TransactionFailed, Unsettled, ContractFailed: as `ChainClient.submit` says; Unsettled also where
                the server says that a version was made which cannot be.
        """
        _check(root, uri, acl)
        if isinstance(expected_version, bool) or expected_version < 0:
            raise InputError(
                "the expected version is a number from 0", hint="0 is for an owner who never anchored"
            )
        if self.is_legacy:
            return self._set_if_legacy(signer, expected_version, (root, uri, acl), before_send)
        leading = [scval.to_address(signer.public_key), scval.to_uint64(expected_version)]
        try:
            receipt = self._set(_COMPARE_AND_SET, leading, (root, uri, acl), signer, before_send)
        except ContractFailed as error:
            if error.code != _VERSION_CONFLICT:
                raise
            raise _conflict(expected_version, self.get_version(signer.public_key)) from error
        except TransactionFailed as error:
            # The contract failed in the ledger and the server keeps no diagnostic events: most likely another
            # machine came between simulation and ledger.
            if error.result_code != _TRAPPED:
                raise
            actual = self.get_version(signer.public_key)
            if actual == expected_version:
                raise
            raise _conflict(expected_version, actual) from error
        if receipt.version != expected_version + 1:
            raise Unsettled(
                f"the server says that transaction {receipt.hash} made version {receipt.version}, which it"
                " cannot have made",
                hash=receipt.hash,
                hint="ask another RPC server, by that hash: this one does not tell the truth",
            )
        return receipt

    def entry_keys(self, owner: str) -> list[xdr.LedgerKey]:
        """The keys of the entries that hold the owner's anchor: one, and five in an older deployment."""
        _check_owner(owner)
        if self.is_legacy:
            names = [scval.to_string(prefix + owner) for prefix in _LEGACY_PREFIXES]
        else:
            names = [scval.to_address(owner)]
        return [operations.data_key(self.contract_id, name) for name in names]

    def entry_state(self, owner: str, *, expiring_within: int = EXPIRING_WITHIN) -> EntryState:
        """Where the owner's entry is in its life. Of an older deployment's five entries, the most urgent one.

        `expiring_within` is in ledgers: with fewer left, the entry counts as EXPIRING.
        """
        states = self.chain.entries(self.entry_keys(owner), expiring_within=expiring_within)
        return min(states, key=lambda state: _URGENCY.index(state.status))

    def restore(self, owner: str, signer: Keypair) -> Receipt | None:
        """Bring the owner's archived entry back, paid by any signer; None if it is not archived.

        Anchoring again restores it as well; this is for keeping the anchor as it is.
        """
        keys = self.entry_keys(owner)
        states = self.chain.entries(keys)
        archived = [
            key for key, state in zip(keys, states, strict=True) if state.status is EntryStatus.ARCHIVED
        ]
        return self.chain.submit(operations.restore(archived), signer) if archived else None

    def _read(self, function: str, owner: str) -> xdr.SCVal:
        work = operations.invoke(self.contract_id, function, [scval.to_address(_check_owner(owner))])
        try:
            value = self.chain.simulate(work).value
        except ContractFailed as error:
            raise _named(error) from error
        if value is None:
            raise self._not_ours(f"{function} gives nothing")
        return value

    def _set(
        self,
        function: str,
        leading: list[xdr.SCVal],
        content: tuple[bytes, bytes, bytes],
        signer: Keypair,
        before_send: BeforeSend | None,
    ) -> AnchorReceipt:
        arguments = [*leading, *map(scval.to_bytes, content)]
        work = operations.invoke(self.contract_id, function, arguments)
        try:
            receipt = self.chain.submit(work, signer, before_send=before_send)
        except ContractFailed as error:
            raise _named(error) from error
        return AnchorReceipt(
            owner=signer.public_key,
            version=self._version_made(receipt, signer.public_key, content),
            hash=receipt.hash,
            ledger=receipt.ledger,
            close_time=receipt.close_time,
            fee_charged=receipt.fee_charged,
            compared=function == _COMPARE_AND_SET,
        )

    def _version_made(self, receipt: Receipt, owner: str, content: tuple[bytes, bytes, bytes]) -> int:
        """The version that an applied transaction made: what the call returned, or, where the server does
        not keep that, what the anchor says. Whatever is wrong here, the anchor was made."""
        if receipt.value is not None and receipt.value.u64 is not None:
            return receipt.value.u64.uint64
        made = Unsettled(
            f"the anchor was made by transaction {receipt.hash}, and the server does not tell its version",
            hash=receipt.hash,
        )
        try:
            anchor = self.get_anchor(owner)
        except MyceliumError as error:
            raise made from error
        if anchor is None or (anchor.root, anchor.uri, anchor.acl) != content:
            raise made  # another one came after it
        return anchor.version

    def _set_if_legacy(
        self,
        signer: Keypair,
        expected_version: int,
        content: tuple[bytes, bytes, bytes],
        before_send: BeforeSend | None,
    ) -> AnchorReceipt:
        actual = self.get_version(signer.public_key)
        if actual != expected_version:
            raise _conflict(expected_version, actual)
        receipt = self.set_anchor(signer, *content, before_send=before_send)
        if receipt.version != expected_version + 1:
            raise VersionConflict(
                f"another machine anchored version {receipt.version - 1} in between, and this anchor was set "
                f"on top of it as version {receipt.version}: this older contract cannot compare by itself",
                expected=expected_version,
                actual=receipt.version - 1,
            )
        return receipt

    def _not_ours(self, why: str) -> WrongDomain:
        return WrongDomain(f"the contract {self.contract_id} is not a MemoryAnchor contract: {why}")


def _check_owner(owner: str) -> str:
    if not (is_account(owner) or is_contract(owner)):
        raise InputError(
            "the owner is not an account or contract address",
            hint="an owner is G or C and 55 more characters",
        )
    return owner


def _check(root: bytes, uri: bytes, acl: bytes) -> None:
    """Refuse what the contract would refuse, before anything is sent."""
    if len(root) != ROOT_BYTES or not any(root):
        raise InputError(
            f"a root is {ROOT_BYTES} bytes that are not all zero", hint="give the SHA-256 of the blob"
        )
    if len(uri) > MAX_URI_BYTES:
        raise InputError(
            f"the URI has {len(uri):,} bytes, and the contract takes {MAX_URI_BYTES:,}",
            hint="publish the blob under a shorter address",
        )
    if len(acl) > MAX_ACL_BYTES:
        raise InputError(
            f"the acl has {len(acl):,} bytes, and the contract takes {MAX_ACL_BYTES:,}",
            hint="shorten the acl",
        )


def _named(error: ContractFailed) -> ContractFailed:
    """The same failure with the name that the MemoryAnchor contract gives its code."""
    name = _ERROR_NAMES.get(error.code)
    if name is None:
        return error
    message = f"the MemoryAnchor contract refused: {name}"
    return ContractFailed(message, code=error.code, name=name, hint="nothing was changed on the chain")


def _conflict(expected: int, actual: int) -> VersionConflict:
    return VersionConflict(
        f"the anchor on the chain is version {actual}, not {expected}", expected=expected, actual=actual
    )

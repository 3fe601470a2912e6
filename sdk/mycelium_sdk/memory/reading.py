"""Reading another agent's memory: its anchor, its blob from wherever that is, everything checked, nothing
imported.

What is read is untrusted input for whatever it is shown to: it is what its owner committed to, which does not
make it true, or harmless in a prompt.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mycelium_sdk import canonical
from mycelium_sdk.assembly import AnchorDesk
from mycelium_sdk.chain.base import EntryStatus
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import BlobError, NotAnchored, VerificationError, WrongOwner
from mycelium_sdk.fetching.policy import FetchPolicy
from mycelium_sdk.memory.publishing import blob_folder
from mycelium_sdk.memory.rehydration import fetched_blob
from mycelium_sdk.memory.trust import TrustedChain
from mycelium_sdk.state import StateStore
from mycelium_sdk.strkey import check_account

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.chain.anchors import Anchor
    from mycelium_sdk.memory.sources import Fetch
    from mycelium_sdk.records import Record

__all__ = ["ForeignMemory", "read_memory"]


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """A memory that was read and verified: every record is committed to by the owner's anchor.

    `network` is the name, `contract` the C-address, `ledger` the one as of which the anchor is the owner's
    latest. `warnings` name what is not as it should be though everything fits (an archived anchor).
    """

    owner: str
    network: str
    contract: str
    anchor: Anchor
    ledger: int
    records: int
    warnings: tuple[str, ...]
    blob: bytes = field(repr=False)

    def __iter__(self) -> Iterator[Record]:
        """The records, in canonical order."""
        return iter(canonical.parse(self.blob, self.owner, max_bytes=len(self.blob)))

    def provenance(self) -> dict[str, Any]:
        """Where this comes from, JSON-ready: to be kept beside whatever is taken from it."""
        anchor = self.anchor
        return {
            "owner": self.owner,
            "network": self.network,
            "contract": self.contract,
            "version": anchor.version,
            "root": anchor.root.hex(),
            "uri": anchor.uri_text,
            "timestamp": anchor.timestamp,
            "as_of_ledger": self.ledger,
            "records": self.records,
        }


def read_memory(
    owner: str,
    *,
    context: AgentContext | None = None,
    network: str | None = None,
    anchor_address: str | None = None,
    policy: FetchPolicy | None = None,
    fetch: Fetch | None = None,
) -> ForeignMemory:
    """The memory that the account `owner` (G...) has anchored: from `blobs/` of the home folder, if somebody
    put a file with its root there, else fetched from where its anchor says.

    `context`: whose network and home folder to use (default: a read-only one for `network`). `policy`: the
    limits of fetching (default: strict, with what `[fetch]` of the configuration says). `fetch`: a function
    `uri -> bytes` instead of `blobs/` and the fetcher; what it gives is checked like everything else. What
    was seen is remembered in the home folder, so that an older anchor is noticed the next time.

    Raises (nothing is returned unless everything fits; hints about the blob name its version, root and URI):
        InputError: `owner` is no account's address.
        NotAnchored: it has never anchored on this network and contract.
        UntrustedSource: the blob lies where nothing is fetched from: a file, a private network.
        BlobNotFound, BlobUnavailable, BlobError: there is no way to it now.
        LimitExceeded, Tampered, Rollback, NonCanonical, WrongOwner: it is not what the anchor commits to.
        ChainError, Rollback, Fork: see `AgentMemory.verify`.
    """
    check_account(owner)
    if context is None:
        with AgentContext.read_only(network) as own:
            return _read(owner, own, anchor_address, policy, fetch)
    return _read(owner, context, anchor_address, policy, fetch)


def _read(
    owner: str,
    context: AgentContext,
    anchor_address: str | None,
    policy: FetchPolicy | None,
    fetch: Fetch | None,
) -> ForeignMemory:
    if policy is None:
        policy = FetchPolicy().configured(context.configuration.fetch)
    desk = AnchorDesk(context, anchor_address)
    with StateStore(context.home.state_file) as state:
        trusted = TrustedChain(desk, state, owner, context.network.passphrase, desk.witnesses)
        seen = trusted.look()
        anchor = seen.anchor
        if anchor is None:
            raise NotAnchored(
                "this account has never anchored a memory on this network and contract",
                hint="check the account, network and anchor_address (on `local` chain_file as well), or ask"
                " the owner where they anchor",
            )
        try:
            # Only this user writes to blobs/, and only what hashes to the root is taken from there.
            stored = blob_folder(context.home.blobs).find(anchor.root) if fetch is None else None
            if stored is None:
                stored = fetched_blob(seen, fetch, state=state, policy=policy, own=False)
            records = _checked(stored, owner)
        except (BlobError, VerificationError) as error:
            error.hint = f"{(error.hint or 'get the blob from another copy').rstrip('.')}. {_wanted(anchor)}"
            raise
    warnings: tuple[str, ...] = ()
    if desk.entry_state(owner).status is EntryStatus.ARCHIVED:
        warnings = ("the anchor is archived: it cannot have been replaced without being restored first",)
    return ForeignMemory(
        owner=owner,
        network=context.network.name,
        contract=desk.contract_id,
        anchor=anchor,
        ledger=seen.ledger,
        records=records,
        warnings=warnings,
        blob=stored,
    )


def _wanted(anchor: Anchor) -> str:
    """What is looked for, so that it can be got by hand. The URI is a stranger's text: quoted and escaped."""
    uri = anchor.uri_text
    address = "no usable URI" if not uri else f"URI {json.dumps(uri)}"
    return f"What is anchored: version {anchor.version}, root {anchor.root.hex()}, {address}"


def _checked(blob: bytes, owner: str) -> int:
    """How many records there are, once all of them are found to be the owner's canonical blob."""
    try:
        return canonical.check(blob, owner, max_bytes=len(blob))
    except WrongOwner as error:
        raise WrongOwner(
            "the blob that this account anchored is the memory of another one",
            hint="its owner put it there; do not take it for this account's memory",
        ) from error

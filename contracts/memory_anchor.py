"""The MemoryAnchor contract: the latest anchor of each owner, moved only by that owner and only up by one.

Written in the dialect of pysoroban-compiler 0.19.0a2, which reads this file and never runs it. Storage, events,
errors, limits and the hash chain are described in README.md beside it. What the compiler lacks shapes the text: no
helper functions (set_anchor and set_anchor_if repeat their body, and a test holds the two equal), no module
constants, no keyword arguments, len() of a variable only, one data field per event. Docstrings inside would become
part of the deployed code, and of its rent, so what they would say stands in comments.
"""

from pysoroban import (
    Address,
    Bytes,
    Topic,
    boolean,
    contract,
    crypto,
    error,
    event,
    events,
    fail,
    ledger,
    public,
    storage,
    struct,
    to_xdr,
    u32,
    u64,
)


@error
class AnchorError:
    NOT_ANCHORED = 1
    VERSION_CONFLICT = 2
    BAD_ROOT = 3
    URI_TOO_LONG = 4
    ACL_TOO_LONG = 5


# The one persistent entry of an owner, keyed by the owner's address; the value of get_anchor; the data of the event.
@struct
class Anchor:
    acl: Bytes
    previous: Bytes
    root: Bytes
    timestamp: u64
    uri: Bytes
    version: u64


@event
class MemoryAnchored:
    owner: Topic[Address]
    anchor: Anchor


@contract
class MemoryAnchor:
    # Stores the owner's next anchor and returns its version. Needs the owner's authorisation.
    @public
    def set_anchor(self, owner: Address, memory_root: Bytes, uri: Bytes, acl: Bytes) -> u64:
        owner.require_auth()
        if len(memory_root) != 32 or memory_root == Bytes(
            b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
            b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        ):
            fail(AnchorError.BAD_ROOT)
        if len(uri) > 1024:
            fail(AnchorError.URI_TOO_LONG)
        if len(acl) > 2048:
            fail(AnchorError.ACL_TOO_LONG)
        version: u64 = u64(0)
        if storage.persistent.has(owner):
            current: Anchor = storage.persistent.get(owner, Anchor)
            version = current.version
            previous: Bytes = crypto.sha256(to_xdr(current))
        else:
            previous: Bytes = crypto.sha256(to_xdr(owner))
        version = version + u64(1)
        anchor: Anchor = Anchor(acl, previous, memory_root, ledger.timestamp(), uri, version)
        storage.persistent.set(owner, anchor)
        # Below 30 days (518,400 ledgers of 5 s) to 120 days (2,073,600); the host cuts that to the network's maximum.
        storage.persistent.extend_ttl(owner, u32(518400), u32(2073600))
        events.publish(MemoryAnchored(owner, anchor))
        return version

    # The same, but only if the owner's current version (0 if never anchored) is the expected one.
    @public
    def set_anchor_if(
        self, owner: Address, expected_version: u64, memory_root: Bytes, uri: Bytes, acl: Bytes
    ) -> u64:
        owner.require_auth()
        if len(memory_root) != 32 or memory_root == Bytes(
            b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
            b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        ):
            fail(AnchorError.BAD_ROOT)
        if len(uri) > 1024:
            fail(AnchorError.URI_TOO_LONG)
        if len(acl) > 2048:
            fail(AnchorError.ACL_TOO_LONG)
        version: u64 = u64(0)
        if storage.persistent.has(owner):
            current: Anchor = storage.persistent.get(owner, Anchor)
            version = current.version
            previous: Bytes = crypto.sha256(to_xdr(current))
        else:
            previous: Bytes = crypto.sha256(to_xdr(owner))
        if version != expected_version:
            fail(AnchorError.VERSION_CONFLICT)
        version = version + u64(1)
        anchor: Anchor = Anchor(acl, previous, memory_root, ledger.timestamp(), uri, version)
        storage.persistent.set(owner, anchor)
        # Below 30 days (518,400 ledgers of 5 s) to 120 days (2,073,600); the host cuts that to the network's maximum.
        storage.persistent.extend_ttl(owner, u32(518400), u32(2073600))
        events.publish(MemoryAnchored(owner, anchor))
        return version

    # The owner's anchor; fails with NOT_ANCHORED if there is none.
    @public
    def get_anchor(self, owner: Address) -> Anchor:
        if not storage.persistent.has(owner):
            fail(AnchorError.NOT_ANCHORED)
        return storage.persistent.get(owner, Anchor)

    # The owner's version, 0 if never anchored.
    @public
    def get_version(self, owner: Address) -> u64:
        if not storage.persistent.has(owner):
            return u64(0)
        anchor: Anchor = storage.persistent.get(owner, Anchor)
        return anchor.version

    @public
    def is_anchored(self, owner: Address) -> boolean:
        return storage.persistent.has(owner)

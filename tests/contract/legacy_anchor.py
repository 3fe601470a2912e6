"""A contract with the interface of the older deployments (no compare-and-set, no hash chain), for tests only.

Five persistent entries per owner, keyed by the strings root:, uri:, acl:, ver: and has: followed by the owner's
address; one event topic, data a map {owner, version}; error 1 when never anchored.
"""

from pysoroban import (
    Address,
    Bytes,
    String,
    boolean,
    contract,
    error,
    event,
    events,
    fail,
    public,
    storage,
    struct,
    u32,
    u64,
)


@error
class LegacyError:
    NOT_ANCHORED = 1


@struct
class LegacyAnchor:
    acl: Bytes
    root: Bytes
    uri: Bytes
    version: u64


@struct
class LegacyNote:
    owner: Address
    version: u64


@event
class MemoryAnchored:
    note: LegacyNote


@contract
class LegacyMemoryAnchor:
    @public
    def set_anchor(self, owner: Address, memory_root: Bytes, uri: Bytes, acl: Bytes) -> u64:
        owner.require_auth()
        name: String = owner.to_strkey()
        suffix: Bytes = name.to_bytes()
        root_key: Bytes = Bytes(b"root:")
        root_key.append(suffix)
        uri_key: Bytes = Bytes(b"uri:")
        uri_key.append(suffix)
        acl_key: Bytes = Bytes(b"acl:")
        acl_key.append(suffix)
        ver_key: Bytes = Bytes(b"ver:")
        ver_key.append(suffix)
        has_key: Bytes = Bytes(b"has:")
        has_key.append(suffix)
        version: u64 = u64(0)
        if storage.persistent.has(ver_key.to_string()):
            version = storage.persistent.get(ver_key.to_string(), u64)
        version = version + u64(1)
        storage.persistent.set(root_key.to_string(), memory_root)
        storage.persistent.set(uri_key.to_string(), uri)
        storage.persistent.set(acl_key.to_string(), acl)
        storage.persistent.set(ver_key.to_string(), version)
        storage.persistent.set(has_key.to_string(), True)
        storage.persistent.extend_ttl(root_key.to_string(), u32(518400), u32(2073600))
        storage.persistent.extend_ttl(uri_key.to_string(), u32(518400), u32(2073600))
        storage.persistent.extend_ttl(acl_key.to_string(), u32(518400), u32(2073600))
        storage.persistent.extend_ttl(ver_key.to_string(), u32(518400), u32(2073600))
        storage.persistent.extend_ttl(has_key.to_string(), u32(518400), u32(2073600))
        events.publish(MemoryAnchored(LegacyNote(owner, version)))
        return version

    @public
    def get_anchor(self, owner: Address) -> LegacyAnchor:
        name: String = owner.to_strkey()
        suffix: Bytes = name.to_bytes()
        root_key: Bytes = Bytes(b"root:")
        root_key.append(suffix)
        uri_key: Bytes = Bytes(b"uri:")
        uri_key.append(suffix)
        acl_key: Bytes = Bytes(b"acl:")
        acl_key.append(suffix)
        ver_key: Bytes = Bytes(b"ver:")
        ver_key.append(suffix)
        if not storage.persistent.has(ver_key.to_string()):
            fail(LegacyError.NOT_ANCHORED)
        return LegacyAnchor(
            storage.persistent.get(acl_key.to_string(), Bytes),
            storage.persistent.get(root_key.to_string(), Bytes),
            storage.persistent.get(uri_key.to_string(), Bytes),
            storage.persistent.get(ver_key.to_string(), u64),
        )

    @public
    def get_version(self, owner: Address) -> u64:
        name: String = owner.to_strkey()
        suffix: Bytes = name.to_bytes()
        ver_key: Bytes = Bytes(b"ver:")
        ver_key.append(suffix)
        if not storage.persistent.has(ver_key.to_string()):
            return u64(0)
        return storage.persistent.get(ver_key.to_string(), u64)

    @public
    def is_anchored(self, owner: Address) -> boolean:
        name: String = owner.to_strkey()
        suffix: Bytes = name.to_bytes()
        has_key: Bytes = Bytes(b"has:")
        has_key.append(suffix)
        return storage.persistent.has(has_key.to_string())

"""Reading another agent's memory: verified or refused, and never imported."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import (
    BlobUnavailable,
    ChainReset,
    InputError,
    LimitExceeded,
    NonCanonical,
    NotAnchored,
    Rollback,
    Tampered,
    UntrustedSource,
    WrongOwner,
)
from mycelium_sdk.fetching import FetchPolicy
from mycelium_sdk.memory import read_memory
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from tests.memory.conftest import World
    from tests.portability.conftest import Web

STRANGER = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"


@pytest.fixture
def reader(world: World) -> AgentContext:
    """Somebody else's machine, which has no wallet."""
    configuration = world.context("reader").configuration
    return AgentContext.read_only(configuration=configuration, home=world.folder / "reader")


def test_what_was_anchored_is_read_with_where_it_comes_from(
    world: World, web: Web, reader: AgentContext, policy: FetchPolicy
) -> None:
    with reader:
        author = world.machine("author")
        author.remember("likes tea", ["drinks"])
        author.remember("lives in Porto")
        author.anchor(publish=web.publish)
        found = read_memory(author.owner, context=reader, policy=policy)
        assert list(found) == list(found) == [Record("likes tea", ("drinks",)), Record("lives in Porto")]
        assert found.records == 2
        assert found.warnings == ()
        assert found.provenance() == {
            "owner": author.owner,
            "network": "local",
            "contract": author.contract_id,
            "version": 1,
            "root": author.memory_root().hex(),
            "uri": web.url("/0.json"),
            "timestamp": found.anchor.timestamp,
            "as_of_ledger": found.ledger,
            "records": 2,
        }
        assert "tea" not in repr(found)
        assert not (world.folder / "reader" / "memory").exists()


def test_a_file_on_this_machine_is_never_read_for_a_stranger(
    world: World, reader: AgentContext, policy: FetchPolicy
) -> None:
    with reader:
        author = world.machine("author")
        author.remember("secret")
        author.anchor()
        assert (author.get_anchor() or {})["uri"].startswith("file://")
        with pytest.raises(UntrustedSource, match="file on this machine"):
            read_memory(author.owner, context=reader, policy=policy)


@pytest.mark.parametrize("uri", ["s3://bucket/key", "ipfs://bafy"])
def test_other_schemes_are_not_fetched(world: World, reader: AgentContext, uri: str) -> None:
    with reader:
        author = world.machine("author")
        author.anchor(uri=uri)
        with pytest.raises(UntrustedSource):
            read_memory(author.owner, context=reader)


def test_the_default_policy_is_the_strict_one(world: World, web: Web, reader: AgentContext) -> None:
    with reader:
        author = world.machine("author")
        author.anchor(publish=web.publish)
        with pytest.raises(UntrustedSource, match="port"):
            read_memory(author.owner, context=reader)
        with pytest.raises(UntrustedSource, match="not public"):
            read_memory(author.owner, context=reader, policy=FetchPolicy(ports=None))
        assert web.server.visits == 0


def test_nobody_has_anchored(world: World, reader: AgentContext) -> None:
    world.machine("author").anchor()
    with reader:
        with pytest.raises(NotAnchored):
            read_memory(STRANGER, context=reader)
        with pytest.raises(InputError):
            read_memory("G123", context=reader)


def test_what_the_server_gives_must_be_what_was_anchored(
    world: World, web: Web, reader: AgentContext, policy: FetchPolicy
) -> None:
    with reader:
        author = world.machine("author")

        def read(**limits: Any) -> object:
            return read_memory(author.owner, context=reader, policy=dataclasses.replace(policy, **limits))

        author.remember("one")
        author.anchor(publish=web.publish)
        read()
        author.remember("two")
        author.anchor(publish=web.publish)
        genuine = dict(web.files)

        web.files["/1.json"] = genuine["/0.json"]
        with pytest.raises(Rollback, match="version 1"):
            read()
        for bad in (b"", genuine["/1.json"][:-1], genuine["/1.json"].replace(b"two", b"owt")):
            web.files["/1.json"] = bad
            with pytest.raises(Tampered):
                read()
        web.files = genuine
        with pytest.raises(LimitExceeded):
            read(max_bytes=10)
        read()
        web.files = {}
        with pytest.raises(BlobUnavailable):
            read()


def test_an_anchored_blob_must_be_canonical_and_the_owners(
    world: World, web: Web, reader: AgentContext, policy: FetchPolicy
) -> None:
    """Owners can anchor what they like; their readers are not to be taken in."""
    with reader:
        author = world.machine("author")
        client, key = author.context.anchor_client(), author.context.keypair()
        bad = [
            (canonical.encode(STRANGER, [Record("x")]), WrongOwner),
            (canonical.encode(author.owner, [Record("x")]) + b"\n", NonCanonical),
            (b"age-encryption.org/v1\n", NonCanonical),
        ]
        for version, (blob, error) in enumerate(bad):
            url = web.publish(blob)
            client.set_anchor_if(key, version, canonical.root(blob), url.encode(), b"")
            with pytest.raises(error):
                read_memory(author.owner, context=reader, policy=policy)


def test_an_anchor_that_goes_back_is_noticed(
    world: World, web: Web, reader: AgentContext, policy: FetchPolicy
) -> None:
    with reader:
        author = world.machine("author")
        author.anchor(publish=web.publish)
        author.anchor(publish=web.publish)
        read_memory(author.owner, context=reader, policy=policy)
        other = dataclasses.replace(
            reader.configuration,
            onchain=dataclasses.replace(reader.configuration.onchain, chain_file=world.folder / "other.db"),
        )
        elsewhere = AgentContext.read_only(configuration=other, home=world.folder / "reader")
        with elsewhere, pytest.raises(ChainReset):
            read_memory(author.owner, context=elsewhere, policy=policy)


def test_a_fetch_function_is_checked_like_everything_else(
    world: World, reader: AgentContext, policy: FetchPolicy
) -> None:
    with reader:
        author = world.machine("author")
        author.remember("one")
        author.anchor()
        blob = author.backend.export_blob()
        assert read_memory(author.owner, context=reader, fetch=lambda _: blob).records == 1
        with pytest.raises(Tampered):
            read_memory(author.owner, context=reader, fetch=lambda _: blob + b" ")
        with pytest.raises(LimitExceeded):
            read_memory(
                author.owner,
                context=reader,
                fetch=lambda _: blob,
                policy=dataclasses.replace(policy, max_bytes=5),
            )


def test_ones_own_memory_comes_by_https_as_well(
    world: World, web: Web, policy: FetchPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    author = world.machine("author")
    author.remember("one")
    author.anchor(publish=web.publish)
    monkeypatch.setenv("MYCELIUM_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    other = world.context("other")
    fetch = dataclasses.replace(
        other.configuration.fetch, allow_networks=policy.allow_networks, ca_file=policy.ca_file
    )
    other.configuration = dataclasses.replace(other.configuration, fetch=fetch)
    from mycelium_sdk.memory import AgentMemory

    with AgentMemory(other) as memory:
        assert memory.rehydrate() == {"version": 1, "records": 1}
        assert memory.verify()

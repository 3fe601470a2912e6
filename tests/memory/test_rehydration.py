"""Loading an anchored memory on another machine, and refusing everything else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.errors import (
    BlobError,
    BlobNotFound,
    InputError,
    NonCanonical,
    NotAnchored,
    Rollback,
    Tampered,
    UnanchoredWrites,
    WrongOwner,
)
from mycelium_sdk.memory import AnchoringPolicy
from mycelium_sdk.records import Record
from mycelium_sdk.verdicts import Verdict

if TYPE_CHECKING:
    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World

OTHER_OWNER = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"


def contents(memory: AgentMemory) -> set[str]:
    return {stored.record.content for stored in memory.backend.all_records()}


def blob_path(memory: AgentMemory) -> Path:
    anchor = memory.get_anchor()
    assert anchor is not None
    return Path(anchor["uri"].removeprefix("file://"))


def test_a_memory_survives_its_machine(world: World) -> None:
    first = world.machine("a")
    ids = [
        first.remember(text, tags=tags) for text, tags in [("likes tea", ["pref"]), ("lives in Porto", [])]
    ]
    assert len(set(ids)) == 2
    first.anchor()
    second = world.machine("b")
    assert second.rehydrate() == {"version": 1, "records": 2}
    assert contents(second) == {"likes tea", "lives in Porto"}
    assert second.verify()
    assert not second.is_dirty
    assert [hit["content"] for hit in second.recall("tea")] == ["likes tea"]
    second.remember("moved to Lisbon")
    assert second.anchor() == 2


def test_rehydrating_again_changes_nothing(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor()
    counter = memory.backend.change_counter()
    assert memory.rehydrate() == {"version": 1, "records": 1}
    assert memory.backend.change_counter() == counter


def test_nothing_anchored_is_an_error_of_its_own(world: World) -> None:
    with pytest.raises(NotAnchored):
        world.machine("a").rehydrate()


def test_one_changed_byte_is_refused_and_nothing_is_loaded(world: World) -> None:
    first = world.machine("a")
    first.remember("pays in euro")
    first.anchor()
    path = blob_path(first)
    path.write_bytes(path.read_bytes().replace(b"euro", b"gold"))
    second = world.machine("b")
    with pytest.raises(Tampered) as caught:
        second.rehydrate()
    assert caught.value.verdict is Verdict.TAMPERED
    assert second.count() == 0


def test_an_older_blob_is_a_rollback_where_it_is_known(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    first.anchor()
    old = blob_path(first).read_bytes()
    second = world.machine("b")
    second.rehydrate()
    first.remember("two")
    first.anchor()
    blob_path(first).write_bytes(old)
    with pytest.raises(Rollback, match="version 1"):
        second.rehydrate()
    assert contents(second) == {"one"}
    with pytest.raises(Tampered):
        world.machine("c").rehydrate()


def test_fetch_is_given_the_uri(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    blobs: dict[str, bytes] = {}

    def upload(blob: bytes) -> str:
        blobs["s3://bucket/m"] = blob
        return "s3://bucket/m"

    first.anchor(publish=upload)
    second = world.machine("b")
    with pytest.raises(BlobNotFound) as caught:
        second.rehydrate()
    assert "fetch=" in (caught.value.hint or "")
    assert second.rehydrate(fetch=blobs.__getitem__) == {"version": 1, "records": 1}


def test_a_failing_fetch_is_the_cause(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    first.anchor(uri="https://example.org/m")
    empty: dict[str, bytes] = {}
    with pytest.raises(BlobError) as caught:
        world.machine("b").rehydrate(fetch=empty.__getitem__)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(InputError):
        world.machine("b").rehydrate(fetch=lambda _: "text")  # type: ignore[arg-type,return-value]


def test_a_missing_blob_says_so(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    first.anchor()
    blob_path(first).unlink()
    with pytest.raises(BlobNotFound):
        world.machine("b").rehydrate()


def test_the_blobs_folder_is_looked_in_first(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    first.anchor()
    published = blob_path(first)
    published.rename(world.context("b").home.blobs / published.name)

    def never(uri: str) -> bytes:
        raise AssertionError(uri)

    assert world.machine("b").rehydrate(fetch=never) == {"version": 1, "records": 1}


def test_a_blob_that_is_not_canonical_is_refused_although_its_root_fits(world: World) -> None:
    """A wallet may anchor any bytes; what is loaded must be canonical all the same."""
    first = world.machine("a")
    good = canonical.encode(first.owner, [Record("one", ())])
    bad = good + b"\n"
    _anchor_bytes(world, bad)
    with pytest.raises(NonCanonical):
        world.machine("b").rehydrate(fetch=lambda _: bad)
    assert world.machine("b").count() == 0


def test_a_blob_of_another_owner_is_refused_although_its_root_fits(world: World) -> None:
    foreign = canonical.encode(OTHER_OWNER, [Record("one", ())])
    _anchor_bytes(world, foreign)
    with pytest.raises(WrongOwner):
        world.machine("b").rehydrate(fetch=lambda _: foreign)


def _anchor_bytes(world: World, blob: bytes) -> None:
    context = world.context("a")
    context.anchor_client().set_anchor(context.keypair(), canonical.root(blob), b"https://example.org/m")


@pytest.mark.parametrize(
    ("on_conflict", "expected"),
    [("merge", {"anchored", "only here"}), ("replace", {"anchored"})],
)
def test_writes_that_are_not_anchored_are_kept_or_dropped_as_told(
    world: World, on_conflict: str, expected: set[str]
) -> None:
    first = world.machine("a")
    first.remember("anchored")
    first.anchor()
    second = world.machine("b")
    second.remember("only here")
    with pytest.raises(UnanchoredWrites):
        second.rehydrate()
    assert contents(second) == {"only here"}
    second.rehydrate(on_conflict=on_conflict)
    assert contents(second) == expected
    assert second.is_dirty is (on_conflict == "merge")
    assert second.anchor() == 2


def test_a_merge_keeps_how_often_records_occur(world: World) -> None:
    twice = canonical.encode(world.wallet.address, [Record("same", ()), Record("same", ())])
    _anchor_bytes(world, twice)
    second = world.machine("b")
    second.remember("only here")
    second.rehydrate(fetch=lambda _: twice, on_conflict="merge")
    expected = [Record("only here", ()), Record("same", ()), Record("same", ())]
    assert second.backend.export_blob() == canonical.encode(second.owner, expected)


def test_an_unknown_word_is_refused(world: World) -> None:
    with pytest.raises(InputError):
        world.machine("a").rehydrate(on_conflict="overwrite")


def test_a_write_made_while_loading_is_not_lost(world: World) -> None:
    first = world.machine("a")
    first.remember("one")
    blobs: list[bytes] = []

    def upload(blob: bytes) -> str:
        blobs.append(blob)
        return "https://example.org/m"

    first.anchor(publish=upload)
    second = world.machine("b")

    def fetch(_: str) -> bytes:
        world.machine("b").remember("meanwhile")
        return blobs[0]

    with pytest.raises(UnanchoredWrites):
        second.rehydrate(fetch=fetch)
    assert contents(second) == {"meanwhile"}


def test_fetch_is_asked_also_where_the_anchor_has_no_address(world: World) -> None:
    blob = canonical.encode(world.wallet.address, [Record("one", ())])
    context = world.context("a")
    for uri in (b"", b"\xff"):
        context.anchor_client().set_anchor(context.keypair(), canonical.root(blob), uri)
        asked: list[str] = []

        def fetch(address: str, asked: list[str] = asked) -> bytes:
            asked.append(address)
            return blob

        fresh = world.machine(f"machine {len(uri)}")
        assert fresh.rehydrate(fetch=fetch)["records"] == 1
        assert asked == [""]


def test_a_merge_counts_as_so_many_writes(world: World) -> None:
    first = world.machine("a")
    first.remember("anchored")
    first.anchor()
    policy = AnchoringPolicy(heartbeat_seconds=0, min_writes=5)
    second = world.machine("b", policy=policy)
    for number in range(5):
        second.remember(f"only here {number}")
    second.rehydrate(on_conflict="merge")
    assert second.heartbeat() == 2

"""Which published versions still hold what is forgotten here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.blobs.file_uri import path_to_file_uri
from mycelium_sdk.errors import InputError
from mycelium_sdk.facts import ChainKey, LastAnchor
from mycelium_sdk.memory import AsyncAgentMemory, published
from mycelium_sdk.state import StateStore

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.memory import AgentMemory
    from mycelium_sdk.memory.published import PublishedVersion

    from .conftest import World


def named(found: list[PublishedVersion]) -> list[tuple[int | None, bool]]:
    return [(one.version, one.seen) for one in found]


def blobs_of(memory: AgentMemory) -> Path:
    return memory.context.home.blobs


def test_every_version_that_holds_it_is_named_the_newest_first(world: World) -> None:
    memory = world.machine("A")
    memory.remember("kept from the first")
    memory.anchor()
    doomed = memory.remember("doomed", ["t"])
    memory.anchor()
    other = memory.remember("other", ["t"])
    memory.anchor(publish=str(world.folder / "mem.json"))
    by_id = memory.versions_holding(doomed)
    copy = (3, True)  # mem.json itself, beside what is anchored
    assert named(by_id) == [(3, True), copy, (2, True)]
    assert named(memory.versions_holding(other)) == [(3, True), copy]
    assert named(memory.versions_holding(tag="t")) == [(3, True), copy, (2, True)]
    anchor = memory.get_anchor()
    assert anchor is not None
    assert (by_id[0].uri, by_id[0].root) == (anchor["uri"], anchor["root"])
    assert by_id[0].network == memory.context.network.passphrase
    assert memory.forget(doomed) == 1
    assert memory.versions_holding(doomed) == [], "an id that is not there any more names nothing"
    assert memory.versions_holding(tag="nothing has it") == []


def test_a_persons_own_copy_is_looked_into(world: World) -> None:
    memory = world.machine("A")
    copy = world.folder / "mem.json"
    doomed = memory.remember("doomed")
    memory.anchor(publish=str(copy))
    root, uri = memory.memory_root(), path_to_file_uri(copy)
    memory.remember("other")
    memory.anchor()
    found = memory.versions_holding(doomed)
    assert [(one.version, one.root) for one in found if one.uri == uri] == [(1, root)]
    (world.folder / f"mem.{root.hex()[:16]}.json").unlink()
    assert [(one.version, one.seen) for one in memory.versions_holding(doomed) if one.uri == uri] == [
        (1, True)
    ]
    memory.remember("never anchored")
    copy.write_bytes(memory.backend.export_blob())
    assert [one.version for one in memory.versions_holding(doomed) if one.uri == uri] == [None]
    copy.write_bytes(copy.read_bytes().replace(memory.owner.encode(), b"G" * 56))
    assert [one for one in memory.versions_holding(doomed) if one.uri == uri] == [], "another owner's"


def test_only_the_record_itself_counts(world: World) -> None:
    memory = world.machine("A")
    memory.remember('{"content":"doomed","tags":[]}')
    memory.remember("doomed", ["with a tag"])
    memory.remember("doomed and more")
    memory.anchor()
    assert memory.versions_holding(memory.remember("doomed")) == []


@pytest.mark.parametrize("chunk", [16, 64, 1000])
def test_a_blob_is_searched_as_a_stream(world: World, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(published, "_CHUNK_BYTES", chunk)
    memory = world.machine("A")
    ids = [memory.remember(f"{number} " + "long " * (number * 7), ["t"]) for number in range(6)]
    memory.anchor()
    for each in ids:
        assert named(memory.versions_holding(each)) == [(1, True)]
    assert memory.versions_holding(memory.remember("new")) == []


def test_a_blob_that_nobody_anchored_is_named_by_its_file(world: World) -> None:
    memory = world.machine("A")
    doomed = memory.remember("doomed")
    root = memory.memory_root()
    path = blobs_of(memory) / f"{root.hex()}.json"
    path.write_bytes(memory.backend.export_blob())
    (blobs_of(memory) / "notes.json").write_bytes(memory.backend.export_blob())
    (found,) = memory.versions_holding(doomed)
    assert (found.version, found.uri, found.root, found.network) == (None, path_to_file_uri(path), root, "")


def test_what_cannot_be_looked_into_is_named_as_that(world: World) -> None:
    memory = world.machine("A")
    doomed = memory.remember("doomed")
    key = ChainKey("another network", "C", memory.owner)
    sealed = world.folder / "sealed.age"
    sealed.write_bytes(b"age-encryption.org/v1\n")
    own = blobs_of(memory) / f"{'55' * 32}.json"
    missing = path_to_file_uri(world.folder / "of another machine.json")
    uris = [
        "https://host/a.json",
        path_to_file_uri(sealed),
        path_to_file_uri(own),
        "",
        "file://host/x",
        missing,
    ]
    with StateStore(memory.context.home.state_file) as state:
        for version, uri in enumerate(uris, 1):
            state.record(key, LastAnchor(version, bytes([version]) * 32, uri, 0, 0.0))
    found = memory.versions_holding(doomed)
    assert [(one.version, one.uri, one.seen) for one in found] == [
        (6, missing, False),
        (5, uris[4], False),
        (2, uris[1], False),
        (1, uris[0], False),
    ], "a blob that is gone from one's own folder is gone, and an anchor without an address names none"
    assert [one.version for one in found if one.missing] == [6], "a folder that is there, and no such file"
    assert {one.network for one in found} == {"another network"}
    blob = memory.backend.export_blob()
    (blobs_of(memory) / f"{'01' * 32}.json").write_bytes(blob)
    assert memory.versions_holding(doomed)[-1].seen, "a copy here tells of the one elsewhere"
    (blobs_of(memory) / f"{'01' * 32}.json").write_bytes(blob.replace(b"doomed", b"others"))
    assert [one.version for one in memory.versions_holding(doomed)] == [6, 5, 2]


def test_a_link_is_not_followed(world: World) -> None:
    memory = world.machine("A")
    doomed = memory.remember("doomed")
    real = world.folder / "real.json"
    real.write_bytes(memory.backend.export_blob())
    (blobs_of(memory) / f"{'01' * 32}.json").symlink_to(real)
    assert memory.versions_holding(doomed) == []


def test_it_takes_an_id_or_a_tag(world: World) -> None:
    memory = world.machine("A")
    for arguments in ({}, {"id": "1", "tag": "t"}):
        with pytest.raises(InputError):
            memory.versions_holding(**arguments)


async def test_the_asynchronous_memory_has_it(world: World) -> None:
    async with AsyncAgentMemory(world.context("A")) as memory:
        doomed = await memory.remember("doomed")
        await memory.anchor()
        assert named(await memory.versions_holding(doomed)) == [(1, True)]

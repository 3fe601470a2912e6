"""Order, sessions and times travel with a published memory, and nothing about them keeps it from loading."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stellar_sdk import Keypair

from mycelium_sdk import canonical
from mycelium_sdk.blobs.files import context_path
from mycelium_sdk.errors import WrongPassphrase
from mycelium_sdk.memory import AgentMemory, AsyncAgentMemory
from mycelium_sdk.memory.context_file import signature_part
from mycelium_sdk.memory.context_store import ContextUse, ContextWarning, Rehydration
from mycelium_sdk.memory.publishing import PublishingWarning
from mycelium_sdk.records import Record
from mycelium_sdk.steps import Step, observed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.memory.conftest import World

TURNS = [
    ("w what is for lunch", "monday"),
    ("a noodles", "monday"),
    ("m and today", "tuesday"),
    ("b rice", None),
]


def arrived(memory: AgentMemory) -> list[tuple[str, str | None, int | None]]:
    """Content, session and time in microseconds, in order of arrival."""
    stored = sorted(memory.backend.all_records(), key=lambda one: one.sequence)
    return [
        (one.record.content, one.session, None if one.time is None else round(one.time * 10**6))
        for one in stored
    ]


def told(memory: AgentMemory) -> AgentMemory:
    for content, session in TURNS:
        memory.remember(content, session=session)
    return memory


def published_at(memory: AgentMemory) -> Path:
    """Where the anchored blob lies."""
    anchor = memory.get_anchor()
    assert anchor is not None
    return Path(anchor["uri"].removeprefix("file://"))


def test_the_other_machine_knows_order_sessions_and_times(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    second = world.machine("b")
    assert second.rehydrate() == {"version": 1, "records": 4}
    assert arrived(second) == arrived(first)
    assert [content for content, *_ in arrived(second)] == [content for content, _ in TURNS]
    assert [session for _, session, _ in arrived(second)] == [session for _, session in TURNS]
    assert second.verify()
    assert not second.is_dirty


def test_what_is_written_later_comes_later(world: World) -> None:
    told(world.machine("a")).anchor()
    second = world.machine("b")
    second.rehydrate()
    second.remember("0 comes last", session="friday")
    second.anchor()
    third = world.machine("c")
    third.rehydrate()
    assert arrived(third) == arrived(second)
    assert arrived(third)[-1][0] == "0 comes last"


@pytest.mark.parametrize("place", ["", "folder/", "mem.json"])
def test_the_context_lies_beside_the_blob(world: World, tmp_path: Path, place: str) -> None:
    first = told(world.machine("a"))
    (tmp_path / "folder").mkdir()
    first.anchor(publish=f"{tmp_path}/{place}" if place else None)
    blob = published_at(first)
    path = blob.with_name(blob.name + ".context.json")
    assert path.stat().st_mode & 0o777 == 0o600
    document = json.loads(path.read_bytes())
    assert (document["owner"], document["root"]) == (first.owner, first.memory_root().hex())
    contents = [json.loads(stored.fragment)["content"] for stored in first.backend.iter_records()]
    ranks = [sequence for sequence, *_ in document["records"]]
    assert [contents[ranks.index(rank)] for rank in sorted(ranks)] == [content for content, _ in TURNS]
    second = world.machine("b")
    assert second.rehydrate_with_report() == Rehydration(1, 4, ContextUse.USED)
    assert arrived(second) == arrived(first)


@pytest.mark.parametrize("by", ["function", "uri"])
def test_a_blob_that_somebody_else_keeps_has_its_context_in_the_blobs_folder(world: World, by: str) -> None:
    first = told(world.machine("a"))
    given: list[bytes] = []

    def upload(blob: bytes) -> str:
        given.append(blob)
        return "https://example.org/m"

    first.anchor(**({"publish": upload} if by == "function" else {"uri": "https://example.org/m"}))
    blob = first.backend.export_blob()
    assert given == ([blob] if by == "function" else [])
    name = f"{first.memory_root().hex()}.json.context.json"
    second = world.machine("b")
    done = second.rehydrate_with_report(fetch=lambda _: blob)
    assert done.context is ContextUse.MISSING
    assert done.note is not None
    third = world.context("c")
    (third.home.blobs / name).write_bytes((first.context.home.blobs / name).read_bytes())
    moved = world.machine("c")
    assert moved.rehydrate_with_report(fetch=lambda _: blob).context is ContextUse.USED
    assert arrived(moved) == arrived(first)


def test_without_one_the_memory_is_loaded_and_a_note_says_so(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    context_path(published_at(first)).unlink()
    second = world.machine("b")
    done = second.rehydrate_with_report()
    assert (done.version, done.records, done.context) == (1, 4, ContextUse.MISSING)
    assert done.note is not None
    assert "no context file" in done.note
    assert second.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert world.machine("c").rehydrate() == {"version": 1, "records": 4}


def other_root(data: bytes, world: World) -> bytes:
    """The owner's own, genuine context of another blob."""
    elsewhere = world.machine("elsewhere")
    elsewhere.remember("another memory", session="s")
    elsewhere.anchor(overwrite=True, publish=f"{world.folder}/elsewhere.json")
    (path,) = world.folder.glob("elsewhere.*.context.json")
    return path.read_bytes()


def foreign(data: bytes, world: World) -> bytes:
    """A whole context file of somebody else for this root."""
    stranger = Keypair.random()
    part = data[: data.rindex(b',"signature"')].replace(
        world.wallet.address.encode(), stranger.public_key.encode()
    )
    return part + signature_part(hashlib.sha256(part).digest(), stranger.sign)


def signed_badly(data: bytes, world: World) -> bytes:
    """Signed by the owner, and not as it is written: entries end in the middle of the memory."""
    part = data[: data.rindex(b',"signature"')]
    part = part.replace(part[part.rindex(b",[") : part.rindex(b'],"root"')], b"")
    return part + signature_part(hashlib.sha256(part).digest(), world.context("a").keypair().sign)


def with_one_more(data: bytes, world: World) -> bytes:
    """Signed by the owner, about one more record than there is."""
    part = data[: data.rindex(b',"signature"')].replace(b'],"root"', b',[9,null,null]],"root"')
    return part + signature_part(hashlib.sha256(part).digest(), world.context("a").keypair().sign)


SPOILT: dict[str, Callable[[bytes, Any], bytes]] = {
    "one byte": lambda data, _: data.replace(b'"monday"', b'"Monday"', 1),
    "cut off": lambda data, _: data[: len(data) // 2],
    "empty": lambda *_: b"",
    "not json": lambda data, _: b"\xff\xfe" + data,
    "longer": lambda data, _: data + b"\n",
    "another root": other_root,
    "foreign": foreign,
    "fewer entries": signed_badly,
    "more entries": with_one_more,
}


@pytest.mark.parametrize("name", SPOILT)
def test_one_that_does_not_fit_is_not_used_and_keeps_nothing_from_loading(world: World, name: str) -> None:
    first = told(world.machine("a"))
    first.anchor()
    path = context_path(published_at(first))
    spoilt = SPOILT[name](path.read_bytes(), world)
    if name == "another root":  # which moved the anchor
        first.rehydrate(on_conflict="replace")
        told(first)
        first.anchor(overwrite=True)
    version = world.machine("a").get_anchor()["version"]  # type: ignore[index]
    path = context_path(published_at(first))
    path.write_bytes(spoilt)
    second = world.machine("b")
    records = first.count()
    with pytest.warns(ContextWarning, match="was not used"):
        assert second.rehydrate() == {"version": version, "records": records}
    assert second.verify()
    assert {(session, time) for _, session, time in arrived(second)} == {(None, None)}
    done = world.machine("c").rehydrate_with_report()
    assert (done.records, done.context) == (records, ContextUse.REFUSED)
    assert done.note is not None
    assert "monday" not in done.note.lower()


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_is_not_used(world: World, kind: str) -> None:
    first = told(world.machine("a"))
    first.anchor()
    path = context_path(published_at(first))
    genuine = path.rename(path.with_name("genuine"))
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(genuine)
    else:
        os.mkfifo(path)
    assert world.machine("b").rehydrate_with_report().context is ContextUse.REFUSED


def test_an_oversized_one_is_not_used(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    with context_path(published_at(first)).open("ab") as file:
        file.truncate((1 << 30) + 1)  # a hole
    done = world.machine("b").rehydrate_with_report()
    assert done.context is ContextUse.REFUSED
    assert done.note is not None
    assert "limit" in done.note


def test_a_bad_one_in_the_blobs_folder_does_not_hide_the_one_beside_the_blob(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    name = context_path(published_at(first)).name
    (world.context("b").home.blobs / name).write_bytes(b"spoilt")
    second = world.machine("b")
    assert second.rehydrate_with_report().context is ContextUse.USED
    assert arrived(second) == arrived(first)


@pytest.mark.parametrize("on_conflict", ["merge", "replace"])
def test_what_was_there_keeps_its_own(world: World, on_conflict: str) -> None:
    first = told(world.machine("a"))
    first.anchor()
    second = world.machine("b")
    second.remember("m and today", session="mine")
    second.remember("n only here", session="mine")
    before = {content: rest for content, *rest in arrived(second)}
    done = second.rehydrate_with_report(on_conflict=on_conflict)
    assert done.context is ContextUse.USED
    after = {content: rest for content, *rest in arrived(second)}
    theirs = {content: rest for content, *rest in arrived(first)}
    kept = ["m and today", *(["n only here"] if on_conflict == "merge" else [])]
    assert [content for content, *_ in arrived(second)] == [
        *kept,
        "w what is for lunch",
        "a noodles",
        "b rice",
    ]
    assert after == {**theirs, **{content: before[content] for content in kept}}
    assert done.records == len(after)


def test_a_merge_gives_copies_and_neighbours_their_own_context(world: World) -> None:
    """Records that sort between, before and after the anchored ones are here already."""
    twice = [Record("b", ()), Record("b", ()), Record("b", ("t",)), Record("d", ())]
    first = world.machine("a")
    first.backend.import_blob(canonical.encode(first.owner, twice))
    first.remember("f", session="late")
    first.anchor()
    second = world.machine("b")
    for content in ("a", "c", "e", "g"):
        second.remember(content, session=f"mine {content}")
    assert second.rehydrate_with_report(on_conflict="merge").context is ContextUse.USED
    found = {one.record: (one.copies, one.session) for one in second.backend.all_records()}
    assert found[Record("b", ())] == (2, None)
    assert found[Record("f", ())] == (1, "late")
    assert {session for _, session in found.values()} == {
        None, "late", "mine a", "mine c", "mine e", "mine g",
    }  # fmt: skip


@pytest.mark.parametrize("spoil", [signed_badly, with_one_more], ids=["fewer entries", "more entries"])
def test_a_merge_without_a_context_that_fits_loads_all_the_same(
    world: World, spoil: Callable[[bytes, World], bytes]
) -> None:
    first = told(world.machine("a"))
    first.anchor()
    path = context_path(published_at(first))
    path.write_bytes(spoil(path.read_bytes(), world))
    second = world.machine("b")
    second.remember("only here", session="mine")
    done = second.rehydrate_with_report(on_conflict="merge")
    assert (done.records, done.context) == (5, ContextUse.REFUSED)
    assert ("only here", "mine") in [(content, session) for content, session, _ in arrived(second)]


def test_nothing_new_needs_no_context(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    second = world.machine("b")
    second.rehydrate()
    second.remember("z only here")
    assert second.rehydrate_with_report(on_conflict="merge") == Rehydration(1, 5)
    context_path(published_at(first)).unlink()
    assert first.rehydrate_with_report() == Rehydration(1, 4)
    assert second.rehydrate_with_report(on_conflict="merge") == Rehydration(1, 5)


def test_anchoring_an_unchanged_memory_again_rewrites_nothing(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    path = context_path(published_at(first))
    before = path.stat()
    first.anchor()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_context_of_the_same_memories_takes_its_place(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    root = first.memory_root()
    (noodles,) = (one.id for one in first.backend.all_records() if one.record.content == "a noodles")
    first.forget(noodles)
    first.remember("a noodles", session="sunday")
    assert first.memory_root() == root
    first.anchor()
    second = world.machine("b")
    assert second.rehydrate_with_report().context is ContextUse.USED
    assert arrived(second) == arrived(first)
    assert arrived(second)[-1][:2] == ("a noodles", "sunday")


def test_a_context_that_cannot_be_written_is_said_and_the_memory_is_anchored(
    world: World, tmp_path: Path
) -> None:
    first = told(world.machine("a"))
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / f"{first.memory_root().hex()}.json.context.json"
    path.write_bytes(b"notes of mine")
    with pytest.warns(PublishingWarning, match="context file"):
        assert first.anchor(publish=f"{tmp_path}/out/") == 1
    assert path.read_bytes() == b"notes of mine"
    assert world.machine("b").rehydrate_with_report().context is ContextUse.REFUSED


def test_a_wrong_passphrase_anchors_nothing_and_writes_no_context(world: World) -> None:
    context = world.context("a")
    context._passphrase = "not this one"
    with AgentMemory(context) as memory:
        told(memory)
        with pytest.raises(WrongPassphrase):
            memory.anchor()
    assert not list(context.home.root.rglob("*.context.json"))


def test_no_passphrase_is_needed_to_use_one(world: World) -> None:
    first = told(world.machine("a"))
    first.anchor()
    context = world.context("b")
    context._passphrase = lambda: pytest.fail("asked")
    with AgentMemory(context) as second:
        assert second.rehydrate_with_report().context is ContextUse.USED


async def test_the_async_twin_reports_as_well(world: World) -> None:
    told(world.machine("a")).anchor()
    async with AsyncAgentMemory(world.context("b")) as memory:
        assert await memory.rehydrate_with_report() == Rehydration(1, 4, ContextUse.USED)


def test_it_is_written_after_the_blob_and_before_the_chain_moves(world: World) -> None:
    first = told(world.machine("a"))
    blobs = first.context.home.blobs
    seen: dict[Step, tuple[int, int]] = {}

    def look(step: Step) -> None:
        files = [path.name for path in blobs.iterdir()]
        contexts = sum(name.endswith(".json.context.json") for name in files)
        seen[step] = (len(files) - contexts, contexts)

    with observed(look):
        first.anchor()
    assert list(seen)[1:5] == [Step.EXPORTED, Step.PUBLISHED, Step.DESCRIBED, Step.INTENDED]
    assert [seen[step] for step in list(seen)[1:4]] == [(0, 0), (1, 0), (1, 1)]

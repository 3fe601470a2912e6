"""Purging and a person's own copy of the latest version; what is said of copies that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_cli.commands.versions import _what_stays
from mycelium_sdk.chain.anchors import Anchor
from mycelium_sdk.chain.history import AnchorHistory, PastAnchor

if TYPE_CHECKING:
    from tests.memory.conftest import World


@pytest.mark.parametrize("at_hand", [True, False])
def test_purging_brings_the_file_that_follows_the_latest_up_to_date(world: World, *, at_hand: bool) -> None:
    memory = world.machine("a")
    doomed = memory.remember("doomed")
    memory.anchor(publish=str(world.folder / "mem.json"))
    copy = world.folder / "mem.json"
    assert memory.purge() == [], "it is the copy of the latest"
    assert b"doomed" in copy.read_bytes()
    memory.forget(doomed)
    memory.remember("kept")
    memory.anchor()
    if not at_hand:
        (memory.context.home.blobs / f"{memory.memory_root().hex()}.json").unlink()
    purged = memory.purge()
    assert (1, str(copy), 2 if at_hand else None) in [
        (one.version, one.path, one.replaced_by) for one in purged
    ]
    assert copy.exists() is at_hand
    if at_hand:
        assert copy.read_bytes() == memory.backend.export_blob()
    assert memory.purge() == []


def test_purging_leaves_a_file_that_is_no_copy(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    memory.anchor(publish=str(world.folder / "mem.json"))
    copy = world.folder / "mem.json"
    copy.write_bytes(b"a person's own")
    memory.remember("two")
    memory.anchor()
    assert memory.purge()
    assert copy.read_bytes() == b"a person's own"


def test_what_purging_leaves_is_said() -> None:
    root, other = bytes([2]) * 32, bytes(32)

    def version(number: int, root: bytes, uri: str) -> PastAnchor:
        return PastAnchor(Anchor("G", number, root, uri.encode(), b"", None, None))

    history = AnchorHistory(
        (
            version(4, root, "https://host/4"),
            version(3, root, "https://host/3"),
            version(2, other, "https://host/2"),
            version(1, bytes([1]) * 32, "file:///1"),
        ),
        verified=True,
        complete=True,
    )
    assert _what_stays(history, ()) == [
        "version 3 is the same memory as version 4, whose copy stays",
        "version 2 is at https://host/2, which is out of reach",
    ]
    assert _what_stays(history, (1,)) == []

"""Publishing never touches what a memory is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import InputError, PublishFailed

if TYPE_CHECKING:
    from pathlib import Path

    from mycelium_sdk.memory import AgentMemory
    from tests.memory.conftest import World


def targets(memory: AgentMemory, world: World) -> dict[str, Path]:
    home = memory.context.home.root
    return {
        "state": home / "state" / "state.db",
        "its log": home / "state" / "state.db-wal",
        "its journal, not there": home / "state" / "state.db-journal",
        "the lock": home / "state" / f"anchoring-{memory.owner}.lock",
        "a new file beside it": home / "state" / "mem.json",
        "the folder of keys": home / "state" / "integrity",
        "the memory file": home / "memory" / f"{memory.owner}.db",
        "another owner's": home / "memory" / "mem.json",
        "the folder of memories": home / "memory",
        "the home's chain, not there": home / "localnet" / "chain.db",
        "its folder, not there": home / "localnet",
        "the chain in use": world.chain_file,
        "its journal": world.chain_file.with_name("chain.db-journal"),
        "the wallet": world.wallet.path,
        "what would be the wallet's journal": world.wallet.path.with_name("wallet.json-journal"),
    }


def snapshot(world: World) -> set[Path]:
    return {path for folder in (world.folder, world.wallet.path.parent) for path in folder.rglob("*")}


def test_its_own_files_are_no_place_to_publish_to(world: World, tmp_path: Path) -> None:
    memory = world.machine("a")
    memory.remember("one")
    assert memory.get_anchor() is None  # makes the chain
    assert memory.last_anchor is None  # makes the state
    places = targets(memory, world)
    before = snapshot(world)
    for name, path in places.items():
        content = path.read_bytes() if path.is_file() else None
        spellings: list[str | Path] = [
            path,
            str(path),
            f"{path}/",
            path.as_uri(),
            f"{path.parent}/./{path.name}",
        ]
        for publish in spellings:
            with pytest.raises(InputError, match="belongs to the memory itself") as caught:
                memory.anchor(publish=publish)
            assert caught.value.hint
        assert content is None or path.read_bytes() == content, name
    link = tmp_path / "link"
    link.symlink_to(places["state"].parent)
    with pytest.raises(InputError):
        memory.anchor(publish=link / "state.db")
    assert snapshot(world) - before == {link}
    assert memory.get_anchor() is None
    assert memory.anchor() == 1


def test_a_memory_file_elsewhere_is_none_either(world: World, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.db"
    memory = world.machine("a", backend="local", backend_kwargs={"path": path})
    memory.remember("one")
    for name in ("elsewhere.db", "elsewhere.db-wal", "elsewhere.db-journal"):
        with pytest.raises(InputError, match="belongs to the memory itself"):
            memory.anchor(publish=tmp_path / name)
    assert memory.anchor(publish=tmp_path / "elsewhere.json") == 1


def test_a_memory_without_a_file_has_none(world: World, tmp_path: Path) -> None:
    with LocalVectorBackend(world.wallet.address, ":memory:") as backend:
        memory = world.machine("a", backend=backend)
        assert memory.backend.files() == ()
        assert memory.anchor(publish=tmp_path / "mem.json") == 1


def test_links_that_lead_in_a_circle_are_an_error_of_ours(world: World, tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    memory = world.machine("a")
    with pytest.raises(PublishFailed, match="not touched"):
        memory.anchor(publish=tmp_path / "a.json")


@pytest.mark.parametrize("name", ["blobs", "published.json", "elsewhere/"])
def test_the_rest_of_the_home_folder_is(world: World, name: str) -> None:
    memory = world.machine("a")
    memory.remember("one")
    home = memory.context.home.root
    (home / "elsewhere").mkdir()
    assert memory.anchor(publish=f"{home}/{name}") == 1

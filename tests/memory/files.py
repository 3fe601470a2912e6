"""A machine's memory file, kept and put back as a backup would."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.memory.conftest import World


def keep(world: World, name: str) -> dict[str, bytes]:
    """The memory file of a machine as it is now, all parts of it."""
    world.close()
    path = world.context(name).home.memory_file(world.wallet.address)
    return {part.name: part.read_bytes() for part in path.parent.glob(f"{path.name}*")}


def put_back(world: World, name: str, kept: dict[str, bytes]) -> None:
    """Make it what it was; `{}` is a file that was lost."""
    world.close()
    folder = world.context(name).home.memory_file(world.wallet.address).parent
    for part in folder.iterdir():
        part.unlink()
    for file, data in kept.items():
        (folder / file).write_bytes(data)
        (folder / file).chmod(0o600)

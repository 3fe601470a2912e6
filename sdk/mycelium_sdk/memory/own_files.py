"""Keeps what is published away from the files that a memory is made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.errors import InputError
from mycelium_sdk.memory.publishing import named_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.context import AgentContext
    from mycelium_sdk.memory.publishing import Publish

__all__ = ["refuse_own_files"]

_FOLDERS = ("memory", "state", "localnet")
"""Of the home folder: everything but what was published."""

_COMPANIONS = ("", "-wal", "-shm", "-journal")


def refuse_own_files(publish: Publish | None, ctx: AgentContext, backend: BaseBackend) -> None:
    """Raise InputError if `publish` names a file of the memory, the wallet, the state or the chain, a folder
    of theirs in the home folder, or something in one, whether it is there already or not."""
    path = named_path(publish)
    if path is None:
        return
    target = _real(path)
    folders = {_real(ctx.home.root) / name for name in _FOLDERS}
    files = set(_files(ctx, backend))
    if target in files or target in folders or not folders.isdisjoint(target.parents):
        raise InputError(
            f"{path} belongs to the memory itself, so nothing is written there",
            hint="name another file or folder",
        )


def _files(ctx: AgentContext, backend: BaseBackend) -> Iterator[Path]:
    for file in (*ctx.files(), *backend.files()):
        real = _real(file)
        for companion in _COMPANIONS:
            yield real.with_name(real.name + companion)


def _real(path: Path) -> Path:
    """Without links, also where nothing is there yet, or links lead in a circle."""
    return Path(os.path.realpath(path))

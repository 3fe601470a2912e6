"""The keys that vouch for memory files: random, private files outside of them, one for each store.

A store names its key by an id of its own, so that a memory file can be moved, linked and copied with its key
found again. The key is on the disk before anything that it seals is, so a crash leaves at most a key that
nothing uses.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from mycelium_sdk.errors import BackendError
from mycelium_sdk.files import create_private, is_there, read_private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEY_BYTES = 32

_store_id = re.compile(r"[0-9a-f]{32}")


class Keys:
    """The keys in a folder; `folder` is asked for it when it is first needed, and makes it.

    Without one the keys live and end with this object.
    """

    def __init__(self, folder: Callable[[], Path] | None) -> None:
        self._folder = folder
        self._own: dict[str, bytes] = {}

    def make(self) -> str:
        """The id of a new store, whose key is on the disk now."""
        store, key = os.urandom(16).hex(), os.urandom(KEY_BYTES)
        if self._folder is None:
            self._own[store] = key
        else:
            create_private(self._folder() / f"{store}.key", key.hex().encode("ascii") + b"\n")
        return store

    def find(self, store: str) -> bytes | None:
        """The key of a store, None where there is none. Raises `BackendError` for a file that is no key."""
        if not _store_id.fullmatch(store):  # whoever edits the memory file chooses no path
            return None
        if self._folder is None:
            return self._own.get(store)
        path = self._folder() / f"{store}.key"
        if not is_there(path):
            return None
        try:
            key = bytes.fromhex(read_private(path, max_bytes=1000).decode("ascii"))
        except ValueError:  # not chained: the cause holds the key
            key = b""
        if len(key) != KEY_BYTES:
            raise BackendError(
                f"{path} is damaged: it is not an integrity key",
                hint="put it back from a backup, or move it away, then `mycelium memory verify`",
            )
        return key

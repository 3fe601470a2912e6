"""The home folder: where memories, state, published blobs and the local chain are kept on this machine.

memory/{owner}.db       the owner's records
state/state.db          anchors seen, high-water marks, intents
state/tiered-*.db       what the secondary of a tiered memory still lacks
state/integrity/        the keys that vouch for memory files
blobs/                  published blobs, unless told otherwise
localnet/chain.db       the embedded chain, unless told otherwise
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ConfigError
from mycelium_sdk.files import ensure_private_folder
from mycelium_sdk.strkey import check_account

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE = "MYCELIUM_HOME"


@dataclass(frozen=True, slots=True)
class Home:
    """A home folder. Whoever asks for a path gets the folder made, mode 0700, so that the path can be used.

    Every property raises `BackendError` if a folder cannot be made, or can be entered by others.
    """

    root: Path

    @classmethod
    def default(cls, env: Mapping[str, str] | None = None) -> Home:
        """This user's: `MYCELIUM_HOME`, else `~/.mycelium`. Makes no folder. Raises `ConfigError`."""
        name = (os.environ if env is None else env).get(HOME_VARIABLE, "").strip()
        try:
            return cls(Path(name or "~/.mycelium").expanduser().absolute())
        except (RuntimeError, OSError) as cause:
            raise ConfigError(
                "there is no home folder to keep memories in", hint=f"set {HOME_VARIABLE} to an absolute path"
            ) from cause

    def memory_file(self, owner: str) -> Path:
        """The SQLite file of an owner's records. Raises `InputError` for what is not an account address."""
        name = f"{check_account(owner)}.db"
        return self._folder("memory") / name

    @property
    def state_file(self) -> Path:
        """The SQLite file of the facts about chains."""
        return self._folder("state") / "state.db"

    def tier_queue(self, owner: str, places: str) -> Path:
        """The SQLite file of what the secondary of two backends lacks; one for each owner and pair of
        places."""
        pair = hashlib.sha256(places.encode()).hexdigest()[:12]
        return self._folder("state") / f"tiered-{check_account(owner)}-{pair}.db"

    @property
    def integrity(self) -> Path:
        """The folder of the keys that vouch for memory files."""
        return ensure_private_folder(self._folder("state") / "integrity")

    @property
    def blobs(self) -> Path:
        """The folder of published blobs."""
        return self._folder("blobs")

    @property
    def chain_file(self) -> Path:
        """The SQLite file of the embedded chain."""
        return self._folder("localnet") / self.chain_place.name

    @property
    def chain_place(self) -> Path:
        """Where that file is looked for. Makes no folder."""
        return self.root / "localnet" / "chain.db"

    @property
    def index_file(self) -> Path:
        """The SQLite file of an indexer."""
        return self._folder("indexer") / "index.db"

    def _folder(self, name: str) -> Path:
        return ensure_private_folder(ensure_private_folder(self.root) / name)

"""What this machine knows, without the chain, of how a memory stands to its anchor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ConfigError, IntegrityKeyMissing

if TYPE_CHECKING:
    from mycelium_sdk.facts import LastAnchor
    from mycelium_sdk.memory.agent_memory import AgentMemory

__all__ = ["KnownHere", "known_here"]

_UNVOUCHED = (
    "nothing on this machine vouches for the memory, so its writes cannot be told from edits: what this"
    " machine knew of it (state/ in the home folder) was lost"
)
_ADOPT = (
    "`mycelium memory verify` compares it with the chain, and adopts it if it is exactly what is anchored"
)


@dataclass(frozen=True, slots=True)
class KnownHere:
    """`last`: the anchor the memory is based on, None if there is none or it is not known; `anchored` says
    which. `dirty`: whether there are writes that are not anchored, None where that is not known; `why`, and
    `advice` what to do about it. `lost`: whether that is since the memory is older than its anchor."""

    last: LastAnchor | None
    anchored: str | None
    dirty: bool | None
    why: str | None = None
    advice: str | None = None
    lost: bool = False


def known_here(memory: AgentMemory) -> KnownHere:
    """Look at the memory and at what is kept beside it. Asks no chain. `anchored` is None where `last` says
    it."""
    try:
        last = memory.last_anchor
    except ConfigError as error:  # no contract is chosen; remembering and recalling need none
        return KnownHere(None, f"not known: {error.message}", None, error.message, error.hint)
    dirty = memory.is_dirty
    if dirty and not _is_vouched_for(memory):
        anchored = "not known here" if last is None else None
        return KnownHere(last, anchored, None, _UNVOUCHED, _ADOPT)
    if last is None:
        return KnownHere(None, "never from here", dirty)
    if dirty and _is_earlier(memory):
        from mycelium_sdk.memory.standing import OLDER_THAN_ITS_ANCHOR

        why = "the memory is older than its anchor: its file was lost, or an old copy was put back"
        return KnownHere(last, None, None, why, OLDER_THAN_ITS_ANCHOR, lost=True)
    return KnownHere(last, None, dirty)


def _is_vouched_for(memory: AgentMemory) -> bool:
    """Whether the key is here that tells the memory's rows from edited ones; a store may need none."""
    try:
        memory.backend.records(())
    except IntegrityKeyMissing:
        return False
    return True


def _is_earlier(memory: AgentMemory) -> bool:
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.standing import Standing
    from mycelium_sdk.state import StateStore

    with StateStore(memory.context.home.state_file) as state:
        basis = Basis(memory.backend, state)
        newest = basis.newest(memory.context.network.passphrase, memory.contract_id)
        if newest is None:
            return False
        counter = memory.backend.change_counter()
        standing = basis.standing(*newest, root=memory.memory_root(), change_counter=counter)
    return standing is Standing.EARLIER

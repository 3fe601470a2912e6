"""Going on with a chain that contradicts what was seen of it, on a person's explicit word."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ChainReset, Fork, Rollback, Tampered
from mycelium_sdk.facts import LastAnchor
from mycelium_sdk.memory.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.trust import Sighting, TrustedChain
    from mycelium_sdk.state import StateStore

    ExportRoot = Callable[[], tuple[bytes, int, int, IntegrityReport]]

__all__ = ["trust_chain_anew"]


def trust_chain_anew(
    trusted: TrustedChain, state: StateStore, basis: Basis, *, export_root: ExportRoot
) -> bool:
    """Forget what was seen of the chain, and trust what it shows now; False, and nothing is forgotten, where
    both agree. The caller holds the home folder's anchoring lock.

    A chain that was set back to an anchor in this memory's own past is what the memory is based on then, so
    that what came after that is anchored again. On any other chain the memory is based on nothing.

    Raises Fork where servers contradict each other, which is no reason to forget what was seen.
    """
    try:
        trusted.look(cross_check=False)
    except (ChainReset, Rollback, Fork):
        seen = trusted.look_afresh()
        base = _own_past(seen, state, basis, export_root)
        basis.forget(seen.key)
        trusted.look()
        if base is not None:
            basis.adopt(seen.key, base)
        return True
    trusted.look()
    return False


def _own_past(seen: Sighting, state: StateStore, basis: Basis, export_root: ExportRoot) -> LastAnchor | None:
    """The anchor that is seen, as what the memory is based on, if the memory came after it."""
    last, anchor = basis.last(seen.key), seen.anchor
    if last is None or anchor is None or anchor.version > last.version:
        return None
    if anchor.root not in state.known_roots(seen.key).get(anchor.version, ()):
        return None
    try:
        root, _, counter, report = export_root()
    except Tampered:
        return None
    standing = basis.standing(seen.key, last, root=root, change_counter=counter)
    if not report or standing not in (Standing.CLEAN, Standing.WRITTEN):
        return None
    # What the memory has beyond that anchor counts as written on top of it.
    own_writes = 0 if root == anchor.root else max(1, basis.writes_since(seen.key, last))
    anchored_at = time.time() if anchor.timestamp is None else float(anchor.timestamp)
    return LastAnchor(anchor.version, anchor.root, anchor.uri_text, counter - own_writes, anchored_at)

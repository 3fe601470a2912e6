"""Going on with a chain that contradicts what was seen of it, on a person's explicit word."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ChainReset, ChainUnavailable, Fork, NotAnchored, Rollback, Tampered
from mycelium_sdk.memory.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from mycelium_sdk.backends.integrity import IntegrityReport
    from mycelium_sdk.facts import LastAnchor
    from mycelium_sdk.memory.basis import Basis
    from mycelium_sdk.memory.sighting import Sighting
    from mycelium_sdk.memory.trust import TrustedChain
    from mycelium_sdk.state import StateStore

    ExportRoot = Callable[[], tuple[bytes, int, int, IntegrityReport]]

__all__ = ["trust_chain_anew"]


def trust_chain_anew(
    trusted: TrustedChain,
    state: StateStore,
    basis: Basis,
    export_root: ExportRoot,
    make_ready: Callable[[], bool],
    *,
    to_load: bool,
) -> bool:
    """Forget what was seen of the chain, and trust what it shows now; False, and nothing is forgotten, where
    both agree. The caller holds the home folder's anchoring lock.

    A chain that was set back to an anchor in this memory's own past is what the memory is based on then, so
    that what came after that is anchored again. On any other chain the memory is based on nothing.

    `to_load`: the memory is going to be loaded from there. Else a local chain that is not there is made.

    Raises Fork where servers contradict each other, which is no reason to forget what was seen; NotAnchored
    where there is nothing `to_load`. Nothing is forgotten then.
    """
    try:
        seen = trusted.look(cross_check=False)
        # Of the past, what can be had is looked at.
        with contextlib.suppress(ChainUnavailable):
            trusted.past.review(seen)
    except (ChainReset, Rollback, Fork):
        seen = trusted.look_afresh()
        if seen.anchor is None and to_load:
            raise NotAnchored(
                "this chain holds no anchor, so that there is nothing to load; nothing was forgotten"
            ) from None
        if seen.anchor is None and make_ready():  # before anything is forgotten: its place may be mistyped
            seen = trusted.look_afresh()
        uri = None if seen.anchor is None else seen.anchor.uri_text
        basis.start_anew(seen.key, seen.mark, uri, _own_past(seen, state, basis, export_root))
        return True
    trusted.look()
    return False


def _own_past(seen: Sighting, state: StateStore, basis: Basis, export_root: ExportRoot) -> LastAnchor | None:
    """The anchor that is seen, as what the memory is based on, if the memory came after it."""
    last, anchor = basis.last(seen.key), seen.anchor
    if last is None or anchor is None or anchor.version > last.version:
        return None
    if (last.version, last.root) == (anchor.version, anchor.root):
        return last  # another machine that shares the store has gone on already
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
    return replace(
        last,  # with the link that the store has
        version=anchor.version,
        root=anchor.root,
        uri=anchor.uri_text,
        change_counter=counter - own_writes,
        anchored_at=anchored_at,
    )

"""Filling gaps by anchors that somebody kept, as far as the hash chain proves them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sqlalchemy import insert, select

from mycelium_indexer.store import ranges, tables
from mycelium_indexer.store.merging import chunks
from mycelium_indexer.store.rows import ANCHOR_COLUMNS, anchor_of, anchor_row
from mycelium_indexer.values import IndexedAnchor, Repaired
from mycelium_sdk.chain.anchors import previous_of, previous_of_first
from mycelium_sdk.errors import InputError, Tampered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from mycelium_sdk.chain.anchors import Anchor

__all__ = ["Repair"]

_FORGED = "do not trust whoever kept this list; nothing of it was taken"


class Repair:
    """One list of kept anchors, taken in within one transaction. What came of it is in the fields."""

    def __init__(self, connection: Connection, source: int) -> None:
        self.filled = self.unproved = self.more_gaps = 0
        self._connection = connection
        self._source = source

    def take(self, anchors: Iterable[Anchor]) -> Repaired:
        """Take in what is proved. Raises as `IndexStore.repair`."""
        by_owner: dict[str, dict[int, Anchor]] = defaultdict(dict)
        for anchor in anchors:
            if by_owner[anchor.owner].setdefault(anchor.version, anchor) != anchor:
                raise _forged(anchor, "is in the list twice, and not the same")
        for owner, given in by_owner.items():
            self._owner(owner, given)
        return Repaired(self.filled, self.unproved)

    def _owner(self, owner: str, given: dict[int, Anchor]) -> None:
        table = tables.owners.c
        identity = self._connection.execute(
            select(table.id).where(table.source == self._source, table.owner == owner)
        ).scalar()
        if identity is None:
            self.unproved += len(given)
            return
        self._compare(identity, given)
        taken = 0
        for first, last in self._gaps(identity):
            taken += self._fill(identity, owner, given, first, last)
        self.filled += taken
        self.unproved += len(given) - taken

    def _compare(self, identity: int, given: dict[int, Anchor]) -> None:
        """Take what is in the database out of `given`, once it is seen to be the same."""
        table = tables.anchors.c
        for some in chunks(sorted(given)):
            rows = self._connection.execute(
                select(*ANCHOR_COLUMNS).where(table.owner == identity, table.version.in_(some))
            )
            for row in rows:
                anchor = given.pop(row.version)
                if anchor_of(anchor.owner, tuple(row)).anchor != anchor:
                    raise _forged(anchor, "is not the anchor that the chain's events told")

    def _gaps(self, identity: int) -> list[tuple[int, int]]:
        table = tables.gaps.c
        rows = self._connection.execute(select(table.first, table.last).where(table.owner == identity))
        return [(first, last) for first, last in rows]

    def _fill(self, identity: int, owner: str, given: dict[int, Anchor], first: int, last: int) -> int:
        """Go down from the anchor above the gap as far as the list goes on; how many were taken."""
        if last not in given:
            return 0
        upper = self._present(identity, owner, last + 1)
        if upper.previous is None:
            raise InputError(
                "the contract is an older deployment: its anchors do not commit to those before them, so"
                " nothing proves a list of them",
                hint="the gaps of this contract cannot be repaired",
            )
        proved: list[Anchor] = []
        for version in range(last, first - 1, -1):
            anchor = given.get(version)
            if anchor is None:
                break
            if anchor.previous is None or anchor.timestamp is None or previous_of(anchor) != upper.previous:
                raise _forged(anchor, f"is not what version {version + 1} commits to")
            proved.append(anchor)
            upper = anchor
        if upper.version == first:
            self._check_below(identity, upper)
        rows = [anchor_row(identity, self._source, IndexedAnchor(one, None, None, None)) for one in proved]
        self._connection.execute(insert(tables.anchors), rows)
        self.more_gaps += ranges.close(self._connection, identity, upper.version, last)
        return len(proved)

    def _check_below(self, identity: int, anchor: Anchor) -> None:
        """That the lowest anchor of a gap goes on from what is below the gap."""
        if anchor.version == 1:
            if anchor.previous != previous_of_first(anchor.owner):
                raise _forged(anchor, "is not the owner's first anchor")
            return
        lower = self._present(identity, anchor.owner, anchor.version - 1)
        if lower.previous is None or anchor.previous != previous_of(lower):
            raise Tampered(
                f"version {lower.version} of {anchor.owner} in the database is not what version"
                f" {anchor.version} commits to",
                hint="the server that it was read from told something else than the chain: move the database"
                " away and read the chain again, from another server",
            )

    def _present(self, identity: int, owner: str, version: int) -> Anchor:
        table = tables.anchors.c
        row = self._connection.execute(
            select(*ANCHOR_COLUMNS).where(table.owner == identity, table.version == version)
        ).one()
        return anchor_of(owner, tuple(row)).anchor


def _forged(anchor: Anchor, why: str) -> Tampered:
    return Tampered(f"version {anchor.version} of {anchor.owner} {why}", hint=_FORGED)

"""Taking anchors into the database: in one transaction that holds the source's row, so alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select, update

from mycelium_indexer.store import ranges, tables
from mycelium_indexer.store.rows import ANCHOR_COLUMNS, anchor_of, anchor_row, place_row
from mycelium_indexer.values import Gap, SetAside
from mycelium_sdk.chain.anchors import previous_of, previous_of_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sqlalchemy import Connection

    from mycelium_indexer.values import IndexedAnchor
    from mycelium_sdk.chain.anchors import Anchor

__all__ = ["Merge", "chunks", "contradiction"]

_AT_ONCE = 500
"""How many values one query asks for."""


@dataclass(slots=True)
class _Known:
    """An owner as the transaction will leave it; `changed` is whether its row has to be written."""

    id: int | None
    newest: Anchor | None
    place: int
    changed: bool = False

    @property
    def version(self) -> int:
        return 0 if self.newest is None else self.newest.version


@dataclass(slots=True)
class _Pending:
    """Rows to be written, those of owners that may have no id yet beside the owner's name."""

    anchors: list[tuple[str, IndexedAnchor]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


class Merge:
    """Anchors of one source, one batch after the other. What came of it is in the fields.

    `set_aside` is for what contradicts an anchor that is there; what came of an event is in it as such.
    """

    def __init__(self, connection: Connection, source: int) -> None:
        self.new_owners = self.new_anchors = self.more_gaps = 0
        self.noticed: list[Gap] = []
        self.set_aside: list[SetAside] = []
        self._connection = connection
        self._source = source
        self._known: dict[str, _Known] = {}
        self._pending = _Pending()
        self._events: set[str] | None = None

    def take(self, batch: Sequence[IndexedAnchor], ledger: int) -> None:
        """Take in anchors in the order in which they were made. `ledger` stands for the one of an anchor
        whose own is not known."""
        self._events = None
        self._look_up({one.anchor.owner for one in batch})
        for one in batch:
            known = self._known[one.anchor.owner]
            place = ledger if one.ledger is None else one.ledger
            if one.anchor.version > known.version:
                self._newer(known, one, place)
            else:
                self._write()
                self._older(known, one, batch)
        self._write()

    def _newer(self, known: _Known, one: IndexedAnchor, place: int) -> None:
        anchor = one.anchor
        problem = contradiction(anchor, lower=known.newest)
        if problem is not None:
            self._put_aside(one, place, problem)
            return
        if anchor.version > known.version + 1:
            gap = Gap(anchor.owner, known.version + 1, anchor.version - 1, place)
            self._pending.gaps.append(gap)
            self.noticed.append(gap)
        self._pending.anchors.append((anchor.owner, one))
        known.newest, known.place, known.changed = anchor, place, True

    def _older(self, known: _Known, one: IndexedAnchor, batch: Sequence[IndexedAnchor]) -> None:
        """One whose version is not above the newest: it is there already, or fills a gap."""
        if one.event_id is not None and one.event_id in self._known_events(batch):
            return
        anchor = one.anchor
        near = self._around(known, anchor)
        there = near.get(anchor.version)
        if there is not None:
            self._again(known, one, there)
            return
        problem = contradiction(
            anchor, lower=_anchor(near.get(anchor.version - 1)), upper=_anchor(near.get(anchor.version + 1))
        )
        if problem is not None:
            self._put_aside(one, known.place, problem)
            return
        assert known.id is not None  # noqa: S101 - it has a newest anchor, and all was written
        self._connection.execute(insert(tables.anchors), [anchor_row(known.id, self._source, one)])
        self.new_anchors += 1
        self.more_gaps += ranges.close(self._connection, known.id, anchor.version, anchor.version)

    def _again(self, known: _Known, one: IndexedAnchor, there: IndexedAnchor) -> None:
        """A version that is there: where it was made may have become known."""
        if there.anchor != one.anchor:
            self._put_aside(one, known.place, "another anchor has its version")
            return
        if one.event_id is None:
            return
        if there.event_id is not None:
            self._put_aside(one, known.place, "another event made its version")
            return
        table = tables.anchors
        where = (table.c.owner == known.id, table.c.version == one.anchor.version)
        self._connection.execute(update(table).where(*where).values(place_row(one)))
        if one.anchor.version == known.version and one.ledger is not None:
            known.place, known.changed = one.ledger, True

    def _put_aside(self, one: IndexedAnchor, ledger: int, reason: str) -> None:
        version = one.anchor.version
        event_id = one.event_id or f"state of {one.anchor.owner}, version {version}"
        self.set_aside.append(
            SetAside(event_id, ledger, one.transaction or "", f"version {version}: {reason}")
        )

    def _around(self, known: _Known, anchor: Anchor) -> dict[int, IndexedAnchor]:
        """The anchors of the owner at the version and on both sides of it."""
        table = tables.anchors.c
        versions = (anchor.version - 1, anchor.version, anchor.version + 1)
        rows = self._connection.execute(
            select(*ANCHOR_COLUMNS).where(table.owner == known.id, table.version.in_(versions))
        )
        return {row.version: anchor_of(anchor.owner, tuple(row)) for row in rows}

    def _known_events(self, batch: Sequence[IndexedAnchor]) -> set[str]:
        if self._events is None:
            table = tables.anchors.c
            ids = [one.event_id for one in batch if one.event_id is not None]
            self._events = set()
            for some in chunks(ids):
                query = select(table.event_id).where(table.source == self._source, table.event_id.in_(some))
                self._events.update(self._connection.execute(query).scalars())
        return self._events

    def _look_up(self, names: set[str]) -> None:
        owners, anchors = tables.owners.c, tables.anchors.c
        for some in chunks(sorted(names - self._known.keys())):
            rows = self._connection.execute(
                select(owners.owner, owners.id, owners.place, *ANCHOR_COLUMNS)
                .join(tables.anchors, (anchors.owner == owners.id) & (anchors.version == owners.newest))
                .where(owners.source == self._source, owners.owner.in_(some))
            )
            for row in rows:
                name, identity, place, *columns = row
                self._known[name] = _Known(identity, anchor_of(name, tuple(columns)).anchor, place)
            for name in some:
                self._known.setdefault(name, _Known(None, None, 0))

    def _write(self) -> None:
        """Write what is pending, new owners first, since the rest needs their ids."""
        changed = {name: known for name, known in self._known.items() if known.changed}
        fresh = {name: known for name, known in changed.items() if known.id is None}
        self._insert_owners(fresh)
        moved = [
            {"which": known.id, "version": known.version, "at": known.place}
            for name, known in changed.items()
            if name not in fresh
        ]
        if moved:
            table = tables.owners
            self._connection.execute(
                update(table)
                .where(table.c.id == bindparam("which"))
                .values(newest=bindparam("version"), place=bindparam("at")),
                moved,
            )
        for known in changed.values():
            known.changed = False
        pending, self._pending = self._pending, _Pending()
        if pending.anchors:
            rows = [anchor_row(self._known[name].id, self._source, one) for name, one in pending.anchors]
            self._connection.execute(insert(tables.anchors), rows)
        if pending.gaps:
            self._connection.execute(insert(tables.gaps), [self._gap_row(gap) for gap in pending.gaps])
        self.new_owners += len(fresh)
        self.new_anchors += len(pending.anchors)
        self.more_gaps += len(pending.gaps)

    def _insert_owners(self, fresh: dict[str, _Known]) -> None:
        if not fresh:
            return
        table = tables.owners
        rows: list[dict[str, Any]] = [
            {"source": self._source, "owner": name, "newest": known.version, "place": known.place}
            for name, known in fresh.items()
        ]
        made = self._connection.execute(insert(table).returning(table.c.owner, table.c.id), rows)
        for name, identity in made:
            fresh[name].id = identity

    def _gap_row(self, gap: Gap) -> dict[str, Any]:
        return {
            "owner": self._known[gap.owner].id,
            "first": gap.first,
            "last": gap.last,
            "noticed_ledger": gap.noticed_ledger,
        }


def contradiction(anchor: Anchor, *, lower: Anchor | None = None, upper: Anchor | None = None) -> str | None:
    """What an anchor says that its neighbours in the hash chain do not; None where they agree, are no
    neighbours, or are of an older deployment."""
    if anchor.version == 1 and anchor.previous not in (None, previous_of_first(anchor.owner)):
        return "it is not the owner's first anchor"
    if lower is not None and not _follows(anchor, lower):
        return "it does not commit to the version before it"
    if upper is not None and not _follows(upper, anchor):
        return "the version after it does not commit to it"
    return None


def _follows(upper: Anchor, lower: Anchor) -> bool:
    if upper.version != lower.version + 1 or upper.previous is None or lower.previous is None:
        return True
    return upper.previous == previous_of(lower)


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """The values in lists that one query may ask for."""
    found = list(values)
    for start in range(0, len(found), _AT_ONCE):
        yield found[start : start + _AT_ONCE]


def _anchor(one: IndexedAnchor | None) -> Anchor | None:
    return None if one is None else one.anchor

"""The store over a SQL database: one set of queries for SQLite and PostgreSQL, by SQLAlchemy Core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from mycelium_indexer.store import tables
from mycelium_indexer.store.merging import Merge
from mycelium_indexer.store.repairing import Repair
from mycelium_indexer.store.rows import ANCHOR_COLUMNS, anchor_of, progress_of, progress_row, source_of
from mycelium_indexer.values import (
    Gap,
    IndexedAnchor,
    LedgerRange,
    OwnerPage,
    Position,
    SetAside,
    Source,
    Totals,
)
from mycelium_sdk.errors import StoreLocked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Row

    from mycelium_indexer.store.database import Database
    from mycelium_indexer.values import Batch, Progress, Repaired
    from mycelium_sdk.chain.anchors import Anchor

__all__ = ["SqlStore"]

_sources, _owners, _anchors = tables.sources.c, tables.owners.c, tables.anchors.c


class SqlStore:
    """An `IndexStore`; see there for what its methods do."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # -- sources

    def source(self, network: str, contract: str, chain_id: str) -> Source:
        """See `IndexStore`."""
        found = self.find_source(network, contract)
        if found is not None and found.chain_id == chain_id:
            return found
        with self._database.writing() as connection:
            # A lock on all of its epochs: two that look at once would make the same one twice. The first ever
            # is guarded by its number, which is unique.
            rows = connection.execute(_epochs(network, contract).with_for_update()).all()
            same = next((row for row in reversed(rows) if row.chain_id == chain_id), None)
            if same is not None:
                return _make_current(connection, same)
            return _new_epoch(connection, network, contract, chain_id, rows)

    def start_anew(self, source: Source) -> Source:
        """See `IndexStore`."""
        with self._database.writing() as connection:
            rows = connection.execute(_epochs(source.network, source.contract).with_for_update()).all()
            current = next(row for row in rows if row.current)
            if current.id != source.id:
                return source_of(current)
            return _new_epoch(connection, source.network, source.contract, source.chain_id, rows)

    def sources(self) -> list[Source]:
        """See `IndexStore`."""
        query = select(tables.sources).order_by(_sources.current.desc(), _sources.id)
        with self._database.reading() as connection:
            return [source_of(row) for row in connection.execute(query)]

    def find_source(self, network: str, contract: str) -> Source | None:
        """See `IndexStore`."""
        with self._database.reading() as connection:
            row = connection.execute(_epochs(network, contract).where(_sources.current)).first()
            return None if row is None else source_of(row)

    # -- what the ingester writes

    def progress(self, source: Source) -> Progress | None:
        """See `IndexStore`."""
        with self._database.reading() as connection:
            return progress_of(_row(connection, source))

    def apply(self, source: Source, batch: Batch, *, after: str | None) -> bool:
        """See `IndexStore`."""
        with self._database.writing() as connection:
            row = _row(connection, source, lock=True)
            if row.cursor != after:
                return False
            merge = Merge(connection, source.id)
            merge.take(batch.anchors, batch.progress.ledger)
            values = _counted(connection, row, merge, (*batch.set_aside, *merge.set_aside))
            _update(connection, source, values | progress_row(batch.progress))
            return True

    def advance(
        self, source: Source, progress: Progress, *, after: str | None, missed: LedgerRange | None = None
    ) -> bool:
        """See `IndexStore`."""
        with self._database.writing() as connection:
            if _row(connection, source, lock=True).cursor != after:
                return False
            if missed is not None:
                row = {"source": source.id, "first": missed.first, "last": missed.last}
                connection.execute(insert(tables.missed), [row])
            _update(connection, source, progress_row(progress))
            return True

    def take_state(self, source: Source, anchors: Iterable[IndexedAnchor], *, ledger: int) -> list[Gap]:
        """See `IndexStore`."""
        with self._database.writing() as connection:
            row = _row(connection, source, lock=True)
            merge = Merge(connection, source.id)
            merge.take(list(anchors), ledger)
            _update(connection, source, _counted(connection, row, merge, merge.set_aside))
            return merge.noticed

    def repair(self, source: Source, anchors: Iterable[Anchor]) -> Repaired:
        """See `IndexStore`."""
        with self._database.writing() as connection:
            row = _row(connection, source, lock=True)
            repair = Repair(connection, source.id)
            repaired = repair.take(anchors)
            counts = {"anchors": row.anchors + repair.filled, "gaps": row.gaps + repair.more_gaps}
            _update(connection, source, counts)
            return repaired

    # -- what the API reads

    def latest(self, source: Source, owner: str) -> IndexedAnchor | None:
        """See `IndexStore`."""
        query = (
            select(*ANCHOR_COLUMNS)
            .join(tables.owners, (_anchors.owner == _owners.id) & (_anchors.version == _owners.newest))
            .where(_owners.source == source.id, _owners.owner == owner)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
            return None if row is None else anchor_of(owner, tuple(row))

    def history(
        self, source: Source, owner: str, *, below: int | None, limit: int
    ) -> tuple[IndexedAnchor, ...]:
        """See `IndexStore`."""
        query = (
            select(*ANCHOR_COLUMNS)
            .join(tables.owners, _anchors.owner == _owners.id)
            .where(_owners.source == source.id, _owners.owner == owner)
            .order_by(_anchors.version.desc())
            .limit(limit)
        )
        if below is not None:
            query = query.where(_anchors.version < below)
        with self._database.reading() as connection:
            return tuple(anchor_of(owner, tuple(row)) for row in connection.execute(query))

    def gaps(self, source: Source, owner: str | None = None) -> list[Gap]:
        """See `IndexStore`."""
        table = tables.gaps.c
        query = (
            select(_owners.owner, table.first, table.last, table.noticed_ledger)
            .join(tables.owners, table.owner == _owners.id)
            .where(_owners.source == source.id)
            .order_by(_owners.owner, table.first)
        )
        if owner is not None:
            query = query.where(_owners.owner == owner)
        with self._database.reading() as connection:
            return [Gap(*row) for row in connection.execute(query)]

    def missed(self, source: Source) -> list[LedgerRange]:
        """See `IndexStore`."""
        table = tables.missed.c
        query = select(table.first, table.last).where(table.source == source.id).order_by(table.first)
        with self._database.reading() as connection:
            return [LedgerRange(*row) for row in connection.execute(query)]

    def owners(self, source: Source, *, after: Position | None, limit: int) -> OwnerPage:
        """See `IndexStore`."""
        query = (
            select(_owners.place, _owners.owner.label("name"), *ANCHOR_COLUMNS)
            .join(tables.anchors, (_anchors.owner == _owners.id) & (_anchors.version == _owners.newest))
            .where(_owners.source == source.id)
            .order_by(_owners.place.desc(), _owners.owner.desc())
            .limit(limit + 1)
        )
        if after is not None:
            query = query.where(tuple_(_owners.place, _owners.owner) < tuple_(after.order, after.owner))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        items = tuple(anchor_of(name, tuple(columns)) for _, name, *columns in rows[:limit])
        last = rows[limit - 1] if len(rows) > limit else None
        return OwnerPage(items, None if last is None else Position(last.place, last.name))

    def known_owners(self, source: Source, *, after: str | None, limit: int) -> list[tuple[str, int]]:
        """See `IndexStore`."""
        query = (
            select(_owners.owner, _owners.newest)
            .where(_owners.source == source.id)
            .order_by(_owners.owner)
            .limit(limit)
        )
        if after is not None:
            query = query.where(_owners.owner > after)
        with self._database.reading() as connection:
            return [(owner, newest) for owner, newest in connection.execute(query)]

    def set_aside(self, source: Source, *, limit: int) -> list[SetAside]:
        """See `IndexStore`."""
        table = tables.set_aside.c
        query = (
            select(table.event_id, table.ledger, table.transaction, table.reason)
            .where(table.source == source.id)
            .order_by(table.ledger.desc(), table.event_id.desc())
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [SetAside(*row) for row in connection.execute(query)]

    def totals(self, source: Source) -> Totals:
        """See `IndexStore`."""
        with self._database.reading() as connection:
            row = _row(connection, source)
            return Totals(row.owners, row.anchors, row.gaps, row.set_aside)

    def close(self) -> None:
        """See `IndexStore`."""
        self._database.close()


def _row(connection: Connection, source: Source, *, lock: bool = False) -> Row[Any]:
    """The source's row; with `lock`, nobody else writes anything of this source until the transaction
    ends."""
    query = select(tables.sources).where(_sources.id == source.id)
    return connection.execute(query.with_for_update() if lock else query).one()


def _update(connection: Connection, source: Source, values: dict[str, Any]) -> None:
    connection.execute(update(tables.sources).where(_sources.id == source.id).values(values))


def _epochs(network: str, contract: str) -> Any:
    of_this = (_sources.network == network, _sources.contract == contract)
    return select(tables.sources).where(*of_this).order_by(_sources.epoch)


def _new_epoch(
    connection: Connection, network: str, contract: str, chain_id: str, epochs: Sequence[Row[Any]]
) -> Source:
    values = {
        "network": network, "contract": contract, "chain_id": chain_id, "current": False,
        "epoch": epochs[-1].epoch + 1 if epochs else 1,
    }  # fmt: skip
    try:
        made = connection.execute(insert(tables.sources).values(values).returning(tables.sources)).one()
    except IntegrityError:
        raise StoreLocked(
            "another process began to follow the same contract just then", hint="try again"
        ) from None
    return _make_current(connection, made)


def _make_current(connection: Connection, row: Row[Any]) -> Source:
    of_this = (_sources.network == row.network, _sources.contract == row.contract)
    connection.execute(update(tables.sources).where(*of_this).values(current=_sources.id == row.id))
    query = select(tables.sources).where(_sources.id == row.id)
    return source_of(connection.execute(query).one())


def _counted(
    connection: Connection, row: Row[Any], merge: Merge, put_aside: Sequence[SetAside]
) -> dict[str, int]:
    """Keep what was set aside, and the totals as they are now."""
    table = tables.set_aside
    known = set()
    if put_aside:
        ids = [one.event_id for one in put_aside]
        query = select(table.c.event_id).where(table.c.source == row.id, table.c.event_id.in_(ids))
        known = set(connection.execute(query).scalars())
    fresh = {one.event_id: one for one in put_aside if one.event_id not in known}
    if fresh:
        rows = [
            {
                "source": row.id, "event_id": one.event_id, "ledger": one.ledger,
                "transaction": one.transaction, "reason": one.reason,
            }
            for one in fresh.values()
        ]  # fmt: skip
        connection.execute(insert(table), rows)
    return {
        "owners": row.owners + merge.new_owners,
        "anchors": row.anchors + merge.new_anchors,
        "gaps": row.gaps + merge.more_gaps,
        "set_aside": row.set_aside + len(fresh),
    }

"""The PostgreSQL backend: the memories of many owners in one database, for agents that keep nothing."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from mycelium_sdk.backends.base import BaseBackend, Snapshot, Stats
from mycelium_sdk.backends.local.rows import row_of
from mycelium_sdk.backends.local.search import TAIL
from mycelium_sdk.backends.local.writing import number_of
from mycelium_sdk.backends.postgres import rootcache, view, writing
from mycelium_sdk.backends.postgres.anchors import SharedAnchors
from mycelium_sdk.errors import BackendError, ConfigError, InputError, StoreLocked
from mycelium_sdk.installing import install_command
from mycelium_sdk.records import DEFAULT_MAX_RECORD_BYTES
from mycelium_sdk.retry import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mycelium_sdk.backends.base import Addition, Context, Imported, Progress, Query, Selection
    from mycelium_sdk.backends.postgres.pool import Connection
    from mycelium_sdk.backends.postgres.search import Search
    from mycelium_sdk.backends.postgres.vectors import Vectors
    from mycelium_sdk.backends.scoring import Candidates
    from mycelium_sdk.embedders.base import Embed, Embedder
    from mycelium_sdk.facts import LastAnchors
    from mycelium_sdk.records import Record
    from mycelium_sdk.stored import StoredRecord


class PostgresBackend(BaseBackend):
    """The owner's memory in a PostgreSQL database that any number of processes on any hosts share.

    `owner`: the account, G... `dsn`: what libpq takes, a URL or `key=value` pairs. `embed`: any function from
    a text to a vector of floats, or an `Embedder`; None ranks by words alone. `schema`: where its tables are,
    made if missing. `pool_size`: most connections of this object at once. `connect_timeout`: seconds to wait
    for a server, or for a connection to be free; `statement_timeout`: for one answer; `busy_timeout`: for
    other writers of this owner. `progress` is told, once a second, of indexing and embedding that a recall
    waits for. `max_record_bytes`: limit of one remembered record.

    Asks no server until it is used. Raises `InputError` for a bad owner or argument, `ConfigError` if
    psycopg is not installed. Later,
    `StoreUnavailable` says that the server cannot be reached or does not answer, `StoreLocked` that others
    hold what is needed, `NewerFile` that a newer version made the tables.
    """

    def __init__(
        self,
        owner: str,
        dsn: str | None,
        embed: Embed | Embedder | None = None,
        *,
        schema: str = "mycelium",
        pool_size: int = 8,
        connect_timeout: float = 10.0,
        statement_timeout: float = 30.0,
        busy_timeout: float = 30.0,
        progress: Progress | None = None,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
    ) -> None:
        super().__init__(owner, max_record_bytes=max_record_bytes)
        if embed is not None and not callable(embed) and not hasattr(embed, "embed"):
            raise InputError(
                "embed is neither a function from a text to a vector nor an embedder",
                hint="give a function, or one of `mycelium_sdk.embedders`",
            )
        if pool_size < 1:
            raise InputError("pool_size is below 1", hint="each thread at work needs a connection")
        _require_driver()
        from mycelium_sdk.backends.postgres.connections import Connections
        from mycelium_sdk.backends.postgres.target import target

        where = target(
            dsn,
            schema,
            connect_timeout=connect_timeout,
            statement_timeout=statement_timeout,
            busy_timeout=busy_timeout,
        )
        self._embed = embed
        self._progress = progress
        retry = RetryPolicy(first_delay=0.1, total_seconds=connect_timeout)
        self._connections = Connections(where, pool_size=pool_size, retry=retry)
        self._search: Search | None = None
        self._vectors: Vectors | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.owner!r}, {self.place!r})"

    @property
    def place(self) -> str:
        """See `BaseBackend.place`: the database and the schema."""
        where = self._connections.target
        return f"{where.place}, schema {where.schema}"

    def add(self, additions: Sequence[Addition]) -> list[str]:
        """See `Backend.add`."""
        rows = [(addition, row_of(addition.record)) for addition in additions]
        return self._connections.write(
            lambda connection: writing.add(connection, self.owner, rows), repeatable=True
        )

    @contextlib.contextmanager
    def _viewing(self) -> Iterator[view.View]:
        with (
            self._connections.viewing() as connection,
            contextlib.closing(view.View(connection, self.owner)) as made,
        ):
            yield made

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """See `Backend.snapshot`."""
        return self._viewing()

    def replace(
        self,
        records: Iterable[tuple[str, Record]],
        *,
        expected_changes: int | None,
        contexts: Iterable[Context] | None,
        progress: Progress | None,
    ) -> Imported:
        """See `Backend.replace`."""
        from mycelium_sdk.backends.postgres import loading

        with self._connections.lengthy() as connection:
            loading.stage(connection, records, contexts, progress)
            return loading.replace(connection, self.owner, expected_changes, progress)

    def remove(self, selection: Selection, *, secure: bool) -> int:
        """See `Backend.remove`. With `secure` the tables of all owners are rewritten: `docs/postgres.md` says
        what that does not reach."""

        def work(connection: Connection) -> tuple[int, str | None]:
            removed = writing.remove(connection, self.owner, selection)
            row = connection.execute("SELECT pg_current_xact_id_if_assigned()::xid::text").fetchone()
            return removed, None if row is None else row[0]

        removed, transaction = self._connections.write(work, repeatable=False, lengthy=True)
        if secure:
            from mycelium_sdk.backends.postgres.scrubbing import scrub

            try:
                scrub(self._connections, transaction)
            except BackendError as cause:
                kind = StoreLocked if isinstance(cause, StoreLocked) else BackendError
                raise kind(
                    "the memory is forgotten, but a copy of the text remains in the database's files:"
                    f" {cause.message}",
                    hint="forget it again, securely, when that is mended",
                ) from cause
        return removed

    def candidates(self, query: Query, limit: int) -> Candidates:
        """See `Backend.candidates`."""
        search, vectors = self._searching()
        if vectors is not None:
            vectors.refresh()

        def find(connection: Connection, most: int | None) -> Candidates | None:
            similarity = None if vectors is None else partial(vectors.similar, connection, query)
            return search.find(connection, query, limit, similarity, most=most)

        found = self._connections.read(partial(find, most=TAIL))
        while found is None:
            search.refresh()
            with self._connections.viewing() as connection:  # what is not indexed may be much
                found = find(connection, most=None)
        return found

    def records(self, ids: Sequence[str]) -> list[StoredRecord]:
        """See `Backend.records`."""
        numbers = [number for text in ids if (number := number_of(text)) is not None]
        return view.records(self._connections, self.owner, numbers)

    def ids_of(self, records: Sequence[Record]) -> list[str | None]:
        """See `BaseBackend.ids_of`."""
        return writing.ids_of(self._connections, self.owner, records)

    def ids_of_digests(self, digests: Collection[bytes]) -> Mapping[bytes, str]:
        """See `BaseBackend.ids_of_digests`; the server looks at every memory."""
        return writing.ids_of_digests(self._connections, self.owner, digests)

    def prepare(self) -> None:
        """Do now what the next recall would have to do first: index and embed what is not yet."""
        search, vectors = self._searching()
        search.refresh()
        if vectors is not None:
            vectors.refresh()

    def stats(self) -> Stats:
        """See `Backend.stats`."""
        rows = self._connections.ask("SELECT records, changes FROM owners WHERE owner = %s", (self.owner,))
        return Stats(*rows[0]) if rows else Stats(0, 0)

    def last_anchors(self) -> LastAnchors:
        """See `BaseBackend.last_anchors`: they are in the database."""
        return SharedAnchors(self._connections)

    def known_root(self) -> bytes | None:
        """See `BaseBackend.known_root`; kept in the database, for those who keep nothing."""
        return super().known_root() or rootcache.find(self._connections, self.owner)

    def keep_root(self, changes: int, root: bytes) -> None:
        """See `BaseBackend.keep_root`."""
        super().keep_root(changes, root)
        rootcache.keep(self._connections, self.owner, changes, root)

    def close(self) -> None:
        """See `Backend.close`."""
        self._connections.close()

    def _searching(self) -> tuple[Search, Vectors | None]:
        # Imported at the first recall: remembering needs neither analyzer nor stemmer.
        if self._search is None:
            from mycelium_sdk.backends.postgres.search import Search

            self._search = Search(self._connections, self.owner, self._progress)
        if self._embed is not None and self._vectors is None:
            from mycelium_sdk.backends.postgres.vectors import Vectors

            self._vectors = Vectors(self._connections, self.owner, self._embed, self._progress)
        return self._search, self._vectors


def _require_driver() -> None:
    """Raise ConfigError unless psycopg is there, and finds libpq."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "PostgreSQL's client library is not installed",
            hint=f"install it: {install_command('postgres')}",
        ) from error

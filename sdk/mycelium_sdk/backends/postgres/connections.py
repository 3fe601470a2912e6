"""Connections to the database: pooled, opened at first need, each used for one transaction at a time.

Every transaction sets its own search path and bounds, since a pooler between here and the server may give
each of them another session. What broke before anything was committed is done again; so is what does no harm
twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, LiteralString, NamedTuple, TypeVar

import psycopg

from mycelium_sdk.backends.postgres import schema
from mycelium_sdk.backends.postgres.pool import Connection, Pool
from mycelium_sdk.backends.postgres.problems import explained, explanation
from mycelium_sdk.errors import BackendError, StoreLocked, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg.rows import TupleRow

    from mycelium_sdk.backends.postgres.target import Target
    from mycelium_sdk.retry import RetryPolicy

T = TypeVar("T")
Values = Sequence[object] | Mapping[str, object]

_GRACE = 5.0
"""Seconds beyond the server's own bound until a server that says nothing is given up."""
_SILENT_WRITER = 60.0
"""Seconds after which the server gives up a writer that holds its lock and says nothing."""
_LENGTHY = 3600.0
"""Seconds that a statement may take that has to do with all of an owner's memories."""
_READ_COMMITTED: LiteralString = "BEGIN ISOLATION LEVEL READ COMMITTED"
_SETTINGS: LiteralString = """
SELECT set_config('search_path', %s, true), set_config('statement_timeout', %s, true),
    set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true)
"""
_COLLISIONS = frozenset(("40001", "40P01"))


class _Kind(NamedTuple):
    """How a transaction begins. `statement`, `idle`: bounds in seconds; 0 for none of the latter."""

    begin: LiteralString
    statement: float
    idle: float


class _Broken(StoreUnavailable):
    """The connection broke, and nothing was committed."""


class _Collided(StoreLocked):
    """The server chose this transaction to give way, and nothing was committed."""


class _Unknown(StoreUnavailable):
    """The connection broke while committing."""


class Connections:
    """Transactions on a target. `retry` says how often, and when, what failed is done again."""

    def __init__(self, target: Target, *, pool_size: int, retry: RetryPolicy) -> None:
        self.target = target
        self._retry = retry
        self._pool = Pool(target, pool_size, self._prepare)
        self._reading = _Kind("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", target.statement_timeout, 0)
        self._writing = _Kind(
            "BEGIN ISOLATION LEVEL READ COMMITTED", target.statement_timeout, _SILENT_WRITER
        )
        self._lengthy = _Kind("BEGIN ISOLATION LEVEL READ COMMITTED", _LENGTHY, 0)

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` makes of one unchanging state."""

        def once() -> T:
            with self._reading_now() as connection:
                return work(connection)

        return self._retry.call(once)

    def write(self, work: Callable[[Connection], T], *, repeatable: bool, lengthy: bool = False) -> T:
        """What `work` does in one transaction, durable when this returns.

        Done again where the connection breaks, unless it breaks while committing what is not `repeatable`:
        then nobody knows, and a `StoreUnavailable` says so. `lengthy`: its statements may take long.
        """
        kind = self._writing._replace(statement=_LENGTHY) if lengthy else self._writing

        def once() -> T | _Unknown:
            try:
                with self._transaction(self._begun(kind)) as connection:
                    return work(connection)
            except _Unknown as error:
                if repeatable:
                    raise
                return error

        done = self._retry.call(once)
        if isinstance(done, _Unknown):
            raise done
        return done

    def ask(self, statement: LiteralString, values: Values) -> list[TupleRow]:
        """The rows of one query, in one exchange with the server."""

        def once() -> list[TupleRow]:
            with self._reading_now() as connection:
                rows = connection.execute(statement, values)
            return rows.fetchall()

        return self._retry.call(once)

    def run(self, statement: LiteralString, values: Sequence[object]) -> None:
        """One statement that does no harm twice, in a transaction of its own."""

        def work(connection: Connection) -> None:
            connection.execute(statement, values)

        self.write(work, repeatable=True)

    @contextlib.contextmanager
    def viewing(self) -> Iterator[Connection]:
        """One unchanging state, for as long as the caller likes."""
        with self._transaction(self._retry.call(partial(self._begun, self._reading))) as connection:
            yield connection

    @contextlib.contextmanager
    def lengthy(self) -> Iterator[Connection]:
        """A transaction whose statements may take long, and the time between them as well; not done again."""
        with self._transaction(self._retry.call(partial(self._begun, self._lengthy))) as connection:
            yield connection

    @contextlib.contextmanager
    def outside(self) -> Iterator[Connection]:
        """A connection outside of any transaction, for what refuses one."""
        connection = self._pool.take()
        try:
            with explained(self.target):
                connection.patience = None
                yield connection
        finally:
            self._pool.give_back(connection)

    def close(self) -> None:
        """Close all. Harmless when repeated."""
        self._pool.close()

    @contextlib.contextmanager
    def _reading_now(self) -> Iterator[Connection]:
        """A transaction whose statements are sent when an answer is wanted, so that few exchanges do.

        Not for writing: amid such a pipeline the server cannot tell that a writer went silent.
        """
        connection = self._pool.take()
        try:
            connection.patience = self._reading.statement + _GRACE
            with connection.pipeline():
                self._begin(connection, self._reading)
                yield connection
                connection.execute("COMMIT")
        except psycopg.Error as error:
            raise self._told(error, connection, committing=False) from None
        finally:
            self._pool.give_back(connection)

    def _begun(self, kind: _Kind) -> Connection:
        connection = self._pool.take()
        try:
            connection.patience = kind.statement + _GRACE
            with connection.pipeline():
                self._begin(connection, kind)
        except psycopg.Error as error:
            told = self._told(error, connection, committing=False)
            self._pool.give_back(connection)
            raise told from None
        return connection

    @contextlib.contextmanager
    def _transaction(self, connection: Connection) -> Iterator[Connection]:
        committing = False
        try:
            yield connection
            committing = True
            connection.execute("COMMIT")
        except psycopg.Error as error:
            raise self._told(error, connection, committing=committing) from None
        finally:
            self._pool.give_back(connection)

    def _begin(self, connection: Connection, kind: _Kind) -> None:
        bounds = (kind.statement, self.target.busy_timeout, kind.idle)
        connection.execute(kind.begin)
        connection.execute(
            _SETTINGS, (f"{self.target.schema}, pg_temp", *(str(_milliseconds(bound)) for bound in bounds))
        )

    def _told(self, error: psycopg.Error, connection: Connection, *, committing: bool) -> BackendError:
        told = explanation(error, self.target)
        if error.sqlstate in _COLLISIONS:
            return _Collided(told.message, hint=told.hint)
        if not connection.closed or not isinstance(told, StoreUnavailable):
            return told
        if committing:
            return _Unknown(
                f"{self.target.place} broke off while committing: perhaps it is done, perhaps not",
                hint="do it again: what is there already is not added, or removed, twice",
            )
        return _Broken(told.message, hint=told.hint)

    def _prepare(self, connection: Connection) -> None:
        with explained(self.target):
            connection.patience = self.target.connect_timeout + self.target.busy_timeout
            schema.prepare(connection, self.target)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000)) if seconds else 0

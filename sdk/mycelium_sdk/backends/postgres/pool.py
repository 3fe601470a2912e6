"""Connections kept open between transactions, made by whoever needs one, so that errors come at once."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from mycelium_sdk.backends.postgres.problems import closed, crowded, not_connected

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg.abc import PQGen

    from mycelium_sdk.backends.postgres.target import Target

T = TypeVar("T")

_FRESH = 1.0
"""A connection that was used so many seconds ago is not asked whether it still lives."""
_ALIVE = 5.0
"""Seconds that one that is asked may take to answer."""

_abandoned: list[Connection] = []
"""Connections that a forked child inherited: they are its parent's, and not the child's to close."""


class Connection(psycopg.Connection[TupleRow]):
    """A connection that does not wait for its server for ever. `patience`: in seconds, None for no bound."""

    patience: float | None = None
    used = 0.0

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """See `psycopg.Connection.wait`. A connection that is given up amid an answer is closed."""
        bound = self.patience if timeout is None else timeout
        started = time.monotonic()
        try:
            return super().wait(gen, interval, bound)
        except psycopg.OperationalError:
            if bound is not None and time.monotonic() - started >= bound:
                self.pgconn.finish()
            raise


class Pool:
    """At most `size` connections at once. `prepare` is done once, with the first of them."""

    def __init__(self, target: Target, size: int, prepare: Callable[[Connection], None]) -> None:
        self._target = target
        self._size = size
        self._prepare = prepare
        self._closed = False
        self._idle: list[Connection] = []
        self._start_anew()

    def take(self) -> Connection:
        """A connection that lives, for the caller alone.

        Raises `StoreLocked` if none becomes free in time, `BackendError` if none can be made.
        """
        if self._process != os.getpid():
            _abandoned.extend(self._idle)
            self._start_anew()
        if not self._free.acquire(timeout=self._target.connect_timeout):
            raise crowded(self._target)
        try:
            return self._idle_one() or self._new_one()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep it for the next one, once what it still does is ended."""
        if not connection.closed and connection.info.transaction_status is not TransactionStatus.IDLE:
            try:
                connection.rollback()
            except psycopg.Error:
                connection.close()
        connection.used = time.monotonic()
        with self._lock:
            keep = not connection.closed and not self._closed
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()
        self._free.release()

    def close(self) -> None:
        """Close those that nobody uses, and the others when they are given back. Harmless when repeated."""
        if self._process != os.getpid():  # a thread that only the parent has may hold the lock
            _abandoned.extend(self._idle)
            self._start_anew()
        with self._lock:
            self._closed = True
            idle = self._idle
            self._idle = []
        for connection in idle:
            connection.close()

    def _start_anew(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self._size)
        self._idle = []
        self._prepared = False

    def _idle_one(self) -> Connection | None:
        while True:
            with self._lock:
                if self._closed:
                    raise closed()
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if _lives(connection):
                return connection
            connection.close()

    def _new_one(self) -> Connection:
        parameters: dict[str, Any] = self._target.parameters
        try:
            connection = Connection.connect(**parameters, autocommit=True)
        except psycopg.Error as error:
            raise not_connected(error, self._target) from None
        try:
            with self._lock:
                if not self._prepared:
                    self._prepare(connection)
                    self._prepared = True
        except BaseException:
            connection.close()
            raise
        return connection


def _lives(connection: Connection) -> bool:
    if time.monotonic() - connection.used < _FRESH:
        return not connection.closed
    connection.patience = _ALIVE
    try:
        connection.execute("")
    except psycopg.Error:
        return False
    return True

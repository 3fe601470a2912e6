"""PostgreSQL's errors in this package's words, in one place.

Told by SQLSTATE, never by text. A server's message about a statement may quote what was written, so such an
error is neither repeated nor chained; that of a connection that failed has nothing of the memory in it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import psycopg

from mycelium_sdk.errors import BackendError, StoreLocked, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mycelium_sdk.backends.postgres.target import Target

_AGAIN = "try again; nothing that was acknowledged is lost"

_LOCKED = frozenset(("55P03", "40001", "40P01"))  # lock_not_available, serialization_failure, deadlock
_CANCELED = "57014"
_STOPPED = ("08", "57")  # connection exceptions; operator intervention
_PASSING = ("53200", "53300", "57", "25P03")  # memory, connections; operator; a writer that was given up

_FIXES = {
    "42501": ("the role may not do this", "GRANT CREATE ON DATABASE to it, or make it the schema's owner"),
    "25006": ("it is read-only", "connect to the primary server, e.g. target_session_attrs=read-write"),
    "53100": ("the server's disk is full", "free some space there, then try again; nothing was lost"),
    "53300": ("it has too many connections", "lower pool_size, or raise the server's max_connections"),
    "25P03": ("it gave up a transaction that said nothing for long", _AGAIN),
    "57P05": ("it gave up a connection that was idle for long", _AGAIN),
}


@contextlib.contextmanager
def explained(target: Target) -> Iterator[None]:
    """Turn every error of psycopg in the block into the `BackendError` that explains it."""
    try:
        yield
    except psycopg.Error as error:
        raise explanation(error, target) from None


def closed() -> BackendError:
    """What whoever uses a closed backend is told."""
    return BackendError("the memory is closed", hint="open it again")


def crowded(target: Target) -> StoreLocked:
    """What a thread is told that no connection became free for."""
    return StoreLocked(
        f"{target.place}: all connections of this process are in use",
        hint="end what holds one, such as an export, or raise pool_size",
    )


def explanation(error: psycopg.Error, target: Target) -> BackendError:
    """The error in our words."""
    code = error.sqlstate
    if code is None:
        return _without_code(error, target)
    if code in _LOCKED:
        return StoreLocked(
            f"{target.place} is in use by another process", hint="try again when the other process is done"
        )
    if code in _FIXES:
        what, hint = _FIXES[code]
        kind = StoreUnavailable if code.startswith(_PASSING) else BackendError
        return kind(f"cannot use {target.place}: {what}", hint=hint)
    if code == _CANCELED:
        return StoreUnavailable(
            f"{target.place} did not answer within {target.statement_timeout:g} s",
            hint="try again, or raise statement_timeout",
        )
    if code.startswith(_STOPPED):
        return StoreUnavailable(f"{target.place} closed the connection", hint=_AGAIN)
    return BackendError(
        f"{target.place} refused a statement (SQLSTATE {code})", hint="look at the server's log"
    )


def _without_code(error: psycopg.Error, target: Target) -> BackendError:
    """Of libpq's own making: no connection, or one that broke."""
    if not isinstance(error, psycopg.OperationalError):
        return BackendError(f"cannot use {target.place}: {type(error).__name__}")
    return StoreUnavailable(f"{target.place} closed the connection, or does not answer", hint=_AGAIN)


def not_connected(error: psycopg.Error, target: Target) -> BackendError:
    """Why a connection could not be made. libpq's words say it; they never hold the password, and if they
    did, it would be struck out."""
    words = " ".join(str(error).split())
    password = target.parameters.get("password")
    if password:
        words = words.replace(str(password), "***")
    message = f"cannot connect to {target.place}: {words}"
    pgconn = error.pgconn
    if pgconn is not None and (pgconn.needs_password or pgconn.used_password):
        return BackendError(
            message, hint="check user, password and database of [memory] dsn, MYCELIUM_DSN or ~/.pgpass"
        )
    return StoreUnavailable(message, hint="check that the server runs, and [memory] dsn or MYCELIUM_DSN")

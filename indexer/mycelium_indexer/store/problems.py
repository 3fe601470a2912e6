"""A database's errors in this package's words: what each kind of database says is told beside its driver
(`mycelium_sdk.sqlite_errors`, `mycelium_sdk.backends.postgres.problems`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mycelium_sdk.errors import BackendError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Explain", "explained"]

Explain = Callable[[BaseException], BackendError]
"""The error that says what a driver's exception means."""


@contextlib.contextmanager
def explained(explain: Explain) -> Iterator[None]:
    """Turn every error of the database in the block into the `BackendError` that explains it."""
    try:
        yield
    except PoolTimeoutError:
        raise StoreLocked(
            "all connections of this process to the database are in use", hint="try again in a moment"
        ) from None
    except DBAPIError as error:
        # Not chained: SQLAlchemy and the drivers quote statements and their values.
        if error.orig is None:
            raise BackendError("the database failed without saying why", hint="look at its log") from None
        raise explain(error.orig) from None

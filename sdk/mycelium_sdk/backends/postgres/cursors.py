"""Reading many rows from the server a few at a time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import LiteralString

    from mycelium_sdk.backends.postgres.pool import Connection

READ_TOGETHER = 1000

_LARGE = 1 << 16

_numbers = itertools.count()


def batches(
    connection: Connection, statement: LiteralString, values: Sequence[object], *, text: int
) -> Generator[list[tuple[Any, ...]], None, None]:
    """The rows of a query, from a cursor on the server, in lists that are short where the texts in the column
    `text` are long."""
    number = 1
    with connection.cursor(f"rows_{next(_numbers)}") as cursor:
        cursor.execute(statement, values, binary=True)
        while rows := cursor.fetchmany(number):
            yield rows
            large = any(len(row[text]) > _LARGE for row in (rows[0], rows[-1]))
            number = 1 if large else min(2 * number, READ_TOGETHER)
